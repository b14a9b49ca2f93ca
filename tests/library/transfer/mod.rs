//! Conversations from other programs' files, and into them.

mod again;
mod databases;
mod exports;
mod generated;
mod hostile;
mod lossless;
mod rows;
mod samples;
mod sessions;

use std::path::{Path, PathBuf};

use conversation_store::model::{Body, ConversationId, Message};
use conversation_store::provider::PromptOptions;
use conversation_store::transfer::{ImportOptions, ImportSummary, Imported, Input, Progress, import};
use conversation_store::{Conversation, Error, ListQuery, Store, next_step};

/// What a run of the importer came to.
struct Run {
    summary: Result<ImportSummary, Error>,
    conversations: Vec<Imported>,
    notes: Vec<String>,
}

fn run(store: Option<&Store>, path: &Path, options: &ImportOptions) -> Run {
    let (mut conversations, mut notes) = (Vec::new(), Vec::new());
    let summary = import(store, Input::Path(path), options, &mut |event| match event {
        Progress::Conversation(imported) => conversations.push(imported.clone()),
        Progress::Note(note) => notes.push(note.to_owned()),
        _ => {}
    });
    Run { summary, conversations, notes }
}

/// A store with what a text is imported to.
fn imported(name: &str, text: impl AsRef<[u8]>) -> (Store, Run) {
    let store = Store::open("memory:").unwrap();
    let run = into(&store, name, text);
    (store, run)
}

/// Imports a text as a file of this name.
fn into(store: &Store, name: &str, text: impl AsRef<[u8]>) -> Run {
    let dir = crate::common::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    run(Some(store), &path, &ImportOptions::default())
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transfer").join(name)
}

fn conversations(store: &Store) -> Vec<ConversationId> {
    store.list(&ListQuery::new().with_limit(1000)).unwrap().items.iter().map(|item| item.id).collect()
}

fn messages(store: &Store, name: &str) -> Vec<Message> {
    store.load_raw(name).unwrap().into_iter().map(|stored| stored.message).collect()
}

/// Fails unless every conversation renders for every target, accepted and conserved.
fn assert_works(store: &Store) {
    for id in conversations(store) {
        let log = store.load_raw(id).unwrap();
        let conversation = Conversation::new(log.clone());
        let _ = next_step(&store.load(id).unwrap());
        for target in crate::common::prompts::targets() {
            if let Some(prompt) = crate::common::prompts::prompt_of(target, &conversation, &PromptOptions::new()) {
                crate::common::prompts::assert_accepted(target, &prompt);
                crate::common::prompts::assert_conserved(target, &log, &prompt);
            }
        }
    }
}

/// How many chunks of a kind a store holds.
fn count(store: &Store, kind: &str) -> usize {
    let of = |id: &ConversationId| {
        let messages = store.load_raw(*id).unwrap();
        messages.iter().flat_map(|stored| &stored.message.chunks).filter(|chunk| chunk.body.kind() == kind).count()
    };
    conversations(store).iter().map(of).sum()
}

/// The calls that no result answers, in the order of a log.
fn unanswered(messages: &[Message]) -> Vec<&str> {
    let mut open = Vec::new();
    for chunk in messages.iter().flat_map(|message| &message.chunks) {
        match &chunk.body {
            Body::ToolCall { id, .. } => open.push(id.as_str()),
            Body::ToolResult { tool_call_id, .. } => open.retain(|id| id != tool_call_id),
            _ => {}
        }
    }
    open
}
