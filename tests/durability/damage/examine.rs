//! What is left of a damaged store: looked at in a process of its own, which may panic.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conversation_store::model::Message;
use conversation_store::{Conversation, Error, Health, ListQuery, MessageState, Store, StoreOptions};
use serde_json::{Value, json};

use crate::damage::expected::{self, Expected, Kept};

/// Tells a run of this test that it is the other process, and where the store is.
pub(crate) const PLACE: &str = "CONVO_DAMAGE_PLACE";
/// The line with what was found begins with this.
const FOUND: &str = "examined ";

/// What one opening of a store showed.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) opened: bool,
    /// Conversations that are as they were.
    pub(crate) whole: u64,
    /// Conversations of which loading says that they are damaged.
    pub(crate) told: u64,
    /// Conversations of which something is missing, and loading does not say so.
    pub(crate) short: u64,
    /// Conversations that hold what was never said.
    pub(crate) wrong: u64,
    /// Opening or `verify` says that the store is damaged.
    pub(crate) is_told: bool,
    /// What was said first.
    pub(crate) detail: String,
}

#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) expected: u64,
    /// Opened to read; to write; to read again.
    pub(crate) stages: [Stage; 3],
}

/// Looks at a store: to read, to write, and to read what was written. Prints what is there.
pub(crate) fn examine(place: &Path) {
    let expected = expected::read(&place.join("expected"));
    let url = format!("{}:{}", std::env::var("CONVO_DAMAGE_ENGINE").unwrap(), place.join("db").display());
    let options = StoreOptions::new().with_create(false);
    let mut appended = BTreeMap::new();
    let reading = stage(&options.clone().with_read_only(true), &url, &expected, &mut appended);
    let writing = stage(&options, &url, &expected, &mut appended);
    let again = stage(&options.with_read_only(true), &url, &expected, &mut appended);
    let shown = |stage: &Stage| {
        json!([stage.opened, stage.whole, stage.told, stage.short, stage.wrong, stage.is_told, stage.detail])
    };
    println!("\n{FOUND}{}", json!([expected.len(), shown(&reading), shown(&writing), shown(&again)]));
}

/// What the other process printed, if it came to that.
pub(crate) fn read(stdout: &str) -> Option<Examined> {
    let line = stdout.lines().find_map(|line| line.strip_prefix(FOUND))?;
    let found: Value = serde_json::from_str(line).unwrap();
    let stage = |at: usize| {
        let of = |field: usize| &found[at][field];
        let number = |field: usize| of(field).as_u64().unwrap();
        Stage {
            opened: of(0) == true,
            whole: number(1),
            told: number(2),
            short: number(3),
            wrong: number(4),
            is_told: of(5) == true,
            detail: of(6).as_str().unwrap().to_owned(),
        }
    };
    Some(Examined { expected: found[0].as_u64().unwrap(), stages: [1, 2, 3].map(stage) })
}

/// What was appended to a damaged store: the index of the message, by conversation.
type Appended = BTreeMap<String, u64>;

fn stage(options: &StoreOptions, url: &str, expected: &Expected, appended: &mut Appended) -> Stage {
    let store = match options.open(url) {
        Ok(store) => store,
        Err(error) => return Stage { detail: error.to_string(), ..Stage::default() },
    };
    let mut stage = Stage { opened: true, ..Stage::default() };
    let Health { went_back, watermark_lost, set_aside, .. } = store.health();
    if went_back.is_some() || watermark_lost || set_aside.is_some() {
        stage.tell(format!("{went_back:?} {watermark_lost} {set_aside:?} "));
    }
    for (name, kept) in expected {
        compare(&store, name, kept, appended.get(name).copied(), &mut stage);
    }
    if let Ok(page) = store.list(&ListQuery::new().with_limit(2 * expected.len())) {
        let listed: BTreeSet<&str> = page.items.iter().filter_map(|item| item.key.as_deref()).collect();
        let known: BTreeSet<&str> = expected.keys().map(String::as_str).collect();
        // Some are missing, or were deleted and are back.
        stage.short += listed.symmetric_difference(&known).count() as u64;
    }
    match store.verify(|_, _| ()) {
        Ok(found) if found.problems.is_empty() => {}
        Ok(found) => stage.tell(format!("{} problems: {}", found.problems.len(), found.problems[0])),
        Err(error) => stage.tell(error.to_string()),
    }
    for name in expected.keys().step_by(37) {
        if let Ok(receipt) = store.append(name, &[Message::user(expected::AFTER)]) {
            appended.insert(name.clone(), receipt.message_indexes[0]);
        }
    }
    stage
}

impl Stage {
    fn tell(&mut self, detail: String) {
        self.is_told = true;
        self.detail.push_str(&detail);
    }
}

fn compare(store: &Store, name: &str, kept: &Kept, appended: Option<u64>, stage: &mut Stage) {
    let (found, error) = match store.load_raw(name) {
        Ok(messages) => (messages, None),
        Err(error) => {
            let loaded = store.load(name).map(Conversation::into_messages).unwrap_or_default();
            (loaded.into_iter().filter(|stored| stored.state != MessageState::Synthetic).collect(), Some(error))
        }
    };
    if found.iter().any(|stored| !expected::was_said(name, &stored.message)) {
        stage.wrong += 1;
    } else if let Some(error) = error.filter(|error| !matches!(error, Error::NotFound { .. })) {
        stage.told += 1;
        if stage.detail.is_empty() {
            stage.detail = error.to_string();
        }
    } else {
        let last_seq = store.describe(name).map_or(0, |item| item.last_seq);
        let mut said = expected::said(&found);
        let is_there = appended.is_none_or(|index| said.iter().any(|(at, _)| *at == index));
        said.retain(|(at, _)| Some(*at) != appended);
        let is_whole = said == kept.said && last_seq == kept.last_seq + u64::from(appended.is_some());
        stage.wrong += u64::from(!is_there);
        stage.whole += u64::from(is_whole);
        stage.short += u64::from(!is_whole);
    }
}
