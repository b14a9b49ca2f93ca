//! What is left when the log is opened again: all of it, or, after a power cut, everything that was durable.

use std::sync::Arc;

use proptest::test_runner::TestCaseError;

use super::super::engines::Forgetful;
use super::super::model::{Conversation, What};
use super::{NAMES, Place, World};

impl World {
    pub(super) fn reopen(&mut self) -> Result<(), TestCaseError> {
        self.log().close().unwrap();
        self.flush_buffers();
        self.publish();
        self.restart(None)
    }

    pub(super) fn power_cut(&mut self) -> Result<(), TestCaseError> {
        let Place::Memory(engine) = &self.place else { return self.reopen() };
        let left = engine.cut();
        self.buffering.clear();
        for conversation in &mut self.conversations {
            let Some(known) = conversation else { continue };
            let Some(published) = known.published else {
                *conversation = None;
                continue;
            };
            known.lines.truncate(published);
            known.activity = known.published_activity;
            known.keys.retain(|_, kept| kept.last_seq <= published as u64);
        }
        self.restart(Some(left))
    }

    fn restart(&mut self, left: Option<Arc<Forgetful>>) -> Result<(), TestCaseError> {
        if let Some(log) = self.log.take() {
            let handles = self.writers.drain(..).map(|(handle, _)| handle);
            handles.for_each(|handle| log.core().appender.abandon(&handle));
        }
        if let Some(left) = left {
            self.place = Place::Memory(left);
        }
        self.open();
        for at in 0..NAMES {
            let open = self.conversations[at].as_ref().map(Conversation::open).unwrap_or_default();
            for message in open {
                self.add(at, vec![(Some(message), What::Interrupt)]);
            }
        }
        self.publish();
        self.check_all()
    }
}
