//! The tool calls of a request's message.

use serde_json::value::RawValue;

use crate::history::Rule;
use crate::model::{Chunk, Extra, Json, Native};
use crate::provider::openai_chat::manner::NAME;
use crate::provider::read::fields::{Fields, Owner, string};
use crate::provider::read::parsed::{Notes, opaque};

/// A call as it is written, whole or in pieces.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Option<&'a RawValue>,
    /// Of type `custom`: its input is text.
    pub(crate) custom: bool,
    pub(crate) extra: Extra,
}

impl<'a> Call<'a> {
    /// An item of `tool_calls`, but for its index. Ollama's own form has name and arguments beside the id.
    pub(crate) fn read(mut fields: Fields<'a>) -> Self {
        let id = fields.text("id").unwrap_or_default();
        fields.take("type");
        let custom = fields.object("custom");
        let is_custom = custom.is_some();
        let mut body = custom.or_else(|| fields.object("function")).unwrap_or_default();
        let name = body.text("name").or_else(|| fields.text("name")).unwrap_or_default();
        let arguments = ["arguments", "input"].iter().find_map(|name| body.take(name).or_else(|| fields.take(name)));
        let mut extra = fields.extra(Owner::Chunk);
        body.extend(Owner::Chunk, &mut extra);
        Self { id, name, arguments, custom: is_custom, extra }
    }

    /// The `function_call` of the time before tools: it has no id, and is answered by name.
    pub(crate) fn function(mut fields: Fields<'a>) -> Self {
        let (name, arguments) = (fields.text("name").unwrap_or_default(), fields.take("arguments"));
        Self { id: String::new(), name, arguments, custom: false, extra: fields.extra(Owner::Chunk) }
    }
}

/// An item of `tool_calls`.
pub(crate) fn tool_call(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Option<Chunk> {
    match Fields::of(raw) {
        Some(fields) => Some(call(Call::read(fields), notes)),
        None => {
            let kind = "tool_calls".to_owned();
            opaque(raw, kind, provider)
        }
    }
}

pub(crate) fn call(call: Call<'_>, notes: &mut Notes<'_>) -> Chunk {
    let Call { id, name, arguments: written, custom, extra } = call;
    let arguments = arguments(written, &id, notes);
    let native = if custom { custom_call(&id, &name, &arguments) } else { None };
    Chunk { native, extra, ..Chunk::tool_call(id, name, arguments) }
}

fn arguments(written: Option<&RawValue>, id: &str, notes: &mut Notes<'_>) -> String {
    let Some(raw) = written else { return String::new() };
    string(raw).unwrap_or_else(|| {
        notes.of_call(Rule::Altered, id, "the arguments are no string; their JSON text stands for them");
        raw.get().to_owned()
    })
}

/// A call whose input is text, as it is written: a function's fields would not give it back.
pub(crate) fn custom_call(id: &str, name: &str, input: &str) -> Option<Native> {
    let call = serde_json::json!({"id": id, "type": "custom", "custom": {"name": name, "input": input}});
    Some(Native { wire: NAME.to_owned(), json: Json::new(call.to_string()).ok()? })
}
