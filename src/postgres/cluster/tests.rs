//! A bucket moves in the middle of what is read of it: the rest is read where it went. And the list of clusters.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::member::bucket_of;
use super::{Sharded, move_bucket, parse};
use crate::log::{AppendOptions, Changes, ForkAt, Log, Opening, Order, Reading};
use crate::model::{Chunk, Message, Name, Timestamp};
use crate::postgres::tests::postgres::{Server, server};

/// More than two statements read.
const MESSAGES: u64 = 2_500;
const WAIT: Duration = Duration::from_secs(60);

struct Moving {
    url: String,
    bucket: u64,
    cluster: u64,
}

impl Moving {
    fn switch(&mut self) {
        self.cluster = 1 - self.cluster;
        move_bucket(&self.url, self.bucket, self.cluster, WAIT).unwrap();
    }
}

fn message(at: u64) -> Message {
    let mut chunk = Chunk::text(format!("message {at}"));
    chunk.id = at.is_multiple_of(500).then(|| "item".to_owned());
    Message::assistant([chunk])
}

/// The seqs of the records that are read, while the bucket moves after the first of them.
fn read_while_it_moves(log: &Sharded, name: &Name, order: Order, moving: &mut Moving) -> Vec<u64> {
    let view = log.view(name).unwrap().unwrap();
    let mut seqs = Vec::new();
    Log::read(log, &view, 1..=u64::MAX, order, &mut |reading| {
        let Reading::Record { record, .. } = reading else { panic!("{name}: {reading:?}") };
        if seqs.is_empty() {
            moving.switch();
        }
        seqs.push(record.first_seq);
        ControlFlow::Continue(())
    })
    .unwrap();
    seqs
}

#[test]
fn what_is_read_goes_on_where_the_bucket_went() {
    let server: &Server = match server() {
        Ok(server) => server,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let dir = tempfile::tempdir().unwrap();
    let url = server.shards(&dir.path().join("store"), 2, "&pool=4");
    let log = Sharded::open(&url, Arc::new(Timestamp::now), Duration::ZERO, Opening::default(), true).unwrap();
    let (chat, fork) = (Name::from("chat"), Name::from("fork"));
    for at in 1..=MESSAGES {
        log.append(&chat, &[message(at)], &Changes::new(), &AppendOptions::new()).unwrap();
    }
    Log::fork(&log, &chat, ForkAt { seq: Some(MESSAGES - 1), time: None }, &fork).unwrap();
    log.append(&fork, &[message(0)], &Changes::new(), &AppendOptions::new()).unwrap();
    let bucket = bucket_of(chat.id());
    let cluster = log.places.of(chat.id()).cluster as u64;
    let mut moving = Moving { url, bucket, cluster };
    for name in [&chat, &fork] {
        let seqs = read_while_it_moves(&log, name, Order::Ascending, &mut moving);
        assert!(seqs.iter().copied().eq(1..=MESSAGES), "{name}");
        let seqs = read_while_it_moves(&log, name, Order::Descending, &mut moving);
        assert!(seqs.iter().copied().eq((1..=MESSAGES).rev()), "{name}");
    }
    for name in [&chat, &fork] {
        let view = log.view(name).unwrap().unwrap();
        moving.switch();
        let seqs = |most| Log::item_seqs(&log, &view, "item", most).unwrap();
        assert_eq!(seqs(usize::MAX), [500, 1_000, 1_500, 2_000, 2_500], "{name}");
        // Of the fork, one of them is an entry that it shares.
        assert_eq!(seqs(2), [2_000, 2_500], "{name}");
    }
    log.close().unwrap();
}

#[test]
fn a_list_has_a_cluster_a_line() {
    let list = "# two clusters\n\npostgres://a@one/chats\n  postgres://b:secret@two/chats?pool=4  \n";
    let urls = parse("list", list).unwrap();
    assert_eq!(urls, ["postgres://a@one/chats", "postgres://b:secret@two/chats?pool=4"]);
}

#[test]
fn what_is_no_list_is_reported_by_line_and_without_passwords() {
    for (text, said) in [
        ("# nothing\n", "lists no cluster"),
        ("postgres://one/a\nmysql://ada:secret@two/b\n", "line 2"),
        ("postgres://x:secret@one/a\n\npostgres://x:secret@one/a\n", "line 3: this cluster is in the list already"),
    ] {
        let error = parse("list", text).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains("secret"), "{error}");
    }
}
