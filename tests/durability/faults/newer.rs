//! What a newer program wrote into a store: it is passed over, or refused, and the rest can be used.

use conversation_store::Error;

use crate::faults::{Place, id, is_reported, problems, said, say, text_of, texts, texts_of, user};

/// Where the kind of the first entry of a record stands, if the record has no origin.
const KIND_AT: usize = 42;

/// A conversation whose second entry is of a kind that this version does not know, and another one.
fn with_a_kind(kind: u8) -> Place {
    let place = Place::with(|store| {
        say(store, "chat", 1..=1);
        store.summarize("chat", 0, "a summary").unwrap();
        say(store, "chat", 2..=2);
        say(store, "other", 1..=2);
    });
    place.damage(|raw| {
        let key = raw.record(id("chat"), 2);
        let mut value = raw.get(&key).unwrap();
        assert_eq!((value[1], value[KIND_AT]), (0, 6));
        value[KIND_AT] = kind;
        let mut hasher = crc32fast::Hasher::new();
        [&key[..], &value[..2], &value[6..]].into_iter().for_each(|part| hasher.update(part));
        value[2..6].copy_from_slice(&hasher.finalize().to_be_bytes());
        raw.put(&key, &value);
    });
    place
}

#[test]
fn what_may_be_passed_over_is() {
    let store = with_a_kind(127).open();
    let loaded = store.load_strict("chat").unwrap();
    assert_eq!((texts_of(&loaded), is_reported(&loaded)), (said("chat", 1..=2), false));
    assert_eq!(store.entries("chat", .., 10).unwrap()[1].kind.name(), "unknown");
    store.redact("chat", 0, None).unwrap();
    assert_eq!(user(&store, "chat", "chat 3").unwrap().first_seq, 5);
    assert_eq!(texts(&store, "chat"), ["[redacted]", "chat 2", "chat 3"]);
    assert_eq!(problems(&store), [""; 0]);
}

#[test]
fn what_must_not_be_passed_over_is_refused_and_nothing_else() {
    let store = with_a_kind(128).open();
    let loaded = store.load("chat").unwrap();
    assert_eq!((texts_of(&loaded), is_reported(&loaded)), (said("chat", 1..=2), true));
    let is_newer = |error: &Error| matches!(error, Error::UnsupportedVersion { found: 2, supported: 1, .. });
    for refused in [
        store.load_strict("chat").map(drop),
        store.load_raw("chat").map(drop),
        store.entries("chat", .., 10).map(drop),
        store.messages("chat", 0, 10).map(drop),
    ] {
        assert!(is_newer(refused.as_ref().unwrap_err()), "{refused:?}");
    }
    // Pages and cursors around it go on.
    assert_eq!(text_of(&store.messages("chat", 1, 10).unwrap()[0].message), "chat 2");
    assert_eq!(store.entries("chat", 3.., 10).unwrap().len(), 1);
    // It may hold something of what is to be forgotten.
    let error = store.redact("chat", 0, None).unwrap_err();
    assert!(is_newer(&error) && error.to_string().starts_with("what can be read of message 0 is redacted"), "{error}");
    assert_eq!(user(&store, "chat", "chat 3").unwrap().first_seq, 5);
    assert_eq!(texts(&store, "chat"), ["[redacted]", "chat 2", "chat 3"]);
    assert!(problems(&store)[0].contains("an entry of kind 128"), "{:?}", problems(&store));
    assert_eq!(texts(&store, "other"), said("other", 1..=2));
}
