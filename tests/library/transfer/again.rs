//! Imported once more: what is new is added, what changed is a fork, nothing is there twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conversation_store::model::{Chunk, Json, Message};
use conversation_store::transfer::{self, ImportOptions};
use conversation_store::{ListQuery, NewConversation, Store};
use serde_json::{Value, json};

use super::{conversations, imported, into, messages, run, sample};

/// Counts appends, those that find what is stored included.
#[derive(Default)]
struct Appends(Arc<AtomicUsize>);

impl tracing::Subscriber for Appends {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "append"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.0.fetch_add(1, Ordering::Relaxed);
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// How many appends this makes.
fn appends(work: impl FnOnce()) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = tracing::Dispatch::new(Appends(Arc::clone(&count)));
    // As long as there is one subscriber only, a span that a thread without it meets first is off for all.
    let _second = tracing::Dispatch::new(Appends::default());
    tracing::dispatcher::with_default(&counting, work);
    count.load(Ordering::Relaxed)
}

fn samples() -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(sample("")).unwrap().map(|entry| entry.unwrap().path());
    files.collect()
}

#[test]
fn a_second_run_adds_nothing() {
    for path in samples() {
        let store = Store::open("memory:").unwrap();
        let first = run(Some(&store), &path, &ImportOptions::default()).summary.unwrap();
        let before: Vec<_> = conversations(&store).into_iter().map(|id| store.describe(id).unwrap().last_seq).collect();
        let second = run(Some(&store), &path, &ImportOptions::default());
        let after: Vec<_> = conversations(&store).into_iter().map(|id| store.describe(id).unwrap().last_seq).collect();
        let summary = second.summary.unwrap();
        assert!(first.added > 0, "{}", path.display());
        assert_eq!((summary.added, before, second.notes), (0, after, vec![]), "{}", path.display());
        assert_eq!((summary.messages, summary.branches), (first.messages, first.branches), "{}", path.display());
    }
}

/// A chain of ChatGPT's nodes that say these words.
fn chatgpt(words: &[&str]) -> Value {
    let mut mapping = serde_json::Map::new();
    for (at, word) in words.iter().enumerate() {
        let id = word.chars().next().unwrap().to_string();
        let parent = at.checked_sub(1).map(|at| words[at].chars().next().unwrap().to_string());
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        let message = json!({"id": id, "author": {"role": role}, "content": {"content_type": "text", "parts": [word]}});
        mapping.insert(id.clone(), json!({"id": id, "message": message, "parent": parent, "children": []}));
    }
    let current = words.last().unwrap().chars().next().unwrap().to_string();
    json!([{"title": "T", "id": "c", "current_node": current, "mapping": mapping}])
}

fn said(store: &Store, name: &str) -> String {
    let text = |message: Message| match message.chunks.into_iter().next().unwrap().body {
        conversation_store::model::Body::Text { text, .. } => text,
        other => panic!("{other:?}"),
    };
    messages(store, name).into_iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Messages with one id are still two messages.
#[test]
fn an_id_that_repeats_is_not_in_the_way() {
    let message = |text: &str| json!({"id": "1", "role": "user", "parts": [{"type": "text", "text": text}]});
    let text = json!([message("a"), message("b"), message("a")]).to_string();
    let (store, run) = imported("x.json", &text);
    assert_eq!(run.summary.unwrap().added, 3);
    assert_eq!(said(&store, "ai-sdk:x"), "a b a");
    let again = into(&store, "x.json", &text);
    assert_eq!((again.summary.unwrap().added, again.notes), (0, vec![]));
    // In a tree they are siblings.
    let message = |id: &str, parent: &str, text: &str| json!({"messageId": id, "parentMessageId": parent, "text": text, "isCreatedByUser": true});
    let messages =
        json!([message("1", "", "a"), message("2", "1", "b"), message("2", "1", "c"), message("2", "1", "d")]);
    let text = json!({"conversationId": "c", "messages": messages}).to_string();
    let (store, run) = imported("x.json", &text);
    assert_eq!((run.conversations[0].messages, run.conversations[0].branches, run.notes.len()), (2, 2, 0));
    assert_eq!(said(&store, "librechat:c"), "a d");
    let again = into(&store, "x.json", &text);
    assert_eq!((again.summary.unwrap().added, again.notes), (0, vec![]));
}

#[test]
fn a_conversation_that_grew_grows() {
    let (store, _) = imported("a.json", chatgpt(&["a", "b"]).to_string());
    // What says something of the conversation as a whole is not in the way.
    store.set_title("chatgpt:c", Some("Mine")).unwrap();
    store.tag("chatgpt:c", &["kept"]).unwrap();
    let run = into(&store, "a.json", chatgpt(&["a", "b", "c", "d"]).to_string());
    assert_eq!((run.summary.unwrap().added, run.notes), (2, vec![]));
    assert_eq!(said(&store, "chatgpt:c"), "a b c d");
    assert_eq!(store.describe("chatgpt:c").unwrap().title.as_deref(), Some("Mine"));
    assert_eq!(conversations(&store).len(), 1);
}

#[test]
fn one_that_changed_in_its_middle_goes_on_as_a_fork() {
    let (store, _) = imported("a.json", chatgpt(&["a", "b", "c"]).to_string());
    let run = into(&store, "a.json", chatgpt(&["a", "b!", "c"]).to_string());
    assert_eq!(run.notes.len(), 1, "{:?}", run.notes);
    let key = run.conversations[0].key.clone().unwrap();
    assert_ne!(key, "chatgpt:c");
    assert_eq!((said(&store, "chatgpt:c").as_str(), said(&store, &key).as_str()), ("a b c", "a b! c"));
    assert!(store.describe(&key).unwrap().parent.is_some());
    // Once more it is known.
    let again = into(&store, "a.json", chatgpt(&["a", "b!", "c"]).to_string());
    assert_eq!((again.summary.unwrap().added, again.notes), (0, vec![]));
}

#[test]
fn each_change_of_one_message_is_a_fork_of_its_own() {
    let (store, _) = imported("a.json", chatgpt(&["a", "b", "c"]).to_string());
    for (words, key) in
        [("b2", "chatgpt:c:changed:b"), ("b3", "chatgpt:c:changed:b~2"), ("b4", "chatgpt:c:changed:b~3")]
    {
        let run = into(&store, "a.json", chatgpt(&["a", words, "c"]).to_string());
        assert_eq!((run.summary.unwrap().failed, run.notes.len()), (0, 1), "{words}");
        assert_eq!((run.conversations[0].key.as_deref(), run.conversations[0].branches), (Some(key), 1));
        assert_eq!(said(&store, key), format!("a {words} c"));
    }
    // Each is known, in any order.
    for words in ["b3", "b", "b4", "b2"] {
        let again = into(&store, "a.json", chatgpt(&["a", words, "c"]).to_string());
        assert_eq!((again.summary.unwrap().added, again.notes), (0, vec![]), "{words}");
    }
}

#[test]
fn what_was_said_here_since_is_not_lost() {
    let (store, _) = imported("a.json", chatgpt(&["a", "b"]).to_string());
    store.append("chatgpt:c", &[Message::user("mine")]).unwrap();
    let run = into(&store, "a.json", chatgpt(&["a", "b", "c"]).to_string());
    let key = run.conversations[0].key.clone().unwrap();
    assert_eq!((said(&store, "chatgpt:c").as_str(), said(&store, &key).as_str()), ("a b mine", "a b c"));
}

/// A session is cut anywhere, as one that is still being written: nothing becomes a fork, and nothing is there twice.
#[test]
fn sessions_that_grow_line_by_line_stay_one_conversation() {
    let rollout = "rollout-2026-04-05T06-07-00-44444444-4444-4444-8444-444444444444.jsonl";
    for (file, key) in [
        ("claude-code-session.jsonl", "claude-code:33333333-3333-4333-8333-333333333333"),
        (rollout, "codex:44444444-4444-4444-8444-444444444444"),
    ] {
        let text = std::fs::read_to_string(sample(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let growing = Store::open("memory:").unwrap();
        for length in 1..=lines.len() {
            into(&growing, file, lines[..length].join("\n"));
        }
        let whole = Store::open("memory:").unwrap();
        into(&whole, file, &text);
        let chunks = |store: &Store| -> Vec<Vec<Chunk>> {
            messages(store, key).into_iter().map(|message| message.chunks).collect()
        };
        assert_eq!(chunks(&growing), chunks(&whole), "{file}");
        assert_eq!(conversations(&growing).len(), 1, "{file}");
    }
}

/// A conversation has the times of its source, whenever and how often it is imported; so has a fork.
#[test]
fn times_are_those_of_the_source() {
    let conversation = |id: &str, begins: u64, says: &[(&str, &str, &str)]| {
        let mut mapping = serde_json::Map::new();
        for (at, (id, parent, text)) in (0_u64..).zip(says) {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            let message = json!({ "id": id, "author": { "role": role }, "create_time": begins + 60 * at,
                "content": { "content_type": "text", "parts": [text] } });
            mapping.insert((*id).to_owned(), json!({ "id": id, "message": message, "parent": parent, "children": [] }));
        }
        json!({ "id": id, "current_node": says.last().unwrap().0, "mapping": mapping })
    };
    let old = [("a", "", "<environment_context>x</environment_context>"), ("b", "a", "yes"), ("c", "a", "Why?")];
    let export = |grown: bool| {
        let new = [("a", "", "hello"), ("b", "a", "yes"), ("c", "b", "more")];
        let new = &new[..if grown { 3 } else { 2 }];
        json!([conversation("new", 1_600_000_000, new), conversation("old", 1_500_000_000, &old)]).to_string()
    };
    let (store, _) = imported("x.json", export(false));
    let listed = |store: &Store| -> Vec<(String, i64, i64)> {
        let seconds = |time: conversation_store::model::Timestamp| time.as_micros() / 1_000_000;
        let items = store.list(&ListQuery::new()).unwrap().items.into_iter();
        items.map(|item| (item.key.unwrap(), seconds(item.created_at), seconds(item.last_activity))).collect()
    };
    let of = |key: &str, made: i64, active: i64| (key.to_owned(), made, active);
    let mut expected = vec![
        of("chatgpt:new", 1_600_000_000, 1_600_000_060),
        of("chatgpt:old", 1_500_000_000, 1_500_000_120),
        of("chatgpt:old:b", 1_500_000_060, 1_500_000_060),
    ];
    assert_eq!(listed(&store), expected);
    into(&store, "x.json", export(false));
    assert_eq!(listed(&store), expected, "imported again");
    into(&store, "x.json", export(true));
    expected[0].2 += 60;
    assert_eq!(listed(&store), expected, "grown");
    // What no person wrote is no title.
    assert_eq!(store.describe("chatgpt:new").unwrap().title.as_deref(), Some("hello"));
    assert_eq!(store.describe("chatgpt:old").unwrap().title.as_deref(), Some("Why?"));
    assert!(store.verify(|_, _| ()).unwrap().problems.is_empty());
    // What is said now is active now.
    store.append("chatgpt:old", &[Message::user("now")]).unwrap();
    assert_eq!(listed(&store)[0].0, "chatgpt:old");
}

/// However long a conversation is, one look at the end of each branch shows that all of it is stored.
#[test]
fn a_second_run_looks_at_the_ends_of_branches_alone() {
    let words: Vec<String> = ('a'..='z').map(|word| word.to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut export = chatgpt(&words);
    let said_again = json!({"id": "again", "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["again"]}});
    export[0]["mapping"]["again"] = json!({"id": "again", "message": said_again, "parent": "y", "children": []});
    let store = Store::open("memory:").unwrap();
    let run = || into(&store, "a.json", export.to_string());
    assert!(appends(|| assert_eq!(run().summary.unwrap().added, 27)) >= 27);
    assert_eq!(appends(|| assert_eq!(run().summary.unwrap().added, 0)), 2);
    // A store that an earlier program filled is compared once.
    let metadata = store.metadata("chatgpt:c").unwrap().unwrap();
    let mut old: Value = serde_json::from_str(metadata.as_str()).unwrap();
    old["import"].as_object_mut().unwrap().remove("digest").unwrap();
    store.set_metadata("chatgpt:c", &Json::new(old.to_string()).unwrap()).unwrap();
    assert!(appends(|| assert_eq!(run().summary.unwrap().added, 0)) >= 27);
    assert_eq!(store.metadata("chatgpt:c").unwrap().unwrap(), metadata);
    assert_eq!(appends(|| assert_eq!(run().summary.unwrap().added, 0)), 2);
}

/// The digest alone proves nothing: what is missing comes back.
#[test]
fn what_is_missing_is_imported_again() {
    let mut export = chatgpt(&["a", "b", "c"]);
    let said_again =
        json!({"id": "d", "author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["d"]}});
    export[0]["mapping"]["d"] = json!({"id": "d", "message": said_again, "parent": "a", "children": []});
    let (store, _) = imported("a.json", export.to_string());
    let fork = "chatgpt:c:d";
    assert_eq!(said(&store, fork), "a d");
    store.delete(fork).unwrap();
    assert_eq!(into(&store, "a.json", export.to_string()).summary.unwrap().added, 1);
    assert_eq!(said(&store, fork), "a d");
    // An import that was killed left the beginning.
    let mut new = NewConversation::new();
    new.metadata = store.metadata("chatgpt:c").unwrap();
    let cut = Store::open("memory:").unwrap();
    cut.create("chatgpt:c", &new).unwrap();
    assert_eq!(into(&cut, "a.json", export.to_string()).summary.unwrap().added, 4);
    assert_eq!((said(&cut, "chatgpt:c").as_str(), said(&cut, fork).as_str()), ("a b c", "a d"));
    // So does a fork for a change.
    let changed = chatgpt(&["a", "b!", "c"]).to_string();
    let key = into(&store, "a.json", &changed).conversations[0].key.clone().unwrap();
    store.delete(&key).unwrap();
    assert_eq!(into(&store, "a.json", &changed).summary.unwrap().added, 2);
    assert_eq!(said(&store, &key), "a b! c");
}

/// A branch that was shown when it was imported, and is not any more.
#[test]
fn a_branch_is_stored_once_whichever_is_shown() {
    let (store, _) = imported("a.json", chatgpt(&["a", "b"]).to_string());
    let mut tree = chatgpt(&["a", "c"]);
    let other = &chatgpt(&["a", "b"])[0]["mapping"]["b"];
    tree[0]["mapping"]["b"] = other.clone();
    for added in [1, 0] {
        let run = into(&store, "a.json", tree.to_string());
        assert_eq!((run.summary.unwrap().added, conversations(&store).len()), (added, 2));
    }
    assert_eq!((said(&store, "chatgpt:c"), said(&store, "chatgpt:c:changed:c")), ("a b".to_owned(), "a c".to_owned()));
}

/// What was redacted here stays so, and what is new comes after it.
#[test]
fn a_conversation_grows_after_a_redaction() {
    let (store, _) = imported("a.json", chatgpt(&["a", "b"]).to_string());
    store.redact("chatgpt:c", 0, None).unwrap();
    store.remove("chatgpt:c", 1, None).unwrap();
    let run = into(&store, "a.json", chatgpt(&["a", "b", "c", "d"]).to_string());
    assert_eq!((run.summary.unwrap().added, run.notes, conversations(&store).len()), (2, vec![], 1));
    assert_eq!(said(&store, "chatgpt:c"), "[redacted] c d");
}

#[test]
fn a_transcript_adds_nothing_to_the_store_that_it_is_of() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("a"), Message::assistant([Chunk::text("b")])]).unwrap();
    let mut text = Vec::new();
    transfer::export(&store, ["chat".into()], "transcript", &mut text, &mut |_| ()).unwrap();
    let run = into(&store, "x.jsonl", text);
    assert_eq!((run.summary.unwrap().added, run.notes, conversations(&store).len()), (0, vec![], 1));
}

/// Formats without ids name a conversation by its file.
#[test]
fn files_of_one_name_in_several_folders_are_several_conversations() {
    let dir = crate::common::tempdir().unwrap();
    for folder in ["a", "b/c"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        let text = json!([{"id": "1", "role": "user", "parts": [{"type": "text", "text": folder}]}]).to_string();
        std::fs::write(dir.path().join(folder).join("messages.json"), text).unwrap();
    }
    let store = Store::open("memory:").unwrap();
    let first = run(Some(&store), dir.path(), &ImportOptions::default());
    assert_eq!((first.summary.unwrap().added, first.notes), (2, vec![]));
    assert_eq!(
        (said(&store, "ai-sdk:a/messages"), said(&store, "ai-sdk:b/c/messages")),
        ("a".to_owned(), "b/c".to_owned())
    );
}
