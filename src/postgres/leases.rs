//! This program's leases on the messages that it writes. Each program that writes some holds one, in the time of the database;
//! once it has run out, its messages are interrupted, for every program and for itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;

use super::database::Database;
use super::gate::Gate;
use super::rows::digest;
use super::statement::Statement;
use super::writers::Writers;
use crate::error::Result;
use crate::log::locked;
use crate::model::ConversationId;

/// Who holds a lease, as the database knows it.
type Holder = [u8; 16];

/// This program's leases: one is for new messages.
pub(super) struct Leases {
    database: Arc<Database>,
    /// They know whether a message is written under a lease.
    writers: Arc<Writers>,
    holders: Holders,
    length: Duration,
}

/// Who holds this program's leases.
#[derive(Default)]
struct Holders(Mutex<Held>);

#[derive(Default)]
struct Held {
    current: Option<Holder>,
    /// One for each message that is being begun.
    beginning: Vec<Holder>,
    /// Kept while messages are written under them, and for no new ones.
    retired: Vec<Holder>,
}

/// A message that is being begun: the lease of its holder is kept until it is written, or given up.
pub(super) struct Beginning<'a> {
    holders: &'a Holders,
    pub(super) holder: Holder,
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        let mut held = locked(&self.holders.0);
        if let Some(at) = held.beginning.iter().position(|holder| *holder == self.holder) {
            held.beginning.swap_remove(at);
        }
    }
}

impl Leases {
    pub(super) fn new(database: Arc<Database>, writers: Arc<Writers>, length: Duration) -> Self {
        Self { database, writers, holders: Holders::default(), length }
    }

    /// The lease for a new message: it is taken with the first one.
    pub(super) fn begin(&self) -> Result<Beginning<'_>> {
        const SQL: &str = "INSERT INTO cs_holder VALUES ($1, clock_timestamp() + make_interval(secs => $2)) \
                           ON CONFLICT (holder) DO NOTHING";
        if let Some(beginning) = self.holders.current() {
            return Ok(beginning);
        }
        let holder = *ConversationId::new().as_bytes();
        self.database.query(Statement::repeatable(SQL).with(&holder).with(self.length.as_secs_f64()))?;
        // Two threads may have taken one each: one of them runs out unused.
        Ok(self.holders.take(holder))
    }

    /// Begins no more messages under a holder: nobody here knows all messages that were begun under it.
    pub(super) fn retire(&self, holder: Holder) {
        self.holders.retire(holder);
    }

    /// It has run out: the next message is begun under a new one.
    pub(super) fn forget(&self, holder: Holder) {
        self.holders.forget(holder);
    }

    /// Ends this program's leases: what it still writes is interrupted.
    pub(super) fn release(&self) -> Result<()> {
        const SQL: &str =
            "UPDATE cs_holder SET until = clock_timestamp() WHERE holder = ANY ($1) AND until > clock_timestamp()";
        let holders = all(self.holders.end());
        if holders.is_empty() {
            return Ok(());
        }
        self.database.query(Statement::repeatable(SQL).with(holders)).map(|_| ())
    }

    /// Keeps this program's leases, until the log is closed.
    pub(super) async fn keep(leases: Arc<Self>, gate: Arc<Gate>, pause: Duration) {
        while !gate.is_closed() {
            sleep(pause).await;
            if let Err(error) = leases.renew().await {
                tracing::warn!("the lease of streamed messages could not be renewed: {error}");
            }
        }
    }

    /// A lease that has run out stays so: its messages may have been interrupted already.
    async fn renew(&self) -> Result<()> {
        const RENEW: &str = "UPDATE cs_holder SET until = clock_timestamp() + make_interval(secs => $2) \
                             WHERE holder = ANY ($1) AND until > clock_timestamp() RETURNING holder";
        const FORGET: &str =
            "DELETE FROM cs_open WHERE holder = ANY ($1) AND done < clock_timestamp() - interval '1 minute'";
        let kept = self.holders.kept(|holder| self.writers.is_held(holder));
        if kept.is_empty() {
            return Ok(());
        }
        let calls = self.database.renewals();
        let renewed = Statement::repeatable(RENEW).with(all(kept.clone())).with(self.length.as_secs_f64());
        let renewed = calls.query(&renewed).await?;
        let renewed = renewed.iter().map(|row| digest(row, "holder")).collect::<Result<Vec<Holder>>>()?;
        kept.iter().filter(|holder| !renewed.contains(holder)).for_each(|holder| self.holders.forget(*holder));
        calls.query(&Statement::repeatable(FORGET).with(all(renewed))).await.map(|_| ())
    }
}

impl Holders {
    /// The holder for a new message, if there is one.
    fn current(&self) -> Option<Beginning<'_>> {
        let mut held = locked(&self.0);
        let holder = held.current?;
        held.beginning.push(holder);
        Some(Beginning { holders: self, holder })
    }

    /// Takes a holder for new messages, unless there is one by now.
    fn take(&self, holder: Holder) -> Beginning<'_> {
        let mut held = locked(&self.0);
        let holder = *held.current.get_or_insert(holder);
        held.beginning.push(holder);
        Beginning { holders: self, holder }
    }

    fn retire(&self, holder: Holder) {
        let mut held = locked(&self.0);
        if held.current == Some(holder) {
            held.current = None;
            held.retired.push(holder);
        }
    }

    /// The holders whose leases are kept. `is_held`: whether a message is written under a retired one.
    fn kept(&self, is_held: impl Fn(Holder) -> bool) -> Vec<Holder> {
        let mut held = locked(&self.0);
        let Held { beginning, retired, current } = &mut *held;
        retired.retain(|holder| beginning.contains(holder) || is_held(*holder));
        retired.iter().copied().chain(*current).collect()
    }

    /// All holders; there are none any more.
    fn end(&self) -> Vec<Holder> {
        let Held { current, retired, .. } = std::mem::take(&mut *locked(&self.0));
        retired.into_iter().chain(current).collect()
    }

    fn forget(&self, holder: Holder) {
        let mut held = locked(&self.0);
        held.retired.retain(|retired| *retired != holder);
        if held.current == Some(holder) {
            held.current = None;
        }
    }
}

/// Holders as a statement takes them.
fn all(holders: Vec<Holder>) -> Vec<Vec<u8>> {
    holders.into_iter().map(|holder| holder.to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message may be begun under a holder that is retired meanwhile: it is a living program's.
    #[test]
    fn a_lease_is_kept_while_a_message_begins_under_it() {
        let holders = Holders::default();
        let (first, second) = (holders.take([1; 16]), holders.current().unwrap());
        holders.retire(first.holder);
        drop(first);
        assert!(holders.current().is_none());
        assert_eq!(holders.kept(|_| false), [[1; 16]]);
        drop(second);
        assert_eq!(holders.kept(|_| true), [[1; 16]], "by now it is written");
        assert_eq!(holders.kept(|_| false), [] as [Holder; 0]);
    }
}
