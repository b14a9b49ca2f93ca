//! The program is killed while it writes, or while it opens: what was acknowledged is there afterwards, whole.
//!
//! `CONVO_KILLS` says how often on each engine. A kill proves nothing about power cuts: the system keeps what was written.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::common::program::{Dice, PATIENCE, Writer, convo, number, run, still_owed, verify};

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

#[test]
fn what_was_acknowledged_survives_a_kill_on_sled() {
    what_was_acknowledged_survives_a_kill("sled");
}

#[test]
fn a_store_opens_after_it_was_killed_while_it_opened_on_sled() {
    a_store_opens_after_it_was_killed_while_it_opened("sled");
}

#[cfg(feature = "fjall")]
mod fjall {
    #[test]
    fn what_was_acknowledged_survives_a_kill_on_fjall() {
        super::what_was_acknowledged_survives_a_kill("fjall");
    }

    #[test]
    fn a_store_opens_after_it_was_killed_while_it_opened_on_fjall() {
        super::a_store_opens_after_it_was_killed_while_it_opened("fjall");
    }
}
