//! The log against a plain model, and what can only be seen from inside.

mod accepted;
mod damage;
mod durable;
mod engines;
mod families;
mod fixture;
mod forgotten;
mod items;
mod list_order;
mod meanwhile;
mod model;
mod opening;
mod properties;
mod schedules;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Embedded;
use crate::embedded::state::Writer;
use crate::error::Result;
use crate::history::{Entry, Grouped};
use crate::log::{AppendOptions, Control, ListItem, Log, Order, Receipt, reading};
use crate::model::{Metadata, Name, Role};

/// What readers get of a conversation, grouped.
fn load(log: &Embedded, name: impl Into<Name>) -> Result<Grouped> {
    reading::grouped(log, &name.into()).map(|(grouped, _)| grouped)
}

/// What the list has of a conversation.
fn describe(log: &Embedded, name: impl Into<Name>) -> ListItem {
    let view = reading::view(log, &name.into()).unwrap();
    ListItem::new(view.id, view.head)
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
    log.core().catalogue.wait_for(&crate::log::Wait { name: &name.into(), incarnation, seq, timeout, stopped })
}

/// Begins an answer.
fn begin(log: &Embedded, name: impl Into<Name>) -> Result<Arc<Writer>> {
    let (writer, _) =
        log.core().appender.begin(&name.into(), Role::Assistant, Metadata::default(), &AppendOptions::new())?;
    Ok(writer.unwrap())
}

fn rewind(log: &Embedded, name: impl Into<Name>, to: u64) -> Result<Receipt> {
    Ok(log.control(&name.into(), &Control::Rewind { to })?.receipt)
}

fn set_title(log: &Embedded, name: impl Into<Name>, title: &str) -> Result<Receipt> {
    Ok(log.control(&name.into(), &Control::Title(Some(title)))?.receipt)
}

fn change_tags(log: &Embedded, name: impl Into<Name>, remove: &[&str], add: &[&str]) -> Result<Vec<String>> {
    Ok(log.control(&name.into(), &Control::Tags { remove, add })?.tags)
}

fn summarize(log: &Embedded, name: impl Into<Name>, through: u64, text: &str) -> Result<Receipt> {
    Ok(log.control(&name.into(), &Control::Summarize { through, text })?.receipt)
}
