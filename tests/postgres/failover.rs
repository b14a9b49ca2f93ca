//! The loss of a primary while it is written: all its processes are killed, and a standby is promoted.
//!
//! `CONVO_FAILOVERS` says how often, `CONVO_FAILOVER_APPENDS` how much is written each time.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message};
use conversation_store::{AppendOptions, Error, Receipt, Store};

use crate::cluster::{Cluster, until};
use crate::common::cases;

const WRITERS: usize = 16;
/// How long an append is repeated.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing is replicated before the primary is killed.
const UNREPLICATED: Duration = Duration::from_millis(400);
/// How often connections are cut in that time.
const CUTS: u32 = 4;
const LOCAL: &str = "&options=-csynchronous_commit%3Dlocal";

/// What happens before the primary is killed.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    /// It sends nothing to the standbys.
    SendersStopped,
    /// Nor does it, and the connections of clients are cut: they repeat what it has and no standby has.
    ConnectionsCut,
}

/// The rounds, in turn: so many conversations, and what happens before the kill.
const ROUNDS: &[(usize, Before)] = &[
    (160, Before::ConnectionsCut),
    (1, Before::SendersStopped),
    (160, Before::Nothing),
    (1, Before::ConnectionsCut),
    (160, Before::SendersStopped),
    (1, Before::Nothing),
];

/// An append that was acknowledged.
struct Acknowledged {
    conversation: usize,
    text: String,
    receipt: Receipt,
    at: Instant,
}

/// What became of what was acknowledged.
struct Found {
    acknowledged: usize,
    /// Answered as repetitions.
    repeated: usize,
    lost: usize,
    /// There more than once, or there and never acknowledged.
    surplus: usize,
    /// The longest time between two acknowledgements.
    gap: Duration,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, repeated, lost, surplus, gap } = self;
        write!(f, "{acknowledged} acknowledged, {repeated} of them as repetitions, {lost} lost, {surplus} too many, ")?;
        write!(f, "longest gap {:.2} s", gap.as_secs_f64())
    }
}

fn name(conversation: usize) -> String {
    format!("chat {conversation}")
}

/// Appends once, whatever happens, and returns the answer.
fn append(store: &Store, conversation: usize, text: &str, turn: usize) -> Receipt {
    let options = AppendOptions::new().with_idempotency_key(format!("turn {turn}"));
    let begun = Instant::now();
    loop {
        match store.append_with(name(conversation), &[Message::user(text)], &options) {
            Ok(receipt) => return receipt,
            Err(Error::OutcomeUnknown { .. } | Error::Io { .. } | Error::Busy(_)) if begun.elapsed() < PATIENCE => {}
            Err(error) => panic!("turn {turn}: {error}"),
        }
    }
}

/// Writes at least so many appends to a cluster that loses its primary when half is written. Writing goes on until another one
/// is promoted, unless it takes far too long.
fn lose_primary(cluster: &Cluster, store: &Store, conversations: usize, before: Before, appends: usize) -> Found {
    let (next, acknowledged) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let promoted = AtomicBool::new(false);
    let is_due = |turn: &usize| *turn < appends || (*turn < 20 * appends && !promoted.load(Ordering::Relaxed));
    scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let turns = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(is_due));
                for turn in turns {
                    let (conversation, text) = (turn % conversations, format!("{turn} {}", "said ".repeat(turn % 64)));
                    let receipt = append(store, conversation, &text, turn);
                    let at = Instant::now();
                    acknowledged.lock().unwrap().push(Acknowledged { conversation, text, receipt, at });
                }
            });
        }
        until("half of the appends", || acknowledged.lock().unwrap().len() >= appends / 2);
        if !matches!(before, Before::Nothing) {
            cluster.stop_senders();
            for _ in 0..CUTS {
                sleep(UNREPLICATED / CUTS);
                if matches!(before, Before::ConnectionsCut) {
                    cluster.cut_connections();
                }
            }
        }
        cluster.kill_primary();
        cluster.promote();
        promoted.store(true, Ordering::Relaxed);
    });
    find(store, conversations, &acknowledged.into_inner().unwrap())
}

/// Looks for what was acknowledged. What is stored has no hole and no damage, whatever was lost.
fn find(store: &Store, conversations: usize, acknowledged: &[Acknowledged]) -> Found {
    let mut stored: HashMap<(usize, u64), Vec<Chunk>> = HashMap::new();
    for conversation in 0..conversations {
        let messages = store.load_raw(name(conversation)).unwrap();
        assert!(messages.iter().map(|stored| stored.first_seq).eq(1..=messages.len() as u64), "{conversation}: a hole");
        stored.extend(messages.into_iter().map(|stored| ((conversation, stored.first_seq), stored.message.chunks)));
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    let mut found = Found {
        acknowledged: acknowledged.len(),
        repeated: acknowledged.iter().filter(|it| it.receipt.duplicate).count(),
        lost: 0,
        surplus: 0,
        gap: Duration::ZERO,
    };
    for Acknowledged { conversation, text, receipt, .. } in acknowledged {
        let place = (*conversation, receipt.first_seq);
        match stored.get(&place) {
            Some(chunks) if *chunks == [Chunk::text(text)] => drop(stored.remove(&place)),
            _ => found.lost += 1,
        }
    }
    found.surplus = stored.len();
    let mut times: Vec<_> = acknowledged.iter().map(|it| it.at).collect();
    times.sort_unstable();
    found.gap = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    found
}

fn appends() -> usize {
    cases("CONVO_FAILOVER_APPENDS", 2000) as usize
}

#[test]
fn nothing_acknowledged_is_lost_with_the_primary() {
    if crate::running().is_none() {
        return;
    }
    for round in 0..cases("CONVO_FAILOVERS", 1) as usize {
        let (conversations, before) = ROUNDS[round % ROUNDS.len()];
        let cluster = Cluster::start();
        let store = Store::open(&cluster.url("")).unwrap();
        // The nodes do not sync: they lose processes here, and no machine.
        let warnings = store.health().warnings;
        assert!(warnings.len() == 1 && warnings[0].starts_with("fsync is off"), "{warnings:?}");
        let found = lose_primary(&cluster, &store, conversations, before, appends());
        println!("failover {round}: {conversations} conversations, {before:?}: {found}");
        assert!(found.acknowledged >= appends() && (found.lost, found.surplus) == (0, 0), "{found}");
    }
}

/// Commits that do not wait for a standby are lost with the primary: the test above would notice.
#[test]
fn what_no_standby_has_is_lost_with_the_primary() {
    if crate::running().is_none() {
        return;
    }
    let cluster = Cluster::start();
    let store = Store::open(&cluster.url(LOCAL)).unwrap();
    let warnings = store.health().warnings;
    assert!(warnings.iter().any(|warning| warning.starts_with("synchronous_commit is local")), "{warnings:?}");
    let found = lose_primary(&cluster, &store, 160, Before::SendersStopped, appends());
    println!("failover without waiting for standbys: {found}");
    assert!(found.lost > 0, "nothing was lost: {found}");
}
