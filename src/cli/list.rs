use conversation_store::{ListCursor, ListItem, ListQuery};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::output::{self, Output};
use super::{Location, text};

const EXAMPLES: &str = "\
Examples:
  convo list
  convo list --title cache --limit 5
  convo list --tag work
  convo list --owner ada
  convo list --json | jq -r .conversation

The conversations of --owner, else those that have no owner. Newest activity first. Where there are more, the cursor for --after is printed on stderr; in JSON it is the last line:
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
    after: Option<ListCursor>,
    /// Only those whose title holds this text, whatever its case
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only those that have this tag; given twice, both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

#[derive(Serialize)]
struct Next {
    next: ListCursor,
}

pub(super) fn run(args: Args, location: &Location, output: &mut Output) -> Outcome {
    let mut query = ListQuery::new().with_owner(location.owner().unwrap_or_default()).with_limit(args.limit);
    (query.after, query.title, query.tags) = (args.after, args.title, args.tag);
    let page = location.read()?.list(&query)?;
    if output.is_text() {
        output.text(&text(&page.items))?;
    } else {
        for item in &page.items {
            output.json(item)?;
        }
    }
    for problem in &page.unreadable {
        output::warn(&format!("{problem}: `convo verify` shows more"));
    }
    if let Some(next) = page.next {
        if output.is_text() {
            output::note(&format!("there are more: --after {next}"));
        } else {
            output.json(&Next { next })?;
        }
    }
    Ok(Exit::Done)
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
    text::table(&std::iter::once(heads).chain(items.iter().map(row)).collect::<Vec<_>>())
}

/// The title, and behind it the tags.
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
        assert_eq!(text(&store.list(&ListQuery::new()).unwrap().items), wanted);
    }
}
