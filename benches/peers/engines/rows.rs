//! What the peers store: a row for every chunk, in the same encoding as the store's own entries, with fewer fields.

use super::Listed;
use bincode::config::standard;
use bincode::{BorrowDecode, Decode, Encode};
use conversation_store::model::{
    self, Chunk, ConversationId, FinishReason, Message, Metadata, Output, Role, Timestamp,
};
use uuid::Uuid;

const DIGESTS: Uuid = Uuid::from_u128(0x8e35_1cf6_5d0f_5f0a_9d5c_7f2e_41b7_a09c);

/// One atomic write, before it has a place.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) conversation: ConversationId,
    pub(super) rows: Vec<Row>,
    /// How many messages begin in it.
    pub(super) messages: u64,
    /// The message that it goes on with, if it begins none.
    pub(super) base: Option<u64>,
    pub(super) title: Option<String>,
    /// The digests of the idempotency key and of the content.
    pub(super) receipt: Option<([u8; 16], [u8; 16])>,
}

/// One entry.
#[derive(Debug)]
pub(super) struct Row {
    /// Relative to the job's first message.
    pub(super) message: u64,
    /// Control entries have none.
    pub(super) chunk: Option<u32>,
    pub(super) role: u8,
    pub(super) line: Vec<u8>,
}

/// Where a job was written.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) struct Placed {
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) message: u64,
    pub(super) digest: [u8; 16],
}

/// A conversation's state.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct Head {
    pub(super) next_seq: u64,
    pub(super) next_message: u64,
    pub(super) created: i64,
    pub(super) last_activity: i64,
    pub(super) title: Option<String>,
}

#[derive(Encode, BorrowDecode)]
pub(super) enum Line<'a> {
    Chunk { header: Option<Header<'a>>, content: Content<'a> },
    Begin(Header<'a>),
    Finish { reason: Option<&'a str> },
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Header<'a> {
    pub(super) finish_reason: Option<&'a str>,
    pub(super) model: Option<&'a str>,
    pub(super) provider: Option<&'a str>,
    pub(super) turn_id: Option<&'a str>,
    pub(super) step_id: Option<&'a str>,
    pub(super) id: Option<&'a str>,
}

#[derive(Encode, BorrowDecode)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Thinking { text: &'a str, signature: Option<&'a str> },
    ToolCall { id: &'a str, name: &'a str, arguments: &'a str },
    ToolResult { tool_call_id: &'a str, text: &'a str },
}

fn encode(line: &Line<'_>) -> Vec<u8> {
    bincode::encode_to_vec(line, standard()).unwrap()
}

fn role_byte(role: Role) -> u8 {
    u8::try_from(Role::ALL.iter().position(|other| *other == role).unwrap()).unwrap()
}

fn header(message: &Message) -> Header<'_> {
    let Metadata { model, provider, turn_id, step_id, id, .. } = &message.metadata;
    Header {
        finish_reason: message.finish_reason.as_ref().map(FinishReason::as_str),
        model: model.as_deref(),
        provider: provider.as_deref(),
        turn_id: turn_id.as_deref(),
        step_id: step_id.as_deref(),
        id: id.as_deref(),
    }
}

fn content(chunk: &Chunk) -> Content<'_> {
    match &chunk.body {
        model::Body::Text { text, .. } => Content::Text(text),
        model::Body::Thinking { text, signature, .. } => Content::Thinking { text, signature: signature.as_deref() },
        model::Body::ToolCall { id, name, arguments, .. } => Content::ToolCall { id, name, arguments },
        model::Body::ToolResult { tool_call_id, output: Output::Text(text), .. } => {
            Content::ToolResult { tool_call_id, text }
        }
        other => panic!("no benchmark writes {}", other.kind()),
    }
}

impl Job {
    pub(super) fn new(conversation: ConversationId, key: Option<&str>, messages: &[Message]) -> Self {
        let mut rows = Vec::new();
        for (relative, message) in (0..).zip(messages) {
            for (index, chunk) in (0..).zip(&message.chunks) {
                let header = (index == 0).then(|| header(message));
                let line = encode(&Line::Chunk { header, content: content(chunk) });
                rows.push(Row { message: relative, chunk: Some(index), role: role_byte(message.role), line });
            }
        }
        let digest = |bytes: &[u8]| *Uuid::new_v5(&DIGESTS, bytes).as_bytes();
        let receipt = key.map(|key| {
            let content: Vec<u8> = rows.iter().flat_map(|row| &row.line).copied().collect();
            (digest(key.as_bytes()), digest(&content))
        });
        let title = messages.iter().find(|message| message.role == Role::User).and_then(title);
        Self { conversation, rows, messages: messages.len() as u64, base: None, title, receipt }
    }

    fn control(conversation: ConversationId, chunk: Option<u32>, line: &Line<'_>, base: Option<u64>) -> Self {
        let rows = vec![Row { message: 0, chunk, role: role_byte(Role::Assistant), line: encode(line) }];
        Self { conversation, rows, messages: u64::from(base.is_none()), base, title: None, receipt: None }
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.line.len()).sum()
    }

    /// Moves a head, or begins one.
    pub(super) fn advance(&self, head: Option<Head>) -> (Head, Placed) {
        let now = Timestamp::now().as_micros();
        let mut head =
            head.unwrap_or(Head { next_seq: 1, next_message: 0, created: now, last_activity: now, title: None });
        let (first_seq, message) = (head.next_seq, self.base.unwrap_or(head.next_message));
        head.next_seq += self.rows.len() as u64;
        head.next_message += self.messages;
        head.last_activity = head.last_activity.max(now);
        if head.title.is_none() {
            head.title.clone_from(&self.title);
        }
        let last_seq = head.next_seq - 1;
        let digest = self.receipt.map_or([0; 16], |(_, content)| content);
        (head, Placed { first_seq, last_seq, message, digest })
    }
}

/// Writes one answer, delta by delta.
pub(super) fn stream(conversation: ConversationId, deltas: &[String], mut write: impl FnMut(Job) -> Placed) {
    let empty = Message::new(Role::Assistant, []);
    let begin = Line::Begin(header(&empty));
    let base = Some(write(Job::control(conversation, None, &begin, None)).message);
    for delta in deltas {
        let line = Line::Chunk { header: None, content: Content::Text(delta) };
        write(Job::control(conversation, Some(0), &line, base));
    }
    write(Job::control(conversation, None, &Line::Finish { reason: Some("stop") }, base));
}

/// The first line of the first text, shortened, as the store makes titles.
fn title(message: &Message) -> Option<String> {
    let model::Body::Text { text, .. } = &message.chunks.first()?.body else { return None };
    let line = text.trim().lines().next()?.trim_end();
    let mut title: String = line.chars().take(80).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

impl Head {
    pub(super) fn minute(&self) -> i64 {
        self.last_activity.div_euclid(60_000_000)
    }

    pub(super) fn into_item(self, id: ConversationId) -> Listed {
        Listed {
            id,
            title: self.title,
            created: Timestamp::from_micros(self.created),
            last_activity: Timestamp::from_micros(self.last_activity),
            last_seq: self.next_seq - 1,
            messages: self.next_message,
        }
    }
}
