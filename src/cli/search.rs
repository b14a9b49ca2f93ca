use std::path::PathBuf;

use conversation_store::Store;
use conversation_store::search::{Hit, SearchIndex, SearchQuery};

use super::failure::{Exit, Failure, Outcome};
use super::location::{Location, directory};
use super::output::Output;
use super::style::{BOLD, DIM};
use super::text;
use super::values::number;

const EXAMPLES: &str = "\
Examples:
  convo search cache
  convo search hit rate --owner ada
  # one word after the other
  convo search '\"hit rate\"' --limit 5
  convo search cache --json | jq -r .conversation

Finds the messages and titles that have all of the words, the best first. Case does not matter; \
`cache` does not find `caches`. Searches the conversations of --owner, or those without an owner. What is said is \
searched: thinking, tool calls and their results are not.

The index is the directory STORE.search beside the store. Each search first adds what is new. It may be deleted: the \
next search makes it again. A store without a directory has no index: each search reads the whole \
store. Redacted, removed and deleted messages are never found.

Exit code 1 if nothing is found.";

/// Search the texts and titles of conversations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The words that a message or title must have; in double quotes, one after the other
    #[arg(required = true)]
    words: Vec<String>,
    /// The most hits to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = number::<usize>)]
    limit: usize,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let index = match beside(location)? {
        Some(directory) => SearchIndex::open(directory)?,
        None => SearchIndex::in_memory()?,
    };
    let words = args.words.join(" ");
    let owner = location.owner().unwrap_or_default();
    let hits = store.search(&index, &SearchQuery::new(&words).with_owner(owner).with_limit(args.limit))?;
    output.begin_pages();
    for hit in &hits {
        output.result(hit, || text(hit))?;
    }
    if hits.is_empty() {
        return Err(Failure::finding("not_found", format!("nothing has the words {words}")));
    }
    Ok(Exit::Done)
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
        (Some(message), Some(role), Some(seq)) => format!("message {message}  {}  seq {seq}", role.as_str()),
        _ => "title".to_owned(),
    };
    let excerpt = text::printable(&hit.excerpt);
    format!("{BOLD}{}{BOLD:#}{title}  {DIM}{place}{DIM:#}\n    {excerpt}", text::cut(&name, 60))
}
