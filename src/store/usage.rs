//! Usage: the tokens that answers took, counted from what is stored.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::Store;
use crate::error::{Error, Result};
use crate::history::{Entry, EntryHeader, EntryKind};
use crate::log::{ListItem, ListQuery, Order, View, reading};
use crate::model::{ConversationId, Timestamp};
use crate::provider::TokenCounts;

/// Conversations of one read.
const PAGE: usize = 256;
/// Entries and bytes of one read.
const ENTRIES: usize = 1_000;
const BYTES: usize = 1024 * 1024;

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
}

impl UsageBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Day, Self::Model, Self::Conversation];

    /// The name: `day`, `model` or `conversation`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Conversation => "conversation",
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
        found.ok_or_else(|| Error::InvalidInput(format!("{text:?}: expected day, model or conversation")))
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

/// The tokens of some answers.
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
    /// The answers of which tokens are known.
    pub answers: u64,
    /// Their tokens.
    #[serde(flatten)]
    pub tokens: TokenCounts,
}

/// Day, model and conversation.
type Apart = (Option<String>, Option<String>, Option<ConversationId>);

impl Store {
    /// Counts the tokens of the answers that are stored, by what providers wrote in `usage`. The rows are in the order of day,
    /// model, and conversation. Answers that are hidden or were cut off count if they have counts: they were paid for. What a fork
    /// shares with its parent counts once. What was deleted does not count.
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
        let mut sums: BTreeMap<Apart, (u64, TokenCounts)> = BTreeMap::new();
        let mut list = ListQuery::new().with_owner(&query.owner).with_limit(PAGE);
        list.tags.clone_from(&query.tags);
        loop {
            let page = self.list(&list)?;
            for item in &page.items {
                // The newest come first. A message whose caller gave it a time of the future is not looked for.
                if query.since.is_some_and(|since| item.last_activity < since) {
                    return Ok(rows(sums));
                }
                self.each_answer(item, &mut |time, model, tokens| {
                    if query.since.is_some_and(|since| time < since) || query.until.is_some_and(|until| time >= until) {
                        return;
                    }
                    let wants = |by| query.by.contains(&by);
                    let apart = (
                        wants(UsageBy::Day).then(|| time.day()),
                        wants(UsageBy::Model).then(|| model.to_owned()),
                        wants(UsageBy::Conversation).then_some(item.id),
                    );
                    let (answers, sum) = sums.entry(apart).or_default();
                    *answers += 1;
                    sum.add(tokens);
                })?;
            }
            match page.next {
                Some(next) => list.after = Some(next),
                None => return Ok(rows(sums)),
            }
        }
    }

    /// Gives `found` the time, the model and the tokens of each answer that a conversation does not share with its parent.
    fn each_answer(&self, item: &ListItem, found: &mut dyn FnMut(Timestamp, &str, &TokenCounts)) -> Result<()> {
        let Some(view) = self.log.view(&item.id.into())? else { return Ok(()) };
        let mut begun = HashMap::new();
        let mut from = item.parent.as_ref().map_or(0, |fork| fork.at_seq) + 1;
        loop {
            let entries = self.own_entries(&view, from)?;
            let Some(last) = entries.last() else { return Ok(()) };
            from = last.seq + 1;
            for entry in &entries {
                let (header, is_begin) = match &entry.kind {
                    EntryKind::Chunk { header: Some(header), .. } | EntryKind::Finish { header } => (header, false),
                    EntryKind::Begin { header } => (header, true),
                    _ => continue,
                };
                let EntryHeader { metadata, usage, .. } = &**header;
                let index = entry.message_index.unwrap_or_default();
                let model = metadata.model.clone().or_else(|| begun.remove(&index)).unwrap_or_default();
                if let Some(tokens) = usage.as_ref().and_then(TokenCounts::of) {
                    found(entry.created_at, &model, &tokens);
                } else if is_begin {
                    begun.insert(index, model);
                }
            }
        }
    }

    fn own_entries(&self, view: &View, from: u64) -> Result<Vec<Entry>> {
        reading::entries_of(&*self.log, view, from..=u64::MAX, Order::Ascending, ENTRIES, BYTES)
    }
}

fn rows(sums: BTreeMap<Apart, (u64, TokenCounts)>) -> Vec<Usage> {
    let row = |((day, model, conversation), (answers, tokens))| Usage { day, model, conversation, answers, tokens };
    sums.into_iter().map(row).collect()
}
