//! Whose conversations a key opens.

use std::path::PathBuf;

use conversation_store::model::{Chunk, ConversationId, Message, Metadata, Name, Role};
use conversation_store::{Error, ListQuery, NewConversation, Store};
use serde_json::{Value, json};

use super::{frame, url};
use crate::common::running::Running;

/// A call of a store, on a conversation: its error.
type Call<'a> = &'a dyn Fn(&Name) -> Option<Error>;

/// A server, and a store for each of the keys.
fn stores<const N: usize>(keys: [(&str, &str); N]) -> (Running, [Store; N]) {
    let (server, clients) = Running::with_keys(&keys);
    let mut clients = clients.into_iter().enumerate();
    let stores = keys.map(|_| {
        let (at, client) = clients.next().unwrap();
        let file: PathBuf = server.dir.path().join(format!("key-{at}"));
        std::fs::write(&file, client.key.unwrap()).unwrap();
        Store::open(&format!("{}?key_file={}", url(&server), file.display())).unwrap()
    });
    (server, stores)
}

#[test]
fn what_is_another_owners_is_not_there() {
    let all = "read,append,delete";
    let (server, [ada, grace]) = stores([("ada", all), ("grace", all)]);
    let said = Chunk { id: Some("msg_1".to_owned()), ..Chunk::text("secret") };
    let id = ada.append("chat", &[Message::new(Role::User, [said])]).unwrap().conversation;
    assert_eq!(ada.describe("chat").unwrap().owner, "ada");
    assert_eq!(id, Name::from("chat").with_owner("ada").id());
    let nobody = ConversationId::new();
    for name in [Name::from(id), Name::from("chat").with_owner("ada"), Name::from(id).with_owner("ada")] {
        let (ghost, hello) = (Name::from(nobody).with_owner("nobody"), [Message::user("hello")]);
        // Each call, on what is there for another, and on what is not there at all: the same error.
        let calls: [(&str, Call<'_>); 16] = [
            ("load", &|name| grace.load(name).err()),
            ("describe", &|name| grace.describe(name).err()),
            ("entries", &|name| grace.entries(name, .., 10).err()),
            ("messages", &|name| grace.messages(name, 0, 10).err()),
            ("metadata", &|name| grace.metadata(name).err()),
            ("find_item", &|name| grace.find_item(name, "msg_1").err()),
            ("tail", &|name| grace.tail(name, 0).err()),
            ("title", &|name| grace.set_title(name, Some("mine")).err()),
            ("tag", &|name| grace.tag(name, &["mine"]).err()),
            ("rewind", &|name| grace.rewind(name, 0).err()),
            ("remove", &|name| grace.remove(name, 0, None).err()),
            ("redact", &|name| grace.redact(name, 0, None).err()),
            ("summarize", &|name| grace.summarize(name, 0, "mine").err()),
            ("fork", &|name| grace.fork(name, None).err()),
            ("delete", &|name| grace.delete(name).err()),
            ("append", &|name| grace.append(name, &hello).err()),
        ];
        for (call, ask) in calls {
            let found = ask(&name);
            assert!(matches!(found, Some(Error::NotFound { .. })), "{call} {name:?}: {found:?}");
            assert!(matches!(ask(&ghost), Some(Error::NotFound { .. })), "{call}");
        }
        assert!(matches!(grace.begin(&name, Role::User, Metadata::default()), Err(Error::NotFound { .. })));
        assert!(matches!(grace.create(&name, &NewConversation::new()), Err(Error::NotFound { .. })));
    }
    for owner in ["", "ada", "nobody"] {
        assert!(grace.list(&ListQuery::new().with_owner(owner)).unwrap().items.is_empty(), "{owner}");
    }
    assert!(grace.find_item_everywhere("msg_1").unwrap().is_empty() && grace.unfinished().unwrap().is_empty());
    // Nor is anything learned by waiting for it, whatever is known of it.
    let cursor = ada.load("chat").unwrap().cursor().unwrap().to_string();
    let incarnation = u64::from_str_radix(cursor.split_once('-').unwrap().1, 16).unwrap();
    let ask = |at: usize, call: &str, asked: Value| {
        let key = std::fs::read_to_string(server.dir.path().join(format!("key-{at}"))).unwrap();
        let body = frame(asked.to_string().as_bytes(), b"");
        let answer = server.client.with_key(&key).send("POST", &format!("/api/v1/log/{call}"), &[], &body);
        (answer.status, answer.body)
    };
    let wait = json!({ "name": { "name": id }, "incarnation": incarnation, "seq": 0, "milliseconds": 0 });
    assert_eq!([0, 1].map(|at| ask(at, "wait", wait.clone()).0), [200, 404]);
    // Nor by the calls that name one incarnation.
    let calls: [(&str, Value); 3] = [
        ("read", json!({ "first": 1, "last": 1, "descending": false, "bytes": 1_000 })),
        ("since", json!({ "commit": 0 })),
        ("item", json!({ "item": "msg_1" })),
    ];
    for (call, asked) in calls {
        let of = |at: usize, id: ConversationId| {
            let mut asked = asked.clone();
            asked["of"] = json!({ "id": id, "incarnation": incarnation });
            ask(at, call, asked)
        };
        assert_eq!(of(1, id), of(1, nobody), "{call}");
        assert_ne!(of(0, id), of(0, nobody), "{call}");
    }
    assert_eq!(ada.load("chat").unwrap().messages().len(), 1);
    assert_eq!(ada.list(&ListQuery::new()).unwrap().items.len(), 1);
    // The key of another names a conversation of one's own, and no id of another's key can be taken.
    assert_ne!(grace.append("chat", &[Message::user("mine")]).unwrap().conversation, id);
    let wanted = Name::from("later").with_owner("ada").id();
    assert!(matches!(grace.append(wanted, &[Message::user("mine")]), Err(Error::NotFound { .. })));
    assert!(matches!(grace.fork_to("chat", None, wanted), Err(Error::NotFound { .. })));
    grace.append(ConversationId::new(), &[Message::user("mine")]).unwrap();
    grace.fork("chat", None).unwrap();
    assert_eq!(grace.list(&ListQuery::new()).unwrap().items.len(), 3);
}

#[test]
fn an_admin_sees_all_and_names_any_owner() {
    let (_server, [ada, root]) = stores([("ada", "read,append"), ("root", "read,append,delete,admin")]);
    let id = ada.append("chat", &[Message::user("hello")]).unwrap().conversation;
    assert_eq!(root.load(id).unwrap().messages().len(), 1);
    assert_eq!(root.list(&ListQuery::new().with_owner("ada")).unwrap().items.len(), 1);
    assert_eq!(root.load(Name::from("chat").with_owner("ada")).unwrap().messages().len(), 1);
    assert!(matches!(root.load("chat"), Err(Error::NotFound { .. })), "its own is another one");
    root.append(Name::from("chat").with_owner("grace"), &[Message::user("hello")]).unwrap();
    assert_eq!(root.verify(|_, _| ()).unwrap().conversations, 2);
    assert_eq!(root.size().unwrap().conversations, 2);
    assert_eq!(root.health(), ada.health());
}

#[test]
fn a_scope_that_lacks_is_named() {
    let (server, [reads, appends]) = stores([("ada", "read"), ("ada", "read,append")]);
    appends.append("chat", &[Message::user("hello"), Message::user("again")]).unwrap();
    assert_eq!(reads.load("chat").unwrap().messages().len(), 2);
    let lacks = |result: conversation_store::Result<()>, scope: &str| match result {
        Err(Error::InvalidInput(text)) => assert!(text.contains(&format!("`{scope}`")), "{text}"),
        other => panic!("{scope}: {other:?}"),
    };
    lacks(reads.append("chat", &[Message::user("more")]).map(|_| ()), "append");
    lacks(reads.begin("chat", Role::User, Metadata::default()).map(|_| ()), "append");
    lacks(appends.rewind("chat", 1).map(|_| ()), "delete");
    lacks(appends.remove("chat", 1, None).map(|_| ()), "delete");
    lacks(appends.redact("chat", 1, None).map(|_| ()), "delete");
    lacks(appends.delete("chat"), "delete");
    lacks(appends.verify(|_, _| ()).map(|_| ()), "admin");
    lacks(appends.size().map(|_| ()), "admin");
    lacks(appends.backup(server.dir.path().join("b"), |_, _| ()).map(|_| ()), "admin");
    appends.set_title("chat", Some("mine")).unwrap();
    assert_eq!(reads.load("chat").unwrap().messages().len(), 2);
}
