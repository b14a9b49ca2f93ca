//! Policies of retention, applied in the background.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use conversation_store::model::{Message, Timestamp};
use conversation_store::{Store, StoreOptions};
use serde_json::{Value, json};

use crate::common::running::{Running, run};
use crate::streams::config;

/// A server on a store that other programs wrote `days` ago; it does not run yet.
fn stopped(write: impl FnOnce(&Store), days: i64) -> Running {
    let mut server = Running::durable(&[]);
    server.kill();
    let then = AtomicI64::new(Timestamp::now().as_micros() - days * 86_400_000_000);
    let url = format!("sled:{}", server.dir.path().join("store").display());
    let store = StoreOptions::new()
        .with_clock(move || Timestamp::from_micros(then.fetch_add(1_000, Relaxed)))
        .open(&url)
        .unwrap();
    write(&store);
    store.close().unwrap();
    server
}

fn say(store: &Store, owner: &str, key: &str, tags: &[&str]) {
    let name = conversation_store::model::Name::from(key).with_owner(owner);
    store.append(&name, &[Message::user("the-secret-words")]).unwrap();
    if !tags.is_empty() {
        store.tag(&name, tags).unwrap();
    }
}

fn metric(server: &Running, name: &str) -> u64 {
    let metrics = server.client.get("/metrics").text();
    metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

fn wait_for(server: &Running, name: &str, least: u64) {
    let begun = Instant::now();
    while metric(server, name) < least {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The keys of the conversations that are there, by owner.
fn left(server: &mut Running) -> Vec<String> {
    server.kill();
    let store = Store::open(&format!("sled:{}", server.dir.path().join("store").display())).unwrap();
    let mut keys = Vec::new();
    for owner in ["", "ada", "grace"] {
        let page = store.list(&conversation_store::ListQuery::new().with_owner(owner)).unwrap();
        keys.extend(page.items.into_iter().map(|item| format!("{owner}/{}", item.key.unwrap())));
    }
    keys.sort();
    keys
}

#[test]
fn a_policy_erases_what_it_names_and_nothing_else() {
    let write = |store: &Store| {
        for owner in ["", "ada", "grace"] {
            say(store, owner, "old", &[]);
            say(store, owner, "scratch", &["scratch"]);
        }
    };
    let cases: [(&str, &[&str]); 4] = [
        ("[[retention]]\nidle = \"10d\"\nowner = \"ada\"\n", &["/old", "/scratch", "grace/old", "grace/scratch"]),
        ("[[retention]]\nidle = \"10d\"\ntags = [\"scratch\"]\n", &["/old", "ada/old", "grace/old"]),
        ("[[retention]]\nidle = \"10d\"\nkeep_last = 1\n", &["/scratch", "ada/scratch", "grace/scratch"]),
        (
            "[[retention]]\nidle = \"40d\"\n[[retention]]\nidle = \"10d\"\nowner = \"\"\n",
            &["ada/old", "ada/scratch", "grace/old", "grace/scratch"],
        ),
    ];
    for (policies, kept) in cases {
        let mut server = stopped(write, 30);
        server.args = vec!["--config".to_owned(), config(policies)];
        server.restart();
        // What is new stays.
        let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": "new" }] });
        wait_for(&server, "convo_retention_erased_total", 6 - kept.len() as u64);
        server.client.post("/api/v1/conversations/new/messages", &message).ok();
        let lines: Vec<Value> = server
            .log_so_far()
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["message"] == "retention: a conversation was erased")
            .collect();
        assert_eq!(lines.len(), 6 - kept.len(), "{policies}");
        assert!(lines.iter().all(|line| line["conversation"].is_string() && line["last_seq"].is_u64()));
        for secret in ["the-secret-words", "scratch", "ada"] {
            assert!(lines.iter().all(|line| !line.to_string().contains(secret)), "{secret} is in the log");
        }
        let mut all: Vec<&str> = kept.iter().copied().chain(["/new"]).collect();
        all.sort_unstable();
        assert_eq!(left(&mut server), all, "{policies}");
    }
}

#[test]
fn the_end_of_the_server_comes_between_two_deletions() {
    let mut server = stopped(|store| (0..2_000).for_each(|at| say(store, "", &format!("old-{at}"), &[])), 30);
    server.args = vec!["--config".to_owned(), config("[[retention]]\nidle = \"10d\"\n")];
    server.restart();
    wait_for(&server, "convo_retention_erased_total", 1);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    let erased = server.log().matches("retention: a conversation was erased").count();
    assert!((1..2_000).contains(&erased), "{erased}");
    // The next server goes on.
    server.restart();
    wait_for(&server, "convo_retention_erased_total", 2_000 - erased as u64);
    assert_eq!(server.client.get("/api/v1/conversations").ok()["items"], json!([]));
    assert_eq!(server.client.post("/api/v1/admin/verify", &json!({})).ok()["problems"], json!([]));
}

#[test]
fn wrong_policies_are_refused() {
    for (policy, problem) in [
        ("idle = \"90\"", "90d"),
        ("idle = \"1m\"", "months"),
        ("idle = \"0s\"", "less than a minute"),
        ("idle = 90", "string"),
        ("owner = \"ada\"", "missing field `idle`"),
        ("idle = \"1d\"\nidel = 1", "unknown field `idel`"),
        ("idle = \"1d\"\nkeep_last = -1", "keep_last"),
        ("idle = \"1d\"\ntags = [\" \"]", "policy 0: a tag"),
    ] {
        let file = config(&format!("[[retention]]\n{policy}\n"));
        let (exit, _, error) = run(&["serve", "--config", &file, "--check-config"], &[]);
        assert!(exit == Some(2) && error.contains(problem), "{policy}: {error}");
    }
    let (exit, _, error) = run(&["serve", "--check-config"], &[("CONVO_RETENTION__IDLE", "1d")]);
    assert!(exit == Some(2) && error.contains("CONVO_RETENTION__IDLE"), "{error}");
    let good = config("[[retention]]\nidle = \"90d\"\n");
    let (exit, printed, _) = run(&["serve", "--config", &good, "--print-config"], &[]);
    assert!(exit == Some(0) && printed.contains("[[retention]]\nidle = \"90d\""), "{printed}");
}
