//! What a client writes.

use super::framed::{answer, asked};
use super::naming::{is_admin, name, writable};
use crate::error::Error;
use crate::log::remote::call::{Append, Change, Changed, Create, Delete, Fork, Nothing, Redact, To};
use crate::log::remote::messages;
use crate::log::{Control, NewConversation};
use crate::model::Json;
use crate::server::app::{Call, Outcome};
use crate::server::keys::Scope;
use crate::server::refusal::Refusal;

pub(super) fn append(call: &Call, body: &[u8]) -> Outcome {
    let (asked, bytes): (Append, _) = asked(body)?;
    let name = writable(call, &asked.name)?;
    answer(&call.store().log().append(&name, &messages::open(bytes)?, &asked.options())?, &[])
}

pub(super) fn create(call: &Call, body: &[u8]) -> Outcome {
    let (Create { name, title, tags, metadata }, _) = asked(body)?;
    let metadata = metadata.as_deref().map(json).transpose()?;
    let new = NewConversation { title, tags, metadata };
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
        To::Metadata(metadata) => control(&Control::Metadata(&json(&metadata)?)),
        To::Rewind { to } => control(&Control::Rewind { to }),
        To::Remove { message, chunk } => control(&Control::Remove { message, chunk }),
        To::Summarize { through, text } => control(&Control::Summarize { through, text: &text }),
    }?;
    answer(&Changed { receipt: done.receipt, tags: done.tags }, &[])
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn json(text: &str) -> Result<Json, Error> {
    Json::new(text).map_err(|error| Error::InvalidInput(format!("the metadata cannot be read: {error}")))
}

pub(super) fn fork(call: &Call, body: &[u8]) -> Outcome {
    let (Fork { parent, at_seq, child }, _) = asked(body)?;
    let parent = name(call, &parent)?;
    let child = match child.owner {
        // The log gives it the owner of its parent.
        None if is_admin(call) => child.bare(),
        _ => writable(call, &child)?,
    };
    call.store().log().fork(&parent, at_seq, &child)?;
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
