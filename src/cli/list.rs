use conversation_store::{Cursor, ListItem, ListPage, ListQuery};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::output::{self, Output};
use super::{Location, text};

const EXAMPLES: &str = "\
Examples:
  convo list
  convo list --title cache --limit 5
  convo list --tag work
  convo list --json | jq -r .conversation

Newest activity first. Where there are more, the cursor for --after is told on stderr; in JSON it is the last line:
{\"next\": CURSOR}.";

/// List the conversations, newest activity first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Conversations at most
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Continue where the page before ended
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
    /// Only those whose title holds this text, whatever its case
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only those that have this tag; given twice, both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    created_at: String,
    last_activity: String,
    last_seq: u64,
    messages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
}

#[derive(Serialize)]
struct Parent {
    conversation: String,
    at_seq: u64,
}

#[derive(Serialize)]
struct Next {
    next: String,
}

pub(super) fn run(args: Args, location: &Location, output: &mut Output) -> Outcome {
    let query = ListQuery { limit: args.limit, after: args.after, title: args.title, tags: args.tag };
    let page = location.read()?.list(&query)?;
    if output.is_text() {
        output.text(&text(&page))?;
    } else {
        for item in &page.items {
            output.json(&Shown::from(item))?;
        }
    }
    if let Some(next) = page.next {
        if output.is_text() {
            output::note(&format!("there are more: --after {next}"));
        } else {
            output.json(&Next { next: next.to_string() })?;
        }
    }
    Ok(Exit::Done)
}

impl<'a> From<&'a ListItem> for Shown<'a> {
    fn from(item: &'a ListItem) -> Self {
        let parent = |(id, at_seq): (conversation_store::model::ConversationId, u64)| Parent {
            conversation: id.to_string(),
            at_seq,
        };
        Self {
            conversation: item.id.to_string(),
            key: item.key.as_deref(),
            title: item.title.as_deref(),
            tags: &item.tags,
            created_at: item.created_at.to_string(),
            last_activity: item.last_activity.to_string(),
            last_seq: item.last_seq,
            messages: item.messages,
            parent: item.parent.map(parent),
        }
    }
}

fn text(page: &ListPage) -> String {
    if page.items.is_empty() {
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
    text::table(&std::iter::once(heads).chain(page.items.iter().map(row)).collect::<Vec<_>>())
}

/// The title, and behind it the tags.
fn titled(item: &ListItem) -> String {
    let title = text::cut(item.title.as_deref().unwrap_or_default(), 60);
    let tags: String = item.tags.iter().map(|tag| format!(" #{}", text::cut(tag, 30))).collect();
    format!("{title} {tags}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use conversation_store::model::{ConversationId, Timestamp};

    use super::*;

    #[test]
    fn people_read_keys_where_there_are_some() {
        let item = |key: Option<&str>, title: Option<&str>| ListItem {
            id: ConversationId::from_bytes([7; 16]),
            key: key.map(str::to_owned),
            title: title.map(str::to_owned),
            tags: if title.is_some() { vec!["work".to_owned()] } else { Vec::new() },
            created_at: Timestamp::from_micros(0),
            last_activity: Timestamp::from_micros(0),
            last_seq: 14,
            messages: 9,
            parent: None,
        };
        let wanted = "\
CONVERSATION                          LAST ACTIVITY (UTC)  MESSAGES  LAST SEQ  TITLE
chat-42                               1970-01-01 00:00:00  9         14        hello  #work
07070707-0707-0707-0707-070707070707  1970-01-01 00:00:00  9         14
";
        let items = vec![item(Some("chat-42"), Some("hello")), item(None, None)];
        assert_eq!(text(&ListPage { items, next: None }), wanted);
        assert_eq!(text(&ListPage { items: Vec::new(), next: None }), "no conversations");
    }
}
