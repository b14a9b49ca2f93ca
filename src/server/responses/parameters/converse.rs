//! What `bedrock-converse` makes of the parameters.
//!
//! Sources: Amazon Bedrock API reference, `ConverseStream`; the service's model in botocore 1.44.8; docs.aws.amazon.com: adaptive
//! and extended thinking of Claude, reasoning of Nova 2.

use serde_json::Value;

use super::anthropic::{Thinking, forget_strict};
use super::sheet::{Reasoning, Sheet};
use crate::provider::anthropic::models;
use crate::server::refusal::Refusal;

/// Parameters of one maker's models.
const OF_MODEL: &str = "additionalModelRequestFields";

/// Each maker's models take it in their own way; of most of them nothing is known.
pub(super) fn reasoning(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    const PARAM: &str = "reasoning.effort";
    let asked = Reasoning::read(value, sheet)?;
    let is_of = |maker: &str| sheet.model.contains(maker);
    if is_of("claude") {
        let Some(thinking) = Thinking::of(&asked, sheet)? else { return Ok(()) };
        if let Some(config) = thinking.config {
            sheet.set(&[OF_MODEL, "thinking"], config);
        }
        if let Some(effort) = thinking.effort {
            sheet.set(&["outputConfig", "effort"], effort);
        }
        return Ok(());
    }
    let (is_nova, is_openais) = (is_of("nova-2"), is_of("gpt-oss"));
    match asked.effort {
        None => {}
        Some("none") if is_nova => {}
        Some(effort @ ("low" | "medium" | "high")) if is_nova => {
            sheet.set(&[OF_MODEL, "reasoningConfig", "type"], "enabled");
            sheet.set(&[OF_MODEL, "reasoningConfig", "maxReasoningEffort"], effort);
        }
        Some(effort @ ("low" | "medium" | "high")) if is_openais => sheet.set(&[OF_MODEL, "reasoning_effort"], effort),
        Some(effort) => return Err(sheet.no_word(PARAM, effort)),
    }
    Ok(())
}

pub(super) fn service_tier(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    match value.as_str().unwrap_or_default() {
        "auto" => {}
        tier @ ("default" | "flex" | "priority") => sheet.set(&["serviceTier", "type"], tier),
        tier => return Err(sheet.no_word(name, tier)),
    }
    Ok(())
}

/// Claude's newer models keep to strict tools.
pub(super) fn end(sheet: &mut Sheet<'_>) {
    if models::takes_strict(sheet.model) != Some(true) {
        forget_strict(sheet);
    }
}
