//! Conversations for agents, by the Model Context Protocol: tools that search and read them, and that note, tag and fork where this
//! is allowed; conversations as resources.
//!
//! `served` says whose conversations are served. `tools` is the table of tools, for every transport. `reading` and `writing`
//! have what the tools do, and `wrong` why they fail. `shown` shows what is stored, within a budget and marked as data.
//! `handler` speaks the protocol, `stdio` is the transport of a program; the server has its own, at `/mcp`.
//! [`crate::documentation::mcp`] is for people who use it.
//!
//! Agents act on what they read. So an owner is always fixed, nothing is written unless the host allows it, and every answer says
//! that the texts in it are data. A call runs on the thread that asks for it, and blocks it.
//!
//! **To add a tool**: a row in `TOOLS` of `tools`, and its function.

mod handler;
mod reading;
mod served;
mod shown;
mod stdio;
mod tools;
mod writing;
mod wrong;

pub use served::{McpServer, Opened};
