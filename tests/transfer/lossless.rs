//! Out of a store and in again.

use conversation_store::Store;
use conversation_store::model::{Message, Name};
use conversation_store::transfer::{FORMATS, export};
use proptest::prelude::*;

use super::common::{config, hostile};
use super::{assert_works, conversations, into};

/// A log in a store, under a name.
fn stored(log: &[conversation_store::StoredMessage]) -> Store {
    let store = Store::open("memory:").unwrap();
    let messages: Vec<Message> = log.iter().map(|stored| stored.message.clone()).collect();
    store.append("chat", &messages).unwrap();
    store
}

fn exported(store: &Store, format: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let names: Vec<Name> = conversations(store)
        .into_iter()
        .map(|id| store.describe(id).unwrap())
        .map(|item| match item.key {
            Some(key) => Name::from(key),
            None => Name::from(item.id),
        })
        .collect();
    export(store, names, format, &mut text, &mut |_| ()).unwrap();
    text
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn a_transcript_gives_the_same_messages(log in hostile::log(8)) {
        prop_assume!(!log.is_empty());
        let store = stored(&log);
        let text = exported(&store, "transcript");
        let other = Store::open("memory:").unwrap();
        into(&other, "all.jsonl", &text).summary.unwrap();
        let said = |store: &Store| store.load_raw("chat").unwrap().into_iter().map(|stored| stored.message).collect::<Vec<_>>();
        prop_assert_eq!(said(&other), said(&store));
        prop_assert_eq!(exported(&other, "transcript"), text);
    }

    /// What was written in any format that is also read is read again, and renders for every target.
    #[test]
    fn what_is_written_is_read(log in hostile::log(5)) {
        prop_assume!(!log.is_empty());
        let store = stored(&log);
        for format in FORMATS.iter().filter(|format| format.is_written()) {
            let text = exported(&store, format.name);
            if !format.is_read() || text.len() < 8 {
                continue;
            }
            let other = Store::open("memory:").unwrap();
            let run = into(&other, &format!("x.{}", format.extension().unwrap()), &text);
            match run.summary {
                Ok(summary) => assert_eq!(summary.failed, 0, "{}: {:?}", format.name, run.conversations),
                Err(error) => panic!("{}: {error}\n{}", format.name, String::from_utf8_lossy(&text)),
            }
            assert_works(&other);
        }
    }
}
