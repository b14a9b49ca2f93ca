//! A request whose place is looked for, and what is needed for that.

use super::book::Book;
use super::scope::Scope;
use super::turns::Turns;
use crate::model::{Chunk, Role};
use crate::server::exchanges::Exchanges;
use crate::server::ledger::Room;

/// A request that is to be placed.
pub(super) struct Request<'a> {
    pub(super) book: &'a Book<'a>,
    pub(super) turns: &'a Turns,
    pub(super) scope: &'a Scope,
    pub(super) exchange: uuid::Uuid,
    pub(super) skips: fn(Role, &Chunk) -> bool,
    /// Whether it may still wait for answers that are being stored.
    pub(super) may_wait: bool,
    /// Whether it begins a conversation in any case.
    pub(super) is_alone: bool,
    pub(super) exchanges: &'a Exchanges,
    /// What is held of the store counts there.
    pub(super) room: &'a Room,
}
