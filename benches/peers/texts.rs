//! What is said in the benchmarks: the same for every engine and every run.

use conversation_store::model::{Chunk, ConversationId, Message, Name};

const WORDS: &[&str] = &[
    "a", "the", "of", "to", "file", "folder", "because", "I", "have", "looked", "into", "it", "and", "found",
    "nothing", "that", "explains", "what", "you", "see", "over", "there", "\n", "–", "naïve", "error", "line", "42",
    "returns", "value",
];

/// Texts of a given size, one after the other.
#[derive(Debug)]
pub(crate) struct Texts(u64);

impl Texts {
    pub(crate) const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize
    }

    /// A text of exactly this many bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes);
        loop {
            let word = WORDS[self.next() % WORDS.len()];
            if text.len() + word.len() + 1 > bytes {
                break;
            }
            text.push_str(word);
            text.push(' ');
        }
        text.extend(std::iter::repeat_n('.', bytes - text.len()));
        text
    }

    /// Messages with this many chunks: a question, an answer with its thinking, and so on.
    pub(crate) fn chat(&mut self, chunks: usize, bytes: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        for at in 0..chunks {
            match at % 3 {
                0 => messages.push(Message::user(self.text(bytes))),
                1 => messages.push(Message::assistant([Chunk::thinking(self.text(bytes))])),
                _ => messages.last_mut().unwrap().chunks.push(Chunk::text(self.text(bytes))),
            }
        }
        messages
    }

    /// A turn in which a tool is called: 5 chunks in 4 messages.
    pub(crate) fn agent_turn(&mut self, bytes: usize) -> Vec<Message> {
        let id = format!("call_{}", self.next());
        let arguments = format!(r#"{{"text":"{}"}}"#, self.text(bytes - 11).replace('\n', " "));
        vec![
            Message::user(self.text(bytes)),
            Message::assistant([
                Chunk::thinking(self.text(bytes)),
                Chunk::tool_call(id.as_str(), "look_into_it", arguments),
            ]),
            Message::tool(id, self.text(bytes)),
            Message::assistant([Chunk::text(self.text(bytes))]),
        ]
    }

    /// What a model sends while it answers.
    pub(crate) fn deltas(&mut self, count: usize, bytes: usize) -> Vec<String> {
        (0..count).map(|_| self.text(bytes)).collect()
    }
}

/// The conversation of this number. Costs a hash: what is timed has its conversations beforehand.
pub(crate) fn conversation(number: usize) -> ConversationId {
    Name::from(format!("chat-{number}")).id()
}

/// The first conversations.
pub(crate) fn conversations(count: usize) -> Vec<ConversationId> {
    (0..count).map(conversation).collect()
}

/// The bytes of what is said.
pub(crate) fn bytes(messages: &[Message]) -> usize {
    use conversation_store::model::{Body, Output};
    let chunks = messages.iter().flat_map(|message| &message.chunks);
    chunks
        .map(|chunk| match &chunk.body {
            Body::Text { text, .. } | Body::Thinking { text, .. } => text.len(),
            Body::ToolCall { arguments, .. } => arguments.len(),
            Body::ToolResult { output: Output::Text(text), .. } => text.len(),
            _ => 0,
        })
        .sum()
}

pub(crate) fn chunks(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.chunks.len()).sum()
}
