//! The messages that clients are writing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::framed::{answer, asked};
use super::naming::writable;
use crate::error::Error;
use crate::log::remote::call::{self, Begun, Finish, Nothing, Push};
use crate::log::remote::messages;
use crate::server::app::{App, Call, Outcome};
use crate::server::keys::{hex, random};
use crate::server::refusal::Refusal;
use crate::server::writers::{LEASE, Writer};

/// Between two looks for writers that are not heard of.
const PAUSE: Duration = Duration::from_secs(5);

fn find(call: &Call, name: &str) -> Result<Arc<Writer>, Refusal> {
    let gone = || Error::NotFound { what: "the writer of this message".to_owned() };
    Ok(call.app.writers.find(&call.caller.key, name).ok_or_else(gone)?)
}

/// Interrupts the messages of clients that have gone.
pub(crate) async fn interrupt_unheard(app: Arc<App>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(since) = Instant::now().checked_sub(LEASE) else { continue };
        let unheard = app.writers.unheard(since);
        if !unheard.is_empty() {
            // Dropping a writer writes its end.
            let _ = tokio::task::spawn_blocking(move || std::mem::drop(unheard)).await;
        }
    }
}

pub(super) fn begin(call: &Call, body: &[u8]) -> Outcome {
    let (asked, bytes): (call::Append, _) = asked(body)?;
    let room = call.app.streams.begin(&call.caller.key)?;
    let known = messages::open_one(bytes)?;
    let name = writable(call, &asked.name)?;
    let writer = hex(&random::<16>()?);
    let (message, receipt) = call.store().log().begin(&name, known.role, known.metadata, &asked.options())?;
    let Some(message) = message else { return answer(&Begun { writer: None, receipt }, &[]) };
    call.app.writers.add(writer.clone(), &call.caller.key, message, room);
    answer(&Begun { writer: Some(writer), receipt }, &[])
}

pub(super) fn push(call: &Call, body: &[u8]) -> Outcome {
    let (Push { writer, number, chunk_index }, bytes) = asked(body)?;
    let chunk = messages::open_one(bytes)?.chunks.pop();
    let chunk = chunk.ok_or_else(|| Refusal::value("chunk", "a delta has a chunk"))?;
    let writer = find(call, &writer)?;
    let mut state = writer.state();
    // One whose answer was lost comes again.
    if number > state.pushed {
        state.message.push(chunk_index, chunk)?;
        state.pushed = number;
    }
    answer(&Nothing {}, &[])
}

pub(super) fn finish(call: &Call, body: &[u8]) -> Outcome {
    let (Finish { writer }, bytes) = asked(body)?;
    let end = messages::open_one(bytes)?;
    let writer = find(call, &writer)?;
    let mut state = writer.state();
    if state.finished.is_none() {
        state.finished = Some(state.message.finish(end.finish_reason, end.usage, end.metadata)?);
        state.room = None;
    }
    answer(&state.finished, &[])
}

/// A client states that these writers live. Those that the server does not know are answered.
pub(super) fn keep(call: &Call, body: &[u8]) -> Outcome {
    let (call::Writers { mut writers }, _) = asked(body)?;
    writers.retain(|writer| call.app.writers.find(&call.caller.key, writer).is_none());
    answer(&call::Writers { writers }, &[])
}

/// A client drops these writers: what is not finished is interrupted.
pub(super) fn drop(call: &Call, body: &[u8]) -> Outcome {
    let (call::Writers { writers }, _) = asked(body)?;
    writers.iter().for_each(|writer| call.app.writers.remove(&call.caller.key, writer));
    answer(&Nothing {}, &[])
}
