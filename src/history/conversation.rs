//! A loaded conversation, and cursors into it. Also: whether it can help to ask again after a generation failed.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::group::{Grouped, MessageState, StoredMessage, Summary};
use super::reconcile::{self, Calls, Site, first_pending, is_cut_off};
use super::report::{Fact, ReportLine, Rule};
use super::tool_calls::ToolCalls;
use crate::error::{Error, Result};
use crate::model::{Body, Name, Role};

/// Messages in the order of their index, reconciled, the summary that prompts use in place of the first of them, and the
/// report of what was done to the messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    messages: Vec<StoredMessage>,
    summary: Option<Summary>,
    report: Vec<ReportLine>,
    /// Whether an answer is being written, also one of which nothing is there yet.
    is_being_answered: bool,
    /// Whether the last answer failed, and would fail again.
    fails_again: bool,
    /// Where it was loaded from, if it was.
    source: Option<Source>,
}

/// Where a conversation was loaded from, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The name that the caller used.
    pub(crate) name: Name,
    pub(crate) incarnation: u64,
    /// The last seq that was read.
    pub(crate) seq: u64,
    /// The last commit when it was read.
    pub(crate) commit: u64,
    /// The index of the message that comes next.
    pub(crate) next_message: u64,
    /// Index and first seq of the first message that is still open: what comes later may change it.
    pub(crate) open: Option<(u64, u64)>,
    /// Messages before this one are settled: what comes later does not change them, unless it names them.
    pub(crate) settled: u64,
}

impl Conversation {
    pub(crate) fn from_grouped(grouped: Grouped) -> Self {
        let is_being_answered = grouped
            .messages
            .iter()
            .any(|stored| stored.state == MessageState::Streaming && stored.message.role == Role::Assistant);
        let fails_again = fails_again(&grouped.messages);
        let (messages, mut lines) = reconcile::reconcile(grouped.messages);
        let damaged = |error: &Error| ReportLine::new(Fact::RecordDamaged { error: &error.to_string() });
        let mut report: Vec<ReportLine> = grouped.damage.iter().map(damaged).collect();
        report.append(&mut lines);
        Self { messages, summary: grouped.summary, report, is_being_answered, fails_again, source: None }
    }

    /// As [`Conversation::from_grouped`], and knows where more of it can be read.
    pub(crate) fn loaded(grouped: Grouped, source: Source) -> Self {
        Self { source: Some(source), ..Self::from_grouped(grouped) }
    }

    pub(crate) const fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Where the log goes on after what was loaded; absent if it was not loaded from a store.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        self.source.as_ref().map(|source| Cursor { seq: source.seq, incarnation: Some(source.incarnation) })
    }

    /// The first message that what comes later may change, and the seq of its first entry: one that is open, or one whose
    /// call has no real result. `None` if it must be loaded whole: it is damaged, or a result waits for its call.
    pub(crate) fn unsettled(&self) -> Option<(u64, u64)> {
        let source = self.source.as_ref()?;
        let needs_all = |line: &ReportLine| {
            let is_late = line.message_index.is_none_or(|index| index >= source.settled);
            line.rule == Rule::DamagedRecord || line.rule == Rule::OrphanResultRemoved && is_late
        };
        if self.report.iter().any(needs_all) {
            return None;
        }
        let start = self.messages.partition_point(|stored| stored.index < source.settled);
        let later = self.messages.get(start..).unwrap_or_default();
        let open = source.open.map(|(index, _)| index);
        let asked = asked(later);
        let unanswered = asked.iter().filter(|(_, answer)| answer.is_none()).map(|(call, _)| *call);
        let Some(first) = open.into_iter().chain(unanswered).min() else {
            return Some((source.next_message, source.seq + 1));
        };
        // A result whose place is before it, and which came after it, takes its call along.
        let highest = later.iter().scan(0, |highest: &mut u64, stored| {
            *highest = stored.index.max(*highest);
            Some(*highest)
        });
        let highest: Vec<u64> = highest.collect();
        let lowest = later.iter().rev().scan(u64::MAX, |lowest, stored| {
            *lowest = stored.index.min(*lowest);
            Some(*lowest)
        });
        // From each message on, the lowest index.
        let mut lowest: Vec<u64> = lowest.collect();
        lowest.reverse();
        let mut at = first;
        let from = loop {
            // So does one whose place is after it: what comes later may change which call it answers.
            let crosses =
                |(call, answer): &&(u64, Option<u64>)| *call < at && answer.is_some_and(|answer| answer >= at);
            let parted = asked.iter().filter(crosses).map(|(call, _)| *call).min();
            let from = highest.partition_point(|highest| *highest < at);
            let moved = lowest.get(from).copied().filter(|lowest| *lowest < at);
            let Some(lower) = moved.into_iter().chain(parted).min() else { break from };
            at = lower;
        };
        let listed = later.iter().skip(from).filter(|stored| stored.index >= at).map(|stored| stored.first_seq);
        let seq = listed.chain(source.open.map(|(_, seq)| seq)).min().unwrap_or(source.seq + 1);
        Some((at, seq))
    }

    /// Takes what was read again from the first unsettled message on. False, and nothing is changed: it must be
    /// loaded whole.
    pub(crate) fn renew(&mut self, news: Grouped, source: Source) -> bool {
        if news.reaches_back || !news.damage.is_empty() {
            return false;
        }
        // A call that is settled may be the one that such a result answers a second time.
        if Calls::pair(&news.messages).has_early_result() {
            return false;
        }
        let summary = news.summary.clone();
        let has_more = !news.messages.is_empty();
        let news = Self::from_grouped(news);
        // What has to be repaired may concern what is settled.
        if !news.report.is_empty() {
            return false;
        }
        self.messages.truncate(self.messages.partition_point(|stored| stored.index < source.settled));
        self.messages.extend(news.messages);
        self.report.retain(|line| line.message_index.is_some_and(|index| index < source.settled));
        self.report.extend(news.report);
        if summary.is_some() {
            self.summary = summary;
        }
        self.is_being_answered = news.is_being_answered;
        if has_more {
            self.fails_again = news.fails_again;
        }
        self.source = Some(source);
        true
    }

    /// Reconciles messages that come from elsewhere, or were changed.
    #[must_use]
    pub fn new(messages: Vec<StoredMessage>) -> Self {
        Self::from_grouped(Grouped { messages, ..Grouped::default() })
    }

    /// Sets the summary that prompts use in place of the messages that it covers.
    #[must_use]
    pub fn with_summary(mut self, summary: Option<Summary>) -> Self {
        self.summary = summary;
        self
    }

    /// The messages, those that a summary covers too.
    #[must_use]
    pub fn messages(&self) -> &[StoredMessage] {
        &self.messages
    }

    /// The tool calls, from each to its result and back. Cost: a pass over the messages.
    ///
    /// ```
    /// use conversation_store::model::{Chunk, Message};
    /// # use conversation_store::Store;
    /// # let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::assistant([Chunk::tool_call("1", "clock", "{}")]), Message::tool("1", "10:34")])?;
    /// let conversation = store.load("chat")?;
    /// let calls = conversation.tool_calls();
    /// let result = calls.result_of(0, 0).unwrap();
    /// assert_eq!((result.message.index, result.chunk), (1, &Chunk::tool_result("1", "10:34")));
    /// assert_eq!(calls.call_of(1, 0).unwrap().message.index, 0);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    #[must_use]
    pub fn tool_calls(&self) -> ToolCalls<'_> {
        ToolCalls::of(&self.messages)
    }

    /// The newest summary of [`crate::Store::summarize`], if no rewind has hidden what it covers.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The first message up to `through` with a call whose result comes after `through`, or may still come.
    pub(crate) fn parted_call(&self, through: u64) -> Option<u64> {
        let paired = Calls::pair(&self.messages);
        let pending = first_pending(&self.messages);
        let is_parted = |message: usize, chunk: usize, stored: &StoredMessage| match paired
            .result(Site { message, chunk })
            .and_then(|site| self.messages.get(site.message))
        {
            Some(result) => result.index > through,
            None => message >= pending && !is_cut_off(stored, chunk),
        };
        let covered = self.messages.iter().enumerate().filter(|(_, stored)| stored.index <= through);
        let mut asking = covered.filter(|(_, stored)| stored.message.role == Role::Assistant);
        let parted = asking.find(|(at, stored)| {
            let chunks = stored.message.chunks.iter().enumerate();
            let mut calls = chunks.filter(|(_, chunk)| matches!(chunk.body, Body::ToolCall { .. }));
            calls.any(|(chunk, _)| is_parted(*at, chunk, stored))
        });
        parted.map(|(_, stored)| stored.index)
    }

    /// The same with changed messages. What calls and answers what stays.
    #[cfg(feature = "server")]
    pub(crate) fn changed(mut self, change: impl FnMut(&mut StoredMessage)) -> Self {
        self.messages.iter_mut().for_each(change);
        self
    }

    /// What reconcile did, and what could not be read.
    #[must_use]
    pub fn report(&self) -> &[ReportLine] {
        &self.report
    }

    pub(crate) const fn is_being_answered(&self) -> bool {
        self.is_being_answered
    }

    pub(crate) const fn fails_again(&self) -> bool {
        self.fails_again
    }

    /// The messages, for changes: [`Conversation::new`] takes them back.
    #[must_use]
    pub fn into_messages(self) -> Vec<StoredMessage> {
        self.messages
    }
}

/// The messages that call tools, once for each call, each with the message of its real result.
fn asked(messages: &[StoredMessage]) -> Vec<(u64, Option<u64>)> {
    let calls = Calls::pair(messages);
    let answer = |message: usize, chunk: usize| {
        let result = calls.result(Site { message, chunk }).and_then(|result| messages.get(result.message));
        result.filter(|result| result.state != MessageState::Synthetic).map(|result| result.index)
    };
    let asking = messages.iter().enumerate().filter(|(_, stored)| stored.message.role == Role::Assistant);
    let asked = asking.flat_map(|(message, stored)| {
        let chunks = stored.message.chunks.iter().enumerate();
        let calls = chunks.filter(|(_, chunk)| matches!(chunk.body, Body::ToolCall { .. }));
        calls.map(move |(chunk, _)| (stored.index, message, chunk))
    });
    asked.map(|(call, message, chunk)| (call, answer(message, chunk))).collect()
}

/// A place in a conversation: after the entry with a seq. As text it can be kept and read back.
///
/// It belongs to one conversation. When that is deleted and another is made under its name, the cursor is refused with
/// `StaleCursor`. A cursor made of a number alone does not name a conversation: only 0, the beginning, is safe then.
///
/// ```
/// use conversation_store::{Cursor, Store};
/// use conversation_store::model::Message;
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("one")])?;
/// let cursor: Cursor = store.load("chat")?.cursor().map(|cursor| cursor.to_string()).unwrap_or_default().parse()?;
/// store.append("chat", &[Message::user("two")])?;
/// assert_eq!(store.entries_since("chat", cursor, 100)?.len(), 1);
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The last seq that is known; 0 is the beginning.
    pub(crate) seq: u64,
    /// Which conversation of its name it belongs to, if that is known.
    pub(crate) incarnation: Option<u64>,
}

impl Cursor {
    /// The last seq that is known; 0 is the beginning.
    #[must_use]
    pub const fn seq(self) -> u64 {
        self.seq
    }

    /// Another place in the same conversation.
    #[must_use]
    pub const fn with_seq(self, seq: u64) -> Self {
        Self { seq, ..self }
    }
}

impl From<u64> for Cursor {
    fn from(seq: u64) -> Self {
        Self { seq, incarnation: None }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.incarnation {
            Some(incarnation) => write!(f, "{}-{incarnation:016x}", self.seq),
            None => self.seq.fmt(f),
        }
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || match text.split_once('-') {
            None => Some(Self::from(text.parse::<u64>().ok()?)),
            Some((seq, incarnation)) => {
                Some(Self { seq: seq.parse().ok()?, incarnation: Some(u64::from_str_radix(incarnation, 16).ok()?) })
            }
        };
        parse()
            .ok_or_else(|| Error::InvalidInput(format!("{text:?} is not a cursor: give a seq, or a cursor unchanged")))
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Codes of failures that the same request would meet again, because the request, the key, the model or the account is
/// wrong. All other failures pass: too many requests, an overloaded or broken server, a lost connection. Failures that are
/// not known may pass, too.
///
/// Sources: Anthropic, "Errors" (docs.claude.com/en/api/errors); OpenAI, "Error codes"
/// (platform.openai.com/docs/guides/error-codes); Google, `google.rpc.Code` (ai.google.dev/gemini-api/docs/troubleshooting);
/// Amazon Bedrock, `Converse`, "Errors".
const PERMANENT: &[&str] = &[
    "400",
    "401",
    "402",
    "403",
    "404",
    "413",
    "422",
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "invalid_api_key",
    "insufficient_quota",
    "model_not_found",
    "context_length_exceeded",
    "content_policy_violation",
    "invalid_prompt",
    "invalid_argument",
    "failed_precondition",
    "unauthenticated",
    "permission_denied",
    "not_found",
    "validationexception",
    "accessdeniedexception",
    "resourcenotfoundexception",
];

/// Whether the last message is an answer that failed, and would fail again.
fn fails_again(messages: &[StoredMessage]) -> bool {
    let is_permanent = |body: &Body| match body {
        Body::Error { code: Some(code), .. } => PERMANENT.contains(&code.to_ascii_lowercase().as_str()),
        _ => false,
    };
    let last = messages.last().filter(|stored| stored.message.role == Role::Assistant);
    last.is_some_and(|stored| stored.message.chunks.iter().any(|chunk| is_permanent(&chunk.body)))
}
