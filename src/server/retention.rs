//! Policies of retention: conversations that nobody has used for a time are erased in the background.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use super::app::App;
use super::config::Policy;
use super::keys::RESERVED;
use crate::error::Result;
use crate::log::ListItem;
use crate::model::{Name, Timestamp};
use crate::store::{Pruned, Retention};

/// Deletions without a pause. Each is durable, so requests wait for the same disk.
const BATCH: u64 = 32;
/// Between two batches.
const PAUSE: Duration = Duration::from_millis(50);

/// Applies all policies, and again after each pause, until the server ends.
pub(super) async fn run(app: Arc<App>) {
    let pause = Duration::from_secs(app.config.server.retention_seconds);
    let mut closing = app.closing.subscribe();
    while !app.config.retention.is_empty() && !app.is_draining() {
        let pruning = Arc::clone(&app);
        // It ends between two deletions when the server does.
        let _ = tokio::task::spawn_blocking(move || round(&pruning)).await;
        tokio::select! {
            _ = closing.wait_for(|is_closing| *is_closing) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn round(app: &App) {
    for (number, policy) in app.config.retention.iter().enumerate() {
        match apply(app, number, policy) {
            Ok(Pruned { erased: 0, used: 0, unreadable: 0 }) => {}
            Ok(Pruned { erased, used, unreadable }) => {
                tracing::info!(policy = number, erased, used, unreadable, "retention: a policy was applied");
            }
            Err(error) => {
                app.metrics.retention_failures.inc();
                tracing::error!(policy = number, %error, "retention: a policy was not applied to the end");
            }
        }
    }
}

/// Erases what a policy names.
fn apply(app: &App, number: usize, policy: &Policy) -> Result<Pruned> {
    let mut sum = Pruned::default();
    let owners = match &policy.owner {
        Some(owner) => BTreeSet::from([owner.clone()]),
        None => owners(app)?,
    };
    let idle = i64::try_from(policy.idle()?.as_micros()).unwrap_or(i64::MAX);
    let idle_since = Timestamp::from_micros(Timestamp::now().as_micros().saturating_sub(idle));
    for owner in owners {
        let mut retention = Retention::new(idle_since).with_owner(owner).with_keep_last(policy.keep_last);
        retention.tags.clone_from(&policy.tags);
        let mut done = 0;
        let goes_on = || {
            done += 1;
            if done % BATCH == 0 {
                sleep(PAUSE);
            }
            !app.is_draining()
        };
        let pruned = app.store.prune_while(&retention, goes_on, |item| record(app, number, item))?;
        sum.erased += pruned.erased;
        sum.used += pruned.used;
        sum.unreadable += pruned.unreadable;
        if app.is_draining() {
            break;
        }
    }
    Ok(sum)
}

/// What is left of a conversation: neither its content nor its key nor its owner.
fn record(app: &App, number: usize, item: &ListItem) {
    app.metrics.retention_erased.inc();
    let ListItem { id, last_activity, last_seq, .. } = item;
    tracing::info!(policy = number, conversation = %id, %last_activity, last_seq, "retention: a conversation was erased");
}

/// All owners but the server itself. Cost: a read for each conversation of the store.
fn owners(app: &App) -> Result<BTreeSet<String>> {
    let mut owners = BTreeSet::new();
    for (number, id) in app.store.log().conversations()?.into_iter().enumerate() {
        if app.is_draining() {
            break;
        }
        if number % 1_000 == 999 {
            sleep(PAUSE);
        }
        // What cannot be read is not erased either.
        if let Ok(Some(view)) = app.store.log().view(&Name::from(id))
            && !owners.contains(&view.head.owner)
        {
            owners.insert(view.head.owner.clone());
        }
    }
    owners.retain(|owner| !owner.starts_with(RESERVED));
    Ok(owners)
}
