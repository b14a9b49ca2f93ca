//! Places in a conversation.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};

/// A place in a conversation: after the entry with a seq. As text it can be kept and read back.
///
/// It belongs to one conversation. When that is deleted and another is made under its name, the cursor is refused with
/// `StaleCursor`. A cursor that is made of a number alone says nothing of that: only 0, the beginning, is safe then.
///
/// ```
/// use conversation_store::{Cursor, Store};
/// use conversation_store::model::Message;
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("one")])?;
/// let cursor: Cursor = store.load("chat")?.cursor().map(|cursor| cursor.to_string()).unwrap_or_default().parse()?;
/// store.append("chat", &[Message::user("two")])?;
/// assert_eq!(store.entries_since("chat", cursor, 100)?.len(), 1);
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The last seq that is known; 0 is the beginning.
    pub(crate) seq: u64,
    /// Which conversation of its name it belongs to, if that is known.
    pub(crate) incarnation: Option<u64>,
}

impl Cursor {
    /// The last seq that is known; 0 is the beginning.
    #[must_use]
    pub const fn seq(self) -> u64 {
        self.seq
    }

    /// Another place in the same conversation.
    #[must_use]
    pub const fn with_seq(self, seq: u64) -> Self {
        Self { seq, ..self }
    }
}

impl From<u64> for Cursor {
    fn from(seq: u64) -> Self {
        Self { seq, incarnation: None }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.incarnation {
            Some(incarnation) => write!(f, "{}-{incarnation:016x}", self.seq),
            None => self.seq.fmt(f),
        }
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || match text.split_once('-') {
            None => Some(Self::from(text.parse::<u64>().ok()?)),
            Some((seq, incarnation)) => {
                Some(Self { seq: seq.parse().ok()?, incarnation: Some(u64::from_str_radix(incarnation, 16).ok()?) })
            }
        };
        parse()
            .ok_or_else(|| Error::InvalidInput(format!("{text:?} is not a cursor: give a seq, or a cursor unchanged")))
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
