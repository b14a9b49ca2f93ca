//! What a client writes, and the messages that clients are writing.

use std::sync::Arc;
use std::time::Instant;

use super::call::{answer, asked, is_admin, name, writable};
use crate::error::Error;
use crate::log::{Changes, Control, ForkAt, NewConversation};
use crate::remote::call::{
    Append, AppendChanging, Begun, Change, Changed, Create, Delete, Finish, Fork, Nothing, Push, Redact, To,
    metadata_of,
};
use crate::remote::{body, call};
use crate::server::app::{App, Call, Outcome};
use crate::server::keys::{Scope, hex, random};
use crate::server::refusal::Refusal;
use crate::server::writers::Writer;

pub(super) fn append(call: &Call, body: &[u8]) -> Outcome {
    let (asked, bytes): (Append, _) = asked(body)?;
    let name = writable(call, &asked.name)?;
    answer(&call.store().log().append(&name, &body::open(bytes)?, &Changes::new(), &asked.options()?)?, &[])
}

pub(super) fn append_changing(call: &Call, body: &[u8]) -> Outcome {
    let (asked, bytes): (AppendChanging, _) = asked(body)?;
    let name = writable(call, &asked.append.name)?;
    let messages = if bytes.is_empty() { Vec::new() } else { body::open(bytes)? };
    answer(&call.store().log().append(&name, &messages, &asked.changes()?, &asked.append.options()?)?, &[])
}

pub(super) fn create(call: &Call, body: &[u8]) -> Outcome {
    let (Create { name, title, tags, metadata, time }, _) = asked(body)?;
    let metadata = metadata.as_deref().map(metadata_of).transpose()?;
    let new = NewConversation { title, tags, metadata, time };
    answer(&call.store().log().create(&writable(call, &name)?, &new)?, &[])
}

/// The scope is that of the native API: what hides something needs `delete`.
pub(super) fn change(call: &Call, body: &[u8]) -> Outcome {
    let (Change { name: of, to }, _) = asked(body)?;
    let hides = matches!(to, To::Rewind { .. } | To::Remove { .. });
    if hides && !call.caller.scopes.contains(&Scope::Delete) {
        return Err(Refusal::missing_scope(Scope::Delete));
    }
    let name = name(call, &of)?;
    let control = |control: &Control<'_>| call.store().log().control(&name, control);
    let done = match to {
        To::Title(title) => control(&Control::Title(title.as_deref())),
        To::Tags { remove, add } => {
            let (remove, add): (Vec<&str>, Vec<&str>) = (texts(&remove), texts(&add));
            control(&Control::Tags { remove: &remove, add: &add })
        }
        To::Metadata(metadata) => control(&Control::Metadata(&metadata_of(&metadata)?)),
        To::Rewind { to } => control(&Control::Rewind { to }),
        To::Remove { message, chunk } => control(&Control::Remove { message, chunk }),
        To::Summarize { through, text } => control(&Control::Summarize { through, text: &text }),
    }?;
    answer(&Changed { receipt: done.receipt, tags: done.tags }, &[])
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

pub(super) fn fork(call: &Call, body: &[u8]) -> Outcome {
    let (Fork { parent, at_seq, child, time }, _) = asked(body)?;
    let parent = name(call, &parent)?;
    let child = match child.owner {
        // The log gives it the owner of its parent.
        None if is_admin(call) => child.bare(),
        _ => writable(call, &child)?,
    };
    call.store().log().fork(&parent, ForkAt { seq: at_seq, time }, &child)?;
    answer(&Nothing {}, &[])
}

pub(super) fn delete(call: &Call, body: &[u8]) -> Outcome {
    let (Delete { name: of, at }, _) = asked(body)?;
    let at = at.map(|at| at.parse()).transpose()?;
    call.store().log().delete(&name(call, &of)?, at)?;
    answer(&Nothing {}, &[])
}

pub(super) fn redact(call: &Call, body: &[u8]) -> Outcome {
    let (Redact { name: of, message, chunk }, _) = asked(body)?;
    answer(&call.store().log().redact(&name(call, &of)?, message, chunk)?, &[])
}

pub(super) fn sync(call: &Call, _: &[u8]) -> Outcome {
    call.store().log().sync()?;
    answer(&Nothing {}, &[])
}

fn find(call: &Call, name: &str) -> Result<Arc<Writer>, Refusal> {
    let gone = || Error::NotFound { what: "the writer of this message".to_owned() };
    Ok(call.app.writers.find(&call.caller.key, name).ok_or_else(gone)?)
}

/// Interrupts the messages of clients that have gone.
pub(crate) async fn interrupt_unheard(app: Arc<App>) {
    let lease = app.config.limits.lease();
    loop {
        tokio::time::sleep(lease / 6).await;
        let Some(since) = Instant::now().checked_sub(lease) else { continue };
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
    let known = body::open_one(bytes)?;
    let name = writable(call, &asked.name)?;
    let writer = hex(&random::<16>()?);
    let (message, receipt) = call.store().log().begin(&name, known.role, known.metadata, &asked.options()?)?;
    let Some(message) = message else { return answer(&Begun { writer: None, receipt }, &[]) };
    call.app.writers.add(writer.clone(), &call.caller.key, message, room);
    answer(&Begun { writer: Some(writer), receipt }, &[])
}

pub(super) fn push(call: &Call, body: &[u8]) -> Outcome {
    let (Push { writer, number, chunk_index }, bytes) = asked(body)?;
    let chunk = body::open_one(bytes)?.chunks.pop();
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
    let (Finish { writer: name }, bytes) = asked(body)?;
    let end = body::open_one(bytes)?;
    let writer = find(call, &name)?;
    let mut state = writer.state();
    if state.finished.is_none() {
        state.finished = Some(state.message.finish(end.finish_reason, end.usage, end.metadata)?);
        state.room = None;
        call.app.writers.finished(&name, &writer);
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
