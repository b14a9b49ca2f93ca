//! What `gemini` makes of the parameters.
//!
//! Sources: Gemini API reference, `GenerateContentRequest` and `GenerationConfig`; types of the official Python SDK (google-genai
//! 3.4.0); ai.google.dev, thinking, and OpenAI compatibility for what efforts are.

use serde_json::Value;

use super::sheet::{Reasoning, Sheet};
use crate::provider::gemini::models::{self, Thinks};
use crate::server::refusal::Refusal;

const CONFIG: &str = "generationConfig";
const THINKING: &str = "thinkingConfig";
/// Most tokens of thinking of the models that take a number.
const MOST_BUDGET: u64 = 24_576;

/// From version 3 on models take a level, before it a number of tokens. Which of them can be asked not to think: ai.google.dev.
pub(super) fn reasoning(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    const PARAM: &str = "reasoning.effort";
    let asked = Reasoning::read(value, sheet)?;
    match (models::thinks(sheet.model), asked.effort) {
        (_, None) => {}
        (Thinks::Never, Some("none")) => return Ok(()),
        (Thinks::Never, Some(effort)) => return Err(sheet.no_word(PARAM, effort)),
        (Thinks::Budget { may_be_none: true }, Some("none")) => {
            sheet.set(&[CONFIG, THINKING, "thinkingBudget"], 0);
            return Ok(());
        }
        (_, Some("none")) => return Err(sheet.no_word(PARAM, "none")),
        (Thinks::Budget { .. }, Some(effort)) => {
            let budget = match effort {
                "minimal" | "low" => 1_024,
                "medium" => 8_192,
                _ => MOST_BUDGET,
            };
            sheet.set(&[CONFIG, THINKING, "thinkingBudget"], budget);
        }
        (Thinks::Level, Some(effort)) => {
            let level = if matches!(effort, "xhigh" | "max") { "high" } else { effort };
            if level != effort {
                sheet.report.push(format!("{PARAM}: '{effort}' is sent as '{level}'"));
            }
            sheet.set(&[CONFIG, THINKING, "thinkingLevel"], level);
        }
    }
    if asked.summary && models::thinks(sheet.model) != Thinks::Never {
        sheet.set(&[CONFIG, THINKING, "includeThoughts"], true);
    }
    Ok(())
}

pub(super) fn service_tier(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    const TIER: &str = "serviceTier";
    match value.as_str().unwrap_or_default() {
        "auto" => {}
        "default" => sheet.set(&[TIER], "standard"),
        tier @ ("flex" | "priority") => sheet.set(&[TIER], tier),
        tier => return Err(sheet.no_word("service_tier", tier)),
    }
    Ok(())
}
