//! Who writes which message: each program that writes some holds a lease, in the time of the database. Once it has run out,
//! its messages are interrupted, for every program and for itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::append::items;
use super::lock::locked;
use super::rows::{self, number};
use super::shared::{Outcome, Shared};
use super::stream::{INTERRUPTED, PUSH};
use super::value::Statement;
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, Body, InterruptCause};

/// Messages that are interrupted in one go.
const AT_ONCE: u64 = 500;

impl Shared {
    /// This program's lease, which is taken with its first message.
    pub(super) fn holder(&self) -> Result<[u8; 16]> {
        const SQL: &str = "INSERT INTO cs_holder VALUES ($1, clock_timestamp() + make_interval(secs => $2)) \
                           ON CONFLICT (holder) DO NOTHING";
        if let Some(holder) = *locked(&self.lease.holder) {
            return Ok(holder);
        }
        let holder = *ConversationId::new().as_bytes();
        self.database.query(Statement::repeatable(SQL).with(&holder).with(self.lease.seconds()))?;
        // Two threads may have taken one each: one of them runs out unused.
        Ok(*locked(&self.lease.holder).get_or_insert(holder))
    }

    /// Ends this program's lease: what it still writes is interrupted.
    pub(super) fn release(&self) -> Result<()> {
        const SQL: &str =
            "UPDATE cs_holder SET until = clock_timestamp() WHERE holder = $1 AND until > clock_timestamp()";
        let holder = locked(&self.lease.holder).take();
        holder.map_or(Ok(()), |holder| self.database.query(Statement::repeatable(SQL).with(&holder)).map(|_| ()))
    }

    /// Keeps the lease, and looks after those of others.
    pub(super) async fn keep_leases(shared: Arc<Self>, pause: Duration) {
        loop {
            sleep(pause).await;
            if shared.is_closed() {
                return;
            }
            let kept = shared.renew().await;
            let kept = match kept {
                Ok(()) => shared.interrupt_expired().await,
                failed => failed,
            };
            if let Err(error) = kept {
                tracing::warn!("the lease of streamed messages could not be renewed: {error}");
            }
        }
    }

    /// A lease that has run out stays so: its messages may have been interrupted already.
    async fn renew(&self) -> Result<()> {
        const RENEW: &str = "UPDATE cs_holder SET until = clock_timestamp() + make_interval(secs => $2) \
                             WHERE holder = $1 AND until > clock_timestamp() RETURNING holder";
        const FORGET: &str = "DELETE FROM cs_open WHERE holder = $1 AND done < clock_timestamp() - interval '1 minute'";
        let Some(holder) = *locked(&self.lease.holder) else { return Ok(()) };
        let calls = self.database.calls();
        let renewed = calls.query(&Statement::repeatable(RENEW).with(&holder).with(self.lease.seconds())).await?;
        if renewed.is_empty() {
            self.lease.forget(holder);
            return Ok(());
        }
        calls.query(&Statement::repeatable(FORGET).with(&holder)).await.map(|_| ())
    }

    /// Interrupts the messages whose leases have run out, in order, and forgets programs that hold nothing any more.
    pub(super) async fn interrupt_expired(self: &Arc<Self>) -> Result<()> {
        const EXPIRED: &str = "SELECT o.conv_id, t.incarnation, o.message FROM cs_open o \
            JOIN cs_conversation t ON t.conv_id = o.conv_id LEFT JOIN cs_holder h ON h.holder = o.holder \
            WHERE o.done IS NULL AND NOT t.deleted AND coalesce(h.until, '-infinity') <= clock_timestamp() \
            ORDER BY o.conv_id, o.message LIMIT $1";
        const FORGET: &str = "WITH gone AS (DELETE FROM cs_open o \
            WHERE o.done < clock_timestamp() - interval '1 minute' AND NOT cs_is_held_v1(o.holder)) \
            DELETE FROM cs_holder h WHERE h.until < clock_timestamp() - interval '1 minute' \
            AND NOT EXISTS (SELECT FROM cs_open o WHERE o.holder = h.holder)";
        let calls = self.database.calls();
        loop {
            let rows = calls.query(&Statement::repeatable(EXPIRED).with(AT_ONCE)).await?;
            for row in &rows {
                self.interrupt(rows::id(row, "conv_id")?, number(row, "incarnation")?, number(row, "message")?).await?;
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
