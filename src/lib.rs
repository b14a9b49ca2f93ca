//! An append-only, durable store for LLM conversations that replays them into prompts which the provider accepts.
//!
//! A chat server or an agent appends what is said, as it is said: texts, thinking, tool calls, results, images. Later it
//! loads the conversation, and renders it as a request for OpenAI, Anthropic, Google or Amazon.
//!
//! # A first program
//!
//! ```
//! use conversation_store::model::{Chunk, Message};
//! use conversation_store::provider::{PromptOptions, Target, render};
//! use conversation_store::{NextStep, Store, next_step};
//!
//! let store = Store::open("memory:")?; // to keep it: "sled:./convo.db"
//! store.append("chat-42", &[Message::user("What is in this folder?")])?;
//! store.append("chat-42", &[Message::assistant([Chunk::tool_call("call_1", "list_files", r#"{"path":"."}"#)])])?;
//!
//! // The program ends here. The next one reads from the conversation what has to be done.
//! let conversation = store.load("chat-42")?;
//! assert!(matches!(next_step(&conversation), NextStep::RunTools(calls) if calls[0].name == "list_files"));
//!
//! // A provider refuses a call without a result. The prompt has one, and the report names it.
//! let prompt = render(Target::ANTHROPIC, &conversation, &PromptOptions::new())?;
//! assert!(prompt.request.get().contains("tool_result"));
//! assert_eq!(prompt.report.len(), 1);
//! # Ok::<(), conversation_store::Error>(())
//! ```
//!
//! # The terms
//!
//! - A **conversation** has a name, which the application chooses, and an owner if the application gives one.
//! - A **message** has a role, a message index, and chunks. The store gives out the index; it never starts again.
//! - A **chunk** is one piece of a message: a text, a tool call, an image. It is stored under the index of its message,
//!   so it belongs to that message whatever its neighbours are.
//! - An **entry** is one line of the log: a chunk, the beginning or the end of a message, a rewind, a redaction. Each has a
//!   **seq**, its number in the conversation, from 1.
//! - A **cursor** is a place in the log. What is new since then is read from it.
//! - A **target** is a provider's wire, or a server's dialect of one, such as `openai-chat/mistral`.
//! - A **prompt** is a request's body and a report. The report has a line for each difference from what is stored.
//!
//! # The pipeline
//!
//! ```text
//! in:   provider's bytes --decode--> chunks --append--> Store --record--> log --batch--> engine (sled, fjall, memory)
//! out:  engine --records--> entries --group--> messages --reconcile--> Conversation --window--> --render--> Prompt
//! ```
//!
//! | step | where |
//! |---|---|
//! | an answer's bytes, whole or as a stream, to chunks | [`provider::Decoder`], [`provider::decode`] |
//! | a request that was made elsewhere, to messages | [`provider::parse`] |
//! | messages to the log, durable when the call returns | [`Store::append`] |
//! | an answer to the log while it streams | [`Store::begin`], [`MessageWriter`] |
//! | the log to a conversation in which calls and results belong together | [`Store::load`], [`Store::refresh`] |
//! | what an agent has to do now | [`next_step`] |
//! | a conversation to a request | [`provider::render`] |
//! | a request judged, and repaired | [`provider::check()`], [`provider::repair()`] |
//! | what others write, as it is written | [`Store::tail`], [`Tail`] |
//! | other programs' files to conversations, and back (feature `transfer`) | `transfer` |
//! | words to the messages that have them (feature `search`) | `search` |
//! | conversations for agents, by the Model Context Protocol (feature `mcp`) | `mcp` |
//!
//! # Where to go on
//!
//! - [`documentation::building_a_chat_server`]: streams, tabs, shutdown, restarts, agents' loops, status codes.
//! - [`documentation::http_api`]: the store over HTTP, for servers in any language, and OpenAI's clients.
//! - [`documentation::coming_from`]: for users of the Agents SDK, LangChain, LangGraph, `llm`, or a table of their own.
//! - [`model`]: messages and chunks, and their JSON.
//! - [`provider`]: targets, their rules, windows, options of prompts.
//! - [`documentation::durability`]: what is promised, how it is tested, what is not covered.
//! - [`documentation::postgres`]: one store for many processes, in PostgreSQL.
//! - [`documentation::transcript`], [`documentation::format`]: files of messages, field by field; what is on disk, byte by byte.
//! - [`documentation::how_to_add`]: a dialect, a rule, a route, an engine, a format, an option.

mod backup;
mod embedded;
mod error;
mod history;
#[cfg(feature = "transfer")]
mod html;
mod json;
mod log;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
#[cfg(feature = "postgres")]
mod postgres;
pub mod provider;
mod record;
#[cfg(any(feature = "client", feature = "server"))]
mod remote;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "server")]
pub mod server;
mod store;
#[cfg(feature = "transfer")]
pub mod transfer;

pub use error::{Error, Result};
pub use history::{
    Conversation, Cursor, Entry, EntryHeader, EntryKind, Interruption, MessageState, NextStep, PendingCall, ReportLine,
    Rule, Severity, StoredMessage, Summary, ToolCalls, ToolChunk, ToolKind, next_step,
};
pub use log::{
    AppendOptions, BackupSummary, Changes, Durability, ExpectedHead, Fork, Health, Item, Limits, ListCursor, ListItem,
    ListPage, ListQuery, ListSort, NewConversation, Problem, Receipt, Redaction, Size, TableSize, Unfinished, Vacuumed,
    Verification,
};
#[cfg(feature = "postgres")]
pub use log::{Migration, MovingBucket, ShardCluster, Shards};
pub use store::{
    Begun, MessageWriter, Pruned, Retention, StopHandle, Store, StoreOptions, Tail, Usage, UsageBy, UsagePage,
    UsageQuery,
};

/// The programs in README are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Longer texts: for people who write servers and agents, and for people who change this crate.
pub mod documentation {
    #[doc = include_str!("docs/coming-from.md")]
    pub mod coming_from {}
    #[doc = include_str!("docs/building-a-chat-server.md")]
    pub mod building_a_chat_server {}
    #[doc = include_str!("docs/http-api.md")]
    pub mod http_api {}
    #[doc = include_str!("docs/ids.md")]
    pub mod ids {}
    #[doc = include_str!("docs/proxy.md")]
    pub mod proxy {}
    #[doc = include_str!("docs/responses.md")]
    pub mod responses {}
    #[doc = include_str!("docs/python.md")]
    pub mod python {}
    #[doc = include_str!("docs/python-frameworks.md")]
    pub mod python_frameworks {}
    #[doc = include_str!("docs/typescript.md")]
    pub mod typescript {}
    #[doc = include_str!("docs/recipes.md")]
    pub mod recipes {}
    #[doc = include_str!("docs/targets.md")]
    pub mod targets {}
    #[doc = include_str!("docs/crossing.md")]
    pub mod crossing {}
    #[doc = include_str!("docs/transcript.md")]
    pub mod transcript {}
    #[doc = include_str!("docs/format.md")]
    pub mod format {}
    #[doc = include_str!("docs/design.md")]
    pub mod design {}
    #[doc = include_str!("docs/durability.md")]
    pub mod durability {}
    #[doc = include_str!("docs/postgres.md")]
    pub mod postgres {}
    #[doc = include_str!("docs/performance.md")]
    pub mod performance {}
    #[doc = include_str!("docs/transfer.md")]
    pub mod transfer {}
    #[doc = include_str!("docs/search.md")]
    pub mod search {}
    #[doc = include_str!("docs/mcp.md")]
    pub mod mcp {}
    #[doc = include_str!("docs/how-to-add.md")]
    pub mod how_to_add {}
    #[doc = include_str!("docs/changelog.md")]
    pub mod changelog {}
}
