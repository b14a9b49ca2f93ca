//! What programs find that opened the store before buckets moved, and what moves that were cut off leave to others.

use std::fs;
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::{Duration, Instant};

use conversation_store::model::{Message, Name};
use conversation_store::{Error, ListQuery, Store};
use tempfile::TempDir;

use crate::common::postgres::{Server, schema};
use crate::moving::{bucket_of, holder};
use crate::process::Process;

const WAIT: Duration = Duration::from_secs(60);

/// A store over several schemas of one server.
struct Clusters {
    server: &'static Server,
    dir: TempDir,
    url: String,
    schemas: Vec<String>,
}

impl Clusters {
    fn new(server: &'static Server, count: usize) -> Self {
        let dir = crate::common::tempdir().unwrap();
        let url = server.shards(&dir.path().join("store"), count, "&timeout_seconds=2&pool=4&lease_seconds=1");
        let list = fs::read_to_string(url.strip_prefix("shards:").unwrap()).unwrap();
        let schemas = list.lines().skip(1).map(|url| schema(url).to_owned()).collect();
        Self { server, dir, url, schemas }
    }

    /// Runs statements in a cluster.
    fn run(&self, cluster: u64, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.server.run(&format!("SET search_path TO {}; {sql}", self.schemas[cluster as usize]))
    }

    fn count(&self, cluster: u64, what: &str) -> String {
        let sql = format!("SET search_path TO {}; SELECT count(*) FROM {what}", self.schemas[cluster as usize]);
        self.server.value(&sql).unwrap().unwrap()
    }

    fn holder(&self, bucket: u64) -> u64 {
        holder(&self.url, bucket)
    }

    fn go(&self, bucket: u64, to: u64) -> Result<(), Error> {
        Store::move_bucket(&self.url, bucket, to, WAIT)
    }

    /// Cuts a move off before a state of its bucket is noted in a cluster: it can be ended later.
    fn cut_off(&self, bucket: u64, to: u64, cluster: u64, state: &str) {
        let when = format!("BEFORE INSERT OR UPDATE ON cs_bucket FOR EACH ROW WHEN (NEW.state = '{state}')");
        let fails = "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN RAISE EXCEPTION 'cut off'; END $$";
        self.run(cluster, &format!("{fails}; CREATE TRIGGER cut {when} EXECUTE FUNCTION fail()")).unwrap();
        self.go(bucket, to).unwrap_err();
        self.run(cluster, "DROP TRIGGER cut ON cs_bucket").unwrap();
    }

    fn assert_clean(&self) {
        for cluster in 0..self.schemas.len() as u64 {
            assert_eq!(
                (self.count(cluster, "cs_arriving").as_str(), self.count(cluster, "cs_left").as_str()),
                ("0", "0")
            );
        }
        assert_eq!(Store::shards(&self.url).unwrap().moving, []);
    }
}

/// A name whose bucket is in the upper or lower half: with two clusters, in the second or the first.
fn name_in(upper: bool, begins: &str) -> String {
    (0..).map(|number| format!("{begins} {number}")).find(|name| (bucket_of(name) >= 512) == upper).unwrap()
}

fn one(text: &str) -> [Message; 1] {
    [Message::user(text)]
}

fn length(store: &Store, name: &str) -> usize {
    store.load(name).unwrap().messages().len()
}

/// An announced fork that was never made has no part in the moves of the conversation whose name it wanted.
#[test]
fn what_announced_a_fork_moves_no_other_conversation() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 2);
    let store = Store::open(&clusters.url).unwrap();
    let (root, other) = (name_in(false, "root"), name_in(true, "chat"));
    store.append(root.as_str(), &one("a")).unwrap();
    let id = Name::from(other.as_str()).id().to_string().replace('-', "");
    let (of_root, of_other) = (bucket_of(&root), bucket_of(&other));
    clusters.run(0, &format!("SELECT cs_announce_v1('\\x{id}', {of_root}, 7)")).unwrap();
    store.append(other.as_str(), &one("a")).unwrap();
    for (bucket, to) in [(of_root, 1), (of_root, 0), (of_root, 1), (of_other, 0), (of_other, 1), (of_root, 0)] {
        clusters.go(bucket, to).unwrap();
        for name in [&root, &other] {
            let before = length(&store, name);
            store.append(name.as_str(), &one("more")).unwrap();
            assert_eq!(length(&store, name), before + 1, "{name}, after bucket {bucket} went to {to}");
        }
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    clusters.assert_clean();
}

/// A fork is announced in a cluster while a conversation of its name is arriving there.
#[test]
fn a_name_that_is_arriving_is_not_announced() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 2);
    let store = Store::open(&clusters.url).unwrap();
    let (root, parent) = (name_in(true, "root"), name_in(false, "parent"));
    // A fork that is not in the bucket of its own name, as the family goes with its parent.
    store.append(parent.as_str(), &one("a")).unwrap();
    store.append(root.as_str(), &one("a")).unwrap();
    store.fork_to(parent.as_str(), None, "branch").unwrap();
    let id = Name::from("branch").id().to_string().replace('-', "");
    let (moving, elsewhere) = (bucket_of(&parent), bucket_of(&root));
    let announce = format!("SELECT cs_announce_v1('\\x{id}', {elsewhere}, 7)");
    // While it is copied, and once it is frozen.
    clusters.cut_off(moving, 1, 0, "leaving");
    clusters.run(1, &announce).unwrap();
    clusters.cut_off(moving, 1, 0, "gone");
    let refused = clusters.run(1, &announce).unwrap_err();
    assert_eq!(refused.code().map(tokio_postgres::error::SqlState::code), Some("CSB01"), "{refused}");
    clusters.go(moving, 1).unwrap();
    let taken = store.fork_to(root.as_str(), None, "branch").unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken}");
    for to in [0, 1] {
        clusters.go(moving, to).unwrap();
        let before = length(&store, "branch");
        store.append("branch", &one("more")).unwrap();
        assert_eq!(length(&store, "branch"), before + 1);
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    clusters.assert_clean();
}

/// A program whose map is older than a move finds the bucket also while it is on its way back.
#[test]
fn an_old_map_leads_to_a_bucket_that_is_coming_back() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 2);
    let store = Store::open(&clusters.url).unwrap();
    let name = name_in(false, "chat");
    store.append(name.as_str(), &one("a")).unwrap();
    let bucket = bucket_of(&name);
    let old = Store::open(&clusters.url).unwrap();
    clusters.go(bucket, 1).unwrap();
    clusters.cut_off(bucket, 0, 1, "leaving");
    assert_eq!(length(&old, &name), 1);
    old.append(name.as_str(), &one("b")).unwrap();
    // One that is all copied and frozen can still be read.
    let old = Store::open(&clusters.url).unwrap();
    clusters.go(bucket, 0).unwrap();
    clusters.go(bucket, 1).unwrap();
    clusters.cut_off(bucket, 0, 1, "gone");
    assert_eq!(length(&old, &name), 2);
    clusters.go(bucket, 0).unwrap();
    assert_eq!(length(&old, &name), 2);
    clusters.assert_clean();
}

/// A follower that only polls is not told that a conversation is gone whose bucket went and came back.
#[test]
fn a_follower_outlives_the_moves_of_its_bucket() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 2);
    let (store, there) = (Store::open(&clusters.url).unwrap(), Store::open(&clusters.url).unwrap());
    let name = name_in(false, "chat");
    store.append(name.as_str(), &one("a")).unwrap();
    let mut tail = store.tail(name.as_str(), 0).unwrap();
    let mut poll = || match tail.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(news) => news.unwrap().unwrap().len(),
        Poll::Pending => 0,
    };
    let mut seen = 0;
    for round in 1..=3 {
        let begun = Instant::now();
        while seen < round {
            assert!(begun.elapsed() < WAIT, "no news");
            seen += poll();
            sleep(Duration::from_millis(5));
        }
        if round == 3 {
            break;
        }
        // It has found nothing there for so long that it looks rarely, and does not ask meanwhile.
        clusters.go(bucket_of(&name), 1).unwrap();
        sleep(Duration::from_millis(2500));
        clusters.go(bucket_of(&name), 0).unwrap();
        assert_eq!(poll(), 0);
        there.append(name.as_str(), &one("more")).unwrap();
    }
}

/// Two programs move one bucket to different clusters at once: the one that lost leaves nothing in the way.
#[test]
fn a_move_that_another_one_overtook_is_given_up() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 3);
    let store = Store::open(&clusters.url).unwrap();
    store.append("chat", &one("a")).unwrap();
    let bucket = bucket_of("chat");
    for (overtaken_by_one_to, then) in [(1, 2), (1, 0), (1, 1)] {
        let from = clusters.holder(bucket);
        let (first, second) = ((from + overtaken_by_one_to) % 3, (from + 2) % 3);
        // The second one is cut off before it freezes; the first one does not see it, as both began at once.
        clusters.cut_off(bucket, second, from, "leaving");
        let state = |state: &str| format!("UPDATE cs_bucket SET state = '{state}' WHERE bucket = {bucket}");
        clusters.run(second, &state("gone")).unwrap();
        clusters.go(bucket, first).unwrap();
        clusters.run(second, &state("arriving")).unwrap();
        assert_eq!(clusters.count(second, "cs_arriving"), "1");
        let to = (from + then) % 3;
        clusters.go(bucket, to).unwrap();
        assert_eq!(clusters.holder(bucket), to);
        clusters.assert_clean();
        let before = length(&store, "chat");
        store.append("chat", &one("more")).unwrap();
        assert_eq!(length(&store, "chat"), before + 1);
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// A program that opened the store before a cluster was added says what is to be done once a bucket is there.
#[test]
fn a_cluster_that_was_added_later_is_named() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 3);
    let list = fs::read_to_string(clusters.url.strip_prefix("shards:").unwrap()).unwrap();
    let short = clusters.dir.path().join("short");
    fs::write(&short, list.lines().take(3).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let old = Store::open(&format!("shards:{}", short.display())).unwrap();
    old.append("chat", &one("a")).unwrap();
    Store::migrate(&clusters.url).unwrap();
    assert_eq!(old.list(&ListQuery::new()).unwrap().items.len(), 1);
    clusters.go(bucket_of("chat"), 2).unwrap();
    for refused in [old.list(&ListQuery::new()).map(|_| ()), old.load("chat").map(|_| ())] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, Error::InvalidInput(_)) && refused.to_string().contains("open it again"),
            "{refused}"
        );
    }
    assert_eq!(length(&Store::open(&clusters.url).unwrap(), "chat"), 1);
}

/// The program that streamed is gone, and no other one is there to interrupt its message: the one that moves does it.
#[test]
fn a_message_of_a_program_that_is_gone_keeps_no_bucket() {
    let Some(server) = crate::running() else { return };
    let clusters = Clusters::new(server, 2);
    let mut streaming = Process::start("stream", &[&clusters.url]);
    assert_eq!(streaming.next().as_deref(), Some("begun"));
    streaming.signal("KILL");
    streaming.rest();
    let (bucket, from) = (bucket_of("chat"), clusters.holder(bucket_of("chat")));
    Store::move_bucket(&clusters.url, bucket, 1 - from, Duration::from_secs(20)).unwrap();
    assert_eq!(clusters.holder(bucket), 1 - from);
    clusters.assert_clean();
}

#[test]
fn a_cluster_needs_two_connections_and_a_restore_buckets_that_stand_still() {
    let Some(server) = crate::running() else { return };
    let dir = crate::common::tempdir().unwrap();
    let one_each = server.shards(&dir.path().join("store"), 2, "&pool=1");
    let refused = Store::migrate(&one_each).unwrap_err();
    assert!(matches!(refused, Error::InvalidInput(_)), "{refused}");

    let clusters = Clusters::new(server, 2);
    let store = Store::open(&clusters.url).unwrap();
    let backup = clusters.dir.path().join("backup");
    store.backup(&backup, |_, _| ()).unwrap();
    clusters.cut_off(7, 1, 0, "gone");
    let refused = Store::restore(&backup, &clusters.url, |_, _| ()).unwrap_err();
    assert!(matches!(refused, Error::Busy(_)), "{refused}");
    clusters.go(7, 1).unwrap();
    Store::restore(&backup, &clusters.url, |_, _| ()).unwrap();
}
