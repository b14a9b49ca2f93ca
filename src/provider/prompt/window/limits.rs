//! The messages of the window that the options ask for.
//!
//! How many tokens a part of a conversation has in a prompt: of its texts as [`tokens`] counts them, and an allowance for
//! what is no text. What the prompt leaves out counts too, but for thinking: an image in place of which a target has
//! nothing makes the figure too high, never too low.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::blocks::{UserTurns, is_kept, start};
use super::tokens::tokens;
use crate::error::Error;
#[cfg(feature = "server")]
use crate::history::Conversation;
use crate::history::report::Fact;
use crate::history::{Calls, OUTCOME_UNKNOWN, ReportLine, Rule, Site, StoredMessage};
use crate::model::{Audio, Body, Chunk, File, Output, PartBody};
use crate::provider::prompt::options::PromptOptions;
use crate::provider::target::Target;
use crate::provider::text::is_blank;

/// Where the window begins: the position of its first message. `sent` are the messages as the options want them, place
/// by place: they are what is measured.
pub(crate) fn begin(
    target: Target,
    messages: &[StoredMessage],
    sent: &[StoredMessage],
    options: &PromptOptions,
    report: &mut Vec<ReportLine>,
) -> usize {
    let PromptOptions { last_messages, last_turns, max_tokens, .. } = options;
    if [last_messages, last_turns, max_tokens].iter().all(|limit| limit.is_none()) {
        return 0;
    }
    let measure = Measure::new(target, options);
    let turns = UserTurns::of(messages, |stored| measure.sends(stored));
    let mut window = Window { turns: turns.ranges(), messages, first: 0, report };
    if let Some(limit) = last_messages {
        window.limit(&turns.message_counts(), *limit, 0, "messages");
    }
    if let Some(limit) = last_turns {
        window.limit(&turns.user_turn_counts(), *limit, 0, "user turns");
    }
    if let Some(limit) = max_tokens {
        let tokens = |turn: &Range<usize>| measure.turn(sent.get(turn.clone()).unwrap_or_default());
        let weights: Vec<u64> = turns.ranges().iter().map(tokens).collect();
        window.limit(&weights, *limit, Measure::always(sent, options), "tokens");
    }
    window.begin()
}

/// The messages from there on, and those that are in every window; those without chunks are left out.
pub(crate) fn held(messages: Cow<'_, [StoredMessage]>, begin: usize) -> Cow<'_, [StoredMessage]> {
    let is_held =
        |at: usize, stored: &StoredMessage| (at >= begin || is_kept(stored)) && !stored.message.chunks.is_empty();
    if messages.iter().enumerate().all(|(at, stored)| is_held(at, stored)) {
        return messages;
    }
    let held = messages.iter().enumerate().filter(|(at, stored)| is_held(*at, stored));
    Cow::Owned(held.map(|(_, stored)| stored.clone()).collect())
}

struct Window<'a> {
    turns: &'a [Range<usize>],
    messages: &'a [StoredMessage],
    /// The number of the first turn that it holds.
    first: usize,
    report: &'a mut Vec<ReportLine>,
}

impl Window<'_> {
    /// Makes it hold no more than that, besides `always`.
    fn limit(&mut self, weights: &[u64], limit: u64, always: u64, unit: &'static str) {
        let start = start(weights, limit.saturating_sub(always));
        self.first = self.first.max(start.turn);
        if start.fits && always <= limit {
            return;
        }
        let Some(first) = self.turns.last().and_then(|turn| self.messages.get(turn.start)) else { return };
        let held = always + weights.last().copied().unwrap_or_default();
        self.report.push(ReportLine::message(Fact::WindowExceeded { held, limit, unit }, first));
    }

    fn begin(&mut self) -> usize {
        let begin = self.turns.get(self.first).map_or(0, |turn| turn.start);
        let Some(first) = self.messages.get(begin) else { return begin };
        let before = self.messages.get(..begin).unwrap_or_default().iter().filter(|stored| !is_kept(stored));
        // What is before the window and is of a later index are results, beside their calls.
        let indexes = || before.clone().map(|stored| stored.index).filter(|index| *index < first.index);
        for stored in before.clone().filter(|stored| stored.index >= first.index) {
            let lines = (0..stored.message.chunks.len())
                .map(|chunk| ReportLine::chunk(Fact::ResultOutsideWindow, stored, chunk));
            self.report.extend(lines);
        }
        if let (Some(from), Some(to)) = (indexes().min(), indexes().max()) {
            self.report.push(ReportLine::message(Fact::OutsideWindow { from, to }, first));
        }
        begin
    }
}

/// Of a message: its role and its limits.
const MESSAGE: u64 = 8;
/// Of a call or a result: its field names; of a call the stub of its tool, too, where a target wants one.
const CALL: u64 = 16;
/// Of an image: Anthropic's most for its older models, more than OpenAI's and Gemini's at their defaults.
const IMAGE: u64 = 1600;
/// Bytes of base64 for a token of sound: compressed speech has more.
const BYTES_OF_SOUND: u64 = 256;
/// Bytes of base64 for a token of a document: text has about as many, a PDF more.
const BYTES_OF_DOCUMENT: u64 = 5;
/// Bytes of base64 for a token of thinking that is encrypted, or signed.
const BYTES_OF_SECRET: u64 = 4;

/// What is measured depends on for whom it is.
pub(crate) struct Measure {
    target: Target,
    options: PromptOptions,
}

impl Measure {
    pub(crate) fn new(target: Target, options: &PromptOptions) -> Self {
        Self { target, options: PromptOptions { tools: Vec::new(), ..options.clone() } }
    }

    /// Whether the target is sent something for a message of the user: for blank texts and for blocks of another provider there
    /// may be nothing.
    pub(crate) fn sends(&self, stored: &StoredMessage) -> bool {
        let is_said = |chunk: &Chunk| match &chunk.body {
            Body::Text { text, .. } | Body::Refusal { text } => !is_blank(text),
            Body::Image(_) | Body::Audio(_) | Body::File(_) => true,
            _ => false,
        };
        let render = || (self.target.wire().render)(self.target, std::slice::from_ref(stored), &self.options);
        stored.message.chunks.iter().any(is_said) || !matches!(render(), Err(Error::NothingToSend(_)))
    }

    /// The tokens of a turn, without the messages that are in every window.
    pub(crate) fn turn(&self, messages: &[StoredMessage]) -> u64 {
        let left_out = self.thinking_left_out(messages);
        let said = messages.iter().filter(|stored| !is_kept(stored) && !stored.message.chunks.is_empty());
        let said: u64 = said.map(|stored| message(stored, &left_out)).sum();
        let paired = Calls::pair(messages);
        let mut unanswered = 0;
        for (at, stored) in messages.iter().enumerate() {
            let sites = (0..stored.message.chunks.len()).map(|chunk| Site { message: at, chunk });
            let calls =
                sites.zip(&stored.message.chunks).filter(|(_, chunk)| matches!(chunk.body, Body::ToolCall { .. }));
            unanswered += calls.filter(|(site, _)| paired.result(*site).is_none()).count() as u64;
        }
        said + unanswered * (MESSAGE + CALL + tokens(OUTCOME_UNKNOWN))
    }

    /// The tokens of what is in every window, and of the tools that are declared.
    pub(crate) fn always(messages: &[StoredMessage], options: &PromptOptions) -> u64 {
        let kept = messages.iter().filter(|stored| is_kept(stored));
        let kept: u64 = kept.map(|stored| message(stored, &HashSet::new())).sum();
        let tools = options.tools.iter().map(|tool| {
            let description = tool.description.as_deref().unwrap_or_default();
            CALL + tokens(&tool.name) + tokens(description) + tokens(tool.parameters.as_str())
        });
        kept + tools.sum::<u64>()
    }

    /// The thinking that the target is not sent, by message and chunk index: what the report says when the turn is
    /// rendered alone. How it is rendered does not depend on the turns before.
    fn thinking_left_out(&self, messages: &[StoredMessage]) -> HashSet<(u64, u32)> {
        let thinks = |stored: &StoredMessage| stored.message.chunks.iter().any(is_thinking);
        if !messages.iter().any(thinks) {
            return HashSet::new();
        }
        let is_empty = |stored: &StoredMessage| stored.message.chunks.is_empty();
        let messages = if messages.iter().any(is_empty) {
            Cow::Owned(messages.iter().filter(|stored| !is_empty(stored)).cloned().collect())
        } else {
            Cow::Borrowed(messages)
        };
        let report = match (self.target.wire().render)(self.target, &messages, &self.options) {
            Ok((_, report)) => report,
            // It is counted as if it were sent.
            Err(_) => Vec::new(),
        };
        let lines = report.into_iter().filter(|line| line.rule == Rule::ThinkingLeftOut);
        lines.filter_map(|line| Some((line.message_index?, line.chunk_index?))).collect()
    }
}

/// The tokens of a whole conversation, and of the tools that are declared.
#[cfg(feature = "server")]
pub(crate) fn tokens_of(target: Target, conversation: &Conversation, options: &PromptOptions) -> u64 {
    let messages = conversation.messages();
    Measure::always(messages, options) + Measure::new(target, options).turn(messages)
}

fn is_thinking(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::Thinking { .. })
}

fn message(stored: &StoredMessage, left_out: &HashSet<(u64, u32)>) -> u64 {
    let chunks = stored.message.chunks.iter().enumerate();
    let sent = chunks
        .filter(|(at, chunk)| !(is_thinking(chunk) && left_out.contains(&(stored.index, stored.chunk_index(*at)))));
    MESSAGE + sent.map(|(_, sent)| chunk(sent)).sum::<u64>()
}

fn chunk(chunk: &Chunk) -> u64 {
    let typed = match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => tokens(text),
        Body::Thinking { text, signature, redacted } => {
            CALL + tokens(text)
                + signature.iter().chain(redacted).map(|secret| sized(secret, BYTES_OF_SECRET)).sum::<u64>()
        }
        Body::ToolCall { id, name, arguments, .. } => CALL + tokens(id) + 2 * tokens(name) + tokens(arguments),
        Body::ToolResult { tool_call_id, name, output, .. } => {
            CALL + tokens(tool_call_id) + tokens(name.as_deref().unwrap_or_default()) + output_tokens(output)
        }
        Body::Image(_) => return IMAGE,
        Body::Audio(audio) => return sound(audio),
        Body::File(file) => return document(file),
        Body::Opaque { json, .. } => tokens(json.as_str()),
        Body::Error { .. } | Body::Unknown { .. } => 0,
    };
    // The provider's own block may hold more than the typed fields, and is sent in their place.
    typed.max(chunk.native.as_ref().map_or(0, |native| sized(native.json.as_str(), BYTES_OF_SECRET)))
}

fn output_tokens(output: &Output) -> u64 {
    let parts = match output {
        Output::Text(text) => return tokens(text),
        Output::Parts(parts) => parts,
    };
    let part = |part: &PartBody| match part {
        PartBody::Text { text } => tokens(text),
        PartBody::Json { json } => tokens(json.as_str()),
        PartBody::Image(_) => IMAGE,
        PartBody::Audio(audio) => sound(audio),
        PartBody::File(file) => document(file),
        PartBody::Unknown { .. } => 0,
    };
    parts.iter().map(|content| part(&content.body)).sum()
}

fn sound(audio: &Audio) -> u64 {
    let transcript = tokens(audio.transcript.as_deref().unwrap_or_default());
    let bytes = audio.data.iter().chain(&audio.url).map(|data| sized(data, BYTES_OF_SOUND));
    MESSAGE + transcript + bytes.sum::<u64>()
}

fn document(file: &File) -> u64 {
    let bytes = file.data.iter().chain(&file.url).map(|data| sized(data, BYTES_OF_DOCUMENT));
    bytes.sum::<u64>().max(IMAGE) + tokens(file.name.as_deref().unwrap_or_default())
}

fn sized(text: &str, bytes: u64) -> u64 {
    (text.len() as u64).div_ceil(bytes)
}
