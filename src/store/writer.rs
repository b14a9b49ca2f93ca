//! One message, streamed into the store.

use std::fmt;

use crate::error::Result;
use crate::log::{OpenMessage, Receipt};
use crate::model::{Chunk, ConversationId, FinishReason, Json, Metadata};
use crate::provider::Event;

/// Writes one message while it is made.
///
/// Its deltas become durable once per window of the store; [`MessageWriter::finish`] makes all of them durable and closes
/// the message. A writer that is dropped leaves the message interrupted, with what was pushed.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Role};
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("List the files.")])?;
/// let mut writer = store.begin("chat", Role::Assistant, Metadata::default())?;
/// writer.push(0, Chunk::text("I shall "))?;
/// writer.push(0, Chunk::text("look."))?;
/// writer.push(1, Chunk::tool_call("call_1", "list_files", ""))?;
/// writer.push(1, Chunk::tool_call("", "", r#"{"path":"."}"#))?;
/// writer.finish(Some(FinishReason::ToolCalls), None)?;
///
/// let conversation = store.load("chat")?;
/// let answer = &conversation.messages()[1].message;
/// assert_eq!(answer.chunks[0], Chunk::text("I shall look."));
/// assert_eq!(answer.chunks[1], Chunk::tool_call("call_1", "list_files", r#"{"path":"."}"#));
/// # Ok::<(), conversation_store::Error>(())
/// ```
pub struct MessageWriter {
    message: Box<dyn OpenMessage>,
    receipt: Receipt,
    /// What the provider said of the message as a whole.
    said: Box<Metadata>,
}

/// Without what is known of the message.
impl fmt::Debug for MessageWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageWriter").field("receipt", &self.receipt).finish_non_exhaustive()
    }
}

/// What [`crate::Store::begin_with`] gives.
#[derive(Debug)]
pub enum Begun {
    /// The message was begun: this writes it.
    Writer(MessageWriter),
    /// A message was begun with this idempotency key before: its receipt, marked [`Receipt::duplicate`]. Somebody may be
    /// writing it now: [`crate::Store::tail`] follows it.
    Duplicate(Receipt),
}

impl MessageWriter {
    pub(crate) fn new(message: Box<dyn OpenMessage>, receipt: Receipt) -> Self {
        Self { message, receipt, said: Box::default() }
    }

    /// The message's conversation.
    #[must_use]
    pub const fn conversation(&self) -> ConversationId {
        self.receipt.conversation
    }

    /// The message's index.
    #[must_use]
    pub fn message_index(&self) -> u64 {
        self.message.index()
    }

    /// The seq of the entry that began the message.
    #[must_use]
    pub const fn first_seq(&self) -> u64 {
        self.receipt.first_seq
    }

    /// Adds to a chunk. The first delta of a chunk index makes the chunk; text, thinking text, refusals and arguments grow;
    /// id, name, signature and native data may come with any delta, once; other kinds of chunk come whole.
    ///
    /// Cost: a copy into memory. Blocks only while more waits to be written than the queue takes.
    ///
    /// # Errors
    /// `InvalidInput` for a delta that does not fit its chunk, which stays as it is; `LimitExceeded`; `MessageClosed` if
    /// the conversation was rewound or deleted; `Poisoned`.
    pub fn push(&mut self, chunk_index: u32, delta: Chunk) -> Result<()> {
        self.message.push(chunk_index, delta)
    }

    /// Takes the events of a decoder: deltas are pushed, and the end closes the message. Returns the receipt once the end
    /// has come. Nothing can be pushed after it.
    ///
    /// The message has begun already, with the metadata that its caller gave. What the provider says of it in
    /// [`Event::Begin`] is stored with its end: its id, the exact model, fields that are not known. These replace what the
    /// caller gave. In everything else that both state, the caller's value counts, because it names the provider by its own
    /// name.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Chunk, FinishReason, Metadata, Role};
    /// use conversation_store::provider::{Decoder, Target};
    ///
    /// let store = Store::open("memory:")?;
    /// let mut decoder = Decoder::new(Target::OPENAI_CHAT);
    /// let mut writer = store.begin("chat", Role::Assistant, Metadata::default())?;
    /// for bytes in [b"data: {\"choices\":[{\"delta\":{\"content\":\"He".as_slice(), b"llo\"}}]}\n\n"] {
    ///     writer.ingest(decoder.push(bytes)?)?;
    /// }
    /// // The connection broke here.
    /// let receipt = writer.ingest(decoder.finish())?;
    /// assert!(receipt.is_some());
    /// let conversation = store.load("chat")?;
    /// let answer = &conversation.messages()[0].message;
    /// assert_eq!(answer.chunks, [Chunk::text("Hello")]);
    /// assert_eq!(answer.finish_reason, Some(FinishReason::Interrupted));
    /// assert_eq!(answer.metadata.provider.as_deref(), Some("openai"));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`MessageWriter::push`] and [`MessageWriter::finish`].
    pub fn ingest(&mut self, events: impl IntoIterator<Item = Event>) -> Result<Option<Receipt>> {
        let mut receipt = None;
        for event in events {
            match event {
                Event::Begin(metadata) => *self.said = metadata,
                Event::Delta { chunk_index, chunk } => self.push(chunk_index, chunk)?,
                Event::Finish { reason, usage } => {
                    receipt = Some(self.end(reason, usage)?);
                }
            }
        }
        Ok(receipt)
    }

    /// Closes the message. Returns when all of it survives a power cut.
    ///
    /// # Errors
    /// `MessageClosed` if the conversation was rewound or deleted; `Poisoned`.
    pub fn finish(mut self, reason: Option<FinishReason>, usage: Option<Json>) -> Result<Receipt> {
        self.end(reason, usage)
    }

    fn end(&mut self, reason: Option<FinishReason>, usage: Option<Json>) -> Result<Receipt> {
        self.message.finish(reason, usage, std::mem::take(&mut *self.said))
    }
}
