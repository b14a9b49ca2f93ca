//! What a search is asked.

use std::fmt;
use std::str::FromStr;

use super::document::Part;
use super::words::words;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Role, Timestamp};

/// Bytes and words of the longest query.
const QUERY_BYTES: usize = 1024;
const QUERY_WORDS: usize = 32;
/// Hits of the longest answer, and of all its pages.
const HITS: usize = 1000;
const REACH: usize = 10_000;

/// What to search for.
///
/// ```
/// use conversation_store::search::SearchQuery;
///
/// let query = SearchQuery::new("cache \"hit rate\"").with_owner("ada").with_limit(5);
/// # let _ = query;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The words, up to 1 KiB and 32 words. A hit has all of them, with whatever ending: `drink` finds `drinks`. Those in double
    /// quotes are found as they are, and one after the other. Case does not matter.
    pub words: String,
    /// Where they may be. Empty: in texts.
    pub within: Vec<SearchIn>,
    /// Whose conversations. Empty: those without an owner.
    pub owner: String,
    /// Only in this conversation.
    pub conversation: Option<ConversationId>,
    /// Only in conversations with all of these tags.
    pub tags: Vec<String>,
    /// Only what somebody of this role said.
    pub role: Option<Role>,
    /// Only what was said at this time or later. A title counts as said when its conversation was made.
    pub since: Option<Timestamp>,
    /// Only what was said before this time.
    pub until: Option<Timestamp>,
    /// The most hits, 1 to 1,000.
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<SearchCursor>,
}

/// Where words are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchIn {
    /// What people and models wrote, and titles.
    Texts,
    /// Calls of tools: the tool's name, and the arguments.
    Calls,
    /// What tools gave back.
    Results,
}

/// Where a page of hits ended. As text it can be kept and read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchCursor(pub(super) usize);

/// Words of a query that follow each other, and one of which ends at a blank or at the quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) words: Vec<String>,
    /// Whether they are found as they are only, and not by their stems.
    pub(super) is_exact: bool,
}

impl SearchQuery {
    /// The 20 best hits in the texts of the conversations without an owner.
    #[must_use]
    pub fn new(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            within: Vec::new(),
            owner: String::new(),
            conversation: None,
            tags: Vec::new(),
            role: None,
            since: None,
            until: None,
            limit: 20,
            after: None,
        }
    }

    /// Sets whose conversations are searched.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Sets where words are searched.
    #[must_use]
    pub fn with_within(mut self, within: impl IntoIterator<Item = SearchIn>) -> Self {
        self.within = within.into_iter().collect();
        self
    }

    /// Sets the conversation that is searched.
    #[must_use]
    pub const fn with_conversation(mut self, conversation: ConversationId) -> Self {
        self.conversation = Some(conversation);
        self
    }

    /// Searches only conversations that have this tag, too.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Sets whose words are searched.
    #[must_use]
    pub const fn with_role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Searches what was said at this time or later.
    #[must_use]
    pub const fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Searches what was said before this time.
    #[must_use]
    pub const fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Begins where the page before ended.
    #[must_use]
    pub const fn with_after(mut self, after: SearchCursor) -> Self {
        self.after = Some(after);
        self
    }

    /// Sets the most hits.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The parts that are searched.
    pub(super) fn parts(&self) -> Vec<Part> {
        let within = if self.within.is_empty() { &[SearchIn::Texts][..] } else { &self.within };
        let parts = within.iter().flat_map(|within| match within {
            SearchIn::Texts => &[Part::Text, Part::Title][..],
            SearchIn::Calls => &[Part::Call],
            SearchIn::Results => &[Part::Result],
        });
        parts.copied().collect()
    }

    /// How many hits come before the page.
    pub(super) fn offset(&self) -> usize {
        self.after.map_or(0, |SearchCursor(offset)| offset)
    }

    /// The phrases that a hit has, each of one word or more.
    pub(super) fn phrases(&self) -> Result<Vec<Phrase>> {
        let exceeded = |actual: usize, limit: usize, unit: &str| {
            let (actual, limit) = (format!("{actual} {unit}"), format!("{limit} {unit}"));
            Err(Error::LimitExceeded { what: "a search", actual, limit })
        };
        if self.words.len() > QUERY_BYTES {
            return exceeded(self.words.len(), QUERY_BYTES, "bytes");
        }
        if !(1..=HITS).contains(&self.limit) {
            return Err(Error::InvalidInput(format!("the limit of a search is 1 to {HITS}, not {}", self.limit)));
        }
        if self.offset() > REACH {
            return exceeded(self.offset(), REACH, "hits of all pages");
        }
        let quoted = self.words.split('"').enumerate();
        let parts = quoted.flat_map(|(at, part)| {
            // Every second part is in quotes.
            let is_exact = at % 2 == 1;
            let parts: Vec<&str> = if is_exact { vec![part] } else { part.split_whitespace().collect() };
            parts.into_iter().map(move |part| (part, is_exact))
        });
        let phrases: Vec<Phrase> = parts
            .map(|(part, is_exact)| Phrase { words: words(part).map(|word| word.text).collect(), is_exact })
            .filter(|phrase| !phrase.words.is_empty())
            .collect();
        match phrases.iter().map(|phrase| phrase.words.len()).sum::<usize>() {
            0 => Err(Error::InvalidInput("the search has no words: it needs a letter or a digit".to_owned())),
            count if count > QUERY_WORDS => exceeded(count, QUERY_WORDS, "words"),
            _ => Ok(phrases),
        }
    }
}

impl SearchIn {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Texts, Self::Calls, Self::Results];

    /// Its name: `texts`, `calls`, `results`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Texts => "texts",
            Self::Calls => "calls",
            Self::Results => "results",
        }
    }
}

impl FromStr for SearchIn {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|within| within.as_str() == text);
        known.ok_or_else(|| Error::InvalidInput(format!("{text:?}: expected texts, calls or results")))
    }
}

impl fmt::Display for SearchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for SearchCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |_| Error::InvalidInput(format!("{text:?} is not a cursor: give the `next` of a page unchanged"));
        text.parse().map(Self).map_err(wrong)
    }
}

crate::model::as_text!(SearchCursor);
