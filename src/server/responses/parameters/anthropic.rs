//! What `anthropic` makes of the parameters.
//!
//! Sources: Anthropic API reference, "Create a Message"; types of the official Python SDK (anthropic 2.14.0); platform.claude.com:
//! thinking, effort, structured outputs, tool use.

use serde_json::{Value, json};

use super::sheet::{Reasoning, Sheet};
use crate::json::object::Node;
use crate::provider::anthropic::models::{self, Thinks};
use crate::server::refusal::Refusal;

/// The least budget of thinking.
const LEAST_BUDGET: u64 = 1_024;

pub(super) fn reasoning(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let asked = Reasoning::read(value, sheet)?;
    let Some(thinking) = Thinking::of(&asked, sheet)? else { return Ok(()) };
    if let Some(node) = thinking.config {
        sheet.set(&["thinking"], node);
    }
    if let Some(effort) = thinking.effort {
        sheet.set(&["output_config", "effort"], effort);
    }
    Ok(())
}

/// How Claude is asked to think, on its own wire and on Converse.
#[derive(Debug)]
pub(super) struct Thinking {
    /// The object `thinking`.
    pub(super) config: Option<Node>,
    pub(super) effort: Option<&'static str>,
}

impl Thinking {
    /// Newer models take an effort and decide themselves, older ones a number of tokens. A summary is thinking that is shown: a
    /// model that decides itself is also asked to think where the request wants nothing but that.
    pub(super) fn of(asked: &Reasoning<'_>, sheet: &mut Sheet<'_>) -> Result<Option<Self>, Refusal> {
        const PARAM: &str = "reasoning.effort";
        let thinks = models::thinks(sheet.model);
        let is_none = asked.effort == Some("none");
        match (thinks, asked.effort) {
            (Thinks::Never, None | Some("none")) => Ok(None),
            (Thinks::Never, Some(effort)) => Err(sheet.no_word(PARAM, effort)),
            (Thinks::Budget | Thinks::IfAsked, Some("none")) | (Thinks::Budget, None) => Ok(None),
            (Thinks::Budget, Some(effort)) => {
                let budget = budget(effort, sheet)?;
                let config = json!({ "type": "enabled", "budget_tokens": budget });
                Ok(Some(Self { config: Some(config.into()), effort: None }))
            }
            (Thinks::UnlessAsked, _) if is_none => Ok(Some(Self::only("disabled"))),
            (Thinks::BetweenTools, _) if is_none => Ok(Some(Self::only("between_tools"))),
            (Thinks::Always, _) if is_none => Err(sheet.no_word(PARAM, "none")),
            (_, None) if !asked.summary => Ok(None),
            (_, effort) => {
                let config = match asked.summary {
                    true => json!({ "type": "adaptive", "display": "summarized" }),
                    false => json!({ "type": "adaptive" }),
                };
                let effort = effort.map(|word| adaptive_effort(word, &mut sheet.report));
                Ok(Some(Self { config: Some(config.into()), effort }))
            }
        }
    }

    fn only(kind: &str) -> Self {
        Self { config: Some(json!({ "type": kind }).into()), effort: None }
    }
}

fn adaptive_effort(word: &str, report: &mut Vec<String>) -> &'static str {
    match word {
        "low" => "low",
        "high" => "high",
        "xhigh" => "xhigh",
        "max" => "max",
        "medium" => "medium",
        _ => {
            report.push(format!("reasoning.effort: '{word}' is sent as 'low'"));
            "low"
        }
    }
}

/// It counts towards the tokens of the answer: at most half of them.
fn budget(effort: &str, sheet: &Sheet<'_>) -> Result<u64, Refusal> {
    let wanted = match effort {
        "minimal" => LEAST_BUDGET,
        "low" => 4_096,
        "medium" => 8_192,
        "high" => 16_384,
        _ => 31_999,
    };
    let answer = sheet.answer_tokens.unwrap_or_else(|| models::answer_tokens(sheet.model));
    let budget = wanted.min(answer / 2);
    if budget < LEAST_BUDGET {
        let problem = format!("to think, {} needs max_output_tokens of at least {}", sheet.model, 2 * LEAST_BUDGET);
        return Err(Refusal::value("max_output_tokens", &problem));
    }
    Ok(budget)
}

/// Priority is not asked for by request.
pub(super) fn service_tier(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    match value.as_str().unwrap_or_default() {
        "auto" => {}
        "default" => sheet.set(&[name], "standard_only"),
        tier => return Err(sheet.no_word(name, tier)),
    }
    Ok(())
}

/// What every request says. The wire has no default of `max_tokens`.
pub(super) fn begin(sheet: &mut Sheet<'_>) {
    sheet.set(&["model"], sheet.model);
    sheet.set(&["max_tokens"], models::answer_tokens(sheet.model));
    sheet.set(&["stream"], true);
}

/// Newer models only keep to strict tools.
pub(super) fn end(sheet: &mut Sheet<'_>) {
    if models::takes_strict(sheet.model) != Some(true) {
        forget_strict(sheet);
    }
}

/// Takes the word `strict` from tools, and says so.
pub(super) fn forget_strict(sheet: &mut Sheet<'_>) {
    let mut is_lost = false;
    for tool in &mut sheet.tools.functions {
        is_lost |= tool.strict.take() == Some(true);
    }
    if is_lost {
        sheet.report.push(format!("tools: {} has no word for strict with {}: not sent", sheet.target, sheet.model));
    }
}
