//! What `openai-chat` makes of the parameters.
//!
//! Sources: OpenAI API reference, "Create chat completion"; types of the official Python SDK (openai 3.52.0); the references of the
//! dialects' servers.

use serde_json::{Value, json};

use super::sheet::Sheet;
use super::wishes::{Format, Reasoning, SCHEMA, Text};
use crate::server::refusal::Refusal;
use crate::server::responses::tools::Choice;

/// A parameter of the same name where the models are OpenAI's; other servers do not know it, and the client loses nothing.
pub(super) fn at_openai(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    if sheet.is_openais() {
        sheet.set(&[name], value.clone());
    }
    Ok(())
}

/// OpenAI's reasoning models take the longer name only, most other servers the older one only.
pub(super) fn max_output_tokens(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let name = if sheet.is_openais() { "max_completion_tokens" } else { "max_tokens" };
    sheet.set(&[name], value.clone());
    Ok(())
}

pub(super) fn tool_choice(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    match sheet.choose(value)? {
        _ if sheet.tools.is_empty() => {}
        Choice::Auto => sheet.set(&["tool_choice"], "auto"),
        Choice::None => sheet.set(&["tool_choice"], "none"),
        Choice::Required => sheet.set(&["tool_choice"], "required"),
        Choice::One(name) => {
            sheet.set(&["tool_choice"], json!({ "type": "function", "function": { "name": name } }));
        }
    }
    Ok(())
}

/// `true` is what models do without a word. OpenAI refuses the parameter where no tools are.
pub(super) fn parallel_tool_calls(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    if value == false && !sheet.tools.is_empty() {
        sheet.set(&[name], false);
    }
    Ok(())
}

pub(super) fn text(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    const FORMAT: &str = "response_format";
    let text = Text::read(value)?;
    match text.format {
        Format::Plain => {}
        Format::AnyJson => sheet.set(&[FORMAT], json!({ "type": "json_object" })),
        Format::Schema { fields, name, schema } => {
            sheet.set(&[FORMAT, "type"], "json_schema");
            sheet.set(&[FORMAT, "json_schema", "name"], name);
            for name in ["description", "strict"] {
                if let Some(value) = fields.get(name).filter(|value| !value.is_null()) {
                    sheet.set(&[FORMAT, "json_schema", name], value.clone());
                }
            }
            sheet.set(&[FORMAT, "json_schema", "schema"], sheet.written(SCHEMA, schema));
        }
    }
    if !sheet.is_openais() && sheet.dialect() != Some("openrouter") {
        return text.refuse_verbosity(sheet);
    }
    if let Some(verbosity) = text.verbosity {
        sheet.set(&["verbosity"], verbosity);
    }
    Ok(())
}

/// The wire has no summaries.
pub(super) fn reasoning(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    if let Some(effort) = Reasoning::read(value, sheet)?.effort {
        sheet.set(&["reasoning_effort"], effort);
    }
    Ok(())
}

pub(super) fn service_tier(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let tier = value.as_str().unwrap_or_default();
    let has_tiers = sheet.is_openais() || matches!(sheet.dialect(), Some("openrouter" | "groq"));
    match tier {
        "auto" => {}
        _ if has_tiers => sheet.set(&[name], tier),
        "default" => {}
        _ => return Err(sheet.no_word(name, tier)),
    }
    Ok(())
}

/// What every request says. Mistral's own type has no `stream_options`; its streams end with the usage anyway.
pub(super) fn begin(sheet: &mut Sheet<'_>) {
    sheet.set(&["model"], sheet.model);
    sheet.set(&["stream"], true);
    if sheet.dialect() != Some("mistral") {
        sheet.set(&["stream_options", "include_usage"], true);
    }
}
