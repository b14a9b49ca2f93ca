//! A store over several databases: its list, its map, and where conversations and forks are.

use std::fs;

use conversation_store::model::Message;
use conversation_store::{Error, ExpectedHead, ListQuery, NewConversation, Store, StoreOptions};
use tempfile::TempDir;

use crate::common::postgres::{Server, schema};

/// A list of clusters.
struct List {
    dir: TempDir,
    urls: Vec<String>,
}

impl List {
    /// So many clusters that nobody has made anything in.
    fn new(server: &Server, clusters: usize) -> Self {
        let urls = (0..clusters).map(|_| server.url() + "&timeout_seconds=2&pool=4").collect();
        Self { dir: crate::common::tempdir().unwrap(), urls }
    }

    /// The URL of a store with these clusters.
    fn url(&self, clusters: &[usize]) -> String {
        self.of(&clusters.iter().map(|at| self.urls[*at].as_str()).collect::<Vec<_>>())
    }

    fn of(&self, urls: &[&str]) -> String {
        let path = self.dir.path().join("clusters");
        fs::write(&path, urls.join("\n")).unwrap();
        format!("shards:{}", path.display())
    }

    /// How many conversations a cluster has, deleted ones too.
    fn count(&self, server: &Server, cluster: usize) -> usize {
        let count = format!("SELECT count(*) FROM {}.cs_conversation", schema(&self.urls[cluster]));
        server.value(&count).unwrap().unwrap().parse().unwrap()
    }
}

fn said(refused: &Result<Store, Error>) -> String {
    match refused {
        Err(Error::InvalidInput(said)) => said.clone(),
        other => panic!("{other:?}"),
    }
}

fn one() -> [Message; 1] {
    [Message::user("a")]
}

#[test]
fn a_list_has_all_clusters_of_one_store_in_their_order() {
    let Some(server) = crate::running() else { return };
    let list = List::new(server, 4);
    let existing = StoreOptions::new().with_create(false);
    assert!(matches!(existing.open(&list.url(&[0, 1])), Err(Error::NotFound { .. })));
    // Several programs make it at once.
    let url = list.url(&[0, 1]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| Store::open(&url).unwrap().append("chat", &one()).unwrap());
        }
    });
    assert_eq!(existing.open(&url).unwrap().load("chat").unwrap().messages().len(), 3);
    assert_eq!(Store::migrate(&url).unwrap().from, 1);
    assert_eq!(existing.open(&url).unwrap().load("chat").unwrap().messages().len(), 3);

    // One database under two names.
    let twice = list.of(&[&list.urls[3], &list.urls[3].replace("127.0.0.1", "localhost")]);
    for refused in [Store::migrate(&twice).map(drop), Store::open(&twice).map(drop)] {
        assert!(matches!(&refused, Err(Error::InvalidInput(said)) if said.contains("twice")), "{refused:?}");
    }
    let alone = Store::open(&list.urls[3]).unwrap();
    alone.append("chat", &one()).unwrap();
    alone.delete("chat").unwrap();

    Store::open(&list.url(&[2])).unwrap();
    for (clusters, problem) in [
        (&[1, 0][..], "is cluster 1 of its store, and the list has it as cluster 0"),
        (&[0], "the store has 2 clusters, and the list has 1"),
        (&[0, 2], "another sharded store"),
        (&[0, 1, 3], "is no cluster of the store yet: `convo migrate` adds it"),
    ] {
        let refused = said(&Store::open(&list.url(clusters)));
        assert!(refused.contains(problem), "{clusters:?}: {refused}");
    }
    // Writes that pass by the map would go astray.
    assert!(said(&Store::open(&list.urls[0])).contains("is one cluster of a sharded store"));

    // One more is added, without a bucket.
    Store::migrate(&list.url(&[0, 1, 3])).unwrap();
    let store = Store::open(&list.url(&[0, 1, 3])).unwrap();
    assert_eq!(store.load("chat").unwrap().messages().len(), 3);
    assert!(said(&Store::open(&list.url(&[0, 1]))).contains("the store has 3 clusters"));
}

#[test]
fn a_store_of_one_database_becomes_the_first_cluster() {
    let Some(server) = crate::running() else { return };
    let list = List::new(server, 3);
    let plain = Store::open(&list.urls[0]).unwrap();
    for number in 0..20 {
        plain.append(format!("chat {number}"), &one()).unwrap();
        plain.fork_to(format!("chat {number}"), None, format!("fork {number}")).unwrap();
    }
    drop(plain);
    Store::open(&list.urls[2]).unwrap().append("chat", &one()).unwrap();
    assert!(said(&Store::open(&list.url(&[0, 2]))).contains("has conversations of its own"));

    let store = Store::open(&list.url(&[0, 1])).unwrap();
    for number in 0..20 {
        store.append(format!("fork {number}"), &one()).unwrap();
        assert_eq!(store.load(format!("fork {number}")).unwrap().messages().len(), 2);
        store.fork_to(format!("fork {number}"), None, format!("fork of fork {number}")).unwrap();
        store.append(format!("new {number}"), &one()).unwrap();
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    assert_eq!((list.count(server, 0), list.count(server, 1)), (80, 0));
}

/// The database refuses what is not in its buckets, whoever writes it.
#[test]
fn each_conversation_is_in_the_cluster_of_its_bucket() {
    let Some(server) = crate::running() else { return };
    let list = List::new(server, 2);
    let store = Store::open(&list.url(&[0, 1])).unwrap();
    for number in 0..40 {
        store.append(format!("chat {number}"), &one()).unwrap();
    }
    let counts = [list.count(server, 0), list.count(server, 1)];
    assert!(counts.iter().sum::<usize>() == 40 && !counts.contains(&0), "{counts:?}");
    let (mut listed, mut query) = (Vec::new(), ListQuery::new().with_limit(7));
    loop {
        let page = store.list(&query).unwrap();
        listed.extend(page.items);
        let Some(next) = page.next else { break };
        query = query.with_after(next);
    }
    assert!(listed.is_sorted_by_key(|item| std::cmp::Reverse(item.last_activity)));
    assert_eq!(listed.iter().map(|item| item.id).collect::<std::collections::BTreeSet<_>>().len(), 40);
    let change = |cluster: usize, bucket: u64| {
        let schema = schema(&list.urls[cluster]);
        server.run(&format!(
            "SET search_path TO {schema}; UPDATE cs_conversation SET title = 'x' WHERE cs_bucket_of_v1(conv_id) = {bucket}; \
             INSERT INTO cs_conversation SELECT '\\x000000000000000000000000000{bucket:05x}'::bytea, incarnation, 1, 1, 0, 0, 0, \
             0, 0, 0, '', NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, '{{}}', '{{}}', '{{}}', 0, false \
             FROM (SELECT 1 AS incarnation) one"
        ))
    };
    change(0, 0).unwrap();
    let refused = change(1, 1).unwrap_err();
    assert_eq!(refused.code().map(tokio_postgres::error::SqlState::code), Some("CSB01"), "{refused}");
}

#[test]
fn a_fork_is_where_its_parent_is_and_is_found_by_its_name() {
    let Some(server) = crate::running() else { return };
    let list = List::new(server, 2);
    let url = list.url(&[0, 1]);
    let store = Store::open(&url).unwrap();
    store.append("root", &one()).unwrap();
    let root = usize::from(list.count(server, 1) == 1);
    for number in 0..12 {
        let parent = if number < 6 { "root".to_owned() } else { format!("fork {}", number - 6) };
        store.fork_to(parent, None, format!("fork {number}")).unwrap();
    }
    assert_eq!((list.count(server, root), list.count(server, 1 - root)), (13, 0));
    // Another program has seen none of them.
    let other = Store::open(&url).unwrap();
    for number in 0..12 {
        let name = format!("fork {number}");
        let taken = other.create(&name, &NewConversation::new()).unwrap_err();
        assert!(matches!(taken, Error::NameTaken { actual: 1, .. }), "{taken}");
        let taken = other.fork_to("root", None, &name).unwrap_err();
        assert!(matches!(taken, Error::NameTaken { actual: 1, .. }), "{taken}");
        let new = conversation_store::AppendOptions::new().with_expected(ExpectedHead::At(1));
        other.append_with(&name, &one(), &new).unwrap();
        assert_eq!(other.load(&name).unwrap().messages().len(), 2);
    }
    // Names of forks that are gone are free, also for those who remember them.
    for number in (0..12).rev() {
        store.delete(format!("fork {number}")).unwrap();
        other.append(format!("fork {number}"), &one()).unwrap();
        assert_eq!(store.load(format!("fork {number}")).unwrap().messages().len(), 1);
    }
    assert!(list.count(server, 1 - root) > 0);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// What a fork leaves that was cut off after each of its steps is no obstacle.
#[test]
fn a_fork_that_was_cut_off_leaves_nothing_in_the_way() {
    let Some(server) = crate::running() else { return };
    let list = List::new(server, 2);
    let store = Store::open(&list.url(&[0, 1])).unwrap();
    store.append("root", &one()).unwrap();
    let root = usize::from(list.count(server, 1) == 1);
    let bucket = |schema: &str| {
        let sql = format!("SELECT {schema}.cs_bucket_of_v1(conv_id) FROM {schema}.cs_conversation WHERE key = 'root'");
        server.value(&sql).unwrap().unwrap()
    };
    let bucket = bucket(schema(&list.urls[root]));
    for (number, steps) in [1, 2, 1, 2, 1, 2].into_iter().enumerate() {
        let name = format!("fork {number}");
        let id = conversation_store::model::Name::from(name.as_str()).id().to_string();
        let conv = format!("'\\x{}'::bytea", id.replace('-', ""));
        let schemas = [schema(&list.urls[root]), schema(&list.urls[1 - root])];
        let home = schemas.iter().find(|schema| {
            let here =
                format!("SELECT count(*) FROM {schema}.cs_bucket WHERE bucket = {schema}.cs_bucket_of_v1({conv})");
            server.value(&here).unwrap().as_deref() == Some("1")
        });
        let run =
            |schema: &str, call: &str| server.run(&format!("SET search_path TO {schema}; SELECT {call}")).unwrap();
        run(schemas[0], &format!("cs_announce_v1({conv}, {bucket}, 7)"));
        if steps == 2 {
            run(home.unwrap(), &format!("cs_place_v1({conv}, {bucket}, 7, NULL)"));
        }
        if number < 2 {
            store.fork_to("root", None, &name).unwrap();
            store.append(&name, &one()).unwrap();
            assert_eq!(store.load(&name).unwrap().messages().len(), 2);
        } else if number < 4 {
            store.append(&name, &one()).unwrap();
            assert_eq!(store.load(&name).unwrap().messages().len(), 1);
        } else {
            store.create(&name, &NewConversation::new()).unwrap();
            store.append(&name, &one()).unwrap();
        }
        // The one that was cut off goes on after all: it is too late. Without a place it would be refused one.
        if steps == 2 || number < 2 {
            let late = format!(
                "SET search_path TO {}; SELECT o_outcome FROM cs_fork_placed_v1(7, NULL, NULL, NULL, NULL, {conv}, NULL, NULL, \
                 NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
                schemas[0]
            );
            assert_eq!(server.value(&late).unwrap().as_deref(), Some("9"), "fork {number}");
        }
    }
    for url in &list.urls {
        let wrong = "cs_family f JOIN cs_conversation t ON t.conv_id = f.conv_id WHERE t.parent_id IS NULL";
        let wrong = format!("SET search_path TO {}; SELECT count(*) FROM {wrong}", schema(url));
        assert_eq!(server.value(&wrong).unwrap().as_deref(), Some("0"));
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn a_cluster_that_cannot_be_reached_takes_only_its_conversations_with_it() {
    const CONVERSATIONS: usize = 20;
    let Some(server) = crate::running() else { return };
    let lost = Server::start(&[]).unwrap();
    let list = List { dir: crate::common::tempdir().unwrap(), urls: vec![server.url(), lost.url()] };
    let urls: Vec<_> = list.urls.iter().map(|url| format!("{url}&timeout_seconds=1")).collect();
    let store = Store::open(&list.of(&urls.iter().map(String::as_str).collect::<Vec<_>>())).unwrap();
    for number in 0..CONVERSATIONS {
        store.append(format!("chat {number}"), &one()).unwrap();
    }
    let there = list.count(server, 0);
    let shown = format!("127.0.0.1:{}/", lost.port);
    drop(lost);
    let mut appended = 0;
    for number in 0..CONVERSATIONS {
        match store.append(format!("chat {number}"), &one()) {
            Ok(_) => appended += 1,
            // The first one finds its connection cut.
            Err(Error::OutcomeUnknown { .. }) => {}
            Err(error @ Error::Io { .. }) => assert!(error.to_string().contains(&shown), "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(appended, there);
    let refused = store.list(&ListQuery::new()).unwrap_err();
    assert!(matches!(refused, Error::Io { .. }) && refused.to_string().contains(&shown), "{refused}");
}
