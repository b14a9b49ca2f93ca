//! The log against a plain model, and what can only be seen from inside.

mod accepted;
mod disk;
mod durable;
mod fixture;
mod forgetful;
mod forgotten;
mod items;
mod lost;
mod meanwhile;
mod model;
mod problems;
mod properties;
mod schedules;

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Embedded;
use crate::error::Result;
use crate::history::{Entry, Grouped};
use crate::log::{ListItem, Order, reading};
use crate::model::Name;

/// What readers are given of a conversation, grouped.
fn load(log: &Embedded, name: impl Into<Name>) -> Result<Grouped> {
    reading::grouped(log, &name.into()).map(|(grouped, _)| grouped)
}

/// What the list says of a conversation.
fn describe(log: &Embedded, name: impl Into<Name>) -> ListItem {
    let view = reading::view(log, &name.into()).unwrap();
    ListItem::new(view.id, &view.head)
}

fn entries(log: &Embedded, name: impl Into<Name>, seqs: RangeInclusive<u64>, order: Order) -> Result<Vec<Entry>> {
    reading::entries(log, &name.into(), seqs, order, usize::MAX)
}

fn wait_for(
    log: &Embedded,
    name: impl Into<Name>,
    incarnation: u64,
    seq: u64,
    timeout: Duration,
    stopped: &AtomicBool,
) -> Result<bool> {
    log.core().wait_for(&crate::log::Wait { name: &name.into(), incarnation, seq, timeout, stopped })
}
