//! Conversations, messages and items that are looked for.

use conversation_store::{ListCursor, ListItem, ListPage, ListQuery, Problem};
use serde::Serialize;

use super::change::Starter;
use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{self, Output};
use super::text;
use super::values::number;

/// Conversations of one read, and of a page on a terminal.
const PAGE: usize = 50;

/// List the conversations, newest activity first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo list
  convo list --title cache --limit 5
  convo list --tag work
  convo list --owner ada
  # the sub-agents that a conversation started
  convo list --started-by chat-42
  convo list --json | jq -r .conversation

Lists the conversations of --owner, or those without an owner, newest activity first. As JSON, one per line, all of \
them unless --limit is given.

If --limit leaves some out, the cursor for --after follows: as a note on a terminal, as a last line {\"next\": CURSOR} \
in JSON.")]
pub(super) struct List {
    /// The most conversations to print; on a terminal 50 by default
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    limit: Option<usize>,
    /// Continue after the previous page
    #[arg(long, value_name = "CURSOR")]
    after: Option<ListCursor>,
    /// Only conversations whose title holds this text, in any case
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only conversations with this tag; `--tag A --tag B`: only those with both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Also what the proxy recorded beside conversations: sub-agents, titles, summaries; as JSON, and with --tag, they are there
    /// in any case
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    starter: Starter,
}

#[derive(Serialize)]
struct Next {
    next: ListCursor,
}

pub(super) fn list(args: List, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let limit = args.limit.unwrap_or(PAGE);
    let mut query = ListQuery::new().with_owner(location.owner().unwrap_or_default()).with_limit(limit);
    let link = args.starter.link(location).map(|link| link.to_string());
    (query.after, query.title, query.tags) = (args.after, args.title, link.into_iter().chain(args.tag).collect());
    if output.is_text() {
        let shows_all = args.all || !query.tags.is_empty();
        let (mut items, mut unreadable, mut left_out) = (Vec::new(), Vec::new(), 0);
        let next = loop {
            let page = store.list(&query)?;
            unreadable.extend(page.unreadable);
            let found = page.items.len();
            let before = items.len();
            items.extend(page.items.into_iter().filter(|item| shows_all || !item.is_beside()));
            left_out += before + found - items.len();
            match page.next {
                Some(next) if items.len() < limit => {
                    query.after = Some(next);
                    query.limit = limit - items.len();
                }
                next => break next,
            }
        };
        output.begin_pages();
        output.text(&page(&items))?;
        output.end_pages()?;
        warn_of(&unreadable);
        if left_out > 0 {
            output::note(&format!("{left_out} beside these are left out: --all shows them"));
        }
        if let Some(next) = next {
            output::note(&format!("there are more: --after {next}, or --limit"));
        }
        return Ok(Exit::Done);
    }
    loop {
        let ListPage { items, unreadable, next, .. } = store.list(&query)?;
        for item in &items {
            output.json(item)?;
        }
        warn_of(&unreadable);
        let Some(next) = next else { return Ok(Exit::Done) };
        if args.limit.is_some() {
            output.json(&Next { next })?;
            return Ok(Exit::Done);
        }
        query.after = Some(next);
    }
}

fn warn_of(unreadable: &[Problem]) {
    for problem in unreadable {
        output::warn(&format!("{problem}: `convo verify` shows more"));
    }
}

fn page(items: &[ListItem]) -> String {
    if items.is_empty() {
        return "no conversations".to_owned();
    }
    let heads = ["CONVERSATION", "LAST ACTIVITY (UTC)", "MESSAGES", "LAST SEQ", "TITLE"].map(str::to_owned);
    let row = |item: &ListItem| {
        let name = item.key.clone().unwrap_or_else(|| item.id.to_string());
        [
            text::cut(&name, 48),
            text::time(item.last_activity),
            item.messages.to_string(),
            item.last_seq.to_string(),
            titled(item),
        ]
    };
    text::titled_table(&std::iter::once(heads).chain(items.iter().map(row)).collect::<Vec<_>>())
}

/// The title, and after it the tags. A fork has its parent's title: it says that it is one.
fn titled(item: &ListItem) -> String {
    let fork = if item.parent.is_some() { "(fork) " } else { "" };
    let title = format!("{fork}{}", text::cut(item.title.as_deref().unwrap_or_default(), 60));
    let tags: String = item.tags.iter().map(|tag| format!(" #{}", text::cut(tag, 30))).collect();
    format!("{title} {tags}").trim().to_owned()
}

/// Find the message with a provider's item id
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo find-item msg_01XFDUDYJgAACzvnptvVoYEL
  convo find-item rs_68af4030baa48193b0b43b4c2a176a1a --in chat-42

The ids are those that providers give to messages, items and blocks; not those of tool calls. Exit code 1 if no \
message has the id.")]
pub(super) struct FindItem {
    /// The provider's id of a message or an item
    item_id: String,
    /// Only in this conversation
    #[arg(long, value_name = "CONVERSATION")]
    r#in: Option<String>,
}

pub(super) fn find_item(args: &FindItem, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let items = match &args.r#in {
        Some(name) => store.find_item(location.name(name), &args.item_id)?.into_iter().collect(),
        None => store.find_item_everywhere(&args.item_id)?,
    };
    for item in &items {
        output.result(item, || {
            let chunk = item.chunk_index.map_or_else(String::new, |chunk| format!(", chunk {chunk}"));
            let name = item.key.clone().unwrap_or_else(|| item.conversation.to_string());
            let name = text::printable(&name);
            format!("{name}: message {}{chunk}, seq {}", item.message_index, item.seq)
        })?;
    }
    if items.is_empty() {
        return Err(Failure::finding("not_found", format!("no message has the item id {}", args.item_id)));
    }
    Ok(Exit::Done)
}

/// List the messages that were begun and are not finished
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo unfinished
  convo unfinished --owner ada
  convo unfinished --json | jq -r .conversation

After a crash, these are the answers that were cut off and that no later message follows. Lists those of all owners, \
unless --owner names one.")]
pub(super) struct Unfinished {}

pub(super) fn unfinished(_: &Unfinished, location: &Location, output: &mut Output) -> Outcome {
    let mut found = location.read()?.unfinished()?;
    found.retain(|unfinished| location.owner().is_none_or(|owner| unfinished.owner == owner));
    for unfinished in &found {
        output.result(unfinished, || place(unfinished))?;
    }
    if found.is_empty() && output.is_text() {
        output.text("no unfinished messages")?;
    }
    Ok(Exit::Done)
}

fn place(unfinished: &conversation_store::Unfinished) -> String {
    let name = unfinished.key.clone().unwrap_or_else(|| unfinished.conversation.to_string());
    format!("{}: message {}, {}", text::printable(&name), unfinished.message_index, unfinished.state.as_str())
}

#[cfg(test)]
mod tests {
    use conversation_store::model::{ConversationId, Message, Name, Timestamp};
    use conversation_store::{Store, StoreOptions};

    use super::*;

    #[test]
    fn people_read_keys_where_there_are_some() {
        let store = StoreOptions::new().with_clock(|| Timestamp::from_micros(0)).open("memory:").unwrap();
        assert_eq!(page(&store.list(&ListQuery::new()).unwrap().items), "no conversations");
        let append = |store: &Store, name: Name, text: &str| store.append(name, &[Message::user(text)]).unwrap();
        append(&store, "chat-42".into(), "hello");
        store.tag("chat-42", &["work"]).unwrap();
        append(&store, ConversationId::from_bytes([7; 16]).into(), " ");
        let wanted = "\
CONVERSATION                          LAST ACTIVITY (UTC)  MESSAGES  LAST SEQ  TITLE
chat-42                               1970-01-01 00:00:00  1         2         hello  #work
07070707-0707-0707-0707-070707070707  1970-01-01 00:00:00  1         1
";
        let shown = page(&store.list(&ListQuery::new()).unwrap().items);
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), wanted);
    }
}
