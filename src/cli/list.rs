use conversation_store::{ListCursor, ListItem, ListPage, ListQuery, Problem};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::{self, Output};
use super::text;
use super::values::number;

/// Conversations of one read, and of a page on a terminal.
const PAGE: usize = 50;

const EXAMPLES: &str = "\
Examples:
  convo list
  convo list --title cache --limit 5
  convo list --tag work
  convo list --owner ada
  convo list --json | jq -r .conversation

Lists the conversations of --owner, or those without an owner, newest activity first. As JSON, one per line, all of \
them unless --limit is given.

If --limit leaves some out, the cursor for --after follows: as a note on a terminal, as a last line {\"next\": CURSOR} \
in JSON.";

/// List the conversations, newest activity first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The most conversations to print; on a terminal 50 by default
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    limit: Option<usize>,
    /// Continue after the previous page
    #[arg(long, value_name = "CURSOR")]
    after: Option<ListCursor>,
    /// Only conversations whose title holds this text, in any case
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only conversations with this tag; given twice, with both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

#[derive(Serialize)]
struct Next {
    next: ListCursor,
}

pub(super) fn run(args: Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let limit = args.limit.unwrap_or(PAGE);
    let mut query = ListQuery::new().with_owner(location.owner().unwrap_or_default()).with_limit(limit);
    (query.after, query.title, query.tags) = (args.after, args.title, args.tag);
    if output.is_text() {
        let ListPage { items, unreadable, next, .. } = store.list(&query)?;
        output.begin_pages();
        output.text(&text(&items))?;
        output.end_pages()?;
        warn_of(&unreadable);
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

fn text(items: &[ListItem]) -> String {
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

/// The title, and after it the tags.
fn titled(item: &ListItem) -> String {
    let title = text::cut(item.title.as_deref().unwrap_or_default(), 60);
    let tags: String = item.tags.iter().map(|tag| format!(" #{}", text::cut(tag, 30))).collect();
    format!("{title} {tags}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use conversation_store::model::{ConversationId, Message, Name, Timestamp};
    use conversation_store::{Store, StoreOptions};

    use super::*;

    #[test]
    fn people_read_keys_where_there_are_some() {
        let store = StoreOptions::new().with_clock(|| Timestamp::from_micros(0)).open("memory:").unwrap();
        assert_eq!(text(&store.list(&ListQuery::new()).unwrap().items), "no conversations");
        let append = |store: &Store, name: Name, text: &str| store.append(name, &[Message::user(text)]).unwrap();
        append(&store, "chat-42".into(), "hello");
        store.tag("chat-42", &["work"]).unwrap();
        append(&store, ConversationId::from_bytes([7; 16]).into(), " ");
        let wanted = "\
CONVERSATION                          LAST ACTIVITY (UTC)  MESSAGES  LAST SEQ  TITLE
chat-42                               1970-01-01 00:00:00  1         2         hello  #work
07070707-0707-0707-0707-070707070707  1970-01-01 00:00:00  1         1
";
        let shown = text(&store.list(&ListQuery::new()).unwrap().items);
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), wanted);
    }
}
