//! Tools that read.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shown::{self, ANSWER_BYTES, NOTICE, TOKEN_BYTES, short};
use super::wrong::Wrong;
use super::{McpServer, Opened};
use crate::error::Error;
use crate::log::{ListItem, ListQuery};
use crate::model::{Name, Role, Timestamp};
use crate::search::{SearchIn, SearchQuery};

/// Tokens of an answer, if the agent does not say, and at most.
const TOKENS: usize = 4_000;
const MOST_TOKENS: usize = ANSWER_BYTES / TOKEN_BYTES;
/// The most messages on each side of one.
const MOST_AROUND: u64 = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// The words: a hit has all of them, with whatever endings. Words in double quotes are found as they are, one after the other
    query: String,
    /// Where: texts, calls (of tools), results (of tools). By default only texts, with titles
    #[serde(default, rename = "in")]
    #[schemars(with = "Vec<Where>")]
    within: Vec<Where>,
    /// Only in this conversation: its id or its key
    conversation: Option<String>,
    /// Only in conversations with all of these tags
    #[serde(default)]
    tags: Vec<String>,
    /// Only what was said by: system, user, assistant, tool
    role: Option<String>,
    /// Only what was said since this day or time, as in 2026-11-25
    since: Option<String>,
    /// Only what was said before this day or time
    until: Option<String>,
    /// The most hits, 1 to 50; 10 by default
    limit: Option<usize>,
    /// The `next` of the answer before
    after: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Where {
    Texts,
    Calls,
    Results,
}

pub(super) fn search(server: &McpServer, opened: &Opened, asked: Search) -> Result<Value, Wrong> {
    let mut query = SearchQuery::new(asked.query).with_owner(&*server.owner);
    query.within = asked.within.into_iter().map(Where::into).collect();
    query.conversation = asked.conversation.as_deref().map(|name| server.name(name).id());
    query.tags = asked.tags;
    let role = |name: &str| {
        Role::from_name(name).ok_or_else(|| Wrong::argument("role", "expected system, user, assistant or tool"))
    };
    query.role = asked.role.as_deref().map(role).transpose()?;
    let moment = |name: &str, text: &str| {
        Timestamp::of_day_or_time(text)
            .map_err(|_| Wrong::argument(name, "expected a day such as 2026-11-25, or an RFC 3339 time"))
    };
    query.since = asked.since.as_deref().map(|text| moment("since", text)).transpose()?;
    query.until = asked.until.as_deref().map(|text| moment("until", text)).transpose()?;
    query.limit = between("limit", asked.limit, 10, 50)?;
    query.after = asked.after.as_deref().map(str::parse).transpose()?;
    let page = (opened.search)(&opened.store, &query)?;
    let hits = page.hits.iter().map(|hit| {
        let mut shown = json!({
            "conversation": hit.conversation, "key": hit.key.as_deref().map(short),
            "title": hit.title.as_deref().map(short), "in": hit.found_in, "message": hit.message_index, "role": hit.role.map(Role::as_str), "at": hit.created_at, "excerpt": hit.excerpt,
        });
        without_nulls(&mut shown);
        shown
    });
    Ok(answer(json!({ "hits": hits.collect::<Vec<_>>(), "next": page.next })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// Only titles that hold this text
    title: Option<String>,
    /// Only conversations with all of these tags
    #[serde(default)]
    tags: Vec<String>,
    /// The most conversations, 1 to 100; 20 by default
    limit: Option<usize>,
    /// The `next` of the answer before
    after: Option<String>,
}

pub(super) fn list(server: &McpServer, opened: &Opened, asked: List) -> Result<Value, Wrong> {
    let mut query = ListQuery::new().with_owner(&*server.owner).with_limit(between("limit", asked.limit, 20, 100)?);
    (query.title, query.tags) = (asked.title, asked.tags);
    query.after = asked.after.as_deref().map(str::parse).transpose()?;
    let page = opened.store.list(&query)?;
    let (mut items, mut next, mut room) = (Vec::new(), page.next, ANSWER_BYTES);
    for (at, item) in page.items.iter().enumerate() {
        let shown = described(item);
        room = room.saturating_sub(shown.to_string().len());
        if room == 0 {
            next = at.checked_sub(1).and_then(|before| page.items.get(before)).map(ListItem::cursor);
            break;
        }
        items.push(shown);
    }
    Ok(answer(json!({ "conversations": items, "next": next })))
}

/// A conversation of the list, as it is shown.
fn described(item: &ListItem) -> Value {
    let tags: Vec<&str> = item.tags.iter().map(|tag| short(tag)).collect();
    let mut shown = json!({
        "conversation": item.id, "key": item.key.as_deref().map(short), "title": item.title.as_deref().map(short), "tags": tags,
        "messages": item.messages, "created_at": item.created_at, "last_activity": item.last_activity,
        "forked_from": item.parent.map(|parent| parent.conversation),
    });
    without_nulls(&mut shown);
    shown
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// The conversation: its id or its key
    conversation: String,
    /// The index of the first message; 0 by default
    #[serde(default)]
    from: u64,
    /// The index of the last message
    to: Option<u64>,
    /// Bytes of the first message's texts to leave out: the `skip` of the answer before, where a message was cut
    #[serde(default)]
    skip: usize,
    /// About how many tokens the answer may have, 100 to 16,384; 4,000 by default
    max_tokens: Option<usize>,
}

pub(super) fn read(server: &McpServer, opened: &Opened, asked: Read) -> Result<Value, Wrong> {
    let name = server.name(&asked.conversation);
    let bytes = budget(asked.max_tokens)?;
    let item = opened.store.describe(&name)?;
    let (messages, next) = messages(opened, &name, asked.from, asked.to, asked.skip, bytes)?;
    Ok(answer(json!({ "conversation": described(&item), "messages": messages, "next": next })))
}

/// The messages of a range within so many bytes, and where the rest begins.
pub(super) fn messages(
    opened: &Opened,
    name: &Name,
    from: u64,
    to: Option<u64>,
    skip: usize,
    bytes: usize,
) -> Result<(Vec<Value>, Option<Value>), Wrong> {
    let (mut from, mut skip, mut room) = (from, skip, bytes);
    let mut shown = Vec::new();
    loop {
        // One at a time: a message may be large.
        let stored =
            opened.store.messages(name, from, 1)?.pop().filter(|stored| to.is_none_or(|to| stored.index <= to));
        let Some(stored) = stored else { return Ok((shown, None)) };
        if stored.index != from {
            skip = 0;
        }
        let message = shown::message(&stored, skip, room);
        let is_first = shown.is_empty();
        // A message that does not fit begins the next answer, unless it would not fit there either.
        if !is_first && (message.size > room || message.continues_at.is_some()) {
            return Ok((shown, Some(json!({ "from": stored.index }))));
        }
        room = room.saturating_sub(message.size);
        shown.push(message.message);
        if let Some(skip) = message.continues_at {
            return Ok((shown, Some(json!({ "from": stored.index, "skip": skip }))));
        }
        (from, skip) = (stored.index + 1, 0);
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Around {
    /// The conversation: its id or its key
    conversation: String,
    /// The index of the message, as a search gives it
    message: u64,
    /// How many messages before it, 0 to 20; 2 by default
    before: Option<u64>,
    /// How many messages after it, 0 to 20; 2 by default
    after: Option<u64>,
    /// About how many tokens the answer may have, 100 to 16,384; 4,000 by default
    max_tokens: Option<usize>,
}

pub(super) fn around(server: &McpServer, opened: &Opened, asked: Around) -> Result<Value, Wrong> {
    let name = server.name(&asked.conversation);
    let bytes = budget(asked.max_tokens)?;
    let [before, after] = [("before", asked.before), ("after", asked.after)].map(|(name, count)| match count {
        Some(count) if count > MOST_AROUND => Err(Wrong::argument(name, "expected 0 to 20")),
        count => Ok(count.unwrap_or(2)),
    });
    let (before, after) = (before?, after?);
    let item = opened.store.describe(&name)?;
    let first = asked.message.saturating_sub(before);
    let count = usize::try_from(asked.message - first + after + 1).unwrap_or_default();
    let found = opened.store.messages(&name, first, count)?;
    // The message itself has half of the room, and the others the rest, each as much.
    let others = (bytes / 2).checked_div(found.len().saturating_sub(1)).unwrap_or_default();
    let messages = found.iter().map(|stored| {
        let room = if stored.index == asked.message { bytes / 2 } else { others };
        let shown = shown::message(stored, 0, room);
        match (shown.continues_at, shown.message) {
            (Some(skip), Value::Object(mut message)) => {
                message.insert("next".to_owned(), json!({ "from": stored.index, "skip": skip }));
                Value::Object(message)
            }
            (_, message) => message,
        }
    });
    Ok(answer(json!({ "conversation": described(&item), "messages": messages.collect::<Vec<_>>() })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Find {
    /// The id: of a message, a response or an item, as a provider gave it
    item: String,
}

pub(super) fn find(server: &McpServer, opened: &Opened, asked: Find) -> Result<Value, Wrong> {
    let mut items = Vec::new();
    for item in opened.store.find_item_everywhere(&asked.item)? {
        match opened.store.describe(Name::from(item.conversation).with_owner(&*server.owner)) {
            Ok(_) => items.push(json!({
                "conversation": item.conversation, "key": item.key.as_deref().map(short),
                "message": item.message_index, "chunk": item.chunk_index,
            })),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    items.iter_mut().for_each(without_nulls);
    items.truncate(100);
    Ok(answer(json!({ "items": items })))
}

/// An answer with what was stored.
fn answer(mut value: Value) -> Value {
    without_nulls(&mut value);
    let mut answer = json!({ "notice": NOTICE });
    if let (Value::Object(answer), Value::Object(fields)) = (&mut answer, value) {
        answer.extend(fields);
    }
    answer
}

fn without_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
    }
}

fn between(name: &str, given: Option<usize>, usual: usize, most: usize) -> Result<usize, Wrong> {
    match given.unwrap_or(usual) {
        number if (1..=most).contains(&number) => Ok(number),
        _ => Err(Wrong::argument(name, &format!("expected 1 to {most}"))),
    }
}

/// The bytes of an answer with so many tokens.
fn budget(tokens: Option<usize>) -> Result<usize, Wrong> {
    match tokens.unwrap_or(TOKENS) {
        tokens if (100..=MOST_TOKENS).contains(&tokens) => Ok(tokens * TOKEN_BYTES),
        _ => Err(Wrong::argument("max_tokens", &format!("expected 100 to {MOST_TOKENS}"))),
    }
}

impl From<Where> for SearchIn {
    fn from(within: Where) -> Self {
        match within {
            Where::Texts => Self::Texts,
            Where::Calls => Self::Calls,
            Where::Results => Self::Results,
        }
    }
}
