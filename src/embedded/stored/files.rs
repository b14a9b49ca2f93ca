//! What a store keeps in its directory, outside of the engine's files: the marker and the watermark.

use std::path::Path;

use crate::embedded::engine::{Directory, Engine};
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::StoreInfo;

/// The directory of a store. A store in memory has none, and keeps nothing there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreFiles<'a>(Option<&'a Directory>);

impl<'a> StoreFiles<'a> {
    pub(crate) fn of(engine: &'a dyn Engine) -> Self {
        Self(engine.directory())
    }

    /// Its path, for people.
    pub(crate) fn shown(self) -> String {
        self.0.map(|directory| directory.path().display().to_string()).unwrap_or_default()
    }

    /// The bytes of its files.
    pub(crate) fn bytes(self) -> Result<Option<u64>> {
        self.0.map(Directory::bytes).transpose()
    }

    /// Whether a store existed here before this opening.
    pub(crate) fn established(self) -> bool {
        self.0.is_some_and(Directory::established)
    }

    /// The store that the marker names.
    pub(crate) fn named(self) -> Option<ConversationId> {
        self.0.and_then(Directory::store).and_then(|id| id.parse().ok())
    }

    /// Whether the disk was full when the store was opened.
    pub(crate) fn disk_full(self) -> bool {
        self.0.is_some_and(Directory::disk_full)
    }

    /// Where the store was copied to before it was opened in spite of damage, if its content is not repaired yet.
    pub(crate) fn set_aside(self) -> Option<&'a Path> {
        self.0.and_then(Directory::set_aside)
    }

    /// Notes that the store's content is repaired.
    pub(crate) fn repaired(self) -> Result<()> {
        self.0.filter(|directory| directory.set_aside().is_some()).map_or(Ok(()), Directory::repaired)
    }

    /// The newest commit that is noted for a store. From now on, its commits are noted.
    pub(crate) fn noted(self, store: &StoreInfo) -> Option<u64> {
        self.0.and_then(|directory| directory.watermark().of(&store.store_id))
    }

    /// Whether only another store's commits are noted.
    pub(crate) fn is_noted_for_another(self, store: &StoreInfo) -> bool {
        self.0.is_some_and(|directory| directory.watermark().is_of_another(&store.store_id))
    }

    /// Notes a durable commit. A power cut may take the note, and leave an earlier one.
    pub(crate) fn note(self, commit: u64) -> Result<()> {
        self.0.map_or(Ok(()), |directory| directory.watermark().set(commit))
    }

    /// Notes a commit in place of all others. The note survives a power cut.
    pub(crate) fn note_only(self, commit: u64) -> Result<()> {
        self.0.map_or(Ok(()), |directory| directory.watermark().reset(commit))
    }

    /// Notes no commit any more: until one is noted again, nobody can know whether the store went back.
    pub(crate) fn note_none(self) -> Result<()> {
        self.0.map_or(Ok(()), |directory| directory.watermark().clear())
    }

    /// Makes what is noted survive a power cut.
    pub(crate) fn sync(self) -> Result<()> {
        self.0.map_or(Ok(()), |directory| directory.watermark().sync())
    }

    /// Reserves the room that a full disk will need.
    pub(crate) fn keep_ballast(self) {
        if let Some(directory) = self.0 {
            directory.keep_ballast();
        }
    }

    /// Writes the marker of a store, unless it names that store already: from now on, an empty store here is a damaged
    /// one.
    pub(crate) fn mark(self, store: &StoreInfo) -> Result<()> {
        let id = ConversationId::from_bytes(store.store_id);
        if self.named() == Some(id) {
            return Ok(());
        }
        self.0.map_or(Ok(()), |directory| directory.establish(store.format_version, &id.to_string()))
    }
}
