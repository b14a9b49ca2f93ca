//! Reading in parts, and what is kept and brought up to date.

use std::time::Duration;

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::provider::{PromptOptions, Target, render};
use conversation_store::{Conversation, Cursor, Error, Store};

use crate::place::Place;
use crate::said::{five_seqs, user};

crate::tests![
    a_page_is_a_slice_of_the_messages,
    what_is_kept_is_brought_up_to_date,
    what_is_kept_of_a_deleted_conversation_becomes_its_successor,
    a_cursor_is_of_one_conversation,
    a_follower_that_does_not_wait_is_given_what_is_there,
    what_was_is_what_a_fork_there_has,
    what_was_redacted_is_in_no_past,
];

fn a_page_is_a_slice_of_the_messages(place: &Place) {
    let store = place.quick_store();
    for turn in 0..6 {
        store.append("chat", &[user("question"), Message::assistant([Chunk::text(format!("answer {turn}"))])]).unwrap();
    }
    // Two answers whose fragments alternate, and a message in between.
    let begin = || store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let (mut one, mut two) = (begin(), begin());
    for _ in 0..4 {
        one.push(0, Chunk::text("one ")).unwrap();
        store.sync().unwrap();
        two.push(0, Chunk::text("two ")).unwrap();
        store.sync().unwrap();
    }
    store.append("chat", &[user("meanwhile")]).unwrap();
    two.finish(None, None).unwrap();
    store.append("chat", &[user("later")]).unwrap();
    store.remove("chat", 3, None).unwrap();
    store.rewind("chat", 15).unwrap();
    store.append("chat", &[user("in its place")]).unwrap();
    let last = store.describe("chat").unwrap().last_seq;
    store.fork_to("chat", Some(last - 6), "fork").unwrap();
    store.append("fork", &[user("own")]).unwrap();
    store.remove("fork", 0, None).unwrap();
    for name in ["chat", "fork"] {
        let messages = store.load_raw(name).unwrap();
        for from in 0..20 {
            let rest: Vec<_> = messages.iter().filter(|stored| stored.index >= from).cloned().collect();
            for limit in 0..20 {
                let page = store.messages(name, from, limit).unwrap();
                assert_eq!(page, rest[..limit.min(rest.len())], "{name}: {limit} from {from}");
            }
        }
        for count in 0..20 {
            let newest = store.newest_messages(name, count).unwrap();
            assert_eq!(newest, messages[messages.len().saturating_sub(count)..]);
        }
    }
    drop(one);
}

fn assert_fresh(store: &Store, kept: &mut Conversation) {
    store.refresh(kept).unwrap();
    let fresh = store.load("chat").unwrap();
    assert_eq!(kept.messages(), fresh.messages());
    assert_eq!((kept.summary(), kept.cursor()), (fresh.summary(), fresh.cursor()));
    let report = |conversation: &Conversation| {
        let mut lines: Vec<String> = conversation.report().iter().map(ToString::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(report(kept), report(&fresh));
}

fn what_is_kept_is_brought_up_to_date(place: &Place) {
    let store = place.store();
    store.append("chat", &[user("a"), user("b")]).unwrap();
    let mut kept = store.load("chat").unwrap();
    let mut check = || assert_fresh(&store, &mut kept);
    check();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    check();
    writer.push(0, Chunk::text("let me look")).unwrap();
    store.sync().unwrap();
    check();
    writer.push(1, Chunk::tool_call("one", "read", "{}")).unwrap();
    writer.push(2, Chunk::tool_call("two", "read", "{}")).unwrap();
    writer.finish(None, None).unwrap();
    check();
    // Calls that are pending are answered later, in another order, and one of them twice.
    store.append("chat", &[Message::tool("two", "second")]).unwrap();
    check();
    store.append("chat", &[user("still there?")]).unwrap();
    check();
    store.append("chat", &[Message::tool("one", "first"), Message::tool("one", "again")]).unwrap();
    check();
    // A call that was answered before is answered once more, and its id comes again.
    let again = Message::assistant([Chunk::tool_call("one", "read", "{}")]);
    store.append("chat", &[Message::tool("one", "third"), again]).unwrap();
    check();
    store.append("chat", &[Message::tool("one", "fourth")]).unwrap();
    check();
    store.append("chat", &[Message::tool("nobody", "asked")]).unwrap();
    check();
    store.summarize("chat", 1, "a and b").unwrap();
    check();
    store.remove("chat", 0, None).unwrap();
    check();
    store.redact("chat", 1, None).unwrap();
    check();
    store.rewind("chat", 4).unwrap();
    check();
    store.rewind("chat", 1).unwrap();
    check();
    let dropped = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    check();
    drop(dropped);
    store.sync().unwrap();
    check();
}

fn what_is_kept_of_a_deleted_conversation_becomes_its_successor(place: &Place) {
    let store = five_seqs(place);
    let mut kept = store.load("chat").unwrap();
    store.delete("chat").unwrap();
    assert!(matches!(store.refresh(&mut kept), Err(Error::NotFound { .. })));
    store.append("chat", &[user("anew")]).unwrap();
    assert_fresh(&store, &mut kept);
    for _ in 0..10 {
        store.append("chat", &[user("more")]).unwrap();
    }
    assert_fresh(&store, &mut kept);
}

fn a_cursor_is_of_one_conversation(place: &Place) {
    let store = five_seqs(place);
    let cursor = store.load("chat").unwrap().cursor().unwrap();
    let cursor: Cursor = cursor.to_string().parse().unwrap();
    assert_eq!(store.entries_since("chat", cursor, 10).unwrap(), []);
    assert!(matches!(store.entries_since("chat", 6, 10), Err(Error::CursorOutOfRange { cursor: 6, last_seq: 5, .. })));
    assert!(matches!(store.tail("chat", 6), Err(Error::CursorOutOfRange { .. })));
    store.delete("chat").unwrap();
    store.append("chat", &vec![user("anew"); 9]).unwrap();
    assert!(matches!(store.entries_since("chat", cursor, 10), Err(Error::StaleCursor { .. })));
    assert!(matches!(store.tail("chat", cursor), Err(Error::StaleCursor { .. })));
    assert_eq!(store.entries_since("chat", 0, 10).unwrap().len(), 9);
}

fn a_follower_that_does_not_wait_is_given_what_is_there(place: &Place) {
    let store = place.store();
    let mut tails = Vec::new();
    for at in 0..10 {
        let name = format!("chat {at}");
        store.append(&*name, &[user("one"), user("two")]).unwrap();
        let mut tail = store.tail(&*name, 0).unwrap();
        assert_eq!(tail.next(Duration::ZERO).unwrap().len(), 2);
        store.append(&*name, &[user("three")]).unwrap();
        assert_eq!(tail.next(Duration::ZERO).unwrap().len(), 1);
        assert_eq!(tail.next(Duration::ZERO).unwrap(), []);
        tails.push(tail);
    }
}

fn prompt(conversation: &Conversation) -> Option<(String, Vec<String>)> {
    let prompt = render(Target::ANTHROPIC, conversation, &PromptOptions::new()).ok()?;
    Some((prompt.request.get().to_owned(), prompt.report.iter().map(ToString::to_string).collect()))
}

/// At every seq: also in the middle of an append, of a message, of a fork's own entries, and before what hides something.
fn what_was_is_what_a_fork_there_has(place: &Place) {
    let store = place.quick_store();
    store.append("parent", &[user("one"), user("two"), user("three")]).unwrap();
    store.fork_to("parent", Some(2), "chat").unwrap();
    let calls = [Chunk::text("I look."), Chunk::tool_call("1", "ls", "{}"), Chunk::tool_call("2", "ls", "{}")];
    store.append("chat", &[Message::assistant(calls), Message::tool("2", "b"), Message::tool("1", "a")]).unwrap();
    let mut one = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let mut two = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    for _ in 0..2 {
        one.push(0, Chunk::text("one ")).unwrap();
        store.sync().unwrap();
        two.push(0, Chunk::text("two ")).unwrap();
        store.sync().unwrap();
    }
    two.finish(None, None).unwrap();
    store.append("chat", &[user("and?")]).unwrap();
    store.summarize("chat", 1, "one and two").unwrap();
    store.remove("chat", 7, None).unwrap();
    store.rewind("chat", 3).unwrap();
    store.append("chat", &[user("again")]).unwrap();
    let last = store.describe("chat").unwrap().last_seq;
    for seq in 1..=last {
        let fork = store.fork("chat", Some(seq)).unwrap();
        let (was, forked) = (store.load_at("chat", seq).unwrap(), store.load(fork).unwrap());
        assert_eq!(was.messages(), forked.messages(), "{seq}");
        assert_eq!((was.summary(), was.report()), (forked.summary(), forked.report()), "{seq}");
        assert_eq!(prompt(&was), prompt(&forked), "{seq}");
    }
    let beyond = store.load_at("chat", last + 1);
    assert!(matches!(beyond, Err(Error::CursorOutOfRange { last_seq, .. }) if last_seq == last), "{beyond:?}");
    assert!(matches!(store.load_at("nobody", 1), Err(Error::NotFound { .. })));
    assert!(matches!(store.refresh(&mut store.load_at("chat", 1).unwrap()), Err(Error::InvalidInput(_))));
    drop(one);
}

fn what_was_redacted_is_in_no_past(place: &Place) {
    let store = five_seqs(place);
    store.redact("chat", 0, None).unwrap();
    for seq in 1..=6 {
        let (request, _) = prompt(&store.load_at("chat", seq).unwrap()).unwrap();
        assert!(request.contains("[redacted]") && !request.contains("\"a\""), "{seq}: {request}");
    }
}
