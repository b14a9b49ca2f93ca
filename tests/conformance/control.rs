//! Rewinds, removals, redactions and deletion.

use conversation_store::model::{Chunk, Metadata, Role};
use conversation_store::{Error, ListQuery};

use crate::place::Place;
use crate::said::{five_seqs, load, user};

crate::tests![
    a_rewind_hides_and_keeps,
    a_parents_rewind_does_not_touch_its_fork,
    a_message_that_is_rewound_is_closed_to_its_writer,
    a_deleted_name_begins_anew,
];

fn a_rewind_hides_and_keeps(place: &Place) {
    let store = five_seqs(place);
    store.rewind("chat", 1).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "b"]);
    assert_eq!(store.append("chat", &[user("f")]).unwrap().message_indexes, [3]);
    assert_eq!(load(&store, "chat"), ["a", "b", "f"]);
    // The log shows all of it.
    assert_eq!(store.entries("chat", .., usize::MAX).unwrap().len(), 7);
    // What is hidden cannot be rewound to, what is visible can; what never was, cannot.
    for to in [1, 2, 4] {
        assert!(matches!(store.rewind("chat", to), Err(Error::NotFound { .. })));
    }
    store.rewind("chat", 3).unwrap();
    store.append("chat", &[user("g")]).unwrap();
    store.rewind("chat", 0).unwrap();
    assert_eq!(load(&store, "chat"), [""; 0]);
    assert_eq!(store.append("chat", &[user("h")]).unwrap().message_indexes, [5]);
    assert_eq!(load(&store, "chat"), ["h"]);
}

fn a_parents_rewind_does_not_touch_its_fork(place: &Place) {
    let store = five_seqs(place);
    store.rewind("chat", 2).unwrap();
    store.fork_to("chat", Some(5), "before").unwrap();
    store.fork_to("chat", None, "behind").unwrap();
    store.rewind("chat", 0).unwrap();
    assert_eq!(load(&store, "before"), ["a", "b", "c", "d", "e"]);
    assert_eq!(load(&store, "behind"), ["a", "b", "c", "d"]);
    assert_eq!(load(&store, "chat"), [""; 0]);
    // Nor does the fork's own touch the parent.
    store.rewind("before", 1).unwrap();
    store.rewind("behind", 0).unwrap();
    assert_eq!(load(&store, "before"), ["a", "b"]);
    assert!(store.rewind("behind", 0).is_err());
}

fn a_message_that_is_rewound_is_closed_to_its_writer(place: &Place) {
    let store = place.store();
    store.append("chat", &[user("a")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let mut other = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("b")).unwrap();
    other.push(0, Chunk::text("c")).unwrap();
    store.rewind("chat", 2).unwrap();
    writer.push(0, Chunk::text("d")).unwrap();
    let closed = other.push(0, Chunk::text("d"));
    assert!(matches!(closed, Err(Error::MessageClosed { message_index: 2, .. })), "{closed:?}");
    assert!(matches!(other.finish(None, None), Err(Error::MessageClosed { .. })));
    writer.finish(None, None).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "bd"]);
}

fn a_deleted_name_begins_anew(place: &Place) {
    let store = five_seqs(place);
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    store.delete("chat").unwrap();
    assert!(matches!(writer.push(0, Chunk::text("a")), Err(Error::MessageClosed { .. })));
    assert!(matches!(store.load("chat"), Err(Error::NotFound { .. })));
    assert!(matches!(store.delete("chat"), Err(Error::NotFound { .. })));
    assert_eq!(store.list(&ListQuery::new()).unwrap().items, []);
    let receipt = store.append("chat", &[user("a")]).unwrap();
    assert_eq!((receipt.first_seq, receipt.message_indexes), (1, vec![0]));
    assert_eq!(load(&store, "chat"), ["a"]);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}
