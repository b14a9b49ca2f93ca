//! One file for each format: how to recognise, read and write it.

pub(crate) mod ai_sdk;
pub(crate) mod chatgpt;
pub(crate) mod claude_ai;
pub(crate) mod claude_code;
pub(crate) mod codex;
pub(crate) mod documents;
pub(crate) mod finetune;
pub(crate) mod html;
pub(crate) mod items;
pub(crate) mod langchain;
pub(crate) mod librechat;
pub(crate) mod llm;
pub(crate) mod markdown;
pub(crate) mod open_webui;
pub(crate) mod pydantic_ai;
pub(crate) mod rows;
pub(crate) mod session;
pub(crate) mod sharegpt;
pub(crate) mod transcript;

use std::io;

use serde_json::value::{RawValue, to_raw_value};

use super::foreign::Skipped;
use crate::error::Error;
use crate::history::{Conversation, Rule};
use crate::json::fields::Fields;
use crate::provider::{PromptOptions, Target, render};

/// The list of messages of a conversation for a wire; what was left out or altered is counted by its rule.
fn rendered(
    target: Target,
    conversation: &Conversation,
    list: &str,
    skipped: &mut Skipped,
) -> io::Result<Option<Box<RawValue>>> {
    let prompt = match render(target, conversation, &PromptOptions::new()) {
        Ok(prompt) => prompt,
        Err(Error::NothingToSend(_)) => return Ok(None),
        Err(error) => return Err(io::Error::other(error)),
    };
    let mut request = Fields::of(&prompt.request).unwrap_or_default();
    let mut items = request.array(list).unwrap_or_default();
    for line in &prompt.report {
        if line.rule == Rule::BridgeAdded {
            items.pop();
            continue;
        }
        *skipped.entry(line.rule.name()).or_default() += 1;
    }
    let instructions = request.string("instructions").map(|text| {
        serde_json::json!({ "type": "message", "role": "system", "content": [{ "type": "input_text", "text": text }] })
    });
    let instructions = instructions.map(|item| to_raw_value(&item)).transpose()?;
    let all: Vec<&RawValue> = instructions.as_deref().into_iter().chain(items).collect();
    Ok(Some(to_raw_value(&all)?))
}
