//! What `openai-chat` makes of the parameters.
//!
//! Sources: OpenAI API reference, "Create chat completion"; types of the official Python SDK (openai 3.52.0); the references of the
//! dialects' servers.

use serde_json::Value;

use super::sheet::{Reasoning, Sheet, Text};
use crate::server::refusal::Refusal;

/// A word for how much is said is known to some servers only.
pub(super) fn text(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let text = Text::read(value, sheet)?;
    text.put_form(sheet)?;
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
