//! Conversations for an agent that starts this program.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use conversation_store::mcp::{McpServer, Opened};
use conversation_store::search::{Language, SearchIndex};
use conversation_store::{Error, Store, StoreOptions};

use super::failure::{Exit, Outcome};
use super::location::{Location, PAUSE};
use super::search::beside;

/// Serve conversations to an agent, by the Model Context Protocol on stdin and stdout
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo mcp < /dev/null
  claude mcp add chats -- convo mcp
  claude mcp add chats -- convo --owner ada --store http://127.0.0.1:8080 mcp --write

The agent gets tools that search and read the conversations of --owner, or those without an owner: search_conversations, \
list_conversations, read_messages, read_around, find_item; with --write also append_note, tag and fork. Conversations are \
resources, convo://conversations/ID. Every answer is limited in bytes, and says that the texts in it are data and no instructions.

A store that is a directory is opened for each call and closed after it, so that other programs can use it in between. If \
`convo serve` has it open, name the server as the store; or use the server itself, at http://HOST:PORT/mcp.")]
pub(super) struct Args {
    /// Let the agent append notes, tag, and fork
    #[arg(long)]
    write: bool,
}

/// The code of the failure of a store that another program has open.
const BUSY: &str = "busy";

pub(super) fn run(args: &Args, location: &Location) -> Outcome {
    let (url, patience) = (location.url()?.into_owned(), location.patience());
    let options = StoreOptions::new().with_create(args.write).with_read_only(!args.write);
    let attempt = move || -> Result<Store, Error> {
        let begun = Instant::now();
        loop {
            match options.open(&url) {
                Err(Error::Busy(_)) if begun.elapsed() < patience => thread::sleep(PAUSE),
                opened => return opened,
            }
        }
    };
    // A store that is not there is reported at once, and not to the agent. One that another program has open may be free later.
    let first = if args.write { location.create() } else { location.read() };
    let owner = location.owner().or(first.as_ref().ok().map(Store::owner)).unwrap_or_default().to_owned();
    let server = match beside(location)? {
        Some(directory) => {
            match first {
                // Others may have it in between.
                Ok(store) => drop(store),
                Err(failure) if failure.code == BUSY => {}
                Err(failure) => return Err(failure),
            }
            McpServer::new(move || {
                let directory = directory.clone();
                let search = move |store: &Store, query: &_| store.search(&SearchIndex::open(&directory)?, query);
                Ok(Opened::new(attempt()?, search))
            })
        }
        None => {
            let first = first?;
            let index = Arc::new(SearchIndex::in_memory(Language::default())?);
            McpServer::new(move || {
                let index = Arc::clone(&index);
                Ok(Opened::new(first.clone(), move |store, query| store.search(&index, query)))
            })
        }
    };
    server.with_owner(owner).with_writing(args.write).serve_stdio()?;
    Ok(Exit::Done)
}
