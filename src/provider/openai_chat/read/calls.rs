//! The tool calls of a request's message.

use serde_json::value::RawValue;

use crate::history::report::Fact;
use crate::json::fields::{Fields, is_empty, string};
use crate::json::ordered::Ordered;
use crate::model::extra::{Owner, json};
use crate::model::{Chunk, Extra, Json, Native};
use crate::provider::openai_chat::manner::NAME;
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
    pub(crate) form: Form,
}

/// How a call is written: what the chunk's fields do not tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// Whether it states its type.
    pub(crate) typed: bool,
    /// The fields beside its function's.
    pub(crate) beside: Ordered<Json>,
    /// The fields of its function, but for name and arguments.
    pub(crate) within: Ordered<Json>,
}

impl<'a> Call<'a> {
    /// An item of `tool_calls`, but for its index. Ollama's own form has name and arguments beside the id, LangChain's name and
    /// args.
    pub(crate) fn read(mut fields: Fields<'a>) -> Self {
        let id = fields.text("id").unwrap_or_default();
        let typed = fields.take("type").is_some();
        let function = fields.object("function");
        // Some servers send an empty `custom` beside the function.
        let custom = if function.is_none() { fields.object("custom") } else { None };
        let is_custom = custom.is_some();
        let mut body = custom.or(function).unwrap_or_default();
        let name = body.text("name").or_else(|| fields.text("name")).unwrap_or_default();
        let arguments =
            ["arguments", "input", "args"].iter().find_map(|name| body.take(name).or_else(|| fields.take(name)));
        fields.take("index");
        let kept = |fields: &Fields<'_>| -> Ordered<Json> {
            fields.present().filter_map(|(name, raw)| Some((name.to_owned(), json(raw)?))).collect()
        };
        let form = Form { typed, beside: kept(&fields), within: kept(&body) };
        let mut extra = fields.extra(Owner::Chunk);
        body.extend(Owner::Chunk, &mut extra);
        Self { id, name, arguments, custom: is_custom, extra, form }
    }

    /// The `function_call` of the time before tools: it has no id, and is answered by name.
    pub(crate) fn function(mut fields: Fields<'a>) -> Self {
        let (name, arguments) = (fields.text("name").unwrap_or_default(), fields.take("arguments"));
        let form = Form { typed: true, ..Form::default() };
        Self { id: String::new(), name, arguments, custom: false, extra: fields.extra(Owner::Chunk), form }
    }
}

impl Form {
    /// Adds what a later piece of the call has.
    pub(crate) fn add(&mut self, later: Self) {
        self.typed |= later.typed;
        for (known, fields) in [(&mut self.beside, later.beside), (&mut self.within, later.within)] {
            fields.into_iter().for_each(|(name, value)| known.add(name, value));
        }
    }

    /// The call as it was written, where the chunk's fields would not give it back.
    pub(crate) fn native(&self, id: &str, name: &str, arguments: &str) -> Option<Native> {
        if self.typed && self.beside.is_empty() && self.within.is_empty() {
            return None;
        }
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let rest = |fields: &Ordered<Json>| -> String {
            fields.iter().map(|(name, value)| format!(",{}:{}", text(name), value.as_str())).collect()
        };
        let kind = if self.typed { "\"type\":\"function\"," } else { "" };
        let function = format!("{{\"name\":{},\"arguments\":{}{}}}", text(name), text(arguments), rest(&self.within));
        let call = format!("{{\"id\":{},{kind}\"function\":{function}{}}}", text(id), rest(&self.beside));
        Some(Native { wire: NAME.to_owned(), json: Json::new(call).ok()? })
    }
}

/// Takes the `function_call` of a message, if it calls a function: some servers send an empty one.
pub(crate) fn function<'a>(fields: &mut Fields<'a>) -> Option<Fields<'a>> {
    let call = fields.peek("function_call").and_then(Fields::of)?;
    let says = |name: &str| call.peek(name).is_some_and(|raw| !is_empty(raw));
    if says("name") || says("arguments") { fields.object("function_call") } else { None }
}

/// An item of `tool_calls`.
pub(crate) fn tool_call(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Option<Chunk> {
    match Fields::of(raw) {
        Some(fields) => {
            let mut written = Call::read(fields);
            written.form.typed = true;
            Some(call(written, notes))
        }
        None => {
            let kind = "tool_calls".to_owned();
            opaque(raw, kind, provider)
        }
    }
}

pub(crate) fn call(call: Call<'_>, notes: &mut Notes<'_>) -> Chunk {
    let Call { id, name, arguments: written, custom, extra, form } = call;
    let arguments = arguments(written, &id, notes);
    let native = if custom { custom_call(&id, &name, &arguments) } else { form.native(&id, &name, &arguments) };
    Chunk { native, extra, ..Chunk::tool_call(id, name, arguments) }
}

fn arguments(written: Option<&RawValue>, id: &str, notes: &mut Notes<'_>) -> String {
    let Some(raw) = written else { return String::new() };
    string(raw).unwrap_or_else(|| {
        notes.of_call(Fact::ArgumentsAsText, id);
        raw.get().to_owned()
    })
}

/// A call whose input is text, as it is written: a function's fields would not give it back.
pub(crate) fn custom_call(id: &str, name: &str, input: &str) -> Option<Native> {
    let call = serde_json::json!({"id": id, "type": "custom", "custom": {"name": name, "input": input}});
    Some(Native { wire: NAME.to_owned(), json: Json::new(call.to_string()).ok()? })
}
