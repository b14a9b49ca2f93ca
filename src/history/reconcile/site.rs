//! The place of a call or a result.

/// A chunk's place: position of its message, position in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    pub(crate) message: usize,
    pub(crate) chunk: usize,
}
