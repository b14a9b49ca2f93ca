//! The index of words follows the log: what is appended is found, what is erased is not, and nothing is lost between them.

use std::path::PathBuf;

use conversation_store::model::{Chunk, Message, Metadata, Name, Role};
use conversation_store::search::{Found, Hit, Language, SearchIn, SearchIndex, SearchQuery};
use conversation_store::{Error, Store};

use crate::common::search::holds;

/// The URLs of a new store on each engine, with a directory for an index.
fn engines() -> Vec<(tempfile::TempDir, String, PathBuf)> {
    let schemes = ["memory:", "sled:", if cfg!(feature = "fjall") { "fjall:" } else { "sled:" }];
    let place = |scheme: &str| {
        let dir = crate::common::tempdir().unwrap();
        let path = if scheme == "memory:" { String::new() } else { dir.path().join("db").display().to_string() };
        let index = dir.path().join("index");
        (dir, format!("{scheme}{path}"), index)
    };
    schemes.into_iter().map(place).collect()
}

fn find(store: &Store, index: &SearchIndex, words: &str) -> Vec<Hit> {
    store.search(index, &SearchQuery::new(words)).unwrap().hits
}

/// Conversation and message index of each hit, sorted; a title has none.
fn places(store: &Store, index: &SearchIndex, words: &str) -> Vec<(String, Option<u64>)> {
    let place = |hit: Hit| (hit.key.unwrap_or_else(|| hit.conversation.to_string()), hit.message_index);
    let mut places: Vec<_> = find(store, index, words).into_iter().map(place).collect();
    places.sort();
    places
}

fn at(conversation: &str, message: u64) -> (String, Option<u64>) {
    (conversation.to_owned(), Some(message))
}

fn title(conversation: &str) -> (String, Option<u64>) {
    (conversation.to_owned(), None)
}

const NOTHING: [(String, Option<u64>); 0] = [];

#[test]
fn what_is_appended_is_found_on_each_engine() {
    for (_dir, url, directory) in engines() {
        let store = Store::open(&url).unwrap();
        let index = SearchIndex::open(&directory).unwrap();
        store.append("a", &[Message::user("Why does the build fail?")]).unwrap();
        assert_eq!(places(&store, &index, "BUILD why"), [title("a"), at("a", 0)], "{url}");
        store.append("a", &[Message::assistant([Chunk::text("A missing module.")])]).unwrap();
        store.append("b", &[Message::user("Another"), Message::user("module, 東京タワー")]).unwrap();
        assert_eq!(places(&store, &index, "module"), [at("a", 1), at("b", 1)], "{url}");
        assert_eq!(places(&store, &index, "\"missing module\""), [at("a", 1)]);
        assert_eq!(places(&store, &index, "\"module missing\""), NOTHING);
        assert_eq!(places(&store, &index, "京タ"), [at("b", 1)]);
        assert_eq!(places(&store, &index, "mod"), NOTHING);
        let hit = &find(&store, &index, "missing")[0];
        assert_eq!((hit.role, hit.seq, hit.excerpt.as_str()), (Some(Role::Assistant), Some(2), "A missing module."));
        store.set_title("b", Some("Travel plans")).unwrap();
        assert_eq!(places(&store, &index, "travel"), [title("b")]);
        store.set_title("b", Some("Plans")).unwrap();
        assert_eq!(places(&store, &index, "travel"), NOTHING);
        // The index of a store that was closed is used again.
        drop((store, index));
        if url != "memory:" {
            let (store, index) = (Store::open(&url).unwrap(), SearchIndex::open(&directory).unwrap());
            assert_eq!(index.refresh(&store, "").unwrap().conversations, 0, "{url}");
            assert_eq!(places(&store, &index, "module"), [at("a", 1), at("b", 1)]);
        }
    }
}

#[test]
fn an_answer_is_found_while_it_streams() {
    let store = Store::open("memory:").unwrap();
    let index = SearchIndex::in_memory(Language::default()).unwrap();
    let mut writer = store.begin("a", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("It is no")).unwrap();
    store.sync().unwrap();
    assert_eq!(places(&store, &index, "no"), [at("a", 0)]);
    writer.push(0, Chunk::text("on.")).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(places(&store, &index, "noon"), [at("a", 0)]);
    assert_eq!(places(&store, &index, "no"), NOTHING);
}

/// Each word is found by its other endings, and in quotes only as it is; a word of another language finds itself.
#[test]
fn words_are_found_by_their_stems() {
    let dir = crate::common::tempdir().unwrap();
    let directory = dir.path().join("index");
    let store = Store::open("memory:").unwrap();
    let said = ["She drinks tea", "die Häuser am Fluss", "книги на столе", "un café, des cafés", "a drink"];
    store.append("a", &said.map(Message::user)).unwrap();
    store.set_title("a", Some("x")).unwrap();
    let index = SearchIndex::open(&directory).unwrap();
    for (words, wanted) in [
        ("drink", &[4, 0][..]),
        ("\"drink\"", &[4]),
        ("\"drinks tea\"", &[0]),
        ("drinking-teas", &[0]),
        ("Häuser", &[1]),
        ("haus", &[]),
        ("книга", &[2]),
        ("café", &[3]),
    ] {
        let found: Vec<_> = find(&store, &index, words).iter().filter_map(|hit| hit.message_index).collect();
        // The word as it is comes before its other endings.
        assert_eq!(found, wanted, "{words}");
    }
    drop(index);
    let german = SearchIndex::open_in(&directory, "de".parse().ok()).unwrap();
    assert_eq!(places(&store, &german, "haus"), [at("a", 1)]);
    drop(german);
    // Without a word about it, the language stays.
    let index = SearchIndex::open(&directory).unwrap();
    assert_eq!(index.refresh(&store, "").unwrap().conversations, 0);
    assert_eq!(places(&store, &index, "haus"), [at("a", 1)]);
}

#[test]
fn calls_and_results_are_found_if_they_are_asked_for() {
    let store = Store::open("memory:").unwrap();
    let index = SearchIndex::in_memory(Language::default()).unwrap();
    let call = Chunk::tool_call("call_1", "read_file", r#"{"path":"src/zebra.rs","note":"one\nquagga"}"#);
    let said = [
        Message::user("Look"),
        Message::assistant([Chunk::text("I look."), call]),
        Message::tool("call_1", "fn okapi() {}"),
    ];
    store.append("a", &said).unwrap();
    let find = |words: &str, within: &[SearchIn]| {
        let query = SearchQuery::new(words).with_within(within.iter().copied());
        let hits = store.search(&index, &query).unwrap().hits;
        hits.into_iter().map(|hit| (hit.found_in, hit.message_index, hit.chunk_index, hit.excerpt)).collect::<Vec<_>>()
    };
    assert_eq!(find("zebra", &[]), []);
    assert_eq!(find("okapi", &[SearchIn::Texts, SearchIn::Calls]), []);
    // An escape is no part of a word.
    let call = (Found::Call, Some(1), Some(1), "read_file note: one quagga, path: src/zebra.rs".to_owned());
    for words in ["zebra", "quagga", "read file"] {
        let mut found = find(words, &[SearchIn::Calls]);
        if let Some((.., excerpt)) = found.first_mut() {
            assert!(excerpt.contains("src/zebra.rs") && excerpt.contains("note: one quagga"), "{excerpt}");
            excerpt.clone_from(&call.3);
        }
        assert_eq!(found, std::slice::from_ref(&call), "{words}");
    }
    let result = (Found::Result, Some(2), Some(0), "fn okapi() {}".to_owned());
    assert_eq!(find("okapi", &SearchIn::ALL), [result]);
    assert_eq!(find("look", &SearchIn::ALL).len(), 3, "the title, and two texts");
    store.redact("a", 1, Some(1)).unwrap();
    assert_eq!(find("zebra", &SearchIn::ALL), []);
}

#[test]
fn a_search_is_narrowed_by_tag_time_role_and_conversation_and_comes_in_pages() {
    let store = Store::open("memory:").unwrap();
    let index = SearchIndex::in_memory(Language::default()).unwrap();
    for (key, role, day) in
        [("a", Role::User, 1), ("b", Role::Assistant, 2), ("c", Role::User, 3), ("d", Role::User, 4)]
    {
        let mut message = Message::new(role, [Chunk::text(format!("walrus of {key}"))]);
        message.metadata.created_at = format!("2026-01-0{day}T00:00:00Z").parse().ok();
        store.append(key, &[message]).unwrap();
        store.set_title(key, Some("-")).unwrap();
    }
    store.tag("a", &["sea", "ice"]).unwrap();
    store.tag("b", &["sea"]).unwrap();
    let found = |change: &dyn Fn(&mut SearchQuery)| {
        let mut query = SearchQuery::new("walruses");
        change(&mut query);
        let mut keys: Vec<_> =
            store.search(&index, &query).unwrap().hits.into_iter().filter_map(|hit| hit.key).collect();
        keys.sort_unstable();
        keys.concat()
    };
    let day = |day: u8| format!("2026-01-0{day}T00:00:00Z").parse().ok();
    assert_eq!(found(&|_| ()), "abcd");
    assert_eq!(found(&|query| query.tags = vec!["sea".to_owned()]), "ab");
    assert_eq!(found(&|query| query.tags = vec!["sea".to_owned(), "ice".to_owned()]), "a");
    assert_eq!(found(&|query| query.tags = vec!["land".to_owned()]), "");
    assert_eq!(found(&|query| query.role = Some(Role::User)), "acd");
    assert_eq!(found(&|query| query.since = day(2)), "bcd");
    assert_eq!(found(&|query| query.until = day(2)), "a");
    assert_eq!(found(&|query| (query.since, query.until) = (day(2), day(4))), "bc");
    assert_eq!(found(&|query| query.conversation = Some(Name::from("c").id())), "c");
    // A tag that is taken away counts at once: it is not in the index.
    store.untag("a", &["sea"]).unwrap();
    assert_eq!(found(&|query| query.tags = vec!["sea".to_owned()]), "b");
    let (mut query, mut keys, mut pages) = (SearchQuery::new("walrus").with_limit(3), Vec::new(), 0);
    loop {
        let page = store.search(&index, &query).unwrap();
        pages += 1;
        keys.extend(page.hits.into_iter().filter_map(|hit| hit.key));
        match page.next {
            Some(next) => query.after = next.to_string().parse().ok(),
            None => break,
        }
    }
    keys.sort_unstable();
    assert_eq!((pages, keys.concat().as_str()), (2, "abcd"));
}

#[test]
fn what_is_hidden_or_erased_is_not_found_and_leaves_the_index() {
    for (_dir, url, directory) in engines() {
        let store = Store::open(&url).unwrap();
        let index = SearchIndex::open(&directory).unwrap();
        let said = ["keep zebra", "remove zebra", "redact xylophone", "rewind zebra"].map(Message::user);
        store.append("a", &said).unwrap();
        store.append("gone", &[Message::user("quetzal")]).unwrap();
        let fork = store.fork_to("a", None, "fork").map(|_| "fork").unwrap();
        store.append(fork, &[Message::user("own zebra")]).unwrap();
        assert_eq!(places(&store, &index, "xylophone"), [at("a", 2), at("fork", 2)]);
        assert!(holds(&directory, "xylophone") && holds(&directory, "quetzal"));
        store.remove("a", 1, None).unwrap();
        store.rewind("a", 3).unwrap();
        let shared = [title("fork"), at("fork", 0), at("fork", 1), at("fork", 3), at("fork", 4)];
        let wanted: Vec<_> = [title("a"), at("a", 0)].into_iter().chain(shared).collect();
        assert_eq!(places(&store, &index, "zebra"), wanted, "{url}");
        store.redact("a", 2, None).unwrap();
        store.delete("gone").unwrap();
        assert_eq!(places(&store, &index, "xylophone"), NOTHING, "{url}");
        assert_eq!(places(&store, &index, "quetzal"), NOTHING);
        assert_eq!(places(&store, &index, "zebra"), wanted, "{url}");
        assert!(!holds(&directory, "xylophone") && !holds(&directory, "quetzal"), "the words are in the index's files");
        // A name that is used again.
        store.append("gone", &[Message::user("another quetzal")]).unwrap();
        assert_eq!(places(&store, &index, "quetzal"), [title("gone"), at("gone", 0)]);
    }
}

/// No search looks at the hits here.
#[test]
fn a_refresh_alone_removes_what_was_erased_from_the_files() {
    let dir = crate::common::tempdir().unwrap();
    let store = Store::open("memory:").unwrap();
    let index = SearchIndex::open(dir.path()).unwrap();
    store.append("a", &[Message::user("keep"), Message::user("redact xylophone")]).unwrap();
    store.fork_to("a", None, "fork").unwrap();
    store.append("gone", &[Message::user("quetzal")]).unwrap();
    assert_eq!(index.refresh(&store, "").unwrap().conversations, 3);
    assert!(holds(dir.path(), "xylophone") && holds(dir.path(), "quetzal"));
    store.redact("a", 1, None).unwrap();
    store.delete("gone").unwrap();
    assert_eq!(index.refresh(&store, "").unwrap().removed, 1);
    assert!(!holds(dir.path(), "xylophone") && !holds(dir.path(), "quetzal"), "the words are in the index's files");
    assert_eq!(index.refresh(&store, "").unwrap().conversations, 0);
}

#[test]
fn each_owner_finds_what_is_theirs_and_no_redacted_text_through_a_fork() {
    let dir = crate::common::tempdir().unwrap();
    let store = Store::open("memory:").unwrap();
    let index = SearchIndex::open(dir.path()).unwrap();
    let of = |name: &str, owner: &str| Name::from(name).with_owner(owner);
    store.append(of("a", "ada"), &[Message::user("first"), Message::user("secret walrus")]).unwrap();
    store.append("a", &[Message::user("nobody's walrus")]).unwrap();
    store.fork_to(of("a", "ada"), None, of("b", "bob")).unwrap();
    let of_owner = |owner: &str| {
        let hits = store.search(&index, &SearchQuery::new("walrus").with_owner(owner)).unwrap().hits;
        hits.into_iter().filter_map(|hit| hit.message_index).collect::<Vec<_>>()
    };
    assert_eq!((of_owner("ada"), of_owner("bob"), of_owner(""), of_owner("eve")), (vec![1], vec![1], vec![0], vec![]));
    store.redact(of("a", "ada"), 1, None).unwrap();
    // Bob's log has no entry of the redaction: the store itself denies the hit, and the index forgets it.
    assert_eq!((of_owner("bob"), of_owner("ada"), of_owner("")), (vec![], vec![], vec![0]));
    assert!(!holds(dir.path(), "secret"));
}

#[test]
fn an_index_that_is_gone_old_or_broken_is_made_again() {
    let dir = crate::common::tempdir().unwrap();
    let directory = dir.path().join("index");
    let store = Store::open("memory:").unwrap();
    store.append("a", &[Message::user("hello")]).unwrap();
    let damages: [&dyn Fn(); 4] = [
        &|| (),
        &|| std::fs::remove_dir_all(&directory).unwrap(),
        &|| std::fs::write(directory.join("CONVERSATION-SEARCH"), "conversation-store search\nversion 0\n").unwrap(),
        &|| std::fs::write(directory.join("meta.json"), "{").unwrap(),
    ];
    for damage in damages {
        damage();
        let index = SearchIndex::open(&directory).unwrap();
        assert_eq!(index.refresh(&store, "").unwrap().conversations, 1, "it is not made again");
        assert_eq!(places(&store, &index, "hello"), [title("a"), at("a", 0)]);
    }
    // A directory of somebody else's is left alone.
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "text").unwrap();
    assert!(matches!(SearchIndex::open(&other), Err(Error::InvalidInput(_))));
    assert_eq!(std::fs::read_to_string(other.join("notes.txt")).unwrap(), "text");
}

/// A crash leaves an earlier index beside a later store: a copy of the index stands for it.
#[test]
fn an_index_from_before_a_crash_catches_up() {
    let dir = crate::common::tempdir().unwrap();
    let (directory, earlier) = (dir.path().join("index"), dir.path().join("earlier"));
    let store = Store::open("memory:").unwrap();
    store.append("a", &[Message::user("one zebra"), Message::user("two xylophone")]).unwrap();
    store.append("gone", &[Message::user("three zebra")]).unwrap();
    let index = SearchIndex::open(&directory).unwrap();
    assert_eq!(index.refresh(&store, "").unwrap().conversations, 2);
    drop(index);
    std::fs::create_dir(&earlier).unwrap();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, earlier.join(path.file_name().unwrap())).unwrap();
    }
    let index = SearchIndex::open(&directory).unwrap();
    store.append("a", &[Message::user("four zebra")]).unwrap();
    store.append("new", &[Message::user("five zebra")]).unwrap();
    store.redact("a", 1, None).unwrap();
    store.delete("gone").unwrap();
    let wanted = places(&store, &index, "zebra");
    assert_eq!(wanted, [title("a"), at("a", 0), at("a", 2), title("new"), at("new", 0)]);
    drop(index);
    let index = SearchIndex::open(&earlier).unwrap();
    assert_eq!(places(&store, &index, "zebra"), wanted);
    assert!(!holds(&earlier, "xylophone"));
}

#[test]
fn queries_that_cannot_be_answered() {
    let store = Store::open("memory:").unwrap();
    let index = SearchIndex::in_memory(Language::default()).unwrap();
    let search = |query: SearchQuery| store.search(&index, &query).unwrap_err();
    for words in ["", " ", "\"\"", "?!"] {
        assert!(matches!(search(SearchQuery::new(words)), Error::InvalidInput(_)), "{words:?}");
    }
    for limit in [0, 1001] {
        assert!(matches!(search(SearchQuery::new("a").with_limit(limit)), Error::InvalidInput(_)), "{limit}");
    }
    for words in ["a ".repeat(33), "a".repeat(1025)] {
        assert!(matches!(search(SearchQuery::new(words)), Error::LimitExceeded { .. }));
    }
    // What is syntax elsewhere is only words here.
    for words in ["owner:ada OR b", "a* AND (", "-a +b ~2", "\"a"] {
        assert!(find(&store, &index, words).is_empty(), "{words:?}");
    }
}
