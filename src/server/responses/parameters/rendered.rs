//! What a request says, as the wire of a model takes it.

use serde_json::{Map, Value};

use super::kinds::unknown;
use super::sheet::Sheet;
use super::table::{Does, TABLE, begin, end};
use crate::json::fields::Fields;
use crate::json::object::Object;
use crate::provider::parameters::at;
use crate::provider::{PromptOptions, Target, Tool};
use crate::server::refusal::Refusal;
use crate::server::responses::tools::{HostedTools, ToolNames, Tools};

/// Parameters of a client's own that mean nothing to a model.
const OF_CLIENT: &str = "client_";

/// What a request says, as the wire of a model takes it.
#[derive(Debug)]
pub(in crate::server::responses) struct Rendered {
    /// For `provider::render`: tools, model, window.
    pub(in crate::server::responses) options: PromptOptions,
    /// The request beside the history.
    pub(in crate::server::responses) fields: Object,
    /// What was not sent, or not as it was asked, in words, one line each.
    pub(in crate::server::responses) report: Vec<String>,
    /// How calls of the model go back to what the client declared.
    pub(in crate::server::responses) tools: ToolNames,
    /// Tools that go as they came, as one that counts as much.
    pub(in crate::server::responses) own_tools: Option<Tool>,
}

/// Reads the parameters of a request. `text` is the same request as it was written: models write the fields of an answer in the
/// order of its schema. `context_tokens`: what the model's window holds, if it is known.
///
/// Every parameter is one of the table; others are refused, but those of the client's own.
pub(in crate::server::responses) fn rendered(
    request: &Map<String, Value>,
    text: &str,
    target: Target,
    model: &str,
    hosted: HostedTools,
    context_tokens: Option<u64>,
) -> Result<Rendered, Refusal> {
    let is_known = |name: &str| TABLE.iter().any(|row| row.name == name) || name.starts_with(OF_CLIENT);
    if let Some(name) = request.keys().find(|name| !is_known(name)) {
        return Err(unknown(name));
    }
    let given = |name: &str| request.get(name).filter(|value| !value.is_null());
    for row in TABLE {
        if let Some(value) = given(row.name) {
            row.kind.check(row.name, value)?;
        }
    }
    if model.is_empty() {
        return Err(Refusal::missing("model"));
    }
    let mut sheet = Sheet {
        target,
        model,
        context_tokens,
        text: Fields::read(text).unwrap_or_default(),
        options: PromptOptions::new().with_model(model),
        fields: Object::default(),
        report: Vec::new(),
        tools: Tools::default(),
        own_tools: None,
        choice: None,
        answer_tokens: given("max_output_tokens").and_then(Value::as_u64),
    };
    if let Some(Value::Array(tools)) = given("tools") {
        sheet.tools = Tools::read(tools, sheet.text.peek("tools"), target, hosted, &mut sheet.report)?;
    }
    begin(&mut sheet);
    for row in TABLE {
        let Some(value) = given(row.name) else { continue };
        match row.on(target) {
            Does::There => {
                if let Some(place) = at(row.name).and_then(|parameter| parameter.place(target)) {
                    let written = sheet.written(&[row.name], value);
                    sheet.fields.put(place, written);
                }
            }
            Does::Mapped(_, map) => map(row.name, value, &mut sheet)?,
            Does::Refused if is_nothing(value) => {}
            Does::Refused => return Err(sheet.no_place(row.name)),
            Does::Kept | Does::Here => {}
        }
    }
    end(&mut sheet);
    let Sheet { mut options, fields, report, tools, own_tools, .. } = sheet;
    options.tools = tools.functions;
    Ok(Rendered { options, fields, report, tools: tools.names, own_tools })
}

/// Whether a value asks for nothing.
fn is_nothing(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}
