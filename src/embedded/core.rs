//! The log's parts, and how they hang together.

use std::fmt;
use std::sync::Arc;

use crate::embedded::appending::{Appender, Numbering};
use crate::embedded::catalogue::Catalogue;
use crate::embedded::commit::Committer;
use crate::embedded::engine::{Directory, Engine};
use crate::embedded::families::Families;
use crate::embedded::state::State;
use crate::error::Result;
use crate::log::{Clock, Health, Size};

/// The parts. Each reaches another's state only by that part's methods.
pub(crate) struct Core {
    pub(crate) engine: Arc<dyn Engine>,
    /// What opening found.
    pub(crate) found: Health,
    pub(crate) commit: Arc<Committer>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) appender: Arc<Appender>,
    pub(crate) families: Families,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Clock, epoch: u64, found: Health, state: State) -> Self {
        let numbering = Numbering::new(clock, epoch);
        let commit = Arc::new(Committer::new(Arc::clone(&engine), state));
        let catalogue = Arc::new(Catalogue::new(Arc::clone(&engine), Arc::clone(&commit), epoch));
        let appender = Arc::new(Appender::new(
            Arc::clone(&engine),
            Arc::clone(&commit),
            Arc::clone(&catalogue),
            numbering.clone(),
        ));
        let families = Families::new(Arc::clone(&engine), Arc::clone(&commit), Arc::clone(&catalogue), numbering);
        Self { engine, found, commit, catalogue, appender, families }
    }

    pub(crate) fn health(&self) -> Health {
        let state = self.commit.lock();
        let poisoned = state.life.poisoned().cloned().or_else(|| self.engine.failure());
        Health { poisoned, closed: !state.life.is_open(), ..self.found.clone() }
    }

    /// How much the log holds.
    pub(crate) fn size(&self) -> Result<Size> {
        let conversations = self.commit.lock().last_commit().conversations;
        let bytes = self.engine.directory().map(Directory::bytes).transpose()?;
        Ok(Size { conversations, bytes, tables: Vec::new() })
    }
}
