//! What an owner has, counted on what is stored: on a thread of its own, one owner after the other.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::usage::{Amount, Usages};
use crate::error::Result;
use crate::log::{ListQuery, Log, Order, Reading, View};
use crate::model::Name;
use crate::server::proxy;

/// Conversations of one page of a list.
const PAGE: usize = 256;
/// Bytes of an entry's length before it.
const LENGTH: usize = 4;

/// The thread that counts.
pub(super) struct Counter {
    usages: Arc<Usages>,
    stopped: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Begins to count when a write asks for it.
pub(super) fn start(log: Arc<dyn Log>, most: Amount) -> (Arc<Usages>, Counter) {
    let (queue, asked) = channel();
    let usages = Usages::new(most, queue);
    let stopped = Arc::<AtomicBool>::default();
    let (counting, ends) = (Arc::clone(&usages), Arc::clone(&stopped));
    let thread = std::thread::spawn(move || serve(&*log, &counting, &asked, &ends));
    let counter = Counter { usages: Arc::clone(&usages), stopped, thread: Mutex::new(Some(thread)) };
    (usages, counter)
}

fn serve(log: &dyn Log, usages: &Usages, asked: &Receiver<String>, stopped: &AtomicBool) {
    for owner in asked {
        let is_stopped = || stopped.load(Ordering::Acquire);
        let counted = count(log, &owner, usages.most().bytes > 0, &is_stopped);
        if let Err(error) = &counted {
            tracing::error!(%error, "what an owner has stored cannot be counted");
        }
        usages.set(&owner, counted.ok().filter(|_| !is_stopped()));
    }
}

impl Counter {
    /// Ends the thread, between two conversations.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.usages.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What an owner has. Cost: a read of the owner's conversations, whole if their bytes are counted.
pub(super) fn count(log: &dyn Log, owner: &str, bytes: bool, is_stopped: &dyn Fn() -> bool) -> Result<Amount> {
    let mut query = ListQuery::new().with_owner(owner).with_limit(PAGE);
    let mut amount = Amount::default();
    if bytes && let Some(book) = log.view(&proxy::book(owner))? {
        amount.bytes += read_bytes(log, &book, u64::MAX)?;
    }
    loop {
        let page = log.list(&query)?;
        amount.conversations += (page.items.len() + page.unreadable.len()) as u64;
        if bytes {
            for item in &page.items {
                if is_stopped() {
                    return Ok(amount);
                }
                // One that was deleted meanwhile has nothing.
                if let Some(view) = log.view(&Name::from(item.id))? {
                    amount.bytes += read_bytes(log, &view, u64::MAX)?;
                }
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(amount),
        }
    }
}

/// Bytes of the entries that a conversation reads up to a seq: its own, and those that it shares. What is shared stays readable
/// when the others are deleted, so it counts for each.
pub(super) fn read_bytes(log: &dyn Log, view: &View, through: u64) -> Result<u64> {
    let mut bytes = 0;
    log.read(view, 1..=through.min(view.last_seq()), Order::Ascending, &mut |reading| {
        if let Reading::Record { record, last, .. } = reading {
            let through = last.min(through);
            let read = record.raw_entries().take_while(|(seq, _)| *seq <= through);
            bytes += read.map(|(_, entry)| (entry.len() + LENGTH) as u64).sum::<u64>();
        }
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}
