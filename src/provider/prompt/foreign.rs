//! Items of other providers: their words are text.

use serde_json::Value;

use crate::history::report::{Fact, Refusal, Unsent};
use crate::history::{ReportLine, StoredMessage};
use crate::json;
use crate::model::{Body, Json};
use crate::provider::check::finding::Finding;

/// Fields that hold words, as the providers call them.
const WORDS: &[&str] = &[
    "text",
    "content",
    "summary",
    "code",
    "query",
    "queries",
    "title",
    "url",
    "uri",
    "output",
    "outputs",
    "stdout",
    "stderr",
    "logs",
    "result",
    "results",
    "response",
    "error",
    "error_code",
    "error_message",
    "message",
    "revised_prompt",
];
/// Kinds that tell what was found, run or summed up. The others only ask for it.
const TELLING: &[&str] =
    &["_result", "_output", "compaction", "Result", "Response", "mcp_call", "code_interpreter_call"];
/// Bytes of one text that are sent: more is an image or a file.
const MOST: usize = 100_000;

/// What an opaque chunk of another provider says, in words. `None` if it says nothing that other models can read.
pub(crate) fn as_text(body: &Body, stored: &StoredMessage, at: usize, report: &mut Vec<ReportLine>) -> Option<String> {
    let Body::Opaque { provider, kind, json } = body else { return None };
    let text = words(kind, json);
    let fact = match &text {
        Some(_) => Fact::ToldAsText { kind, provider },
        None => Fact::Removed { kind, why: Unsent::Foreign(provider) },
    };
    report.push(ReportLine::chunk(fact, stored, at));
    text
}

/// What an item of this kind says.
fn words(kind: &str, json: &Json) -> Option<String> {
    if !TELLING.iter().any(|end| kind.ends_with(end)) {
        return None;
    }
    let value = json::value::<Value>(json.as_str()).ok()?;
    let mut found = Vec::new();
    collect(&value, false, &mut found);
    if found.is_empty() { None } else { Some(format!("[{kind}]\n{}", found.join("\n"))) }
}

impl From<Finding> for Refusal {
    fn from(Finding { rule, problem, .. }: Finding) -> Self {
        Self { rule, problem }
    }
}

fn collect(value: &Value, speaks: bool, words: &mut Vec<String>) {
    match value {
        Value::String(text) if speaks && !text.trim().is_empty() && text.len() <= MOST => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, speaks, words)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let speaks = WORDS.contains(&name.as_str());
                if speaks || !value.is_string() {
                    collect(value, speaks, words);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_item_found_is_told_and_its_secrets_are_not() {
        let said = |kind: &str, json: &str| words(kind, &Json::new(json).ok()?);
        let found = r#"{"type":"web_search_tool_result","tool_use_id":"t","content":[
            {"type":"web_search_result","title":"Rust","url":"https://rust.test","encrypted_content":"AA"}]}"#;
        let wanted = "[web_search_tool_result]\nRust\nhttps://rust.test";
        assert_eq!(said("web_search_tool_result", found).as_deref(), Some(wanted));
        assert_eq!(said("compaction", r#"{"content":"So far."}"#).as_deref(), Some("[compaction]\nSo far."));
        assert_eq!(said("compaction", r#"{"encrypted_content":"AA"}"#), None);
        assert_eq!(said("web_search_call", r#"{"action":{"query":"x"}}"#), None);
    }
}
