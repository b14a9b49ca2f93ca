//! What the wire of Responses itself makes of the parameters: nearly all go as they came. State is kept here, and asked of no
//! upstream: it is called with `store` false, and with the whole history.
//!
//! Source: OpenAI API reference, "Create a model response"; types of the official Python SDK (openai 3.52.0); the Open Responses
//! specification, for what servers of others take.

use serde_json::{Value, json};

use super::sheet::Sheet;
use crate::model::Json;
use crate::provider::Tool;
use crate::server::refusal::Refusal;

/// Without it no reasoning could go back to a server that stores nothing.
const ENCRYPTED: &str = "reasoning.encrypted_content";

/// As it came.
pub(super) fn same(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    sheet.set(&[name], sheet.written(&[name], value));
    Ok(())
}

/// As it came, unless it says what every model does without a word: some servers do not know the parameter.
pub(super) fn unless_zero(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    if value.as_f64() != Some(0.0) {
        sheet.set(&[name], value.clone());
    }
    Ok(())
}

/// As they came, if there are any.
pub(super) fn tools(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    if sheet.tools.is_empty() {
        return Ok(());
    }
    sheet.own_tools = Json::new(value.to_string()).ok().map(|tools| Tool::new("", tools));
    same(name, value, sheet)
}

pub(super) fn include(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let mut all: Vec<Value> = value.as_array().cloned().unwrap_or_default();
    if !all.iter().any(|word| word == ENCRYPTED) {
        all.push(ENCRYPTED.into());
    }
    sheet.set(&[name], all);
    Ok(())
}

/// What every request says.
pub(super) fn begin(sheet: &mut Sheet<'_>) {
    sheet.set(&["model"], sheet.model);
    sheet.set(&["stream"], true);
    sheet.set(&["store"], false);
    sheet.set(&["include"], json!([ENCRYPTED]));
}
