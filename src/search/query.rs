//! What a search is asked, and what it answers.

use serde::{Serialize, Serializer};

use super::words::words;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Role};

/// Bytes and words of the longest query.
const QUERY_BYTES: usize = 1024;
const QUERY_WORDS: usize = 32;
/// Hits of the longest answer.
const HITS: usize = 1000;

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
    /// The words, up to 1 KiB and 32 words. A hit has all of them; those in double quotes, one after the other. Case does
    /// not matter.
    pub words: String,
    /// Whose conversations. Empty: those without an owner.
    pub owner: String,
    /// The most hits, 1 to 1,000.
    pub limit: usize,
}

impl SearchQuery {
    /// The 20 best hits among the conversations without an owner.
    #[must_use]
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), owner: String::new(), limit: 20 }
    }

    /// Sets whose conversations are searched.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Sets the most hits.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The phrases that a hit has, each of one word or more.
    pub(super) fn phrases(&self) -> Result<Vec<Vec<String>>> {
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
        let quoted = self.words.split('"').enumerate();
        let parts = quoted.flat_map(|(at, part)| {
            // Every second part is in quotes.
            let parts: Vec<&str> = if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() };
            parts
        });
        let phrases: Vec<Vec<String>> = parts
            .map(|part| words(part).map(|word| word.text).collect::<Vec<_>>())
            .filter(|found| !found.is_empty())
            .collect();
        match phrases.iter().map(Vec::len).sum::<usize>() {
            0 => Err(Error::InvalidInput("the search has no words: it needs a letter or a digit".to_owned())),
            count if count > QUERY_WORDS => exceeded(count, QUERY_WORDS, "words"),
            _ => Ok(phrases),
        }
    }
}

/// A message or a title that has the words of a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The conversation's key, if it was named by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The conversation's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The message index. Absent: the title has the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_index: Option<u64>,
    /// The seq of the message's first entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The message's role.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "role")]
    pub role: Option<Role>,
    /// The text around the first word found, on one line.
    pub excerpt: String,
    /// How well it fits: higher is better. Only hits of one search can be compared.
    pub score: f32,
}

fn role<S: Serializer>(role: &Option<Role>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    role.map(Role::as_str).serialize(serializer)
}

/// What bringing an index up to date did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refreshed {
    /// Conversations that were read, because they were new or had changed.
    pub conversations: u64,
    /// Conversations that were removed from the index, because they are gone.
    pub removed: u64,
    /// Conversations that cannot be read: their texts are not found.
    pub unreadable: u64,
}
