//! Tools that write: they add, and take nothing away but tags.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::wrong::Wrong;
use super::{McpServer, Opened};
use crate::error::Error;
use crate::model::{Chunk, Message};

/// Bytes of the longest note.
const NOTE_BYTES: usize = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    /// The conversation: its id or its key. A new key begins a conversation, as in `notes`
    conversation: String,
    /// The note, up to 64 KiB
    text: String,
}

pub(super) fn append_note(server: &McpServer, opened: &Opened, asked: Note) -> Result<Value, Wrong> {
    if asked.text.trim().is_empty() || asked.text.len() > NOTE_BYTES {
        return Err(Wrong::argument("text", "expected a text of up to 64 KiB"));
    }
    if asked.conversation.trim().is_empty() {
        return Err(Wrong::argument("conversation", "expected an id or a key"));
    }
    let name = server.name(&asked.conversation);
    if name.key().is_none() {
        // Who could begin a conversation of any id could take the id of another owner's key.
        opened.store.describe(&name)?;
    }
    let mut note = Message::assistant([Chunk::text(asked.text)]);
    note.metadata.provider = Some("mcp".to_owned());
    let receipt = opened.store.append(&name, &[note])?;
    Ok(json!({ "conversation": receipt.conversation, "message": receipt.message_indexes.first() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tag {
    /// The conversation: its id or its key
    conversation: String,
    /// Tags to add
    #[serde(default)]
    add: Vec<String>,
    /// Tags to remove
    #[serde(default)]
    remove: Vec<String>,
}

pub(super) fn tag(server: &McpServer, opened: &Opened, asked: Tag) -> Result<Value, Wrong> {
    let name = server.name(&asked.conversation);
    let [add, remove] = [&asked.add, &asked.remove].map(|tags| tags.iter().map(String::as_str).collect::<Vec<_>>());
    let mut tags = opened.store.describe(&name)?.tags;
    if !remove.is_empty() {
        tags = opened.store.untag(&name, &remove)?;
    }
    if !add.is_empty() {
        tags = opened.store.tag(&name, &add)?;
    }
    Ok(json!({ "conversation": name.id(), "tags": tags }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The conversation: its id or its key
    conversation: String,
    /// The index of the last message that both share; all of them by default
    through: Option<u64>,
    /// A key for the fork
    key: Option<String>,
}

pub(super) fn fork(server: &McpServer, opened: &Opened, asked: Fork) -> Result<Value, Wrong> {
    let name = server.name(&asked.conversation);
    let at_seq = match asked.through {
        None => None,
        Some(index) => {
            let found = opened.store.messages(&name, index, 1)?.pop().filter(|stored| stored.index == index);
            let Some(stored) = found else { return Err(Wrong::argument("through", "there is no such message")) };
            Some(stored.last_seq)
        }
    };
    let child = match &asked.key {
        None => crate::model::ConversationId::new().into(),
        Some(key) => Some(server.name(key))
            .filter(|name| name.key().is_some_and(|key| !key.is_empty()))
            .ok_or_else(|| Wrong::argument("key", "expected any text that is no id of a conversation"))?,
    };
    let child = child.with_owner(&*server.owner);
    opened.store.fork_to(&name, at_seq, &child).map_err(|error| match error {
        Error::NameTaken { .. } => Wrong::argument("key", "there is a conversation of that name"),
        error => error.into(),
    })?;
    Ok(json!({ "conversation": child.id(), "key": child.key(), "forked_from": name.id() }))
}
