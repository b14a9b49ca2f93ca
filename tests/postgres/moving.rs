//! Buckets move between two servers while programs write, and are cut off.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Name, Role};
use conversation_store::{AppendOptions, Entry, Error, ListQuery, Receipt, Store};
use tempfile::TempDir;

use crate::common::cases;
use crate::common::postgres::Server;

const WAIT: Duration = Duration::from_secs(300);
/// How long an append is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two servers, and a store over both.
struct Pair {
    servers: [Server; 2],
    dir: TempDir,
    url: String,
}

impl Pair {
    fn start() -> Self {
        let servers = [0, 1].map(|_| Server::start(&[]).unwrap());
        let dir = crate::common::tempdir().unwrap();
        let list = dir.path().join("clusters");
        let urls = servers.each_ref().map(|server| format!("postgres://postgres@127.0.0.1:{}/postgres", server.port));
        std::fs::write(&list, urls.join("\n")).unwrap();
        let url = format!("shards:{}", list.display());
        Self { servers, dir, url }
    }

    fn holder(&self, bucket: u64) -> u64 {
        holder(&self.url, bucket)
    }

    fn count(&self, cluster: u64, sql: &str) -> u64 {
        self.servers[cluster as usize].value(&format!("SELECT count(*) FROM {sql}")).unwrap().unwrap().parse().unwrap()
    }

    /// Nothing of a bucket is left in the cluster that it is not in, and nothing of a move anywhere.
    fn assert_clean(&self, bucket: u64) {
        let other = 1 - self.holder(bucket);
        for table in ["cs_conversation", "cs_record", "cs_key", "cs_item", "cs_placed"] {
            let left = self.count(other, &format!("{table} WHERE cs_bucket_of_v1(conv_id) = {bucket}"));
            assert_eq!(left, 0, "{table}");
        }
        for cluster in [0, 1] {
            assert_eq!(self.count(cluster, "cs_arriving") + self.count(cluster, "cs_left"), 0);
        }
        assert_eq!(Store::shards(&self.url).unwrap().moving, []);
    }
}

/// The cluster that has a bucket, as the program prints it.
pub(crate) fn holder(url: &str, bucket: u64) -> u64 {
    let shards = Store::shards(url).unwrap();
    let has = |ranges: &[[u64; 2]]| ranges.iter().any(|[first, last]| (*first..=*last).contains(&bucket));
    shards.clusters.iter().find(|cluster| has(&cluster.buckets)).unwrap().cluster
}

/// The bucket of a key, as the documentation states it.
pub(crate) fn bucket_of(key: &str) -> u64 {
    let id = Name::from(key).id();
    let folded = id.as_bytes().chunks(2).fold(0, |folded, pair| folded ^ u16::from_be_bytes([pair[0], pair[1]]));
    u64::from(folded % 1024)
}

/// Keys of one bucket.
fn keys_of(bucket: u64, count: usize) -> Vec<String> {
    (0..).map(|number| format!("chat {number}")).filter(|key| bucket_of(key) == bucket).take(count).collect()
}

/// Appends, whatever happens, and returns the answer.
fn append(store: &Store, name: &str, text: &str) -> Receipt {
    let options = AppendOptions::new().with_idempotency_key(text);
    let begun = Instant::now();
    loop {
        match store.append_with(name, &[Message::user(text)], &options) {
            Ok(receipt) => return receipt,
            Err(Error::OutcomeUnknown { .. } | Error::Busy(_)) if begun.elapsed() < PATIENCE => {}
            Err(error) => panic!("{name}, {text}: {error}"),
        }
    }
}

/// What was acknowledged is there, at its place; and nothing else, and no hole.
fn assert_all_there(store: &Store, acknowledged: &[(String, String, u64)]) {
    let mut stored: BTreeMap<(&str, u64), Vec<Chunk>> = BTreeMap::new();
    for (name, ..) in acknowledged {
        if stored.range((name.as_str(), 0)..).next().is_some_and(|((known, _), _)| known == name) {
            continue;
        }
        let entries = store.entries(name.as_str(), .., usize::MAX).unwrap();
        assert!(entries.iter().map(|entry| entry.seq).eq(1..=entries.len() as u64), "{name}: a hole");
        let messages = store.load_raw(name.as_str()).unwrap();
        stored.extend(messages.into_iter().map(|stored| ((name.as_str(), stored.first_seq), stored.message.chunks)));
    }
    for (name, text, first_seq) in acknowledged {
        let found = stored.remove(&(name.as_str(), *first_seq));
        assert_eq!(found.as_deref(), Some(&[Chunk::text(text)][..]), "{name}, {text}");
    }
    assert!(stored.is_empty(), "written twice, or by nobody: {stored:?}");
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn nothing_is_lost_or_doubled_while_buckets_move() {
    if crate::running().is_none() {
        return;
    }
    let pair = Pair::start();
    let stores = [0, 1].map(|_| Store::open(&pair.url).unwrap());
    let bucket = bucket_of("chat 0");
    let mut names = keys_of(bucket, 5);
    for (number, name) in names.clone().iter().enumerate() {
        append(&stores[0], name, "first");
        stores[0].fork_to(name.as_str(), Some(0), format!("fork {number}")).unwrap();
        names.push(format!("fork {number}"));
        names.push(format!("elsewhere {number}"));
    }
    // These are not written any more: each look at them finds all.
    let long = keys_of(bucket, 6).pop().unwrap();
    // More than is read at once.
    for part in 0..2500 {
        stores[0].append(long.as_str(), &[Message::user(format!("part {part}"))]).unwrap();
    }
    stores[0].fork_to(long.as_str(), Some(200), "branch").unwrap();
    stores[0].append("branch", &[Message::user("its own")]).unwrap();
    let followed = names[0].clone();
    let (is_over, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (acknowledged, entries, streamed) = scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let (store, names, is_over, next) = (&stores[writer % 2], &names, &is_over, &next);
                scope.spawn(move || {
                    let mut acknowledged = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        let turn = next.fetch_add(1, Ordering::Relaxed);
                        let (name, text) = (&names[turn % names.len()], format!("turn {turn}"));
                        let receipt = append(store, name, &text);
                        if turn % 5 == 0 {
                            // Its key is known wherever the bucket is by now.
                            let again = append(store, name, &text);
                            assert!(again.duplicate && again.first_seq == receipt.first_seq, "{again:?}");
                        }
                        acknowledged.push((name.clone(), text, receipt.first_seq));
                    }
                    acknowledged
                })
            })
            .collect();
        let (streaming, over) = (&stores[1], &is_over);
        let streamer = scope.spawn(move || {
            let mut streamed = 0;
            while !over.load(Ordering::Relaxed) {
                let Ok(mut writer) = streaming.begin("chat 0", Role::Assistant, Metadata::default()) else { continue };
                for word in ["one ", "two ", "three"] {
                    writer.push(0, Chunk::text(word)).unwrap();
                    sleep(Duration::from_millis(5));
                }
                writer.finish(None, None).unwrap();
                streamed += 1;
                sleep(Duration::from_millis(60));
            }
            streamed
        });
        let (follower, followed, over) = (&stores[0], &followed, &is_over);
        let following = scope.spawn(move || {
            let mut tail = follower.tail(followed.as_str(), 0).unwrap();
            let mut entries: Vec<Entry> = Vec::new();
            loop {
                let was_over = over.load(Ordering::Relaxed);
                let news = tail.next(Duration::from_millis(500)).unwrap();
                if news.is_empty() && was_over {
                    return entries;
                }
                entries.extend(news);
            }
        });
        for (at, reader) in stores.iter().enumerate() {
            let (is_over, long) = (&is_over, &long);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    for (name, count) in [(long.as_str(), 2500), ("branch", 201)] {
                        assert_eq!(reader.load_raw(name).unwrap().len(), count, "{name}, by {at}");
                        assert_eq!(reader.newest_messages(name, 250).unwrap().len(), count.min(250), "{name}, by {at}");
                        assert!(reader.find_item(name, "no such id").unwrap().is_none());
                    }
                }
            });
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let listed = reader.list(&ListQuery::new().with_limit(1000)).unwrap().items;
                    let is_one = |key: &str| key.starts_with("chat ") || key == "branch";
                    let listed = listed.iter().filter(|item| item.key.as_deref().is_some_and(is_one)).count();
                    assert_eq!(listed, 7, "by {at}");
                }
            });
        }
        let from = pair.holder(bucket);
        for turn in 0..cases("CONVO_MOVES", 6) {
            let begun = Instant::now();
            Store::move_bucket(&pair.url, bucket, (from + 1 + u64::from(turn)) % 2, WAIT).unwrap();
            println!("move {turn}: {:?}", begun.elapsed());
            sleep(Duration::from_millis(300));
        }
        is_over.store(true, Ordering::Relaxed);
        let acknowledged: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        (acknowledged, following.join().unwrap(), streamer.join().unwrap())
    });
    println!("{} appends, {streamed} streamed", acknowledged.len());
    assert_eq!(entries, stores[0].entries(followed.as_str(), .., usize::MAX).unwrap());
    pair.assert_clean(bucket);
    let mut all = acknowledged;
    for name in keys_of(bucket, 5) {
        let first_seq = append(&stores[1], &name, "first").first_seq;
        all.push((name, "first".to_owned(), first_seq));
    }
    let answers = stores[0].load_raw("chat 0").unwrap();
    let answers: Vec<_> = answers.into_iter().filter(|stored| stored.message.role == Role::Assistant).collect();
    assert!(streamed > 0 && answers.len() == streamed);
    all.extend(answers.into_iter().map(|it| ("chat 0".to_owned(), "one two three".to_owned(), it.first_seq)));
    assert_all_there(&stores[1], &all);
}

/// Lets a step of a move fail: gives what undoes that.
fn obstruct<'a>(server: &'a Server, table: &str, when: &str) -> impl FnOnce() + 'a {
    let trigger = format!(
        "CREATE OR REPLACE FUNCTION obstruct() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'obstructed'; END $$; \
         CREATE TRIGGER obstruct BEFORE {when} EXECUTE FUNCTION obstruct()",
    );
    server.run(&trigger).unwrap();
    let table = table.to_owned();
    move || server.run(&format!("DROP TRIGGER obstruct ON {table}")).unwrap()
}

#[test]
fn a_move_that_was_cut_off_after_each_step_goes_on() {
    if crate::running().is_none() {
        return;
    }
    let pair = Pair::start();
    let store = Store::open(&pair.url.clone()).unwrap();
    let bucket = bucket_of("chat 0");
    let names = keys_of(bucket, 4);
    let mut acknowledged = Vec::new();
    let mut write = |round: &str| {
        for name in &names {
            let text = format!("{name} {round}");
            let receipt = append(&store, name, &text);
            acknowledged.push((name.clone(), text, receipt.first_seq));
        }
    };
    write("first");
    let state = |state: &str| format!("INSERT OR UPDATE ON cs_bucket FOR EACH ROW WHEN (NEW.state = '{state}')");
    let to_target = |what: &str, when: String| (true, what.to_owned(), when);
    let to_source = |what: &str, when: String| (false, what.to_owned(), when);
    let steps = [
        to_target("cs_bucket", state("arriving")),
        to_target("cs_record_0", "INSERT ON cs_record_0 FOR EACH ROW".to_owned()),
        to_target("cs_arriving", "INSERT ON cs_arriving FOR EACH ROW".to_owned()),
        to_source("cs_bucket", state("leaving")),
        to_target("cs_bucket", state("arrived")),
        to_source("cs_bucket", state("gone")),
        to_target("cs_bucket", state("here")),
        to_source("cs_left", "DELETE ON cs_left FOR EACH STATEMENT".to_owned()),
    ];
    for (number, (is_target, table, when)) in steps.into_iter().enumerate() {
        // The partition that has records of this bucket depends on the hash: all of them are obstructed.
        let from = pair.holder(bucket);
        let to = 1 - from;
        let server = &pair.servers[if is_target { to } else { from } as usize];
        let undo = obstruct(server, &table, &when);
        let moved = Store::move_bucket(&pair.url, bucket, to, WAIT);
        undo();
        if table != "cs_record_0" {
            assert!(moved.is_err(), "{table}: {when}");
        }
        // It is written, or waits until the move has gone on.
        scope(|scope| {
            scope.spawn(|| {
                sleep(Duration::from_millis(100));
                Store::move_bucket(&pair.url, bucket, to, WAIT).unwrap();
            });
            write(&number.to_string());
        });
        assert_eq!(pair.holder(bucket), to, "{table}: {when}");
        pair.assert_clean(bucket);
    }
    assert_all_there(&Store::open(&pair.url).unwrap(), &acknowledged);
}

#[test]
fn a_mover_that_is_killed_loses_nothing() {
    if crate::running().is_none() {
        return;
    }
    let pair = Pair::start();
    let store = Store::open(&pair.url).unwrap();
    let bucket = bucket_of("chat 0");
    let names = keys_of(bucket, 30);
    for name in &names {
        store.append(name.as_str(), &vec![Message::user("before"); 3]).unwrap();
        store.delete(name.as_str()).unwrap();
    }
    let is_over = AtomicBool::new(false);
    let acknowledged = scope(|scope| {
        let (store, names, is_over) = (&store, &names, &is_over);
        let writer = scope.spawn(move || {
            let mut acknowledged = Vec::new();
            for turn in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (name, text) = (&names[turn % names.len()], format!("turn {turn}"));
                acknowledged.push((name.clone(), text.clone(), append(store, name, &text).first_seq));
            }
            acknowledged
        });
        let mut kills = 0;
        for round in 0..cases("CONVO_MOVES", 6) {
            let to = (1 - pair.holder(bucket)).to_string();
            let mover = || {
                let mut command = Command::new(assert_cmd::cargo::cargo_bin!("convo"));
                command.args(["shards", "move", &bucket.to_string(), "--to", &to, "--store", &pair.url]);
                command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(pair.dir.path()).spawn().unwrap()
            };
            for pause in [30, 60, 90, 120, 150].map(|pause| pause + u64::from(round) * 5) {
                let mut killed = mover();
                sleep(Duration::from_millis(pause));
                kills += usize::from(killed.try_wait().unwrap().is_none());
                killed.kill().unwrap();
                killed.wait().unwrap();
            }
            // A server that was not asked to end may still be busy with a step of the one that was killed.
            let begun = Instant::now();
            while !mover().wait().unwrap().success() {
                assert!(begun.elapsed() < PATIENCE);
            }
        }
        println!("{kills} movers were killed");
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    pair.assert_clean(bucket);
    assert_all_there(&Store::open(&pair.url).unwrap(), &acknowledged);
}
