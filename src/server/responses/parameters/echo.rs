//! What a response repeats of its request.

use serde_json::{Map, Value, json};

use crate::server::secrets;

/// Fields of a response that repeat the request, and what they are where it is silent.
///
/// Source: OpenAI API reference, the response object, with its defaults; the Open Responses specification for what has to be in it.
fn defaults() -> [(&'static str, Value); 23] {
    [
        ("background", false.into()),
        ("frequency_penalty", 0.0.into()),
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("max_tool_calls", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", true.into()),
        ("presence_penalty", 0.0.into()),
        ("previous_response_id", Value::Null),
        ("prompt_cache_key", Value::Null),
        ("prompt_cache_retention", Value::Null),
        ("reasoning", json!({ "effort": null, "summary": null })),
        ("safety_identifier", Value::Null),
        ("service_tier", "auto".into()),
        ("store", true.into()),
        ("temperature", 1.0.into()),
        ("text", json!({ "format": { "type": "text" }, "verbosity": "medium" })),
        ("tool_choice", "auto".into()),
        ("tools", json!([])),
        ("top_logprobs", 0.into()),
        ("top_p", 1.0.into()),
        ("truncation", "disabled".into()),
        ("user", Value::Null),
    ]
}

/// Fields that are repeated only if they are given.
const IF_GIVEN: &[&str] = &["context_management", "prompt_cache_options", "moderation", "image", "access_programs"];

/// The fields of the response object that repeat the request.
pub(in crate::server::responses) fn echo(request: &Map<String, Value>) -> Map<String, Value> {
    let given = |name: &str| request.get(name).filter(|value| !value.is_null());
    let with_defaults = defaults().into_iter().map(|(name, default)| {
        let value = match (name, given(name)) {
            (_, None) => default,
            ("tools", Some(Value::Array(tools))) => tools.iter().map(tool).collect(),
            ("tool_choice", Some(choice)) => tool_choice(choice),
            ("text", Some(text)) => formatted(over(default, text)),
            ("reasoning", Some(reasoning)) => over(default, reasoning),
            (_, Some(value)) => value.clone(),
        };
        (name.to_owned(), value)
    });
    let others = IF_GIVEN.iter().filter_map(|name| Some(((*name).to_owned(), given(name)?.clone())));
    with_defaults.chain(others).collect()
}

/// An object, and what it does not say.
fn over(mut defaults: Value, given: &Value) -> Value {
    if let (Value::Object(defaults), Value::Object(given)) = (&mut defaults, given) {
        defaults.extend(
            given.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    defaults
}

/// What the store keeps of a key, and a response shows. OpenAI keeps none of the keys of an MCP server (API reference, "MCP tool").
const NO_KEY: &str = "<redacted>";

fn tool(tool: &Value) -> Value {
    let is_function = tool.get("type").is_some_and(|kind| kind == "function");
    if is_function {
        over(json!({ "description": null, "parameters": null, "strict": null }), tool)
    } else {
        let mut tool = tool.clone();
        secrets::replace(&mut tool, &|_| NO_KEY.to_owned());
        tool
    }
}

fn tool_choice(choice: &Value) -> Value {
    let is_list = choice.get("type").is_some_and(|kind| kind == "allowed_tools");
    if is_list { over(json!({ "mode": "auto" }), choice) } else { choice.clone() }
}

fn formatted(mut text: Value) -> Value {
    if let Some(format) =
        text.get_mut("format").filter(|format| format.get("type").is_some_and(|kind| kind == "json_schema"))
    {
        *format = over(json!({ "description": null, "strict": false }), format);
    }
    text
}
