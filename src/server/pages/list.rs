//! The list of conversations, and what a search finds in them.

use askama::Template;

use super::frame::{Frame, page};
use super::words::{Moment, count};
use crate::log::{ListItem, ListQuery};
use crate::server::app::{Call, Outcome};
use crate::server::refusal::Refusal;

/// Conversations of a page, and hits of a search.
const PAGE: usize = 50;
/// The most conversations that are looked at for a page of those that are not beside another one.
const LOOKED_AT: usize = 1_000;

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "list.html")]
struct List<'a> {
    frame: Frame,
    words: &'a str,
    tags: Vec<&'a str>,
    /// Whether texts are searched, and not titles alone.
    searches_texts: bool,
    rows: Vec<Row>,
    hits: Option<Vec<Found>>,
    unreadable: usize,
    problem: Option<String>,
    is_first: bool,
    /// Whether those beside others are shown.
    shows_all: bool,
    /// The addresses of the list with them, and without them; absent where it makes no difference.
    switch: Option<String>,
    /// The address of the next page.
    next: Option<String>,
}

struct Row {
    id: String,
    title: String,
    key: Option<String>,
    tags: Vec<(String, String)>,
    messages: String,
    hidden: u64,
    is_fork: bool,
    at: Moment,
}

/// A message or a title that has the words.
struct Found {
    address: String,
    title: String,
    place: String,
    excerpt: String,
}

pub(super) fn list(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["q", "tag", "after", "all"])?;
    let words = call.query.get("q").unwrap_or_default().trim();
    let tags: Vec<&str> = call.query.all("tag").into_iter().filter(|tag| !tag.is_empty()).collect();
    let mut list = List {
        frame: Frame::of(call),
        words,
        tags,
        searches_texts: cfg!(feature = "search"),
        rows: Vec::new(),
        hits: None,
        unreadable: 0,
        problem: None,
        // Who asks for a tag wants all that have it.
        shows_all: call.query.get("all").is_some() || call.query.get("tag").is_some_and(|tag| !tag.is_empty()),
        switch: None,
        is_first: call.query.get("after").is_none(),
        next: None,
    };
    // A search finds messages; tags narrow the list.
    if !words.is_empty() && list.tags.is_empty() && list.searches_texts {
        match found(call, words) {
            Ok(hits) => list.hits = Some(hits),
            // What was typed is wrong, and can be corrected.
            Err(refusal) if refusal.status < 500 => list.problem = Some(refusal.message),
            Err(refusal) => return Err(refusal),
        }
        return page(200, &list);
    }
    let mut query = ListQuery::new().with_owner(&*call.caller.owner);
    query.limit = PAGE;
    query.after = call.query.parse("after", "cursor")?;
    query.title = Some(words).filter(|words| !words.is_empty()).map(str::to_owned);
    query.tags = list.tags.iter().map(|tag| (*tag).to_owned()).collect();
    let (mut looked_at, mut beside) = (0, 0);
    let next = loop {
        let listed = call.store().list(&query)?;
        looked_at += listed.items.len();
        list.unreadable += listed.unreadable.len();
        for item in listed.items {
            if item.is_beside() {
                beside += 1;
                if !list.shows_all {
                    continue;
                }
            }
            list.rows.push(Row::of(item));
        }
        match listed.next {
            Some(next) if list.rows.len() < PAGE && looked_at < LOOKED_AT => query.after = Some(next),
            next => break next,
        }
    };
    let all = list.shows_all && list.tags.is_empty();
    list.next = next.map(|next| address(words, &list.tags, &next.to_string(), all));
    if list.tags.is_empty() && (beside > 0 || all) {
        list.switch = Some(address(words, &[], "", !all));
    }
    page(200, &list)
}

impl Row {
    fn of(item: ListItem) -> Self {
        let id = item.id.to_string();
        let title = item.title.filter(|title| !title.trim().is_empty());
        Self {
            title: title.or_else(|| item.key.clone()).unwrap_or_else(|| id.clone()),
            id,
            key: item.key,
            tags: item.tags.into_iter().map(|tag| (address("", &[&tag], "", false), tag)).collect(),
            messages: count(item.messages, "message"),
            hidden: item.hidden,
            is_fork: item.parent.is_some(),
            at: item.last_activity.into(),
        }
    }
}

/// The list with these filters.
fn address(words: &str, tags: &[&str], after: &str, all: bool) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in [("q", words), ("after", after), ("all", if all { "1" } else { "" })] {
        if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    query.extend_pairs(tags.iter().map(|tag| ("tag", tag)));
    format!("/pages?{}", query.finish())
}

#[cfg(feature = "search")]
fn found(call: &Call, words: &str) -> Result<Vec<Found>, Refusal> {
    use crate::search::{Hit, SearchQuery};
    let query = SearchQuery::new(words).with_owner(&*call.caller.owner).with_limit(PAGE);
    let found = |hit: Hit| {
        let id = hit.conversation.to_string();
        let (address, place) = match (hit.message_index, hit.role) {
            (Some(index), Some(role)) => {
                (format!("/pages/conversations/{id}?from={index}#m{index}"), format!("message {index}, {role}"))
            }
            _ => (format!("/pages/conversations/{id}"), "title".to_owned()),
        };
        let title = hit.title.filter(|title| !title.trim().is_empty()).or(hit.key).unwrap_or(id);
        Found { address, title, place, excerpt: hit.excerpt }
    };
    Ok(call.app.finder.find(call.store(), &query)?.hits.into_iter().map(found).collect())
}

#[cfg(not(feature = "search"))]
fn found(_: &Call, _: &str) -> Result<Vec<Found>, Refusal> {
    Ok(Vec::new())
}
