//! Forks: a prefix, whatever becomes of the parent.

use conversation_store::model::{Chunk, ConversationId, FinishReason, Message, Metadata, Name, Role};
use conversation_store::{Error, MessageState, Store, StoredMessage};

use crate::place::Place;
use crate::said::{five_seqs, load, states, texts, user};

crate::tests![
    a_fork_is_a_prefix_at_every_seq,
    a_fork_in_the_middle_of_a_message_interrupts_it,
    a_fork_in_the_middle_of_an_append_is_read_in_parts,
    a_fork_without_entries_is_forked_from_its_grandparent,
    a_fork_needs_a_free_name,
    a_chunk_behind_a_fork_point_is_not_the_forks_to_redact,
    what_is_kept_is_rid_of_what_was_redacted_elsewhere,
];

fn a_fork_is_a_prefix_at_every_seq(place: &Place) {
    let store = five_seqs(place);
    let said = ["a", "b", "c", "d", "e"];
    for at_seq in 1..=5 {
        let fork = store.fork("chat", Some(at_seq)).unwrap();
        let count = usize::try_from(at_seq).unwrap();
        assert_eq!(texts(&store.load_raw(fork).unwrap()), said[..count]);
        let entries = store.entries(fork, .., usize::MAX).unwrap();
        assert_eq!(entries, store.entries("chat", ..=at_seq, usize::MAX).unwrap());
        // It goes on behind the fork point, with a message index of its own.
        let receipt = store.append(fork, &[user("own")]).unwrap();
        assert_eq!(receipt.first_seq, at_seq + 1);
        assert_eq!(receipt.message_indexes, [at_seq.div_ceil(2)]);
        assert_eq!(forked_from(&store, fork), Some((Name::from("chat").id(), at_seq)));
    }
    assert!(matches!(store.fork("chat", Some(6)), Err(Error::NotFound { .. })));
    assert_eq!(load(&store, "chat"), said);
}

fn a_fork_in_the_middle_of_an_append_is_read_in_parts(place: &Place) {
    let store = place.store();
    // The fork point lies within one append, of which the fork reads the first entries only.
    let long = || Message::new(Role::User, (0..4).map(|_| Chunk::text("x")).collect::<Vec<_>>());
    store.append("chat", &[long(), user("b"), long(), user("c")]).unwrap();
    for at_seq in 1..=10 {
        let fork = store.fork("chat", Some(at_seq)).unwrap();
        let own = ["d", "e", "f"].map(|said| store.append(fork, &[user(said)]).unwrap().message_indexes[0]);
        let all = store.load_raw(fork).unwrap();
        for (at, stored) in all.iter().enumerate() {
            assert_eq!(store.messages(fork, stored.index, usize::MAX).unwrap(), all[at..]);
        }
        assert_eq!(store.newest_messages(fork, 3).unwrap().iter().map(|m| m.index).collect::<Vec<_>>(), own);
    }
}

fn a_fork_in_the_middle_of_a_message_interrupts_it(place: &Place) {
    use MessageState::{Complete, Interrupted};
    let store = five_seqs(place);
    for (at_seq, expected) in [(1, &[Interrupted][..]), (2, &[Complete]), (3, &[Complete, Interrupted])] {
        let name = format!("fork {at_seq}");
        store.fork_to("chat", Some(at_seq), &name).unwrap();
        assert_eq!(states(&store, &name), expected);
        store.append(&name, &[user("own")]).unwrap();
        assert_eq!(states(&store, &name), [expected, &[Complete]].concat());
    }
    assert_eq!(store.load_raw("fork 1").unwrap()[0].message.finish_reason, Some(FinishReason::Interrupted));
    // A message that is being written is interrupted in the fork, and goes on in the parent.
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("f")).unwrap();
    store.sync().unwrap();
    store.fork_to("chat", None, "fork").unwrap();
    writer.push(0, Chunk::text("g")).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(load(&store, "fork").last().unwrap(), "f");
    assert_eq!(states(&store, "fork").last(), Some(&Interrupted));
    assert_eq!(load(&store, "chat").last().unwrap(), "fg");
}

fn a_fork_without_entries_is_forked_from_its_grandparent(place: &Place) {
    let store = five_seqs(place);
    store.fork_to("chat", Some(4), "fork").unwrap();
    store.fork_to("fork", None, "second").unwrap();
    store.fork_to("second", Some(2), "third").unwrap();
    let root = Name::from("chat").id();
    assert_eq!(forked_from(&store, "second"), Some((root, 4)));
    assert_eq!(forked_from(&store, "third"), Some((root, 2)));
    assert_eq!(load(&store, "third"), ["a", "b"]);
    // One that has own entries is forked from.
    store.append("fork", &[user("own")]).unwrap();
    store.fork_to("fork", None, "fourth").unwrap();
    assert_eq!(forked_from(&store, "fourth"), Some((Name::from("fork").id(), 5)));
    assert_eq!(load(&store, "fourth"), ["a", "b", "c", "d", "own"]);
    assert_eq!(load(&store, "second"), ["a", "b", "c", "d"]);
}

fn a_fork_needs_a_free_name(place: &Place) {
    let store = five_seqs(place);
    store.append("other", &[user("a")]).unwrap();
    for child in ["other", "chat"] {
        assert!(matches!(store.fork_to("chat", None, child), Err(Error::NameTaken { .. })));
    }
    assert!(matches!(store.fork_to("nobody", None, "child"), Err(Error::NotFound { .. })));
    // What is to be shared is looked for first.
    for child in ["other", "chat"] {
        assert!(matches!(store.fork_to("chat", Some(6), child), Err(Error::NotFound { .. })));
    }
}

fn a_chunk_behind_a_fork_point_is_not_the_forks_to_redact(place: &Place) {
    let store = five_seqs(place);
    store.fork_to("chat", Some(3), "fork").unwrap();
    let result = store.redact("fork", 1, Some(1));
    assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    assert_eq!(load(&store, "chat"), ["a", "b", "c", "d", "e"]);
    store.redact("fork", 1, Some(0)).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "b", "[redacted]", "d", "e"]);
}

/// The conversation that one was forked from, and at which seq.
fn forked_from(store: &Store, name: impl Into<Name>) -> Option<(ConversationId, u64)> {
    store.describe(name).unwrap().parent.map(|fork| (fork.conversation, fork.at_seq))
}

fn what_is_kept_is_rid_of_what_was_redacted_elsewhere(place: &Place) {
    let names = ["chat", "child", "grandchild", "stranger"];
    let url = place.url();
    let mut store = Store::open(&url).unwrap();
    store.append("chat", &["a", "b", "c", "d"].map(user)).unwrap();
    store.append("stranger", &[user("a")]).unwrap();
    store.fork_to("chat", None, "child").unwrap();
    store.append("child", &[user("e")]).unwrap();
    store.fork_to("child", None, "grandchild").unwrap();
    let mut kept = names.map(|name| store.load(name).unwrap());
    for (number, through) in [(0, "grandchild"), (1, "child"), (2, "chat"), (3, "grandchild")] {
        store.redact(through, number, None).unwrap();
        if number == 3 && place.survives() {
            store.close().unwrap();
            drop(store);
            store = Store::open(&url).unwrap();
        }
        for (kept, name) in kept.iter_mut().zip(names) {
            store.refresh(kept).unwrap();
            assert_eq!(kept.messages(), store.load(name).unwrap().messages(), "{name}, message {number} in {through}");
        }
        let is_redacted = |stored: &&StoredMessage| stored.message.chunks == [Chunk::text("[redacted]")];
        let redacted = kept.each_ref().map(|kept| kept.messages().iter().filter(is_redacted).count() as u64);
        assert_eq!(redacted, [number + 1, number + 1, number + 1, 0]);
    }
    // The parent's copy goes with the parent: what the forks share is redacted in what is left of it.
    store.delete("chat").unwrap();
    store.redact("grandchild", 4, None).unwrap();
    store.refresh(&mut kept[1]).unwrap();
    assert_eq!(kept[1].messages(), store.load("child").unwrap().messages());
    assert_eq!(texts(kept[1].messages()), ["[redacted]"; 5]);
}
