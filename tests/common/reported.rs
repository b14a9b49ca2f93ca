//! Histories that broke real products, as they come out of a store.

use conversation_store::model::Line;
use conversation_store::{Store, StoredMessage};
use serde_json::Value;

/// One report.
pub(crate) struct Case {
    pub(crate) id: String,
    /// The wire that refused it: `openai_chat` ..., or `any`.
    pub(crate) target: String,
    pub(crate) messages: Vec<StoredMessage>,
}

/// All reports, each appended message by message, and loaded.
pub(crate) fn cases() -> Vec<Case> {
    let store = Store::open("memory:").unwrap();
    let cases = include_str!("../fixtures/corruption.jsonl").lines().map(|line| {
        let case: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| case[name].as_str().unwrap().to_owned();
        let id = field("id");
        for message in case["history"].as_array().unwrap() {
            let message = Line::from_json(&message.to_string()).unwrap().message;
            store.append(&id, &[message]).unwrap();
        }
        let messages = store.load_raw(&id).unwrap();
        Case { id, target: field("target"), messages }
    });
    cases.collect()
}

/// One report.
pub(crate) fn case(id: &str) -> Case {
    cases().into_iter().find(|case| case.id == id).unwrap_or_else(|| panic!("no case {id}"))
}
