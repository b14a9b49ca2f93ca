//! The disk under a server becomes full: that of the tables, or that of its log of writes. Needs root, mount and mkfs.ext4.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{AppendOptions, Error, ListQuery, Store, StoreOptions};

use crate::cluster::until;
use crate::common::disk::Disk;
use crate::common::postgres::{Server, schema};

const WRITERS: usize = 4;
/// Appends of each writer after there is room again.
const MORE: usize = 20;
/// How often each writer is refused before room is made.
const REFUSALS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(120);

/// A disk with a directory for a server, and a file that takes some of its room.
struct Small {
    disk: Disk,
}

impl Small {
    /// Absent: it cannot be mounted, and nobody insists.
    fn mount(size: &str) -> Option<Self> {
        let disk = match Disk::of(size) {
            Ok(disk) => disk,
            Err(error) => {
                assert!(std::env::var_os("CONVO_REQUIRE_MOUNT").is_none(), "no disk can be mounted: {error}");
                crate::common::skipped(&format!("a full disk of PostgreSQL: no disk can be mounted: {error}"));
                return None;
            }
        };
        fs::set_permissions(disk.mount_point().parent().unwrap(), Permissions::from_mode(0o711)).unwrap();
        let small = Self { disk };
        fs::create_dir(small.path()).unwrap();
        Server::own(&small.path());
        fs::write(small.file(), vec![1; 8 * 1024 * 1024]).unwrap();
        Some(small)
    }

    /// The directory for a server.
    fn path(&self) -> PathBuf {
        self.disk.mount_point().join("server")
    }

    fn file(&self) -> PathBuf {
        self.disk.mount_point().join("file")
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = fs::File::options().append(true).open(self.file()).unwrap();
        for bytes in [64 * 1024, 4096, 1] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.file()).unwrap();
    }
}

fn name(writer: usize) -> String {
    format!("chat {writer}")
}

/// What a writer says, long enough for a disk to become full soon.
fn said(writer: usize, at: usize) -> String {
    format!("{writer}/{at} {}", "said ".repeat(4_000))
}

/// Appends with a key: once, whatever becomes of the first attempt.
fn append(store: &Store, writer: usize, at: usize) -> Result<bool, Error> {
    let options = AppendOptions::new().with_idempotency_key(format!("turn {at}"));
    let message = [Message::user(said(writer, at))];
    store.append_with(name(writer), &message, &options).map(|receipt| receipt.duplicate)
}

/// Lets writers append until each is refused, makes room, and lets them go on with what they were refused. `is_refused`: what
/// they are told then. Gives how many appends each got done, all of which are there once.
fn write_until_full(store: &Store, is_refused: impl Fn(&Error) -> bool + Sync, make_room: impl FnOnce()) -> Vec<usize> {
    let (full, has_room) = (AtomicUsize::new(0), AtomicBool::new(false));
    let refusals = Mutex::new(Vec::new());
    let done = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (full, has_room, refusals, is_refused) = (&full, &has_room, &refusals, &is_refused);
                scope.spawn(move || {
                    let begun = Instant::now();
                    let (mut at, mut refused) = (0, 0);
                    while refused < REFUSALS && begun.elapsed() < PATIENCE {
                        match append(store, writer, at) {
                            // What fits into the room that a table has already is taken.
                            Ok(_) => at += 1,
                            Err(error) => {
                                refused += 1;
                                refusals.lock().unwrap().push(error);
                            }
                        }
                    }
                    full.fetch_add(1, Ordering::Relaxed);
                    while !has_room.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                        thread::sleep(Duration::from_millis(10));
                    }
                    for at in at..at + MORE {
                        while let Err(error) = append(store, writer, at) {
                            assert!(is_refused(&error) && begun.elapsed() < PATIENCE, "{error:?}");
                        }
                    }
                    at + MORE
                })
            })
            .collect();
        until("refusals", || full.load(Ordering::Relaxed) == WRITERS);
        make_room();
        has_room.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let refusals = refusals.into_inner().unwrap();
    assert_eq!(refusals.len(), WRITERS * REFUSALS, "the disk did not become full");
    assert!(refusals.iter().all(is_refused), "{refusals:#?}");
    done
}

/// Each writer's appends are there, once and in order.
fn assert_all_there(store: &Store, done: &[usize]) {
    for (writer, done) in done.iter().enumerate() {
        assert!(*done > MORE, "writer {writer} got nothing done before the disk was full");
        let messages = store.load_raw(name(writer)).unwrap();
        let stored: Vec<_> = messages.into_iter().map(|stored| stored.message.chunks).collect();
        let wanted: Vec<_> = (0..*done).map(|at| vec![Chunk::text(said(writer, at))]).collect();
        assert!(stored == wanted, "writer {writer}: {} messages, {} appended", stored.len(), wanted.len());
    }
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn a_full_disk_of_tables_refuses_appends_until_there_is_room() {
    let Some(server) = crate::running() else { return };
    let Some(small) = Small::mount("64M") else { return };
    server.run(&format!("CREATE TABLESPACE small LOCATION '{}'", small.path().display())).unwrap();
    let tables = "%20-cdefault_tablespace%3Dsmall&lease_seconds=120";
    let urls = [server.url() + tables, server.url() + tables];
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open(&urls[0]).unwrap();
    let mut writer = store.begin("stream", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("before, ")).unwrap();
    store.sync().unwrap();
    let done = write_until_full(&store, is_full, || {
        small.fill();
        // A part of a streamed message that there is no room for is kept, and sent again.
        let late = "meanwhile, ".repeat(60_000);
        writer.push(0, Chunk::text(late)).unwrap();
        let unwritten = store.sync();
        assert!(matches!(&unwritten, Err(error) if is_full(error)), "{unwritten:?}");
        // Tables are made all or not at all.
        let unmade = Store::open(&urls[1]).unwrap_err();
        assert!(is_full(&unmade), "{unmade:?}");
        // What is stored is read.
        assert_eq!(store.list(&ListQuery::new()).unwrap().items.len(), WRITERS + 1);
        assert!((0..WRITERS).all(|writer| !store.load(name(writer)).unwrap().messages().is_empty()));
        small.make_room();
    });
    assert_all_there(&store, &done);
    writer.push(0, Chunk::text("after")).unwrap();
    writer.finish(None, None).unwrap();
    let streamed = store.load_raw("stream").unwrap().remove(0).message.chunks;
    assert_eq!(streamed, [Chunk::text(format!("before, {}after", "meanwhile, ".repeat(60_000)))]);
    Store::open(&urls[1]).unwrap().append("chat", &[Message::user("hello")]).unwrap();
    for url in &urls {
        server.run(&format!("DROP SCHEMA {} CASCADE", schema(url).split('%').next().unwrap())).unwrap();
    }
    server.run("DROP TABLESPACE small").unwrap();
}

/// A server that cannot write its log ends, and starts no more: whether it took the last appends, nobody knows.
#[test]
fn a_full_disk_of_the_log_of_writes_ends_the_server_and_loses_nothing() {
    if crate::running().is_none() {
        return;
    }
    let Some(small) = Small::mount("128M") else { return };
    let wal = small.path().join("wal");
    let settings = ["-c", "max_wal_size=32MB", "-c", "min_wal_size=32MB", "-c", "fsync=on"];
    let mut server = Server::start_with_wal(&wal, &settings).unwrap();
    let url = server.url() + "&timeout_seconds=2";
    let store = Store::open(&url).unwrap();
    small.fill();
    let is_gone = |error: &Error| match error {
        Error::OutcomeUnknown { .. } => true,
        Error::Io { source, .. } => source.kind() == ErrorKind::NotConnected,
        _ => false,
    };
    let done = write_until_full(&store, is_gone, || {
        let unread = store.load(name(0)).unwrap_err();
        assert!(is_gone(&unread), "{unread:?}");
        small.make_room();
        server.restart("QUIT");
    });
    assert_all_there(&store, &done);
}
