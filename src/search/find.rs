//! A query, answered: the index names candidates, and the store proves each of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{Score, TantivyError, Term};

use super::document::{self, HIGH, LOW, MESSAGE, TITLE};
use super::guard::{found, guarded};
use super::index::SearchIndex;
use super::query::{Hit, SearchQuery};
use super::words::{boundary, words};
use crate::error::Result;
use crate::log::ListItem;
use crate::model::ConversationId;
use crate::store::Store;

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
