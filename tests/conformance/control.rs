//! Rewinds, removals, redactions and deletion.

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{Error, ListQuery};

use crate::place::Place;
use crate::said::{five_seqs, load, user};

crate::tests![
    a_rewind_hides_and_keeps,
    a_removal_hides_a_message_or_a_chunk_and_keeps,
    a_message_that_is_written_cannot_be_removed_but_a_chunk_of_it_can,
    a_title_goes_with_what_it_came_from,
    a_fork_is_named_after_what_is_left,
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

fn a_removal_hides_a_message_or_a_chunk_and_keeps(place: &Place) {
    let store = five_seqs(place);
    store.fork_to("chat", None, "fork").unwrap();
    store.remove("chat", 0, Some(1)).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "c", "d", "e"]);
    assert_eq!(store.load_raw("chat").unwrap()[0].chunk_indexes, [0]);
    store.remove("chat", 1, None).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "e"]);
    // What is hidden cannot be hidden again; what never was, neither.
    for (message, chunk) in [(0, Some(1)), (0, Some(7)), (1, None), (1, Some(0)), (3, None)] {
        let result = store.remove("chat", message, chunk);
        assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    }
    assert!(matches!(store.rewind("chat", 1), Err(Error::NotFound { .. })));
    // The log shows all of it, and the fork is as it was; one that is made now has the removals.
    assert_eq!(store.entries("chat", .., usize::MAX).unwrap().len(), 7);
    assert_eq!(load(&store, "fork"), ["a", "b", "c", "d", "e"]);
    store.fork_to("chat", Some(6), "between").unwrap();
    assert_eq!(load(&store, "between"), ["a", "c", "d", "e"]);
    // Every chunk of a message can go one by one.
    store.remove("chat", 0, Some(0)).unwrap();
    assert_eq!(load(&store, "chat"), ["e"]);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn a_message_that_is_written_cannot_be_removed_but_a_chunk_of_it_can(place: &Place) {
    let store = place.store();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("a")).unwrap();
    writer.push(1, Chunk::text("b")).unwrap();
    store.sync().unwrap();
    assert!(matches!(store.remove("chat", 0, None), Err(Error::BeingWritten { .. })));
    store.remove("chat", 0, Some(0)).unwrap();
    writer.push(0, Chunk::text("more")).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(load(&store, "chat"), ["b"]);
    store.remove("chat", 0, None).unwrap();
    assert_eq!(load(&store, "chat"), [""; 0]);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn a_title_goes_with_what_it_came_from(place: &Place) {
    let store = place.store();
    let title = |name: &str| store.describe(name).unwrap().title;
    store.append("chat", &[Message::new(Role::User, [Chunk::text("first"), Chunk::text("second")])]).unwrap();
    assert_eq!(title("chat").as_deref(), Some("first"));
    store.remove("chat", 0, Some(0)).unwrap();
    assert_ne!(title("chat").as_deref(), Some("first"));
    store.append("chat", &[user("later")]).unwrap();
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    let before = title("chat");
    store.append("chat", &[user("last")]).unwrap();
    store.fork_to("chat", Some(4), "fork").unwrap();
    assert_eq!(title("fork"), before);
    store.set_title("chat", None).unwrap();
    assert_ne!(title("chat").as_deref(), Some("first"));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// A message that forks share is redacted in one of them: in all of them the next one gives the title.
fn a_fork_is_named_after_what_is_left(place: &Place) {
    let store = place.store();
    let title = |name: &str| store.describe(name).unwrap().title;
    store.append("parent", &[user("secret")]).unwrap();
    store.fork_to("parent", None, "fork").unwrap();
    store.redact("parent", 0, None).unwrap();
    assert_eq!(title("fork"), None);
    store.append("fork", &[user("hello")]).unwrap();
    store.append("fork", &[user("more")]).unwrap();
    store.fork_to("fork", Some(2), "earlier").unwrap();
    assert_eq!([title("fork"), title("earlier")], [(); 2].map(|()| Some("hello".to_owned())));
    store.set_title("earlier", Some("mine")).unwrap();
    store.set_title("earlier", None).unwrap();
    assert_eq!(title("earlier").as_deref(), Some("hello"));
}
