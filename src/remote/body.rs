//! The body of a call or an answer: the length of its JSON (4 bytes, big endian), the JSON, then bytes. Messages are on the way as
//! a record, as the log has it: nothing of a message is lost that the log would keep.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
#[cfg(any(feature = "client", test))]
use crate::log::limits::check_messages;
#[cfg(any(feature = "server", test))]
use crate::model::Chunk;
use crate::model::{ConversationId, Message};
#[cfg(feature = "client")]
use crate::model::{Metadata, Role};
#[cfg(any(feature = "client", test))]
use crate::record::{Body, Header, seal_record};
#[cfg(any(feature = "server", test))]
use crate::record::{Line, MessageHeader, Record, role};

/// The bytes of a frame.
pub(crate) fn write(head: &impl Serialize, bytes: &[u8]) -> Result<Vec<u8>> {
    let invalid = |error: &dyn std::fmt::Display| Error::InvalidInput(format!("a frame cannot be written: {error}"));
    let head = serde_json::to_vec(head).map_err(|error| invalid(&error))?;
    let length = u32::try_from(head.len()).map_err(|error| invalid(&error))?;
    Ok([&length.to_be_bytes(), head.as_slice(), bytes].concat())
}

/// The JSON of a frame, and the bytes after it.
pub(crate) fn read<T: DeserializeOwned>(frame: &[u8]) -> Result<(T, &[u8])> {
    let invalid = |detail: &str| Error::InvalidInput(format!("the body is no frame: {detail}"));
    let (length, rest) = frame.split_first_chunk::<4>().ok_or_else(|| invalid("it is cut off"))?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|error| invalid(&error.to_string()))?;
    let (head, bytes) = rest.split_at_checked(length).ok_or_else(|| invalid("its JSON is cut off"))?;
    let head = serde_json::from_slice(head).map_err(|error| invalid(&error.to_string()))?;
    Ok((head, bytes))
}

/// The conversation and the place that the checksum of a record on the way is made with.
const NOWHERE: (ConversationId, u64) = (ConversationId::from_bytes([0; 16]), 1);

/// Messages as the bytes of a record. Fails on what is over a limit.
#[cfg(any(feature = "client", test))]
pub(crate) fn seal(messages: &[Message]) -> Result<Vec<u8>> {
    let body = Body::messages(messages, check_messages(messages)?)?;
    let header =
        Header { time: 0, base: 0, next_message_index: 0, commit: 0, cut: false, deleted: false, origin: None };
    let (id, first_seq) = NOWHERE;
    Ok(seal_record(id, first_seq, &header, body)?.1)
}

/// The messages of a record.
#[cfg(any(feature = "server", test))]
pub(crate) fn open(bytes: &[u8]) -> Result<Vec<Message>> {
    opened(bytes).map_err(|error| invalid(&error))
}

#[cfg(any(feature = "server", test))]
fn opened(bytes: &[u8]) -> Result<Vec<Message>> {
    let (id, first_seq) = NOWHERE;
    let mut messages: Vec<Message> = Vec::new();
    for line in Record::open(id, first_seq, bytes)?.lines() {
        match line?.1 {
            Line::Begin(begin) => messages.push(message(begin.role, &begin.header, [])?),
            Line::Chunk(line) => match (&line.header, messages.last_mut()) {
                (Some(header), _) => messages.push(message(line.role, header, [line.chunk()?])?),
                (None, Some(of)) => of.chunks.push(line.chunk()?),
                (None, None) => return Err(invalid(&"it begins within a message")),
            },
            _ => return Err(invalid(&"it holds more than messages")),
        }
    }
    Ok(messages)
}

#[cfg(any(feature = "server", test))]
fn message(of: u8, header: &MessageHeader<'_>, chunks: impl IntoIterator<Item = Chunk>) -> Result<Message> {
    let (finish_reason, usage, metadata) = (header.finish_reason(), header.usage()?, header.metadata()?);
    Ok(Message { finish_reason, usage, metadata, ..Message::new(role(of)?, chunks) })
}

/// One message, which is all that there is.
#[cfg(feature = "server")]
pub(crate) fn open_one(bytes: &[u8]) -> Result<Message> {
    let mut messages = open(bytes)?;
    match (messages.pop(), messages.is_empty()) {
        (Some(message), true) => Ok(message),
        _ => Err(invalid(&"it does not hold one message")),
    }
}

/// What is known of a message, without its chunks.
#[cfg(feature = "client")]
pub(crate) fn known(role: Role, metadata: Metadata) -> Message {
    Message { metadata, ..Message::new(role, []) }
}

#[cfg(any(feature = "server", test))]
fn invalid(detail: &dyn std::fmt::Display) -> Error {
    Error::InvalidInput(format!("the messages of the body cannot be read: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::arbitrary;
    use proptest::prelude::*;

    #[test]
    fn a_frame_comes_back_and_a_part_of_it_does_not() {
        let frame = write(&[1, 2], b"bytes").unwrap();
        assert_eq!(read::<Vec<u8>>(&frame).unwrap(), (vec![1, 2], b"bytes".as_slice()));
        for length in 0..frame.len() - b"bytes".len() {
            assert!(read::<Vec<u8>>(&frame[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn messages_come_back(messages in prop::collection::vec(arbitrary::message(), 1..5)) {
            let sealed = seal(&messages).unwrap();
            prop_assert_eq!(open(&sealed).unwrap(), messages);
        }
    }

    #[test]
    fn what_was_changed_on_the_way_is_refused() {
        let sealed = seal(&[Message::user("hello"), Message::new(crate::model::Role::User, [])]).unwrap();
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(open(&flipped).is_err(), "{at}");
            assert!(open(&sealed[..at]).is_err(), "{at}");
        }
    }
}
