//! A provider's answer: events that are the same wherever its bytes are split, that a writer takes, and that come out of
//! the store as a message which every target takes.

use conversation_store::model::{Message, Metadata, Role};
use conversation_store::provider::{Decoder, Event, PromptOptions, WIRES};
use conversation_store::{Error, Store};

use crate::common::prompts;

/// Takes the bytes as an answer of each wire.
pub fn holds(data: &[u8]) {
    for wire in WIRES {
        let target = wire.name.parse().unwrap();
        let whole = events(Decoder::new(target), [data]);
        assert!(matches!(whole.first(), Some(Event::Begin(_))) && matches!(whole.last(), Some(Event::Finish { .. })));
        assert_eq!(whole.iter().filter(|event| !matches!(event, Event::Delta { .. })).count(), 2);
        assert_eq!(events(Decoder::new(target), data.chunks(1)), whole);
        let (before, after) = data.split_at(crc32fast::hash(data) as usize % (data.len() + 1));
        assert_eq!(events(Decoder::new(target), [before, after]), whole);

        let store = Store::open("memory:").unwrap();
        store.append("c", &[Message::user("hi")]).unwrap();
        let mut writer = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        match writer.ingest(whole) {
            Ok(receipt) => assert!(receipt.is_some()),
            Err(Error::LimitExceeded { .. }) => continue,
            Err(error) => panic!("{error}"),
        }
        let log = store.load_raw("c").unwrap();
        let line = log[1].message.to_json();
        assert_eq!(Message::from_json(&line).unwrap(), log[1].message);
        for target in prompts::targets() {
            let prompt = prompts::prompt(target, &log, &PromptOptions::new()).unwrap();
            prompts::assert_accepted(target, &prompt);
            prompts::assert_conserved(target, &log, &prompt);
        }
    }
}

fn events<'a>(mut decoder: Decoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut events: Vec<Event> = pieces.into_iter().flat_map(|piece| decoder.push(piece).unwrap()).collect();
    events.extend(decoder.finish());
    events
}
