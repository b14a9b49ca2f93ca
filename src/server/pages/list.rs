//! The list of conversations, and what a search finds in them.

use askama::Template;

use super::frame::{Frame, address_for, other_owner, page};
use super::prompt::Choice;
use super::words::{Moment, count, grouped};
use crate::history::MessageState;
use crate::log::reading::PageSize;
use crate::log::{ListItem, ListQuery, ListSort};
use crate::model::{FinishReason, Role};
use crate::provider::TokenCounts;
use crate::server::app::{Call, Outcome};
use crate::server::keys::Scope;
use crate::server::native::parameters;
use crate::server::refusal::Refusal;

/// Conversations of a page, and hits of a search.
const PAGE: usize = 50;
/// The most conversations that are looked at for a page of those that are not beside another one.
const LOOKED_AT: usize = 1_000;
/// Of each conversation of a page, the last messages are read, up to the one that exceeds these bytes.
const LAST: PageSize = PageSize { limit: 3, bytes: 32 * 1024, shows_hidden: false };

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "list.html")]
struct List {
    frame: Frame,
    filters: Filters,
    /// Whether the reader may look at what others have.
    is_admin: bool,
    order: Choice,
    /// Whether texts are searched, and not titles alone.
    searches_texts: bool,
    rows: Vec<Row>,
    hits: Option<Vec<Found>>,
    unreadable: usize,
    problem: Option<String>,
    is_first: bool,
    /// The addresses of the list with those beside others, and without them; absent where it makes no difference.
    switch: Option<String>,
    /// The address of the first page, and of the next one.
    first: String,
    next: Option<String>,
}

/// What narrows the list, as it was typed.
#[derive(Clone, Debug)]
struct Filters {
    words: String,
    tags: Vec<String>,
    /// Whose are listed; empty for the reader's own.
    owner: String,
    key: String,
    /// A field of the metadata: `NAME=VALUE`.
    field: String,
    since: String,
    until: String,
    sort: ListSort,
    /// Whether those beside others are shown.
    all: bool,
}

impl Filters {
    const NAMES: [&str; 10] = ["q", "tag", "after", "all", "owner", "key", "field", "since", "until", "sort"];

    fn of(call: &Call) -> Result<Self, Refusal> {
        let text = |name| call.query.get(name).unwrap_or_default().trim().to_owned();
        Ok(Self {
            words: text("q"),
            tags: call.query.all("tag").into_iter().map(|tag| tag.trim().to_owned()).collect(),
            owner: text("owner"),
            key: text("key"),
            field: text("field"),
            since: text("since"),
            until: text("until"),
            sort: call.query.parse("sort", "order: newest, oldest or created")?.unwrap_or_default(),
            all: call.query.get("all").is_some(),
        })
    }

    /// Whether something beside the words and the owner narrows the list, or changes its order.
    fn is_set(&self) -> bool {
        let Self { words: _, tags, owner: _, key, field, since, until, sort, all: _ } = self;
        !tags.is_empty() || [key, field, since, until].iter().any(|text| !text.is_empty()) || *sort != ListSort::Newest
    }

    fn is_any(&self) -> bool {
        !self.words.is_empty() || !self.owner.is_empty() || self.is_set()
    }

    /// The list with these filters.
    fn address(&self, after: &str) -> String {
        let Self { words, tags, owner, key, field, since, until, sort, all } = self;
        let sort = if *sort == ListSort::Newest { "" } else { sort.as_str() };
        let named = [
            ("q", &**words),
            ("owner", owner),
            ("key", key),
            ("field", field),
            ("since", since),
            ("until", until),
            ("sort", sort),
            ("after", after),
            ("all", if *all { "1" } else { "" }),
        ];
        let named = named.into_iter().filter(|(_, value)| !value.is_empty());
        address_for("/pages", named.chain(tags.iter().map(|tag| ("tag", &**tag))), None)
    }

    fn query(&self, call: &Call) -> Result<ListQuery, Refusal> {
        let mut query = ListQuery::new().with_owner(&*call.caller.owner).with_limit(PAGE).with_sort(self.sort);
        query.after = call.query.parse("after", "cursor")?;
        query.title = Some(self.words.clone()).filter(|words| !words.is_empty());
        query.tags.clone_from(&self.tags);
        query.key_prefix = Some(self.key.clone()).filter(|key| !key.is_empty());
        query.since = parameters::moment(call, "since")?;
        query.until = parameters::moment(call, "until")?;
        if let Some((name, value)) = self.field.split_once('=') {
            query = query.with_metadata(name.trim(), value.trim());
        }
        Ok(query)
    }

    /// Why they cannot be used together.
    fn problem(&self, searches_texts: bool) -> Option<&'static str> {
        let is_search = searches_texts && !self.words.is_empty();
        if !self.field.is_empty() && !self.field.contains('=') {
            Some("A field of the metadata is written as NAME=VALUE.")
        } else if is_search && (!self.key.is_empty() || !self.field.is_empty() || self.sort != ListSort::Newest) {
            Some("A search goes by tags and times: leave key, metadata and order as they are.")
        } else {
            None
        }
    }
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
    last: Last,
}

/// What the last messages say of a conversation.
#[derive(Debug, Default)]
struct Last {
    model: Option<String>,
    /// The tokens of the last answer.
    tokens: Option<(String, String)>,
    /// How it ended, where that is not the usual way.
    state: Option<&'static str>,
}

impl Last {
    /// Nothing is said of a conversation whose end cannot be read: its own page says why.
    fn of(call: &Call, item: &ListItem) -> Self {
        let messages = call.store().page_before(call.own(item.id), None, LAST).unwrap_or_default();
        let Some(answer) = messages.iter().rfind(|stored| stored.message.role == Role::Assistant) else {
            return Self::default();
        };
        let is_newest = messages.last().is_some_and(|last| last.index == answer.index);
        let reason = answer.message.finish_reason.as_ref();
        let state = match (answer.state, reason) {
            (MessageState::Streaming, _) => Some("streaming"),
            (MessageState::Interrupted, _) | (_, Some(FinishReason::Interrupted)) => Some("interrupted"),
            (_, Some(FinishReason::Error)) => Some("failed"),
            _ => None,
        };
        let counts = answer.message.usage.as_ref().and_then(TokenCounts::of);
        Self {
            model: answer.message.metadata.model.clone(),
            tokens: counts.map(|counts| (grouped(counts.input), grouped(counts.output))),
            state: state.filter(|_| is_newest),
        }
    }
}

/// A message or a title that has the words.
struct Found {
    address: String,
    title: String,
    place: String,
    /// Texts, and whether each was searched for.
    excerpt: Vec<(String, bool)>,
}

pub(super) fn list(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&Filters::NAMES)?;
    let call = &parameters::for_owner(&Call { query: call.query.filled(), ..call.clone() })?;
    let filters = Filters::of(call)?;
    let orders = [("newest", "Newest first"), ("oldest", "Oldest first"), ("created", "Last created first")];
    let searches_texts = cfg!(feature = "search");
    let mut list = List {
        frame: Frame::of(call),
        is_admin: call.caller.scopes.contains(&Scope::Admin),
        order: Choice::new(call, "sort", "Order", &orders),
        searches_texts,
        rows: Vec::new(),
        hits: None,
        unreadable: 0,
        problem: filters.problem(searches_texts).map(str::to_owned),
        switch: None,
        is_first: call.query.get("after").is_none(),
        first: filters.address(""),
        next: None,
        filters,
    };
    if list.problem.is_some() {
        return page(200, &list);
    }
    if !list.filters.words.is_empty() && searches_texts {
        match found(call, &list.filters) {
            Ok((hits, next)) => {
                list.hits = Some(hits);
                list.next = next.map(|next| list.filters.address(&next));
            }
            // What was typed is wrong, and can be corrected.
            Err(refusal) if refusal.status < 500 => list.problem = Some(refusal.message),
            Err(refusal) => return Err(refusal),
        }
        return page(200, &list);
    }
    let mut query = list.filters.query(call)?;
    // Who asks for something wants all that have it.
    let shows_all = list.filters.all || list.filters.is_set();
    let (mut looked_at, mut beside) = (0, 0);
    let next = loop {
        let listed = call.store().list(&query)?;
        looked_at += listed.items.len();
        list.unreadable += listed.unreadable.len();
        for item in listed.items {
            if item.is_beside() {
                beside += 1;
                if !shows_all {
                    continue;
                }
            }
            list.rows.push(Row::of(call, item));
        }
        match listed.next {
            Some(next) if list.rows.len() < PAGE && looked_at < LOOKED_AT => query.after = Some(next),
            next => break next,
        }
    };
    list.next = next.map(|next| list.filters.address(&next.to_string()));
    if !list.filters.is_set() && (beside > 0 || list.filters.all) {
        let other = Filters { all: !list.filters.all, ..list.filters.clone() };
        list.switch = Some(other.address(""));
    }
    page(200, &list)
}

impl Row {
    fn of(call: &Call, item: ListItem) -> Self {
        let id = item.id.to_string();
        let last = Last::of(call, &item);
        let title = item.title.filter(|title| !title.trim().is_empty());
        let tagged = |tag: &str| address_for("/pages", [("tag", tag)], other_owner(call));
        Self {
            title: title.or_else(|| item.key.clone()).unwrap_or_else(|| id.clone()),
            id,
            key: item.key,
            tags: item.tags.into_iter().map(|tag| (tagged(&tag), tag)).collect(),
            messages: count(item.messages, "message"),
            hidden: item.hidden,
            is_fork: item.parent.is_some(),
            at: item.last_activity.into(),
            last,
        }
    }
}

/// What a search finds, and where its next page begins.
type Hits = (Vec<Found>, Option<String>);

#[cfg(feature = "search")]
fn found(call: &Call, filters: &Filters) -> Result<Hits, Refusal> {
    use crate::search::{Hit, SearchQuery};
    let mut query = SearchQuery::new(&*filters.words).with_owner(&*call.caller.owner).with_limit(PAGE);
    query.tags.clone_from(&filters.tags);
    query.since = parameters::moment(call, "since")?;
    query.until = parameters::moment(call, "until")?;
    query.after = call.query.parse("after", "cursor")?;
    let found = |hit: Hit| {
        let id = hit.conversation.to_string();
        let (address, place) = match (hit.message_index, hit.role) {
            (Some(index), Some(role)) => {
                (format!("/pages/conversations/{id}?from={index}#m{index}"), format!("message {index}, {role}"))
            }
            _ => (format!("/pages/conversations/{id}"), "title".to_owned()),
        };
        let title = hit.title.filter(|title| !title.trim().is_empty()).or(hit.key).unwrap_or(id);
        let excerpt = hit.pieces.into_iter().map(|piece| (piece.text, piece.is_match)).collect();
        Found { address, title, place, excerpt }
    };
    let page = call.app.finder.find(call.store(), &query)?;
    Ok((page.hits.into_iter().map(found).collect(), page.next.map(|next| next.to_string())))
}

#[cfg(not(feature = "search"))]
fn found(_: &Call, _: &Filters) -> Result<Hits, Refusal> {
    Ok((Vec::new(), None))
}
