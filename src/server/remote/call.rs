//! A call: the frame of its body, and whose conversation it means.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::log::{View, reading};
use crate::model::{ConversationId, Name, Timestamp};
use crate::remote::call::{Named, Which};
use crate::remote::{MEDIA_TYPE, body};
use crate::server::app::{Call, Outcome, reply};
use crate::server::keys::Scope;
use crate::server::refusal::Refusal;

/// How old an id may be under which a conversation is made.
const NEW_MICROS: i64 = 24 * 3600 * 1_000_000;

/// Whether the caller sees the conversations of all owners.
pub(super) fn is_admin(call: &Call) -> bool {
    call.caller.scopes.contains(&Scope::Admin)
}

/// The conversation that is meant. One of another owner is not found, as if there were none.
pub(super) fn name(call: &Call, named: &Named) -> Result<Name, Refusal> {
    let bare = named.bare();
    match &named.owner {
        Some(owner) if is_admin(call) || *owner == call.caller.owner => Ok(bare.with_owner(owner.as_str())),
        Some(_) => Err(Error::no_conversation(bare).into()),
        // An id names one conversation, of whichever owner.
        None if is_admin(call) && bare.key().is_none() => Ok(bare),
        None => Ok(call.own(bare)),
    }
}

/// As [`name`], of a conversation that may still have to be made. A caller who could make one of any id could take the id of
/// another owner's key, or learn of an id whether there is such a conversation: a new id is one of version 7, of today.
pub(super) fn writable(call: &Call, named: &Named) -> Result<Name, Refusal> {
    let name = name(call, named)?;
    if is_admin(call)
        || name.key().is_some()
        || is_new(name.id(), Timestamp::now())
        || call.store().log().view(&name)?.is_some()
    {
        return Ok(name);
    }
    Err(Error::no_conversation(name).into())
}

fn is_new(id: ConversationId, now: Timestamp) -> bool {
    let [a, b, c, d, e, f, version, ..] = *id.as_bytes();
    let milliseconds = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let made = i64::try_from(milliseconds).unwrap_or(i64::MAX).saturating_mul(1_000);
    version >> 4 == 7 && now.as_micros().abs_diff(made) < NEW_MICROS.unsigned_abs()
}

/// What readers see now of a conversation of the caller's, if it is still the same one.
pub(super) fn view(call: &Call, which: Which) -> Result<Option<View>, Refusal> {
    let name = Name::from(which.id);
    let name = if is_admin(call) { name } else { call.own(name) };
    let view = call.store().log().view(&name)?;
    Ok(view.filter(|view| view.head.incarnation == which.incarnation))
}

/// As [`view`], of the conversation of a name.
pub(super) fn named(call: &Call, named: &Named) -> Result<View, Refusal> {
    Ok(reading::view(call.store().log(), &name(call, named)?)?)
}

/// The JSON of a body, and the bytes after it.
pub(super) fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<(T, &[u8]), Refusal> {
    Ok(body::read(body)?)
}

/// 200, with a frame.
pub(super) fn answer(head: &impl Serialize, bytes: &[u8]) -> Outcome {
    Ok(reply(200, MEDIA_TYPE, body::write(head, bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_key_is_never_new() {
        let now = Timestamp::now();
        assert!(is_new(ConversationId::new(), now));
        assert!(!is_new(Name::from("chat").id(), now) && !is_new(Name::from("chat").with_owner("ada").id(), now));
    }

    #[test]
    fn an_id_is_new_for_a_day() {
        let id = ConversationId::new();
        let after = |micros| Timestamp::from_micros(Timestamp::now().as_micros() + micros);
        let minute = 60_000_000;
        assert!(is_new(id, after(NEW_MICROS - minute)) && !is_new(id, after(NEW_MICROS + minute)));
        assert!(is_new(id, after(minute - NEW_MICROS)) && !is_new(id, after(-minute - NEW_MICROS)));
    }
}
