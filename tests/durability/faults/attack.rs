//! Damage at random to stores with a past, and what they do then.
//!
//! `CONVO_FAULT_CASES` says how many damages are tried, `CONVO_SEED` which.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use conversation_store::{AppendOptions, Error, ListQuery, Store, StoreOptions};

use crate::common::program::{Dice, copy, number};
use crate::faults::damage::{Kind, Raw, conversations_of};
use crate::faults::story::{Shown, Story, name_of, names, shown};
use crate::faults::{text_of, url, within};

const SEED: u64 = 7;
/// Damages to one story, before another one is told.
const CASES_OF_A_STORY: u64 = 8;

/// What is wrong, and an example.
type Wrong = Vec<(&'static str, String)>;

/// What was done to a store.
struct Injury {
    shown: String,
    /// The conversations whose pairs it touched, and all forks below them.
    touched: BTreeSet<String>,
    /// It touched what belongs to the store as a whole.
    of_store: bool,
}

impl Injury {
    /// Damages one to three pairs.
    fn inflict(path: &Path, story: &Story, dice: &mut Dice) -> Self {
        let raw = Raw::open(path);
        let mut injury = Self { shown: String::new(), touched: BTreeSet::new(), of_store: false };
        for _ in 0..=dice.below(3) {
            let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| !raw.keys(*kind).is_empty()).collect();
            let kind = kinds[dice.below(kinds.len() as u64) as usize];
            let keys = raw.keys(kind);
            let mut pick = || keys[dice.below(keys.len() as u64) as usize].clone();
            let (mut key, other) = (pick(), pick());
            let how = match dice.below(5) {
                0 => {
                    raw.flip_anywhere(&key, dice);
                    "flipped"
                }
                1 => {
                    raw.remove(&key);
                    "removed"
                }
                2 => {
                    raw.put(&key, &raw.get(&other).unwrap());
                    "exchanged"
                }
                3 => {
                    let earlier: Vec<_> = story.earlier.iter().filter(|(key, _)| Kind::of(key) == Some(kind)).collect();
                    let Some((old, value)) = earlier.get(dice.below(earlier.len().max(1) as u64) as usize) else {
                        continue;
                    };
                    key.clone_from(old);
                    raw.put(old, value);
                    "put back as it was"
                }
                _ => {
                    let value = raw.get(&key).unwrap();
                    *key.last_mut().unwrap() ^= 1;
                    raw.put(&key, &value);
                    "copied"
                }
            };
            let of: Vec<String> = conversations_of(&key).into_iter().filter_map(name_of).collect();
            injury.shown.push_str(&format!("{kind:?} of {of:?} {how}; "));
            injury.touched.extend(of);
            injury.of_store |= kind == Kind::Store;
        }
        raw.close();
        loop {
            let is_below = |name: &String| {
                let parents = [story.parents.get(name).cloned(), story.reads_through(name)];
                parents.into_iter().flatten().any(|parent| injury.touched.contains(&parent))
            };
            let below: BTreeSet<String> = names().into_iter().filter(is_below).collect();
            let before = injury.touched.len();
            injury.touched.extend(below);
            if injury.touched.len() == before {
                return injury;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    ReadOnly,
    Normal,
    AcceptLoss,
}

fn open(path: &Path, how: How) -> Result<Store, Error> {
    let options = StoreOptions::new().with_create(false);
    options.with_read_only(how == How::ReadOnly).with_accept_loss(how == How::AcceptLoss).open(&url(path))
}

/// What is read of a store, and what is wrong with it.
#[derive(Default)]
struct Reading {
    shown: BTreeMap<String, Result<Shown, String>>,
}

/// What a reading is judged by.
struct Judge<'a> {
    story: &'a Story,
    injury: &'a Injury,
    /// Conversations that were written since.
    operated: &'a BTreeSet<String>,
    /// The loss was accepted: what is missing in a damaged conversation need not be reported any more.
    is_accepted: bool,
}

impl Reading {
    fn of(store: &Store, judge: &Judge<'_>, wrong: &mut Wrong) -> Self {
        let Judge { story, injury, operated, is_accepted } = *judge;
        let found = store.verify(|_, _| ());
        if let Err(error) = &found {
            wrong.push(("verify fails", error.to_string()));
        }
        let health = store.health();
        let is_told = is_accepted
            || health.went_back.is_some()
            || health.watermark_lost
            || health.set_aside.is_some()
            || found.as_ref().is_ok_and(|found| !found.problems.is_empty());
        let listed: BTreeSet<String> = match store.list(&ListQuery::new().with_limit(1000)) {
            Ok(page) => page.items.iter().filter_map(|item| name_of(item.id)).collect(),
            Err(error) => {
                wrong.push(("list fails", error.to_string()));
                names().into_iter().collect()
            }
        };
        if let Err(error) = store.find_item_everywhere("no such item") {
            wrong.push(("find fails", error.to_string()));
        }
        let mut all = BTreeMap::new();
        for name in names() {
            let loaded = shown(store, &name);
            let is_whole = |shown: &Shown| operated.contains(&name) || story.shown.get(&name) == Some(shown);
            match (&loaded, story.ever.contains_key(&name)) {
                // A head that is back cannot be told from one whose records are lost.
                (Ok((now, is_reported)), false) if now.is_empty() && (*is_reported || is_told) => {}
                (Ok((now, _)), false) => wrong.push(("a deleted conversation loads", format!("{name}: {now:?}"))),
                (Ok((now, is_reported)), true) => {
                    let stranger = now.iter().find(|(index, text, _)| !story.is_known(&name, *index, text));
                    if let Some(stranger) = stranger {
                        wrong.push(("a stranger's message", format!("{name}: {stranger:?}")));
                    } else if !is_whole(now) && !injury.touched.contains(&name) {
                        wrong.push(("an undamaged conversation is another", format!("{name}: {now:?}")));
                    } else if !is_whole(now) && !is_reported && !is_told {
                        wrong.push(("a silent loss", format!("{name}: {now:?}, was {:?}", story.shown.get(&name))));
                    }
                }
                (Err(Error::NotFound { .. }), false) => {}
                (Err(Error::NotFound { .. }), true) if injury.touched.contains(&name) && is_told => {}
                (Err(Error::Corrupt { .. }), _) if injury.touched.contains(&name) => {}
                (Err(error), _) => wrong.push(("a conversation does not load", format!("{name}: {error}"))),
            }
            if loaded.is_ok() && !operated.contains(&name) && story.ever.contains_key(&name) {
                match (store.describe(&name), &story.described[&name]) {
                    (Ok(now), before) if now.key != before.key => {
                        wrong.push(("a conversation lost its key", format!("{name}: {now:?}")));
                    }
                    (Ok(now), before) if now != *before && !injury.touched.contains(&name) => {
                        wrong.push(("the list says something else", format!("{name}: {now:?}, was {before:?}")));
                    }
                    (Ok(now), before) if now != *before && !is_told => {
                        wrong.push((
                            "silently the list says something else",
                            format!("{name}: {now:?}, was {before:?}"),
                        ));
                    }
                    (Err(error), _) => wrong.push(("a conversation is not described", format!("{name}: {error}"))),
                    _ => {}
                }
            }
            let is_empty = loaded.as_ref().is_ok_and(|(now, _)| now.is_empty());
            match listed.contains(&name) {
                true if !story.ever.contains_key(&name) && !is_empty => {
                    wrong.push(("a deleted conversation is listed", name.clone()))
                }
                false if story.ever.contains_key(&name) && !injury.touched.contains(&name) => {
                    wrong.push(("an undamaged conversation is not listed", name.clone()));
                }
                _ => {}
            }
            if store.load_strict(&name).is_err() && loaded.is_ok() && !injury.touched.contains(&name) {
                wrong.push(("load_strict fails on an undamaged conversation", name.clone()));
            }
            all.insert(name, loaded.map(|(shown, _)| shown).map_err(|error| error.to_string()));
        }
        Self { shown: all }
    }
}

/// One opening of a damaged copy, and what is done then. `floor`: what an opening for reading showed.
fn stage(
    path: &Path,
    how: How,
    mut story: Story,
    injury: &Injury,
    floor: &Reading,
    dice: &mut Dice,
) -> (Reading, Wrong) {
    let mut wrong = Vec::new();
    let store = match open(path, how) {
        Ok(store) => store,
        Err(_) if injury.of_store => return (Reading::default(), wrong),
        Err(error) => {
            wrong.push(("the store does not open", error.to_string()));
            return (Reading::default(), wrong);
        }
    };
    let untouched = BTreeSet::new();
    let is_accepted = how == How::AcceptLoss;
    let judge = Judge { story: &story, injury, operated: &untouched, is_accepted };
    let first = Reading::of(&store, &judge, &mut wrong);
    compare_with(floor, &first, &mut wrong);
    backup(path, &store, &judge, &mut wrong);
    drop(store);
    if how == How::ReadOnly {
        return (first, wrong);
    }
    // A second opening changes nothing more.
    let before = pairs(path);
    let Ok(store) = open(path, How::Normal) else {
        wrong.push(("the store does not open again", String::new()));
        return (first, wrong);
    };
    let second = Reading::of(&store, &judge, &mut Vec::new());
    for (name, shown) in &first.shown {
        if second.shown[name] != *shown {
            let detail = format!("{name}: {:?}, was {shown:?}", second.shown[name]);
            wrong.push(("a second opening shows another conversation", detail));
        }
    }
    drop(store);
    if pairs(path) != before {
        wrong.push(("a second opening changes the store", String::new()));
    }
    let store = open(path, How::Normal).unwrap();
    let operated = write(&store, &mut story, dice, &mut wrong);
    let judge = Judge { story: &story, injury, operated: &operated, is_accepted };
    Reading::of(&store, &judge, &mut wrong);
    drop(store);
    match open(path, How::Normal) {
        Ok(store) => drop(Reading::of(&store, &judge, &mut wrong)),
        Err(error) => wrong.push(("the store does not open after writes", error.to_string())),
    }
    (first, wrong)
}

/// What could be read before a recovery can be read after it.
fn compare_with(floor: &Reading, now: &Reading, wrong: &mut Wrong) {
    for (name, before) in &floor.shown {
        let Ok(before) = before else { continue };
        let lost = match &now.shown[name] {
            Ok(now) => {
                before.iter().find(|(index, text, _)| !now.iter().any(|(at, said, _)| at == index && said == text))
            }
            Err(_) => before.first(),
        };
        if let Some(lost) = lost {
            wrong.push(("an opening loses what could be read", format!("{name}: {lost:?}, {:?}", now.shown[name])));
        }
    }
}

/// All pairs but those that count openings and commits.
fn pairs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let raw = Raw::open(path);
    let mut pairs: BTreeMap<_, _> = raw.pairs().into_iter().collect();
    raw.close();
    pairs.retain(|key, _| Kind::of(key) != Some(Kind::Store));
    pairs
}

fn backup(path: &Path, store: &Store, judge: &Judge<'_>, wrong: &mut Wrong) {
    let file = path.with_extension("backup");
    let _ = std::fs::remove_file(&file);
    if let Err(error) = store.backup(&file, |_, _| ()) {
        wrong.push(("backup fails", error.to_string()));
        return;
    }
    match Store::open(&format!("backup:{}", file.display())) {
        Ok(backup) => {
            let mut found = Vec::new();
            Reading::of(&backup, judge, &mut found);
            wrong.extend(found.into_iter().map(|(what, detail)| ("a backup is wrong", format!("{what}: {detail}"))));
        }
        Err(_) if judge.injury.of_store => {}
        Err(error) => wrong.push(("a backup does not open", error.to_string())),
    }
}

/// Repeats what was appended with a key: what is answered as a repetition is there. Gives the conversations that have more
/// than before.
fn retry(store: &Store, story: &mut Story, wrong: &mut Wrong) -> BTreeSet<String> {
    let mut operated = BTreeSet::new();
    for (name, key, messages) in story.keyed.clone() {
        let Ok((now, _)) = shown(store, &name) else { continue };
        let options = AppendOptions::new().with_idempotency_key(&key);
        let Ok(receipt) = store.append_with(&name, &messages, &options) else { continue };
        let texts = messages.iter().map(text_of);
        if receipt.duplicate {
            // Some were hidden or redacted before.
            let mut shown_before = texts.filter(|text| story.shown[&name].iter().any(|(_, said, _)| said == text));
            if let Some(gone) = shown_before.find(|text| !now.iter().any(|(_, said, _)| said == text)) {
                wrong.push(("a key answers for what is gone", format!("{name}: {key}: {gone:.40}")));
            }
            continue;
        }
        for (index, text) in receipt.message_indexes.into_iter().zip(texts) {
            story.hear(&name, index, [text]);
        }
        operated.insert(name);
    }
    operated
}

/// Appends, redacts, deletes. Gives the conversations that are not as they were.
fn write(store: &Store, story: &mut Story, dice: &mut Dice, wrong: &mut Wrong) -> BTreeSet<String> {
    let mut operated = retry(store, story, wrong);
    for name in names() {
        match dice.below(6) {
            0 | 1 => {
                let text = story.text(&name);
                if let Ok(receipt) = crate::faults::user(store, &name, &text) {
                    story.hear(&name, receipt.message_indexes[0], [text]);
                    operated.insert(name);
                }
            }
            2 if story.ever.contains_key(&name) => {
                let _ = store.redact(&name, 0, None);
                // Forks share it.
                operated.extend(names());
            }
            3 if story.ever.contains_key(&name) => {
                let deleted = store.delete(&name);
                let is_there = store.load(&name).is_ok();
                if deleted.is_err() && !is_there {
                    wrong.push(("a deletion fails and is half done", format!("{name}: {deleted:?}")));
                }
                if !is_there {
                    story.forget(&name);
                }
                operated.insert(name);
            }
            _ => {}
        }
    }
    operated
}

/// How often something was wrong, and an example, by what and how the store was opened.
type Table = BTreeMap<(&'static str, How), (u64, String)>;

/// Opens copies of a store in each way. Whether all is as it should be; what is not is added to the table.
fn try_case(
    case: u64,
    original: &Path,
    story: &Story,
    injury: &Arc<Injury>,
    dice: &mut Dice,
    table: &mut Table,
) -> bool {
    let mut floor = Arc::new(Reading::default());
    let mut is_good = true;
    for how in [How::ReadOnly, How::Normal, How::AcceptLoss] {
        let path = original.with_extension(format!("{how:?}"));
        copy(original, &path);
        let run = {
            let (path, story, injury, floor) = (path.clone(), story.clone(), Arc::clone(injury), Arc::clone(&floor));
            let mut dice = Dice::quiet(dice.below(u64::MAX));
            move || stage(&path, how, story, &injury, &floor, &mut dice)
        };
        let ended = catch_unwind(AssertUnwindSafe(|| within(&format!("{how:?}"), run)));
        let (first, wrong) = ended.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            let kind = if text.contains("has not returned") { "a call hangs" } else { "a panic" };
            (Reading::default(), vec![(kind, text)])
        });
        if how == How::ReadOnly {
            floor = Arc::new(first);
        }
        is_good &= wrong.is_empty();
        for (kind, detail) in wrong.into_iter().rev().collect::<BTreeMap<_, _>>() {
            let example = || (0, format!("case {case}, {}{detail}", injury.shown));
            table.entry((kind, how)).or_insert_with(example).0 += 1;
        }
        std::fs::remove_dir_all(path).unwrap();
    }
    is_good
}

/// Makes stores, lets something happen to each, and fails if what they do then is wrong.
fn campaign(cases: u64, inflict: impl Fn(&Path, &Story, &mut Dice) -> Injury) {
    let mut dice = Dice::seeded(number("CONVO_SEED", SEED));
    let (mut table, mut bad) = (Table::new(), 0);
    for first in (0..cases).step_by(CASES_OF_A_STORY as usize) {
        let dir = tempfile::tempdir().unwrap();
        let told = dir.path().join("told");
        let story = Story::tell(&told, &mut Dice::quiet(dice.below(u64::MAX)));
        for case in first..cases.min(first + CASES_OF_A_STORY) {
            let dir = tempfile::tempdir().unwrap();
            let original = dir.path().join("original");
            copy(&told, &original);
            let injury = Arc::new(inflict(&original, &story, &mut dice));
            bad += u64::from(!try_case(case, &original, &story, &injury, &mut dice, &mut table));
        }
    }
    for ((kind, how), (count, example)) in &table {
        println!("{count:4} {kind} ({how:?}), such as {example:.500}");
    }
    assert!(table.is_empty(), "{bad} of {cases} cases have a wrong outcome: see above");
}

#[test]
fn damage_stays_where_it_is_and_is_reported() {
    campaign(number("CONVO_FAULT_CASES", 20), Injury::inflict);
}

/// The judge finds nothing where nothing happened.
#[test]
fn a_store_that_is_not_damaged_is_judged_well() {
    let nothing =
        |_: &Path, _: &Story, _: &mut Dice| Injury { shown: String::new(), touched: BTreeSet::new(), of_store: false };
    campaign(number("CONVO_FAULT_CASES", 20).div_ceil(5), nothing);
}
