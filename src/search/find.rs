//! How a search is answered: the index names candidates, and the store proves each of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use serde::{Serialize, Serializer};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, PhraseQuery, Query, RangeQuery, TermQuery, TermSetQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Score, TantivyError, Term};

use super::document::{self, CHUNK, HIGH, LOW, MESSAGE, Part, Section, sections};
use super::excerpt::{Piece, excerpt};
use super::index::{SearchIndex, found, guarded};
use super::query::{Phrase, SearchCursor, SearchQuery};
use crate::error::Result;
use crate::history::StoredMessage;
use crate::log::{ListItem, ListQuery};
use crate::model::{ConversationId, Role, Timestamp};
use crate::store::Store;

/// Conversations of a page of the list.
const PAGE: usize = 1000;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SearchPage {
    /// The best first.
    pub hits: Vec<Hit>,
    /// Where the next page begins; absent on the last one. What changes while one pages may be missed or repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<SearchCursor>,
}

/// A message or a title that has the words of a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema), schemars(rename = "SearchHit"))]
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
    /// Where the words are.
    pub found_in: Found,
    /// The message index. Absent: the title has the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_index: Option<u64>,
    /// The chunk that is the call or the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_index: Option<u32>,
    /// The seq of the message's first entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The message's role.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "role")]
    #[cfg_attr(feature = "server", schemars(with = "Option<String>"))]
    pub role: Option<Role>,
    /// When it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The text around the first word found, on one line.
    pub excerpt: String,
    /// The same, parted: what was searched for is marked.
    pub pieces: Vec<Piece>,
    /// How well it fits: higher is better. Only hits of one search can be compared.
    pub score: f32,
}

/// Where the words of a hit are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema), schemars(rename = "FoundIn"))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Found {
    /// In the conversation's title.
    Title,
    /// In a message's text.
    Text,
    /// In a call of a tool.
    Call,
    /// In a tool's result.
    Result,
}

fn role<S: Serializer>(role: &Option<Role>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    role.map(Role::as_str).serialize(serializer)
}

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
    pub fn search(&self, index: &SearchIndex, query: &SearchQuery) -> Result<SearchPage> {
        let phrases = query.phrases()?;
        index.refresh(self, &query.owner)?;
        let search = Search { store: self, index, query, phrases };
        let (page, stale) = search.page()?;
        if stale.is_empty() {
            return Ok(page);
        }
        // A redaction may reach a fork of another owner, which its own log does not show.
        index.repair(self, &query.owner, &stale)?;
        Ok(search.page()?.0)
    }
}

struct Search<'a> {
    store: &'a Store,
    index: &'a SearchIndex,
    query: &'a SearchQuery,
    phrases: Vec<Phrase>,
}

/// A document that the index found.
struct Candidate {
    score: Score,
    conversation: ConversationId,
    /// The message index; none for a title.
    message: Option<u64>,
    /// The position of a call or a result in its message.
    chunk: Option<usize>,
}

impl Search<'_> {
    /// The hits that the store proves, and the conversations of which the index knows something that the store does not have.
    fn page(&self) -> Result<(SearchPage, HashSet<ConversationId>)> {
        let (mut hits, mut stale, mut described) = (Vec::new(), HashSet::new(), HashMap::new());
        let (candidates, is_last) = self.candidates()?;
        for candidate in candidates {
            let id = candidate.conversation;
            let item = match described.entry(id) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(found(self.store.describe(id))?),
            };
            let item = item.as_ref().filter(|item| item.owner == self.query.owner);
            match item.map(|item| self.hit(item, &candidate)).transpose()?.flatten() {
                Some(hit) => hits.push(hit),
                None => _ = stale.insert(id),
            }
        }
        let next = (!is_last).then(|| SearchCursor(self.query.offset() + self.query.limit));
        Ok((SearchPage { hits, next }, stale))
    }

    /// What the index has for the page, the best first, and whether there is no more.
    fn candidates(&self) -> Result<(Vec<Candidate>, bool)> {
        let query = BooleanQuery::new(self.clauses()?);
        let limit = self.query.limit;
        guarded(|| {
            let searcher = self.index.reader.searcher();
            let best = TopDocs::with_limit(limit + 1).and_offset(self.query.offset()).order_by_score();
            let found = searcher.search(&query, &best)?;
            let candidate = |(score, address): &(Score, DocAddress)| {
                let fast = searcher.segment_reader(address.segment_ord).fast_fields();
                let read = |name: &str| Ok::<_, TantivyError>(fast.u64(name)?.first(address.doc_id));
                let conversation = document::conversation(read(HIGH)?.unwrap_or(0), read(LOW)?.unwrap_or(0));
                let chunk = read(CHUNK)?.and_then(document::chunk);
                Ok(Candidate { score: *score, conversation, message: read(MESSAGE)?, chunk })
            };
            let candidates =
                found.iter().take(limit).map(candidate).collect::<std::result::Result<_, TantivyError>>()?;
            Ok((candidates, found.len() <= limit))
        })
    }

    /// What a document must have; words as they are asked for count more than other endings of them.
    fn clauses(&self) -> Result<Vec<(Occur, Box<dyn Query>)>> {
        let (fields, query) = (&self.index.fields, self.query);
        let term = |field: Field, text: &str| Term::from_field_text(field, text);
        let of = |term: Term| -> Box<dyn Query> { Box::new(TermQuery::new(term, IndexRecordOption::Basic)) };
        let any = |terms: Vec<Term>| -> Box<dyn Query> { Box::new(TermSetQuery::new(terms)) };
        let parts = query.parts().into_iter().map(|part| term(fields.part, part.as_str()));
        let mut filters = vec![of(term(fields.owner, &query.owner)), any(parts.collect())];
        filters.extend(query.conversation.map(|id| of(fields.all_of(id))));
        filters.extend(query.role.map(|role| of(document::role(fields, role))));
        if query.since.is_some() || query.until.is_some() {
            let at = |time: Timestamp| Term::from_field_i64(fields.at, time.as_micros());
            let since = query.since.map_or(Bound::Unbounded, |time| Bound::Included(at(time)));
            filters.push(Box::new(RangeQuery::new(
                since,
                query.until.map_or(Bound::Unbounded, |time| Bound::Excluded(at(time))),
            )));
        }
        if !query.tags.is_empty() {
            filters.push(any(self.tagged()?.into_iter().map(|id| fields.all_of(id)).collect()));
        }
        let filters =
            filters.into_iter().map(|filter| -> Box<dyn Query> { Box::new(ConstScoreQuery::new(filter, 0.0)) });
        let mut clauses: Vec<_> = filters.map(|filter| (Occur::Must, filter)).collect();
        for Phrase { words, is_exact } in &self.phrases {
            let exact = said(words.iter().map(|word| term(fields.text, word)));
            if *is_exact {
                clauses.push((Occur::Must, exact));
                continue;
            }
            let stems = words.iter().map(|word| term(fields.stems, &self.index.stems.of(word)));
            clauses.extend([(Occur::Must, said(stems)), (Occur::Should, exact)]);
        }
        Ok(clauses)
    }

    /// The owner's conversations with the query's tags.
    fn tagged(&self) -> Result<Vec<ConversationId>> {
        let mut ids = Vec::new();
        let mut query = ListQuery::new().with_owner(&*self.query.owner).with_limit(PAGE);
        query.tags.clone_from(&self.query.tags);
        loop {
            let page = self.store.list(&query)?;
            ids.extend(page.items.iter().map(|item| item.id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(ids),
            }
        }
    }

    /// The hit, if the store shows it.
    fn hit(&self, item: &ListItem, candidate: &Candidate) -> Result<Option<Hit>> {
        let stored = match candidate.message {
            None => None,
            Some(index) => {
                let messages = found(self.store.messages(item.id, index, 1))?;
                let stored = messages.and_then(|mut messages| messages.pop()).filter(|stored| stored.index == index);
                if stored.is_none() {
                    return Ok(None);
                }
                stored
            }
        };
        let section = match &stored {
            None => Some(Section { part: Part::Title, chunk: None, text: item.title.clone().unwrap_or_default() }),
            Some(stored) => sections(&stored.message).into_iter().find(|section| section.chunk == candidate.chunk),
        };
        let Some(section) = section else { return Ok(None) };
        let Some(pieces) = excerpt(&section.text, &self.phrases, &self.index.stems) else { return Ok(None) };
        let stored: Option<&StoredMessage> = stored.as_ref();
        Ok(Some(Hit {
            conversation: item.id,
            key: item.key.clone(),
            title: item.title.clone(),
            found_in: section.part.into(),
            message_index: stored.map(|stored| stored.index),
            chunk_index: stored.zip(section.chunk).map(|(stored, at)| stored.chunk_index(at)),
            seq: stored.map(|stored| stored.first_seq),
            role: stored.map(|stored| stored.message.role),
            created_at: stored.and_then(|stored| stored.message.metadata.created_at),
            excerpt: pieces.iter().map(|piece| piece.text.as_str()).collect(),
            pieces,
            score: candidate.score,
        }))
    }
}

/// Words that follow each other.
fn said(terms: impl Iterator<Item = Term>) -> Box<dyn Query> {
    let terms: Vec<Term> = terms.collect();
    match <[Term; 1]>::try_from(terms) {
        Ok([term]) => Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
        Err(terms) => Box::new(PhraseQuery::new(terms)),
    }
}

impl From<Part> for Found {
    fn from(part: Part) -> Self {
        match part {
            Part::Title => Self::Title,
            Part::Text => Self::Text,
            Part::Call => Self::Call,
            Part::Result => Self::Result,
        }
    }
}
