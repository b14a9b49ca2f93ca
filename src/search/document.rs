//! What is in the index: a document for each message and each title, and one for the state in which a conversation was read.
//! No text is stored, only which words it has.

use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::{TantivyDocument, Term};

use super::words;
use crate::model::{Body, ConversationId, Message};

/// Bytes of a message's text that are indexed.
const TEXT_BYTES: usize = 1024 * 1024;

/// The number of a title, where a message has its index.
pub(super) const TITLE: u64 = u64::MAX;

/// The fields of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// The conversation, a colon, and what the document is: a message index, `title` or `state`.
    key: Field,
    /// The conversation, so that all its documents can be removed at once.
    conversation: Field,
    /// The owner of a message or title.
    pub(super) owner: Field,
    /// The owner of a conversation whose state this is.
    pub(super) state_of: Field,
    pub(super) text: Field,
    high: Field,
    low: Field,
    message: Field,
    incarnation: Field,
    seq: Field,
}

/// Fields that are read for each document found, by name: the halves of the id; the message index; the state.
pub(super) const HIGH: &str = "high";
pub(super) const LOW: &str = "low";
pub(super) const MESSAGE: &str = "message";
pub(super) const INCARNATION: &str = "incarnation";
pub(super) const SEQ: &str = "seq";

pub(super) fn schema() -> Schema {
    let mut schema = Schema::builder();
    for name in ["key", "conversation", "owner", "state_of"] {
        schema.add_text_field(name, STRING);
    }
    let text = TextFieldIndexing::default().set_tokenizer(words::NAME);
    let text = text.set_index_option(IndexRecordOption::WithFreqsAndPositions);
    schema.add_text_field("text", TextOptions::default().set_indexing_options(text));
    for name in [HIGH, LOW, MESSAGE, INCARNATION, SEQ] {
        schema.add_u64_field(name, FAST);
    }
    schema.build()
}

impl Fields {
    /// The fields of a schema, if it is the one of this version.
    pub(super) fn of(found: &Schema) -> Option<Self> {
        let field = |name| found.get_field(name).ok();
        (*found == schema()).then_some(())?;
        Some(Self {
            key: field("key")?,
            conversation: field("conversation")?,
            owner: field("owner")?,
            state_of: field("state_of")?,
            text: field("text")?,
            high: field(HIGH)?,
            low: field(LOW)?,
            message: field(MESSAGE)?,
            incarnation: field(INCARNATION)?,
            seq: field(SEQ)?,
        })
    }

    /// All documents of a conversation.
    pub(super) fn all_of(&self, id: ConversationId) -> Term {
        Term::from_field_text(self.conversation, &id.to_string())
    }

    /// The document of a message.
    pub(super) fn message_of(&self, id: ConversationId, index: u64) -> Term {
        Term::from_field_text(self.key, &format!("{id}:{index}"))
    }

    /// The document of a conversation's title.
    pub(super) fn title_of(&self, id: ConversationId) -> Term {
        Term::from_field_text(self.key, &format!("{id}:title"))
    }

    /// The document of a conversation's state.
    pub(super) fn state(&self, id: ConversationId) -> Term {
        Term::from_field_text(self.key, &format!("{id}:state"))
    }

    pub(super) fn message(&self, id: ConversationId, owner: &str, index: u64, text: &str) -> TantivyDocument {
        self.searchable(id, owner, &index.to_string(), index, text)
    }

    pub(super) fn title(&self, id: ConversationId, owner: &str, title: &str) -> TantivyDocument {
        self.searchable(id, owner, "title", TITLE, title)
    }

    /// The state in which a conversation was read: its incarnation, and the last seq.
    pub(super) fn state_document(&self, id: ConversationId, owner: &str, state: State) -> TantivyDocument {
        let mut document = self.document(id, "state");
        document.add_text(self.state_of, owner);
        document.add_u64(self.incarnation, state.incarnation);
        document.add_u64(self.seq, state.seq);
        document
    }

    fn searchable(&self, id: ConversationId, owner: &str, what: &str, message: u64, text: &str) -> TantivyDocument {
        let mut document = self.document(id, what);
        document.add_text(self.owner, owner);
        document.add_text(self.text, text);
        document.add_u64(self.message, message);
        document
    }

    fn document(&self, id: ConversationId, what: &str) -> TantivyDocument {
        let (high, low) = uuid::Uuid::from(id).as_u64_pair();
        let mut document = TantivyDocument::default();
        document.add_text(self.key, format!("{id}:{what}"));
        document.add_text(self.conversation, id.to_string());
        document.add_u64(self.high, high);
        document.add_u64(self.low, low);
        document
    }
}

/// How far a conversation was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) incarnation: u64,
    pub(super) seq: u64,
}

/// The conversation of two halves of an id.
pub(super) fn conversation(high: u64, low: u64) -> ConversationId {
    uuid::Uuid::from_u64_pair(high, low).into()
}

/// The text of a message that is searched: what the user or the model wrote, up to a limit.
pub(super) fn text(message: &Message) -> String {
    let mut text = String::new();
    for chunk in &message.chunks {
        let (Body::Text { text: part, .. } | Body::Refusal { text: part }) = &chunk.body else { continue };
        if !text.is_empty() {
            text.push('\n');
        }
        let room = TEXT_BYTES.saturating_sub(text.len());
        text.push_str(part.get(..words::boundary(part, room)).unwrap_or_default());
    }
    text
}
