use std::path::PathBuf;

use conversation_store::Store;
use conversation_store::model::{Name, Role, Timestamp};
use conversation_store::search::{Hit, Language, Piece, SearchCursor, SearchIn, SearchIndex, SearchQuery};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::{Location, directory};
use super::output::{self, Output};
use super::text;
use super::text::{BOLD, DIM};
use super::values::{moment, number};

const EXAMPLES: &str = "\
Examples:
  convo search cache
  convo search hit rate --owner ada
  # one word after the other
  convo search '\"hit rate\"' --limit 5
  # what tools were called with, and what they gave back
  convo search Cargo.toml --in calls,results --role assistant
  convo search cache --json | jq -r .conversation

Finds the messages and titles that have all of the words, the best first. Case does not matter, nor does the ending: \
`cache` finds `caches`. Words in double quotes are found as they are. Searches the conversations of --owner, or those \
without an owner. What is said is searched; calls of tools and their results, if --in names them; thinking is not.

The index is the directory STORE.search beside the store. Each search first adds what is new. It may be deleted: the \
next search makes it again. A store without a directory has no index: each search reads the whole \
store. Redacted, removed and deleted messages are never found.

If there are more hits, the cursor for --after follows: as a note on a terminal, as a last line {\"next\": CURSOR} in \
JSON.

Exit code 1 if nothing is found.";

/// Search the texts and titles of conversations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The words that a message or title must have; in double quotes, one after the other
    #[arg(required = true)]
    words: Vec<String>,
    /// Where: texts, calls, results
    #[arg(long = "in", value_name = "WHERE", value_delimiter = ',', default_value = "texts", value_parser = within)]
    within: Vec<SearchIn>,
    /// Only in this conversation
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// Only in conversations with this tag; `--tag A --tag B`: only those with both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only what was said by system, user, assistant or tool
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<Role>,
    /// Only what was said on this day or at this time, or later
    #[arg(long, value_name = "DATE", value_parser = moment)]
    since: Option<Timestamp>,
    /// Only what was said before this day or time
    #[arg(long, value_name = "DATE", value_parser = moment)]
    until: Option<Timestamp>,
    /// The most hits to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = number::<usize>)]
    limit: usize,
    /// Continue after the previous page
    #[arg(long, value_name = "CURSOR")]
    after: Option<SearchCursor>,
    /// The language whose endings of words are known, as in german or de: English unless the index has another one; a new
    /// language makes the index again
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<Language>,
}

#[derive(Serialize)]
struct Next {
    next: SearchCursor,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let index = match beside(location)? {
        Some(directory) => SearchIndex::open_in(directory, args.language)?,
        None => SearchIndex::in_memory(args.language.unwrap_or_default())?,
    };
    let words = args.words.join(" ");
    let owner = location.owner().unwrap_or_default();
    let mut query = SearchQuery::new(&words).with_owner(owner).with_within(args.within.iter().copied());
    query.conversation = args.conversation.as_deref().map(|name| Name::from(name).with_owner(owner).id());
    (query.tags, query.role) = (args.tag.clone(), args.role);
    (query.since, query.until, query.limit, query.after) = (args.since, args.until, args.limit, args.after);
    let page = store.search(&index, &query)?;
    output.begin_pages();
    for hit in &page.hits {
        output.result(hit, || text(hit))?;
    }
    if let Some(next) = page.next {
        if output.is_text() {
            output::note(&format!("more: --after {next}"));
        } else {
            output.json(&Next { next })?;
        }
    }
    if page.hits.is_empty() {
        return Err(Failure::finding("not_found", format!("nothing has the words {words}")));
    }
    Ok(Exit::Done)
}

fn within(text: &str) -> Result<SearchIn, &'static str> {
    text.parse().map_err(|_| "expected texts, calls or results")
}

fn role(text: &str) -> Result<Role, &'static str> {
    Role::from_name(text).ok_or("expected system, user, assistant or tool")
}

/// The index of a store, if the store is a directory.
pub(super) fn beside(location: &Location) -> Result<Option<PathBuf>, Failure> {
    let url = location.url()?;
    let store = directory(&url).filter(|_| !url.starts_with("backup:"));
    Ok(store.map(|store| {
        let mut name = store.as_os_str().to_owned();
        name.push(".search");
        name.into()
    }))
}

/// Removes from the index what the store has no more, if there is an index.
pub(super) fn follow(location: &Location, store: &Store, owner: &str) -> Result<(), Failure> {
    if let Some(directory) = beside(location)?.filter(|directory| directory.is_dir()) {
        SearchIndex::open(directory)?.refresh(store, owner)?;
    }
    Ok(())
}

/// `chat-42  Cache design  message 3  assistant  seq 8`, then the excerpt.
fn text(hit: &Hit) -> String {
    let name = hit.key.clone().unwrap_or_else(|| hit.conversation.to_string());
    let title = hit.title.as_deref().map_or_else(String::new, |title| format!("  {}", text::cut(title, 60)));
    let place = match (hit.message_index, hit.role, hit.seq) {
        (Some(message), Some(role), Some(seq)) => {
            let chunk = hit.chunk_index.map_or_else(String::new, |chunk| format!("  chunk {chunk}"));
            format!("message {message}{chunk}  {}  seq {seq}", role.as_str())
        }
        _ => "title".to_owned(),
    };
    let piece = |Piece { text, is_match, .. }: &Piece| {
        let text = text::printable(text);
        if *is_match { format!("{BOLD}{text}{BOLD:#}") } else { text.into_owned() }
    };
    let excerpt: String = hit.pieces.iter().map(piece).collect();
    format!("{BOLD}{}{BOLD:#}{title}  {DIM}{place}{DIM:#}\n    {excerpt}", text::cut(&name, 60))
}
