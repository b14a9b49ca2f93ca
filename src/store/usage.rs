//! Usage: answers, the tokens that they took, and errors, counted from what is stored.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::Store;
use crate::error::{Error, Result};
use crate::history::{Entry, EntryHeader, EntryKind};
use crate::log::{ListItem, ListQuery, Order, View, reading};
use crate::model::{Body, ConversationId, Role, Timestamp};
use crate::provider::TokenCounts;

/// Conversations of one read.
const PAGE: usize = 256;
/// Entries and bytes of one read.
const ENTRIES: usize = 1_000;
const BYTES: usize = 1024 * 1024;
/// The most characters of an error's code by which it is counted.
const CODE: usize = 100;
/// The kind of an error without a code, and of an answer that was interrupted.
const UNKNOWN: &str = "unknown";
const INTERRUPTED: &str = "interrupted";

/// What [`Store::usage`] counts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageBy {
    /// Days of UTC, by the time of the message.
    Day,
    /// Models, by the names that providers gave them.
    Model,
    /// Conversations.
    Conversation,
    /// Kinds of errors. Answers are in a row of their own.
    Error,
}

impl UsageBy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Day, Self::Model, Self::Conversation, Self::Error];

    /// The name: `day`, `model`, `conversation` or `error`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Conversation => "conversation",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for UsageBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for UsageBy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|by| by.as_str() == text);
        found.ok_or_else(|| Error::InvalidInput(format!("{text:?}: expected day, model, conversation or error")))
    }
}

/// Which answers [`Store::usage`] counts, and what it counts apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageQuery {
    /// In conversations of this owner; empty, the default: in those without one.
    pub owner: String,
    /// In conversations that have all of these tags.
    pub tags: Vec<String>,
    /// From this time on.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// What is counted apart. Nothing, the default: there is one sum.
    pub by: Vec<UsageBy>,
}

impl UsageQuery {
    /// All answers in conversations without an owner, as one sum.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// In conversations of this owner.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Counts these apart, too.
    #[must_use]
    pub fn with_by(mut self, by: impl IntoIterator<Item = UsageBy>) -> Self {
        self.by.extend(by);
        self
    }

    /// From this time on.
    #[must_use]
    pub const fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }
}

/// Some answers, their tokens, and some errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Usage {
    /// The day, `2026-11-25`, if days are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The model, if models are counted apart; empty if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation, if they are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The kind of the errors, if kinds are counted apart: the code of the error, of at most 100 characters; `unknown` if it has
    /// none; `interrupted` for an answer that was interrupted. Empty in the rows of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The answers of which tokens are known.
    pub answers: u64,
    /// The answers of which no tokens are known.
    pub uncounted: u64,
    /// The errors.
    pub errors: u64,
    /// The tokens of the answers.
    #[serde(flatten)]
    pub tokens: TokenCounts,
}

/// Day, model, conversation and kind of error.
type Apart = (Option<String>, Option<String>, Option<ConversationId>, Option<String>);

/// What is counted.
enum Counted<'a> {
    Answer(Option<&'a TokenCounts>),
    /// Of this kind.
    Error(&'a str),
}

#[derive(Default)]
struct Sum {
    answers: u64,
    uncounted: u64,
    errors: u64,
    tokens: TokenCounts,
}

impl Sum {
    fn add(&mut self, counted: &Counted<'_>) {
        match counted {
            Counted::Answer(Some(tokens)) => {
                self.answers += 1;
                self.tokens.add(tokens);
            }
            Counted::Answer(None) => self.uncounted += 1,
            Counted::Error(_) => self.errors += 1,
        }
    }
}

impl Store {
    /// Counts the answers that are stored, their tokens by what providers wrote in `usage`, and errors. The rows are in the order
    /// of day, model, conversation, and kind of error. Answers that are hidden or were cut off count: they were paid for. What a
    /// fork shares with its parent counts once. What was deleted does not count.
    ///
    /// ```
    /// use conversation_store::model::{Json, Message};
    /// use conversation_store::{Store, UsageBy, UsageQuery};
    ///
    /// let store = Store::open("memory:")?;
    /// let mut answer = Message::assistant([]);
    /// answer.metadata.model = Some("m-1".to_owned());
    /// answer.usage = Some(Json::new(r#"{"prompt_tokens": 12, "completion_tokens": 3}"#)?);
    /// store.append("chat-42", &[Message::user("hello"), answer])?;
    /// let rows = store.usage(&UsageQuery::new().with_by([UsageBy::Model]))?;
    /// assert_eq!((rows[0].model.as_deref(), rows[0].tokens.input, rows[0].tokens.output), (Some("m-1"), 12, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: all entries of the conversations that were used since `since` are read, a megabyte at one time. A row is held for each
    /// that is returned.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn usage(&self, query: &UsageQuery) -> Result<Vec<Usage>> {
        self.usage_while(query, &mut |_| true)
    }

    /// The same, of conversations up to one that is not to be read: they come in the order of their last activity, the newest
    /// first.
    pub(crate) fn usage_while(
        &self,
        query: &UsageQuery,
        is_read: &mut dyn FnMut(&ListItem) -> bool,
    ) -> Result<Vec<Usage>> {
        let mut sums: BTreeMap<Apart, Sum> = BTreeMap::new();
        let mut list = ListQuery::new().with_owner(&query.owner).with_limit(PAGE);
        list.tags.clone_from(&query.tags);
        loop {
            let page = self.list(&list)?;
            for item in &page.items {
                // The newest come first. A message whose caller gave it a time of the future is not looked for.
                if query.since.is_some_and(|since| item.last_activity < since) || !is_read(item) {
                    return Ok(rows(sums));
                }
                self.each_counted(item, &mut |time, model, counted| {
                    if query.since.is_some_and(|since| time < since) || query.until.is_some_and(|until| time >= until) {
                        return;
                    }
                    let kind = match counted {
                        Counted::Answer(_) => "",
                        Counted::Error(kind) => kind,
                    };
                    let wants = |by| query.by.contains(&by);
                    let apart = (
                        wants(UsageBy::Day).then(|| time.day()),
                        wants(UsageBy::Model).then(|| model.to_owned()),
                        wants(UsageBy::Conversation).then_some(item.id),
                        wants(UsageBy::Error).then(|| kind.to_owned()),
                    );
                    sums.entry(apart).or_default().add(&counted);
                })?;
            }
            match page.next {
                Some(next) => list.after = Some(next),
                None => return Ok(rows(sums)),
            }
        }
    }

    /// Gives `found` the time and the model of each answer, with its tokens, and of each error that a conversation does not share
    /// with its parent.
    fn each_counted(&self, item: &ListItem, found: &mut dyn FnMut(Timestamp, &str, Counted<'_>)) -> Result<()> {
        let Some(view) = self.log.view(&item.id.into())? else { return Ok(()) };
        // Of answers that have no end yet, and of the last message that was appended whole.
        let (mut begun, mut whole) = (HashMap::new(), (0, String::new()));
        let mut from = item.parent.as_ref().map_or(0, |fork| fork.at_seq) + 1;
        loop {
            let entries = self.own_entries(&view, from)?;
            let Some(last) = entries.last() else { break };
            from = last.seq + 1;
            for entry in &entries {
                let (index, time) = (entry.message_index.unwrap_or_default(), entry.created_at);
                if let EntryKind::Chunk { header: Some(header), .. }
                | EntryKind::Begin { header }
                | EntryKind::Finish { header } = &entry.kind
                {
                    let EntryHeader { metadata, usage, .. } = &**header;
                    let before = begun.remove(&index).map(|(_, model)| model);
                    let model = metadata.model.clone().or(before).unwrap_or_default();
                    let is_answer = entry.role == Some(Role::Assistant);
                    match usage.as_ref().and_then(TokenCounts::of) {
                        Some(tokens) => found(time, &model, Counted::Answer(Some(&tokens))),
                        None if is_answer && matches!(entry.kind, EntryKind::Begin { .. }) => {
                            begun.insert(index, (time, model.clone()));
                        }
                        None if is_answer => found(time, &model, Counted::Answer(None)),
                        None => {}
                    }
                    whole = (index, model);
                }
                let Some(kind) = error_of(&entry.kind) else { continue };
                let model = match begun.get(&index) {
                    Some((_, model)) => model.as_str(),
                    None if whole.0 == index => &whole.1,
                    None => "",
                };
                found(time, model, Counted::Error(&kind));
            }
        }
        begun.values().for_each(|(time, model)| found(*time, model, Counted::Answer(None)));
        Ok(())
    }

    fn own_entries(&self, view: &View, from: u64) -> Result<Vec<Entry>> {
        reading::entries_of(&*self.log, view, from..=u64::MAX, Order::Ascending, ENTRIES, BYTES)
    }
}

/// The kind of an error, if this is one.
fn error_of(kind: &EntryKind) -> Option<String> {
    match kind {
        EntryKind::Interrupt { .. } => Some(INTERRUPTED.to_owned()),
        EntryKind::Chunk { chunk, .. } => match &chunk.body {
            Body::Error { code, .. } => {
                let code: String = code.as_deref().unwrap_or_default().chars().take(CODE).collect();
                Some(if code.is_empty() { UNKNOWN.to_owned() } else { code })
            }
            _ => None,
        },
        _ => None,
    }
}

fn rows(sums: BTreeMap<Apart, Sum>) -> Vec<Usage> {
    let row = |((day, model, conversation, error), Sum { answers, uncounted, errors, tokens })| Usage {
        day,
        model,
        conversation,
        error,
        answers,
        uncounted,
        errors,
        tokens,
    };
    sums.into_iter().map(row).collect()
}
