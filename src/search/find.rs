//! What a search is asked, and how it is answered: the index names candidates, and the store proves each of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde::{Serialize, Serializer};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Score, TantivyError, Term};

use super::document;
use super::document::{HIGH, LOW, MESSAGE, TITLE};
use super::index::{SearchIndex, found, guarded};
use super::words::{boundary, words};
use crate::error::{Error, Result};
use crate::log::ListItem;
use crate::model::{ConversationId, Role};
use crate::store::Store;

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
    fn phrases(&self) -> Result<Vec<Vec<String>>> {
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

/// Bytes of an excerpt on each side of the word that was found.
const AROUND: usize = 60;

impl Store {
    /// Brings an index up to date for the query's owner, and finds the messages and titles that have all words of the query,
    /// the best first.
    ///
    /// Each hit is read from the store before it is returned: what was redacted, removed or deleted is never in a result.
    ///
    /// Cost: reading the owner's list of conversations, indexing what is new in them, and one read for each hit.
    ///
    /// # Errors
    /// `InvalidInput` for a query without words; `LimitExceeded`; `Busy` if another process writes the index; `Corrupt` if
    /// the index is damaged: remove its directory; `Io`.
    pub fn search(&self, index: &SearchIndex, query: &SearchQuery) -> Result<Vec<Hit>> {
        find(self, index, query)
    }
}

fn find(store: &Store, index: &SearchIndex, query: &SearchQuery) -> Result<Vec<Hit>> {
    let phrases = query.phrases()?;
    index.refresh(store, &query.owner)?;
    let (hits, stale) = proved(store, index, query, &phrases)?;
    if stale.is_empty() {
        return Ok(hits);
    }
    // A redaction may reach a fork of another owner, which its own log does not show.
    index.repair(store, &query.owner, &stale)?;
    Ok(proved(store, index, query, &phrases)?.0)
}

/// A document that the index found.
struct Candidate {
    score: Score,
    conversation: ConversationId,
    message: u64,
}

/// The hits that the store proves, and the conversations of which the index knows something that the store does not have.
fn proved(
    store: &Store,
    index: &SearchIndex,
    query: &SearchQuery,
    phrases: &[Vec<String>],
) -> Result<(Vec<Hit>, HashSet<ConversationId>)> {
    let (mut hits, mut stale, mut described) = (Vec::new(), HashSet::new(), HashMap::new());
    for candidate in candidates(index, query, phrases)? {
        let id = candidate.conversation;
        let item = match described.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(found(store.describe(id))?),
        };
        let item = item.as_ref().filter(|item| item.owner == query.owner);
        match item.map(|item| hit(store, item, &candidate, phrases)).transpose()?.flatten() {
            Some(hit) => hits.push(hit),
            None => _ = stale.insert(id),
        }
    }
    Ok((hits, stale))
}

/// What the index has for a query, the best first.
fn candidates(index: &SearchIndex, query: &SearchQuery, phrases: &[Vec<String>]) -> Result<Vec<Candidate>> {
    let term = |field, word: &str| Term::from_field_text(field, word);
    let (text, owner) = (index.fields.text, index.fields.owner);
    let mut parts: Vec<Box<dyn Query>> =
        vec![Box::new(TermQuery::new(term(owner, &query.owner), IndexRecordOption::Basic))];
    for phrase in phrases {
        parts.push(match phrase.as_slice() {
            [word] => Box::new(TermQuery::new(term(text, word), IndexRecordOption::WithFreqs)),
            words => Box::new(PhraseQuery::new(words.iter().map(|word| term(text, word)).collect())),
        });
    }
    let all = BooleanQuery::new(parts.into_iter().map(|part| (Occur::Must, part)).collect());
    guarded(|| {
        let searcher = index.reader.searcher();
        let found = searcher.search(&all, &TopDocs::with_limit(query.limit).order_by_score())?;
        let candidate = |(score, address): (Score, tantivy::DocAddress)| {
            let fast = searcher.segment_reader(address.segment_ord).fast_fields();
            let read = |name: &str| Ok::<_, TantivyError>(fast.u64(name)?.first(address.doc_id).unwrap_or(0));
            let conversation = document::conversation(read(HIGH)?, read(LOW)?);
            Ok(Candidate { score, conversation, message: read(MESSAGE)? })
        };
        found.into_iter().map(candidate).collect()
    })
}

/// The hit, if the store shows it.
fn hit(store: &Store, item: &ListItem, candidate: &Candidate, phrases: &[Vec<String>]) -> Result<Option<Hit>> {
    let title = candidate.message == TITLE;
    let stored = if title {
        None
    } else {
        let messages = found(store.messages(item.id, candidate.message, 1))?;
        messages.and_then(|mut messages| messages.pop()).filter(|stored| stored.index == candidate.message)
    };
    let text = match &stored {
        Some(stored) => document::text(&stored.message),
        None if title => item.title.clone().unwrap_or_default(),
        None => return Ok(None),
    };
    Ok(excerpt(&text, phrases).map(|excerpt| Hit {
        conversation: item.id,
        key: item.key.clone(),
        title: item.title.clone(),
        message_index: stored.as_ref().map(|stored| stored.index),
        seq: stored.as_ref().map(|stored| stored.first_seq),
        role: stored.as_ref().map(|stored| stored.message.role),
        excerpt,
        score: candidate.score,
    }))
}

/// The text around the first word of the query, on one line; none if a phrase is not there.
fn excerpt(text: &str, phrases: &[Vec<String>]) -> Option<String> {
    let found: Vec<_> = words(text).collect();
    let at = |phrase: &Vec<String>| {
        found.windows(phrase.len()).position(|part| part.iter().map(|word| &word.text).eq(phrase.iter()))
    };
    let places: Vec<usize> = phrases.iter().map(at).collect::<Option<_>>()?;
    let word = found.get(places.into_iter().min()?)?;
    let from = boundary(text, word.from.saturating_sub(AROUND));
    let to = boundary(text, word.to.saturating_add(AROUND));
    let line = text.get(from..to).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    Some(format!("{}{line}{}", mark(from > 0), mark(to < text.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_around_the_first_word() {
        let phrases = |words: &[&[&str]]| -> Vec<Vec<String>> {
            words.iter().map(|phrase| phrase.iter().map(|word| (*word).to_owned()).collect()).collect()
        };
        let text = format!("{}Why does\nthe BUILD fail?{}", "é ".repeat(50), " x".repeat(50));
        let found = excerpt(&text, &phrases(&[&["build"]])).unwrap_or_default();
        assert!(
            found.starts_with('…') && found.ends_with('…') && found.contains("Why does the BUILD fail?"),
            "{found}"
        );
        assert_eq!(excerpt("a b c", &phrases(&[&["b", "c"], &["a"]])).as_deref(), Some("a b c"));
        assert_eq!(excerpt("a b c", &phrases(&[&["a", "c"]])), None);
        assert_eq!(excerpt("a b c", &phrases(&[&["d"]])), None);
    }
}
