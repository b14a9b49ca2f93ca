//! What is in the index: a document for each title, for the text of each message, for each of its calls and results, and one for
//! the state in which a conversation was read. No text is stored, only which words it has.

use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::{TantivyDocument, Term};

use super::words;
use crate::history::StoredMessage;
use crate::json;
use crate::log::ListItem;
use crate::model::{Body, ConversationId, Message, Output, PartBody, Role, Timestamp};

/// Bytes of a text that are indexed.
const TEXT_BYTES: usize = 1024 * 1024;

/// The number of a chunk, where a document is of a whole message, or of a title.
const NO_CHUNK: u64 = u64::MAX;

/// Which part of a conversation a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Title,
    /// The texts of a message.
    Text,
    Call,
    Result,
}

/// A part of a conversation that is searched, in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) part: Part,
    /// The position of a call or a result in its message.
    pub(super) chunk: Option<usize>,
    pub(super) text: String,
}

/// The fields of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// The conversation, a colon, and what the document is of: a message index, `title` or `state`.
    key: Field,
    /// The conversation, so that all its documents can be removed at once.
    pub(super) conversation: Field,
    /// The owner of a message or title.
    pub(super) owner: Field,
    /// The owner of a conversation whose state this is.
    pub(super) state_of: Field,
    pub(super) part: Field,
    pub(super) role: Field,
    /// The words as they are.
    pub(super) text: Field,
    /// Their stems.
    pub(super) stems: Field,
    /// When it was said, in microseconds.
    pub(super) at: Field,
    high: Field,
    low: Field,
    message: Field,
    chunk: Field,
    incarnation: Field,
    seq: Field,
}

/// Fields that are read for each document found, by name: the halves of the id; the message index and the chunk's position; the
/// part; the state.
pub(super) const HIGH: &str = "high";
pub(super) const LOW: &str = "low";
pub(super) const MESSAGE: &str = "message";
pub(super) const CHUNK: &str = "chunk";
pub(super) const INCARNATION: &str = "incarnation";
pub(super) const SEQ: &str = "seq";

pub(super) fn schema() -> Schema {
    let mut schema = Schema::builder();
    for name in ["key", "conversation", "owner", "state_of", "part", "role"] {
        schema.add_text_field(name, STRING);
    }
    for (name, tokenizer) in [("text", words::NAME), ("stems", words::STEMS)] {
        let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer);
        let indexing = indexing.set_index_option(IndexRecordOption::WithFreqsAndPositions);
        schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing));
    }
    schema.add_i64_field("at", FAST);
    for name in [HIGH, LOW, MESSAGE, CHUNK, INCARNATION, SEQ] {
        schema.add_u64_field(name, FAST);
    }
    schema.build()
}

impl Part {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Text => "text",
            Self::Call => "call",
            Self::Result => "result",
        }
    }
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
            part: field("part")?,
            role: field("role")?,
            text: field("text")?,
            stems: field("stems")?,
            at: field("at")?,
            high: field(HIGH)?,
            low: field(LOW)?,
            message: field(MESSAGE)?,
            chunk: field(CHUNK)?,
            incarnation: field(INCARNATION)?,
            seq: field(SEQ)?,
        })
    }

    /// All documents of a conversation.
    pub(super) fn all_of(&self, id: ConversationId) -> Term {
        Term::from_field_text(self.conversation, &id.to_string())
    }

    /// The documents of a message.
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

    /// The documents of a message.
    pub(super) fn message(&self, item: &ListItem, stored: &StoredMessage) -> Vec<TantivyDocument> {
        let at = stored.message.metadata.created_at.unwrap_or(item.created_at);
        let document = |section: Section| {
            let mut document = self.searchable(item, &stored.index.to_string(), &section, at);
            document.add_u64(self.message, stored.index);
            document.add_text(self.role, stored.message.role.as_str());
            document
        };
        sections(&stored.message).into_iter().map(document).collect()
    }

    pub(super) fn title(&self, item: &ListItem, title: &str) -> TantivyDocument {
        let section = Section { part: Part::Title, chunk: None, text: title.to_owned() };
        self.searchable(item, "title", &section, item.created_at)
    }

    /// The state in which a conversation was read: its incarnation, and the last seq.
    pub(super) fn state_document(&self, id: ConversationId, owner: &str, state: State) -> TantivyDocument {
        let mut document = self.document(id, "state");
        document.add_text(self.state_of, owner);
        document.add_u64(self.incarnation, state.incarnation);
        document.add_u64(self.seq, state.seq);
        document
    }

    fn searchable(&self, item: &ListItem, what: &str, section: &Section, at: Timestamp) -> TantivyDocument {
        let mut document = self.document(item.id, what);
        document.add_text(self.owner, &item.owner);
        document.add_text(self.part, section.part.as_str());
        document.add_text(self.text, &section.text);
        document.add_text(self.stems, &section.text);
        document.add_u64(self.chunk, section.chunk.map_or(NO_CHUNK, |chunk| chunk as u64));
        document.add_i64(self.at, at.as_micros());
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

/// The position of a chunk, if a document is of one.
pub(super) fn chunk(number: u64) -> Option<usize> {
    usize::try_from(number).ok().filter(|_| number != NO_CHUNK)
}

/// What is searched of a message: what the user or the model wrote, each call, and each result.
pub(super) fn sections(message: &Message) -> Vec<Section> {
    let text = text(message);
    let text = Some(Section { part: Part::Text, chunk: None, text }).filter(|section| !section.text.is_empty());
    let chunks = message.chunks.iter().enumerate().filter_map(|(at, chunk)| {
        let (part, text) = match &chunk.body {
            Body::ToolCall { name, arguments, .. } => (Part::Call, format!("{name}\n{}", plain(arguments))),
            Body::ToolResult { output, .. } => (Part::Result, output_text(output)),
            _ => return None,
        };
        Some(Section { part, chunk: Some(at), text: cut(&text).to_owned() }).filter(|section| !section.text.is_empty())
    });
    text.into_iter().chain(chunks).collect()
}

/// What the user or the model wrote, up to a limit.
fn text(message: &Message) -> String {
    let mut text = String::new();
    for chunk in &message.chunks {
        let (Body::Text { text: part, .. } | Body::Refusal { text: part }) = &chunk.body else { continue };
        append(&mut text, part);
    }
    text
}

/// The texts of a result, up to a limit.
fn output_text(output: &Output) -> String {
    match output {
        Output::Text(text) => plain(text),
        Output::Parts(parts) => parts.iter().fold(String::new(), |mut text, part| {
            match &part.body {
                PartBody::Text { text: part } => append(&mut text, &plain(part)),
                PartBody::Json { json } => append(&mut text, &plain(json.as_str())),
                _ => {}
            }
            text
        }),
    }
}

fn append(text: &mut String, part: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    let room = TEXT_BYTES.saturating_sub(text.len());
    text.push_str(part.get(..json::boundary(part, room)).unwrap_or_default());
}

fn cut(text: &str) -> &str {
    text.get(..json::boundary(text, TEXT_BYTES)).unwrap_or_default()
}

/// JSON as a person would read it out: names and values, without escapes. Anything else stays as it is.
fn plain(text: &str) -> String {
    let is_json = text.trim_start().starts_with(['{', '[']) && text.len() <= TEXT_BYTES;
    match is_json.then(|| serde_json::from_str::<serde_json::Value>(text)) {
        Some(Ok(value)) => {
            let mut out = String::new();
            read_out(&value, &mut out);
            out
        }
        _ => text.to_owned(),
    }
}

fn read_out(value: &serde_json::Value, out: &mut String) {
    use serde_json::Value;
    match value {
        Value::String(text) => out.push_str(text),
        Value::Array(values) => values.iter().enumerate().for_each(|(at, value)| {
            out.push_str(if at > 0 { ", " } else { "" });
            read_out(value, out);
        }),
        Value::Object(fields) => fields.iter().enumerate().for_each(|(at, (name, value))| {
            out.push_str(if at > 0 { ", " } else { "" });
            out.push_str(name);
            out.push_str(": ");
            read_out(value, out);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

/// The roles as a document has them.
pub(super) fn role(fields: &Fields, role: Role) -> Term {
    Term::from_field_text(fields.role, role.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Chunk;

    #[test]
    fn calls_and_results_are_read_out() {
        let call = Chunk::tool_call("call_1", "read_file", r#"{"lines":[1,20],"note":"one\ntwo","path":"src/a.rs"}"#);
        let message = Message::assistant([Chunk::text("I look."), call, Chunk::tool_result("call_1", "{\"a\":null}")]);
        let found: Vec<_> = sections(&message).into_iter().map(|part| (part.part, part.chunk, part.text)).collect();
        let call = "read_file\nlines: 1, 20, note: one\ntwo, path: src/a.rs";
        let wanted = [(Part::Text, None, "I look."), (Part::Call, Some(1), call), (Part::Result, Some(2), "a: null")];
        assert_eq!(found, wanted.map(|(part, chunk, text)| (part, chunk, text.to_owned())));
        assert_eq!(plain("{broken"), "{broken");
    }
}
