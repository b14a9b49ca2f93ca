//! Answers that are to stop, wherever they are written.
//!
//! A server stops what passes through it. What another server of the same store writes, it asks for in a conversation of the
//! servers' own, which each server follows once it exists.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use uuid::Uuid;

use super::app::App;
use super::exchanges::StoppedHere;
use super::keys::RESERVED;
use super::refusal::Refusal;
use crate::error::{Error, Result};
use crate::history::EntryKind;
use crate::model::{Body, Chunk, ConversationId, Message, Name, Role};
use crate::store::{Store, Tail};

/// How often a server looks whether there is something to follow, while it writes answers.
const LOOK: Duration = Duration::from_secs(1);

/// What was done about the answers of a conversation.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The exchanges that passed through this server.
    pub(crate) exchanges: Vec<Uuid>,
    /// How many answers were being ingested here.
    pub(crate) ingests: usize,
    /// How many responses this server had asked models for.
    pub(crate) responses: usize,
    /// The messages that are written elsewhere, by their indexes.
    pub(crate) elsewhere: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Stop {
    owner: String,
    conversation: ConversationId,
}

fn stops() -> Name {
    Name::from("stops").with_owner(format!("{RESERVED}stops"))
}

/// Stops the answers that are being written to an owner's conversation.
pub(crate) fn stop(app: &App, store: &Store, owner: &str, name: &Name) -> Result<Stopped> {
    let Some(view) = store.log().view(name)? else { return Err(Error::no_conversation(name)) };
    let StoppedHere { exchanges, ingests, responses, messages: written } = app.exchanges.stop(owner, view.id);
    let elsewhere: Vec<u64> = view.live.iter().copied().filter(|message| !written.contains(message)).collect();
    if !elsewhere.is_empty() {
        let stop = Stop { owner: owner.to_owned(), conversation: view.id };
        let line = serde_json::to_string(&stop).map_err(|error| Error::InvalidInput(error.to_string()))?;
        app.store.append(stops(), &[Message::new(Role::System, [Chunk::text(line)])])?;
    }
    Ok(Stopped { exchanges, ingests, responses, elsewhere })
}

/// Stops what other servers ask for, until the server ends.
pub(super) async fn follow(app: Arc<App>) {
    let mut closing = app.closing.subscribe();
    tokio::select! {
        _ = closing.wait_for(|is_closing| *is_closing) => {}
        () = take(&app) => {}
    }
}

async fn take(app: &Arc<App>) {
    // What was asked for before this server began is not for it.
    let begun = read(app, |store| Ok(store.log().view(&stops())?.map_or(0, |view| view.last_seq()))).await.unwrap_or(0);
    loop {
        app.exchanges.some().await;
        let opened = read(app, move |store| match store.tail(stops(), begun) {
            Err(Error::NotFound { .. }) => Ok(None),
            tail => Ok(Some(tail?)),
        });
        match opened.await {
            Ok(Some(tail)) => follow_tail(app, tail).await,
            Ok(None) => {}
            Err(refusal) => tracing::warn!(error = %refusal.message, "stops that other servers ask for are not seen"),
        }
        sleep(LOOK).await;
    }
}

async fn follow_tail(app: &Arc<App>, mut tail: Tail) {
    loop {
        let news = app.pool.run_for_follower(move || {
            let entries = tail.read()?;
            Ok((tail, entries))
        });
        let Ok((back, entries)) = news.await else { return };
        tail = back;
        for entry in &entries {
            let EntryKind::Chunk { chunk, .. } = &entry.kind else { continue };
            let Body::Text { text, .. } = &chunk.body else { continue };
            if let Ok(Stop { owner, conversation }) = serde_json::from_str(text) {
                app.exchanges.stop(&owner, conversation);
            }
        }
        if poll_fn(|context| tail.poll_news(context)).await.is_err() {
            return;
        }
    }
}

async fn read<T: Send + 'static>(
    app: &Arc<App>,
    read: impl FnOnce(&Store) -> Result<T> + Send + 'static,
) -> std::result::Result<T, Refusal> {
    let reading = Arc::clone(app);
    app.pool.run_for_follower(move || Ok(read(&reading.store)?)).await
}
