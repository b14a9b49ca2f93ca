//! The place of a call or a result.

use super::super::group::StoredMessage;

/// A chunk's place: position of its message, position in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    pub(crate) message: usize,
    pub(crate) chunk: usize,
}

/// A value for each chunk of a conversation. All of them are in one list: a look-up costs two steps and no digest.
#[derive(Debug)]
pub(super) struct BySite<T> {
    /// Where the values of each message begin.
    begins: Vec<usize>,
    values: Vec<T>,
}

impl<T: Clone + Default> BySite<T> {
    /// The default for each chunk of these messages.
    pub(super) fn of(messages: &[StoredMessage]) -> Self {
        let mut chunks = 0;
        let begin = |stored: &StoredMessage| {
            let begin = chunks;
            chunks += stored.message.chunks.len();
            begin
        };
        let begins = messages.iter().map(begin).collect();
        Self { begins, values: vec![T::default(); chunks] }
    }
}

impl<T> BySite<T> {
    pub(super) fn get(&self, site: Site) -> Option<&T> {
        self.values.get(self.begins.get(site.message)? + site.chunk)
    }

    pub(super) fn get_mut(&mut self, site: Site) -> Option<&mut T> {
        self.values.get_mut(self.begins.get(site.message)? + site.chunk)
    }

    /// All values, in order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Site, &T)> {
        let ends = self.begins.iter().copied().skip(1).chain([self.values.len()]);
        self.begins.iter().zip(ends).enumerate().flat_map(|(message, (begin, end))| {
            let values = self.values.get(*begin..end).unwrap_or_default();
            values.iter().enumerate().map(move |(chunk, value)| (Site { message, chunk }, value))
        })
    }
}
