//! Rows back into what the store gives out.

use bincode::config::standard;
use conversation_store::model::{self, Chunk, FinishReason, Message, Metadata, Role, Timestamp};
use conversation_store::{Entry, EntryHeader, EntryKind, MessageState, StoredMessage};

use super::rows::{Content, Header, Line};

/// A row in its place.
pub(super) struct Found<'a> {
    pub(super) seq: u64,
    pub(super) time: i64,
    pub(super) message: u64,
    pub(super) chunk: Option<u32>,
    pub(super) role: u8,
    pub(super) line: &'a [u8],
}

impl Header<'_> {
    fn read(&self) -> EntryHeader {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let metadata = Metadata {
            model: owned(self.model),
            provider: owned(self.provider),
            turn_id: owned(self.turn_id),
            step_id: owned(self.step_id),
            id: owned(self.id),
            ..Metadata::default()
        };
        let mut header = EntryHeader::default();
        (header.metadata, header.finish_reason) = (metadata, self.finish_reason.map(FinishReason::from));
        header
    }

    fn fill(&self, stored: &mut StoredMessage) {
        let EntryHeader { metadata, finish_reason, .. } = self.read();
        let created_at = stored.message.metadata.created_at;
        stored.message.metadata = Metadata { created_at, ..metadata };
        stored.message.finish_reason = finish_reason;
    }
}

impl Content<'_> {
    fn read(&self) -> Chunk {
        match *self {
            Self::Text(text) => Chunk::text(text),
            Self::Thinking { text, signature } => {
                let signature = signature.map(str::to_owned);
                model::Body::Thinking { text: text.to_owned(), signature, redacted: None }.into()
            }
            Self::ToolCall { id, name, arguments } => Chunk::tool_call(id, name, arguments),
            Self::ToolResult { tool_call_id, text } => Chunk::tool_result(tool_call_id, text),
        }
    }
}

impl Found<'_> {
    fn decode(&self) -> Line<'_> {
        bincode::borrow_decode_from_slice(self.line, standard()).unwrap().0
    }

    /// As the log's entry.
    pub(super) fn entry(&self) -> Entry {
        let kind = match self.decode() {
            Line::Chunk { header, content } => EntryKind::Chunk {
                chunk: Box::new(content.read()),
                header: header.map(|header| Box::new(header.read())),
            },
            Line::Begin(header) => EntryKind::Begin { header: Box::new(header.read()) },
            Line::Finish { reason } => {
                let mut header = EntryHeader::default();
                header.finish_reason = reason.map(FinishReason::from);
                EntryKind::Finish { header: Box::new(header) }
            }
        };
        let (message_index, role) = (Some(self.message), Some(Role::ALL[usize::from(self.role)]));
        let created_at = Timestamp::from_micros(self.time);
        let mut entry = Entry::new(self.seq, created_at, kind);
        (entry.message_index, entry.chunk_index, entry.role) = (message_index, self.chunk, role);
        entry
    }

    /// Adds to the messages so far, which are in order of their index.
    pub(super) fn collect(&self, messages: &mut Vec<StoredMessage>) {
        let at = match messages.last() {
            Some(last) if last.index == self.message => messages.len() - 1,
            Some(last) if last.index > self.message => {
                messages.binary_search_by_key(&self.message, |message| message.index).unwrap()
            }
            _ => {
                messages.push(self.begin());
                messages.len() - 1
            }
        };
        let stored = &mut messages[at];
        stored.last_seq = self.seq;
        match self.decode() {
            Line::Chunk { header, content } => {
                if let Some(header) = header {
                    header.fill(stored);
                    stored.state = MessageState::Complete;
                }
                let index = self.chunk.unwrap();
                let last = stored.message.chunks.last_mut().filter(|_| stored.chunk_indexes.last() == Some(&index));
                match (last.map(|chunk| &mut chunk.body), content) {
                    (Some(model::Body::Text { text, .. }), Content::Text(more)) => text.push_str(more),
                    (_, content) => {
                        stored.chunk_indexes.push(index);
                        stored.message.chunks.push(content.read());
                    }
                }
            }
            Line::Begin(header) => header.fill(stored),
            Line::Finish { reason } => {
                stored.state = MessageState::Complete;
                stored.message.finish_reason = reason.map(FinishReason::from);
            }
        }
    }

    fn begin(&self) -> StoredMessage {
        let mut message = Message::new(Role::ALL[usize::from(self.role)], []);
        message.metadata.created_at = Some(Timestamp::from_micros(self.time));
        let (index, state) = (self.message, MessageState::Interrupted);
        let mut stored = StoredMessage::new(index, state, message);
        (stored.first_seq, stored.last_seq) = (self.seq, self.seq);
        stored
    }
}
