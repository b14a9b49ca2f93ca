//! Usage: answers, the tokens that they took, and errors, counted from what is stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Store;
use crate::error::{Error, Result};
use crate::history::{Entry, EntryHeader, EntryKind};
use crate::log::{ListCursor, ListItem, ListQuery, Order, View, reading};
use crate::model::{Body, ConversationId, Json, Metadata, Role, Timestamp};
use crate::provider::TokenCounts;

/// Conversations of one read.
const PAGE: usize = 256;
/// Entries and bytes of one read.
const ENTRIES: usize = 1_000;
const BYTES: usize = 1024 * 1024;
/// What a page reads: entries, where a megabyte counts as 1,000 of them.
pub(crate) const MOST_READ: u64 = 200_000;
/// What a conversation counts at least: it has to be found, too.
const LEAST: u64 = 20;
/// The most characters of an error's code by which it is counted.
const CODE: usize = 100;
/// The kind of an error without a code, and of an answer that was interrupted.
const UNKNOWN: &str = "unknown";
/// The finish reason of an answer that its provider still makes in the background. `src/docs/proxy.md` has it.
pub(crate) const QUEUED: &str = "queued";
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
    /// What is counted apart. By default nothing is, and there is one sum.
    pub by: Vec<UsageBy>,
    /// Where the page before ended.
    pub after: Option<ListCursor>,
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

    /// Before this time.
    #[must_use]
    pub const fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// In conversations that have this tag, too.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// From where the page before ended.
    #[must_use]
    pub const fn with_after(mut self, after: ListCursor) -> Self {
        self.after = Some(after);
        self
    }
}

/// What a part of the conversations has: those that were used last, or those that come after them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UsagePage {
    /// In the order of day, model, conversation, and kind of error. The next page may have more of the same.
    pub rows: Vec<Usage>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ListCursor>,
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

/// What was counted, and where that ended.
pub(crate) struct Counting {
    pub(crate) rows: Vec<Usage>,
    /// The last conversation that was read, and the first that was not, if there is one.
    pub(crate) cut: Option<(ListItem, ListItem)>,
}

impl Store {
    /// Counts the stored answers, their tokens as providers wrote them in `usage`, and errors. The rows are in the order of
    /// day, model, conversation, and kind of error. Answers that are hidden or were cut off count: they were paid for. What a
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
    /// that is returned. [`Store::usage_page`] reads a part.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn usage(&self, query: &UsageQuery) -> Result<Vec<Usage>> {
        Ok(self.usage_within(query, u64::MAX, &mut |_| {})?.rows)
    }

    /// Counts as [`Store::usage`] does, in a part of the conversations: the newest activity first. All pages add up to one count.
    /// A conversation that moves in the list while one pages may be missed or repeated.
    ///
    /// Cost: 200,000 entries are read at most, where each conversation counts as 20 or more, and each megabyte as 1,000. The
    /// first conversation of a page is read whole in any case.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn usage_page(&self, query: &UsageQuery) -> Result<UsagePage> {
        let Counting { rows, cut } = self.usage_within(query, MOST_READ, &mut |_| {})?;
        Ok(UsagePage { rows, next: cut.map(|(last, _)| last.cursor()) })
    }

    /// Reads no more than this, but for the first conversation. `read` gets each that is read.
    pub(crate) fn usage_within(
        &self,
        query: &UsageQuery,
        most: u64,
        read: &mut dyn FnMut(&ListItem),
    ) -> Result<Counting> {
        let mut sums: BTreeMap<Apart, Sum> = BTreeMap::new();
        let mut list = ListQuery::new().with_owner(&query.owner).with_limit(PAGE);
        list.tags.clone_from(&query.tags);
        list.after = query.after;
        let (mut cost, mut last): (u64, Option<ListItem>) = (0, None);
        loop {
            let page = self.list(&list)?;
            for item in page.items {
                // The newest come first. A message whose caller gave it a time of the future is not looked for.
                if query.since.is_some_and(|since| item.last_activity < since) {
                    return Ok(Counting { rows: rows(sums), cut: None });
                }
                let expected = item.last_seq.saturating_sub(shared(&item)).max(LEAST);
                if let Some(last) = last.take_if(|_| cost.saturating_add(expected) > most) {
                    return Ok(Counting { rows: rows(sums), cut: Some((last, item)) });
                }
                read(&item);
                let actual = self.each_counted(&item, &mut |time, model, counted| {
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
                cost = cost.saturating_add(expected.max(actual));
                last = Some(item);
            }
            match page.next {
                Some(next) => list.after = Some(next),
                None => return Ok(Counting { rows: rows(sums), cut: None }),
            }
        }
    }

    /// Gives `found` the time and the model of each answer, with its tokens, and of each error that a conversation does not share
    /// with its parent. Returns what was read, as entries of the usual size.
    fn each_counted(&self, item: &ListItem, found: &mut dyn FnMut(Timestamp, &str, Counted<'_>)) -> Result<u64> {
        let Some(view) = self.log.view(&item.id.into())? else { return Ok(0) };
        // Of answers that have no end yet, and of the last message that was appended whole.
        let (mut begun, mut whole) = (HashMap::new(), (0, String::new()));
        let mut further = HashSet::new();
        let (mut from, mut bytes) = (shared(item) + 1, 0_usize);
        loop {
            let (entries, read) = self.own_entries(&view, from)?;
            let Some(last) = entries.last() else { break };
            from = last.seq + 1;
            bytes = bytes.saturating_add(read);
            for entry in &entries {
                let (index, time) = (entry.message_index.unwrap_or_default(), entry.created_at);
                if let EntryKind::Chunk { header: Some(header), .. }
                | EntryKind::Begin { header }
                | EntryKind::Finish { header } = &entry.kind
                {
                    let EntryHeader { metadata, usage, finish_reason } = &**header;
                    let before = begun.remove(&index).map(|(_, model)| model);
                    let model = metadata.model.clone().or(before).unwrap_or_default();
                    let is_begin = matches!(entry.kind, EntryKind::Begin { .. });
                    if is_begin && is_further_choice(metadata) {
                        further.insert(index);
                    }
                    let is_answer = entry.role == Some(Role::Assistant) && !further.contains(&index);
                    // The provider still makes it: what it took comes with its end.
                    if finish_reason.as_ref().is_some_and(|reason| reason.as_str() == QUEUED) {
                        continue;
                    }
                    match usage.as_ref().and_then(TokenCounts::of) {
                        Some(tokens) => found(time, &model, Counted::Answer(Some(&tokens))),
                        None if is_answer && is_begin => _ = begun.insert(index, (time, model.clone())),
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
        Ok((bytes / (BYTES / ENTRIES)) as u64)
    }

    fn own_entries(&self, view: &View, from: u64) -> Result<(Vec<Entry>, usize)> {
        reading::sized_entries_of(&*self.log, view, from..=u64::MAX, Order::Ascending, ENTRIES, BYTES)
    }
}

/// Whether a message is one of several answers of a call, and not the first: the call's tokens are counted with that one.
/// `src/docs/proxy.md` has the field.
fn is_further_choice(metadata: &Metadata) -> bool {
    #[derive(Deserialize)]
    struct About {
        choice: Option<u64>,
    }
    let about = metadata.extra.get("convo").map(Json::as_str).filter(|about| about.contains("\"choice\":"));
    about.is_some_and(|about| serde_json::from_str(about).is_ok_and(|About { choice }| choice.is_some()))
}

/// How many entries a conversation shares with its parent.
fn shared(item: &ListItem) -> u64 {
    item.parent.as_ref().map_or(0, |fork| fork.at_seq)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Chunk, Message};

    fn answers(count: usize, text: &str) -> Vec<Message> {
        vec![Message::assistant([Chunk::text(text)]); count]
    }

    /// How many answers are counted in how many conversations, and the key of the first that is not read.
    fn count(store: &Store, query: &UsageQuery, most: u64) -> Result<(u64, usize, Option<String>)> {
        let mut read = 0;
        let Counting { rows, cut } = store.usage_within(query, most, &mut |_| read += 1)?;
        Ok((rows.first().map_or(0, |row| row.uncounted), read, cut.and_then(|(_, unread)| unread.key)))
    }

    #[test]
    fn what_is_too_much_is_not_read() -> Result<()> {
        let store = Store::open("memory:")?;
        for (name, count) in [("oldest", 30), ("large", 50), ("newest", 40)] {
            store.append(name, &answers(count, "Hi!"))?;
        }
        // What a fork shares is not read for it.
        store.fork_to("large", None, "fork")?;
        let of = |most| count(&store, &UsageQuery::new(), most);
        let named = |key: &str| Some(key.to_owned());
        assert_eq!(of(40 + LEAST + 50 + 30)?, (120, 4, None));
        assert_eq!(of(40 + LEAST + 50 + 29)?, (90, 3, named("oldest")));
        // One that is too much ends the reading, also where a later one would fit.
        assert_eq!(of(40 + LEAST + 49)?, (40, 2, named("large")));
        // The first is read in any case: pages come to an end.
        assert_eq!(of(0)?.1, 1);
        Ok(())
    }

    #[test]
    fn a_megabyte_counts_as_many_entries() -> Result<()> {
        let store = Store::open("memory:")?;
        store.append("small", &answers(1, "Hi!"))?;
        store.append("wide", &answers(4, &"x".repeat(BYTES)))?;
        let unread = count(&store, &UsageQuery::new(), 2 * ENTRIES as u64)?.2;
        assert_eq!(unread.as_deref(), Some("small"));
        assert_eq!(count(&store, &UsageQuery::new(), 5 * ENTRIES as u64)?.2, None);
        Ok(())
    }

    #[test]
    fn pages_add_up_to_the_whole() -> Result<()> {
        let store = Store::open("memory:")?;
        for at in 0..7_usize {
            store.append(format!("chat-{at}").as_str(), &answers(1 << at, "Hi!"))?;
        }
        let (mut query, mut sum, mut pages) = (UsageQuery::new(), 0, 0);
        loop {
            let Counting { rows, cut } = store.usage_within(&query, 50, &mut |_| {})?;
            sum += rows.iter().map(|row| row.uncounted).sum::<u64>();
            pages += 1;
            let Some((last, _)) = cut else { break };
            query.after = Some(last.cursor());
        }
        assert_eq!((sum, pages), (127, 5));
        assert_eq!(store.usage(&UsageQuery::new())?.first().map(|row| row.uncounted), Some(127));
        Ok(())
    }
}
