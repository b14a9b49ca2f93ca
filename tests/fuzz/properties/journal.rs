//! A journal in which anything is written over: no record counts that was not written, none is missing without a word.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use conversation_store::model::{Body, Message};
use conversation_store::{Store, StoreOptions};
use tempfile::TempDir;

const APPENDS: usize = 12;
/// What is written over is at the file's beginning: the records are there.
const BYTES: u32 = 32 * 1024;

/// A store as a killed process left it, with records in the journal that are nowhere else.
struct Killed {
    dir: TempDir,
}

impl Killed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let append = |numbers: std::ops::Range<usize>| {
            let store = Store::open(&url(&path)).unwrap();
            numbers.for_each(|number| _ = store.append("chat", &[Message::user(number.to_string())]).unwrap());
            store
        };
        // The first of them are in sled: without the journal there is still a store.
        drop(append(0..2));
        let store = append(2..APPENDS);
        copy(&path, &dir.path().join("killed"));
        drop(store);
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("killed")
    }
}

fn url(path: &Path) -> String {
    format!("sled:{}", path.display())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() && entry.file_name() != "ballast" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Takes the bytes as places (4), lengths (1), and as many bytes to write there.
pub fn holds(data: &[u8]) {
    static KILLED: OnceLock<Killed> = OnceLock::new();
    let killed = KILLED.get_or_init(Killed::new);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    copy(&killed.path(), &path);
    let mut file = File::options().write(true).open(path.join("journal")).unwrap();
    let mut rest = data;
    while let Some((place, after)) = rest.split_first_chunk::<4>() {
        let Some((length, after)) = after.split_first() else { break };
        let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
        file.seek(SeekFrom::Start(u64::from(u32::from_be_bytes(*place) % BYTES))).unwrap();
        file.write_all(bytes).unwrap();
        rest = after;
    }
    drop(file);
    let store = StoreOptions::new().with_read_only(true).open(&url(&path)).unwrap();
    let texts: Vec<String> = match store.load("chat") {
        Ok(loaded) => loaded.messages().iter().map(|stored| text(&stored.message)).collect(),
        Err(_) => Vec::new(),
    };
    let written: Vec<String> = (0..APPENDS).map(|number| number.to_string()).collect();
    assert!((2..=APPENDS).contains(&texts.len()) && texts == written[..texts.len()], "{texts:?}");
    let health = store.health();
    assert!(texts.len() == APPENDS || health.went_back.is_some() || !health.damage.is_empty(), "{health:?}");
}

fn text(message: &Message) -> String {
    match &message.chunks[0].body {
        Body::Text { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    }
}
