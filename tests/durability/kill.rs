//! The program is killed while it writes, while it opens, or while it writes a store anew: what was acknowledged is there
//! afterwards, whole.
//!
//! `CONVO_KILLS` says how often on each engine. A kill proves nothing about power cuts: the system keeps what was written.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use conversation_store::Store;
use conversation_store::model::Message;

use crate::common::program::{Dice, PATIENCE, Writer, convo, copy, number, run, still_owed, verify};

/// Loads with how old the oldest append may be that a kill takes: none for what is durable.
const LOADS: &[(&[&str], Option<Duration>)] = &[
    (&["--threads", "1"], None),
    (&["--threads", "8", "--mixed", "--streams", "4"], None),
    (&["--threads", "32"], None),
    (&["--threads", "2", "--chunk-bytes", "1000000"], None),
    (&["--threads", "4", "--rate", "200", "--streams", "2", "--durability", "buffered"], Some(WINDOW)),
];
/// The store's window of 25 ms, and what a commit takes on a machine that does other things too.
const WINDOW: Duration = Duration::from_millis(500);
/// How long is written before the kill, from the first acknowledgement on, at most.
const LONGEST: Duration = Duration::from_millis(1200);
/// The store begins anew after so many rounds.
const ROUNDS: u64 = 12;

fn what_was_acknowledged_survives_a_kill(engine: &str) {
    let mut dice = Dice::new();
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (dir.path().join("db"), dir.path().join("acks"));
    let store = format!("{engine}:{}", db.display());
    let mut acknowledged = 0;
    let mut owed = String::new();
    for round in 0..number("CONVO_KILLS", 10) {
        if round % ROUNDS == ROUNDS - 1 {
            fs::remove_dir_all(&db).unwrap();
            owed.clear();
        }
        let (load, most) = &LOADS[dice.below(LOADS.len() as u64) as usize];
        let _ = fs::remove_file(&file);
        let mut writer = Writer::start(&store, &file, load);
        writer.write_for(dice.time(LONGEST));
        let gone = std::time::Instant::now();
        let acks = writer.kill();
        owed.push_str(acks.whole());
        fs::write(&file, &owed).unwrap();
        let verdict = verify(&store, &file);
        let lost = acks.first_lost(&verdict.lost).map(|time| gone - time);
        println!("{engine} {round}: {load:?}: {} acknowledged, lost: {lost:?}", acks.whole().lines().count());
        assert_eq!(verdict.broken, [""; 0], "{load:?}");
        assert!(
            verdict.lost.is_empty() || most.zip(lost).is_some_and(|(most, lost)| lost <= most),
            "{load:?}: {verdict:?}"
        );
        owed = still_owed(&owed, &verdict.lost);
        acknowledged += acks.whole().lines().count();
    }
    println!("{engine}: {acknowledged} acknowledgements: nothing was lost");
}

fn a_store_opens_after_it_was_killed_while_it_opened(engine: &str) {
    let mut dice = Dice::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("acks");
    let mut stores = 0;
    for round in 0..number("CONVO_KILLS", 10) {
        // A new store every now and then: the first opening has the most to do.
        stores += u64::from(round % 4 == 0);
        let store = format!("{engine}:{}", dir.path().join(stores.to_string()).display());
        let mut opening = convo(&["bench", "--store", &store, "--seconds", "3600"]);
        let mut child = opening.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(dice.below(40_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 4 > 0 {
            fs::write(&file, "").unwrap();
            let verdict = verify(&store, &file);
            assert!(verdict.is_clean(), "{verdict:?}");
        }
        let ended = run(convo(&["bench", "--store", &store, "--seconds", "0.02"]), PATIENCE);
        assert_eq!(ended.exit, Some(0), "{ended:?}");
    }
}

/// Makes a store with what a vacuum has to keep, and with what it takes away.
fn make(url: &str) {
    let store = Store::open(url).unwrap();
    for at in 0..6 {
        let kept = format!("kept {at}");
        for text in [kept.clone(), "large ".repeat(40_000)] {
            store.append(&*kept, &[Message::user(&text), Message::user("erased")]).unwrap();
            store.append("deleted", &[Message::user(text)]).unwrap();
        }
        store.redact(&*kept, 1, None).unwrap();
        store.fork_to(&*kept, Some(2), format!("fork {at}")).unwrap();
    }
    store.delete("deleted").unwrap();
    store.close().unwrap();
}

/// All that a store has, which is sound and takes an append.
fn all_of(url: &str) -> String {
    let store = Store::open(url).unwrap();
    let names = (0..6).flat_map(|at| [format!("kept {at}"), format!("fork {at}")]);
    let all: Vec<_> = names.map(|name| store.load_raw(name).unwrap()).collect();
    let verified = store.verify(|_, _| ()).unwrap();
    assert_eq!((verified.problems.len(), verified.conversations), (0, 12), "{:?}", verified.problems);
    store.append("another", &[Message::user("more")]).unwrap();
    store.delete("another").unwrap();
    format!("{all:?}")
}

fn a_vacuum_that_is_killed_loses_nothing(engine: &str) {
    let mut dice = Dice::new();
    let dir = tempfile::tempdir().unwrap();
    let url = |path: &Path| format!("{engine}:{}", path.display());
    let (made, left) = (dir.path().join("made"), dir.path().join("left"));
    make(&url(&made));
    let vacuum = || {
        let _ = fs::remove_dir_all(&left);
        copy(&made, &left);
        convo(&["vacuum", "--store", &url(&left)])
    };
    let begun = (vacuum(), Instant::now());
    let ended = run(begun.0, PATIENCE);
    let whole = begun.1.elapsed();
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    let expected = all_of(&url(&left));
    let mut killed = 0;
    for round in 0..number("CONVO_KILLS", 20) {
        let mut child = vacuum().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(dice.below(whole.as_micros() as u64)));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        assert!(all_of(&url(&left)) == expected, "{engine}, round {round}");
    }
    println!("{engine}: a vacuum of {whole:?} was killed {killed} times");
    assert!(killed > 0);
}

#[test]
fn what_was_acknowledged_survives_a_kill_on_sled() {
    what_was_acknowledged_survives_a_kill("sled");
}

#[test]
fn a_store_opens_after_it_was_killed_while_it_opened_on_sled() {
    a_store_opens_after_it_was_killed_while_it_opened("sled");
}

#[test]
fn a_vacuum_that_is_killed_loses_nothing_on_sled() {
    a_vacuum_that_is_killed_loses_nothing("sled");
}

#[cfg(feature = "fjall")]
mod fjall {
    #[test]
    fn a_vacuum_that_is_killed_loses_nothing_on_fjall() {
        super::a_vacuum_that_is_killed_loses_nothing("fjall");
    }

    #[test]
    fn what_was_acknowledged_survives_a_kill_on_fjall() {
        super::what_was_acknowledged_survives_a_kill("fjall");
    }

    #[test]
    fn a_store_opens_after_it_was_killed_while_it_opened_on_fjall() {
        super::a_store_opens_after_it_was_killed_while_it_opened("fjall");
    }
}
