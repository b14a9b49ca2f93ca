//! What belongs to one owner is not there for another.

use conversation_store::model::{Message, Metadata, Name, Role};
use conversation_store::{Error, ListQuery, Store};

use crate::place::Place;
use crate::said::{user, with_key};

crate::tests![
    a_key_is_unique_within_its_owner,
    what_is_another_owners_is_not_found,
    a_fork_has_the_owner_of_its_parent
];

fn owned(key: &str, owner: &str) -> Name {
    Name::from(key).with_owner(owner)
}

fn keys(store: &Store, owner: &str) -> Vec<String> {
    let page = store.list(&ListQuery::new().with_owner(owner)).unwrap();
    page.items.into_iter().map(|item| item.key.unwrap_or_default()).collect()
}

fn a_key_is_unique_within_its_owner(place: &Place) {
    let store = place.store();
    for (owner, text) in [("", "nobody's"), ("ada", "Ada's"), ("grace", "Grace's")] {
        store.append(owned("chat", owner), &[user(text)]).unwrap();
    }
    for (owner, text) in [("", "nobody's"), ("ada", "Ada's"), ("grace", "Grace's")] {
        let messages = store.load_raw(owned("chat", owner)).unwrap();
        assert_eq!(messages[0].message.chunks, user(text).chunks);
        assert_eq!(store.describe(owned("chat", owner)).unwrap().owner, owner);
        assert_eq!(keys(&store, owner), ["chat"]);
    }
    assert_eq!(store.load_raw("chat").unwrap(), store.load_raw(owned("chat", "")).unwrap());
    store.delete(owned("chat", "ada")).unwrap();
    assert_eq!([keys(&store, ""), keys(&store, "ada"), keys(&store, "grace")].map(|keys| keys.len()), [1, 0, 1]);
}

/// Also not by its id, whatever is asked, and by no idempotency key.
fn what_is_another_owners_is_not_found(place: &Place) {
    let store = place.store();
    let options = with_key("request");
    let id = store.append_with(owned("chat", "ada"), &[user("secret")], &options).unwrap().conversation;
    let stranger = Name::from(id).with_owner("bob");
    let not_found = |result: conversation_store::Result<()>| {
        assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    };
    not_found(store.load(&stranger).map(drop));
    not_found(store.messages(&stranger, 0, 1).map(drop));
    not_found(store.entries(&stranger, .., 1).map(drop));
    not_found(store.tail(&stranger, 0).map(drop));
    not_found(store.describe(&stranger).map(drop));
    not_found(store.metadata(&stranger).map(drop));
    not_found(store.find_item(&stranger, "item").map(drop));
    not_found(store.set_title(&stranger, Some("mine")).map(drop));
    not_found(store.tag(&stranger, &["mine"]).map(drop));
    not_found(store.rewind(&stranger, 0).map(drop));
    not_found(store.remove(&stranger, 0, None).map(drop));
    not_found(store.redact(&stranger, 0, None).map(drop));
    not_found(store.summarize(&stranger, 0, "theirs").map(drop));
    not_found(store.fork(&stranger, None).map(drop));
    not_found(store.delete(&stranger));
    not_found(store.append(&stranger, &[user("mine")]).map(drop));
    not_found(store.begin(&stranger, Role::User, Metadata::default()).map(drop));
    for text in ["secret", "a guess"] {
        not_found(store.append_with(&stranger, &[Message::user(text)], &options).map(drop));
    }
    assert_eq!(store.load_raw(id).unwrap().len(), 1);
}

fn a_fork_has_the_owner_of_its_parent(place: &Place) {
    let store = place.store();
    store.append(owned("chat", "ada"), &[user("a")]).unwrap();
    let child = store.fork(owned("chat", "ada"), None).unwrap();
    assert_eq!(store.describe(child).unwrap().owner, "ada");
    store.fork_to(owned("chat", "ada"), None, "named").unwrap();
    assert_eq!(store.load_raw(owned("named", "ada")).unwrap().len(), 1);
    assert!(matches!(store.load("named"), Err(Error::NotFound { .. })));
    store.fork_to(owned("chat", "ada"), Some(0), owned("given", "grace")).unwrap();
    assert_eq!(keys(&store, "grace"), ["given"]);
    assert_eq!(keys(&store, "ada").len(), 3);
}
