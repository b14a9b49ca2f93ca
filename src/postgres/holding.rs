//! Who writes which message: each program that writes some holds a lease, in the time of the database. Once it has run out,
//! its messages are interrupted, for every program and for itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::append::items;
use super::lease::{Beginning, Holder};
use super::rows::{self, digest, number};
use super::shared::{Outcome, Shared};
use super::stream::{INTERRUPTED, PUSH};
use super::value::{Statement, signed};
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, Body, InterruptCause};

/// Messages that are interrupted in one go.
const AT_ONCE: u64 = 500;

impl Shared {
    /// This program's lease, which is taken with its first message.
    pub(super) fn begin_held(&self) -> Result<Beginning<'_>> {
        const SQL: &str = "INSERT INTO cs_holder VALUES ($1, clock_timestamp() + make_interval(secs => $2)) \
                           ON CONFLICT (holder) DO NOTHING";
        if let Some(beginning) = self.lease.current() {
            return Ok(beginning);
        }
        let holder = *ConversationId::new().as_bytes();
        self.database.query(Statement::repeatable(SQL).with(&holder).with(self.lease.seconds()))?;
        // Two threads may have taken one each: one of them runs out unused.
        Ok(self.lease.take(holder))
    }

    /// Ends this program's lease: what it still writes is interrupted.
    pub(super) fn release(&self) -> Result<()> {
        const SQL: &str =
            "UPDATE cs_holder SET until = clock_timestamp() WHERE holder = ANY ($1) AND until > clock_timestamp()";
        let holders = all(self.lease.end());
        if holders.is_empty() {
            return Ok(());
        }
        self.database.query(Statement::repeatable(SQL).with(holders)).map(|_| ())
    }

    /// Keeps this program's leases.
    pub(super) async fn keep_leases(shared: Arc<Self>, pause: Duration) {
        while !shared.is_closed() {
            sleep(pause).await;
            if let Err(error) = shared.renew().await {
                tracing::warn!("the lease of streamed messages could not be renewed: {error}");
            }
        }
    }

    /// Looks after the leases of others: a renewal does not wait for it.
    pub(super) async fn sweep(shared: Arc<Self>, pause: Duration) {
        while !shared.is_closed() {
            sleep(pause).await;
            if let Err(error) = shared.interrupt_expired().await {
                tracing::warn!("messages of programs that are gone could not be interrupted: {error}");
            }
        }
    }

    /// A lease that has run out stays so: its messages may have been interrupted already.
    async fn renew(&self) -> Result<()> {
        const RENEW: &str = "UPDATE cs_holder SET until = clock_timestamp() + make_interval(secs => $2) \
                             WHERE holder = ANY ($1) AND until > clock_timestamp() RETURNING holder";
        const FORGET: &str =
            "DELETE FROM cs_open WHERE holder = ANY ($1) AND done < clock_timestamp() - interval '1 minute'";
        let kept = self.lease.kept(|holder| self.writers.is_held(holder));
        if kept.is_empty() {
            return Ok(());
        }
        let calls = self.database.calls();
        let renewed = Statement::repeatable(RENEW).with(all(kept.clone())).with(self.lease.seconds());
        let renewed = calls.query(&renewed).await?;
        let renewed = renewed.iter().map(|row| digest(row, "holder")).collect::<Result<Vec<Holder>>>()?;
        kept.iter().filter(|holder| !renewed.contains(holder)).for_each(|holder| self.lease.forget(*holder));
        calls.query(&Statement::repeatable(FORGET).with(all(renewed))).await.map(|_| ())
    }

    /// Interrupts the messages whose leases have run out, in order, and forgets programs that hold nothing any more. One that
    /// cannot be interrupted keeps no other one waiting; a database that does not answer ends it.
    pub(super) async fn interrupt_expired(self: &Arc<Self>) -> Result<()> {
        const EXPIRED: &str = "SELECT o.conv_id, t.incarnation, o.message FROM cs_open o \
            JOIN cs_conversation t ON t.conv_id = o.conv_id LEFT JOIN cs_holder h ON h.holder = o.holder \
            WHERE o.done IS NULL AND NOT t.deleted AND coalesce(h.until, '-infinity') <= clock_timestamp() \
            AND (o.conv_id, o.message) > ($2, $3) ORDER BY o.conv_id, o.message LIMIT $1";
        const FORGET: &str = "WITH gone AS (DELETE FROM cs_open o \
            WHERE o.done < clock_timestamp() - interval '1 minute' AND NOT cs_is_held_v1(o.holder)) \
            DELETE FROM cs_holder h WHERE h.until < clock_timestamp() - interval '1 minute' \
            AND NOT EXISTS (SELECT FROM cs_open o WHERE o.holder = h.holder)";
        let calls = self.database.calls();
        let mut after = (Vec::new(), -1_i64);
        let mut waited = Duration::ZERO;
        loop {
            let expired = Statement::repeatable(EXPIRED).with(AT_ONCE).with(after.0).with(after.1);
            let rows = calls.query(&expired).await?;
            after = (Vec::new(), -1);
            for row in &rows {
                let (id, message) = (rows::id(row, "conv_id")?, number(row, "message")?);
                let begun = Instant::now();
                if let Err(error) = self.interrupt(id, number(row, "incarnation")?, message).await {
                    tracing::warn!("message {message} of {id} could not be interrupted yet: {error}");
                    waited += begun.elapsed();
                    if waited >= calls.timeout() {
                        return Err(error);
                    }
                }
                after = (id.as_bytes().to_vec(), signed(message));
            }
            if (rows.len() as u64) < AT_ONCE {
                break;
            }
        }
        calls.query(&Statement::repeatable(FORGET)).await.map(|_| ())
    }

    /// Writes that a message takes no more, if nobody holds it.
    async fn interrupt(&self, id: ConversationId, incarnation: u64, message: u64) -> Result<()> {
        let mut body = Body::new();
        body.interrupt(InterruptCause::Reopened)?;
        let (digests, places) = items(&body);
        let statement = Statement::repeatable(PUSH)
            .with(id.as_bytes())
            .with(incarnation)
            .with(message)
            .with(None::<Vec<u8>>)
            .with(0_u64)
            .with(self.now())
            .with(record::seal_entries(id, &body))
            .with(body.entries())
            .with(digests)
            .with(places)
            .with(INTERRUPTED);
        let row = self.database.calls().row(&statement).await?;
        if Outcome::of(&row)? == Outcome::Done {
            self.watched.moved(id, incarnation, number(&row, "o_last")? + 1);
        }
        Ok(())
    }
}

/// Holders as a statement takes them.
fn all(holders: Vec<Holder>) -> Vec<Vec<u8>> {
    holders.into_iter().map(|holder| holder.to_vec()).collect()
}
