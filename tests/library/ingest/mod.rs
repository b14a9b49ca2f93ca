//! A provider's answers to chunks, and into the store.

mod noise;
mod recorded;
mod shapes;
mod split_characters;

use conversation_store::model::{FinishReason, Metadata, Role};
use conversation_store::provider::{Decoder, Event, Target};
use conversation_store::{MessageState, Store, StoredMessage};

fn events(target: Target, pieces: &[&[u8]]) -> Vec<Event> {
    let mut decoder = Decoder::new(target);
    let mut events: Vec<Event> = pieces.iter().flat_map(|piece| decoder.push(piece).unwrap()).collect();
    events.extend(decoder.finish());
    events
}

/// What a writer makes of events.
#[derive(Clone, Debug, Default, PartialEq)]
struct Merged {
    events: Vec<Event>,
    finished: bool,
}

impl Merged {
    fn take(&mut self, events: Vec<Event>) {
        self.finished |= events.iter().any(|event| matches!(event, Event::Finish { .. }));
        self.events.extend(events);
    }

    /// Through a store, as a server would write it.
    fn stored(self) -> StoredMessage {
        let store = Store::open("memory:").unwrap();
        let mut writer = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        let ended = writer.ingest(self.events).unwrap().is_some();
        assert_eq!(ended, self.finished);
        drop(writer);
        store.sync().unwrap();
        let mut messages = store.load_raw("c").unwrap();
        let is_cut = !ended || messages[0].message.finish_reason == Some(FinishReason::Interrupted);
        assert_eq!(messages[0].state, if is_cut { MessageState::Interrupted } else { MessageState::Complete });
        messages[0].message.metadata.created_at = None;
        messages.remove(0)
    }
}
