//! Opening a store of a million chunks of 1,000 bytes, after it was closed and after its process was killed; and the most
//! memory that filling and reading it took. A process of its own does that.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Bench, measured};
use crate::engines::{ENGINES, Engine};
use crate::options::Options;
use crate::place::memory;
use crate::rounds::{Measured, Unit, interleave};
use crate::texts::{Texts, conversation};

const CHUNK_BYTES: usize = 1_000;
const APPEND_CHUNKS: usize = 100;
const CONVERSATION_CHUNKS: usize = 1_000;
/// Single durable appends before a process is killed.
const LAST_APPENDS: usize = 200;

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let chunks = bench.size(1_000_000, 30_000);
    let engines = bench.engines(|engine| engine.reads && engine.keeps);
    let mut memory = Vec::new();
    for engine in &engines {
        eprintln!("open: {} is filled", engine.name);
        memory.extend(fill_and_kill(&bench.path("open", engine), engine, chunks).map(|most| (engine.name, vec![most])));
    }
    let mut stores: Vec<_> = engines.into_iter().map(|engine| (engine, engine)).collect();
    let mut clean: Vec<_> = stores.iter().map(|(engine, _)| (engine.name, Vec::new())).collect();
    let killed = interleave("open", bench.size(5, 2), &mut stores, |engine, round| {
        let path = bench.path("open", engine);
        // A few more chunks for a store that has a past.
        fill_and_kill(&path, engine, chunks / 100);
        let killed = millis_to_open(&path, engine);
        let closed = millis_to_open(&path, engine);
        if round > 0
            && let Some((_, values)) = clean.iter_mut().find(|(name, _)| *name == engine.name)
        {
            values.push(closed);
        }
        killed
    });
    bench.remove("open");
    let millis = Unit::cost("ms");
    vec![
        measured("open_clean", millis, clean),
        measured("open_killed", millis, killed),
        measured("memory", Unit::cost("MiB"), memory),
    ]
}

/// Opens, reads a little, closes. Only the opening counts, with the first read: an engine may put work off until then.
fn millis_to_open(path: &Path, engine: &Engine) -> f64 {
    let start = Instant::now();
    let peer = (engine.open)(path);
    assert!(!peer.tail(conversation(0), 1).is_empty());
    let taken = start.elapsed();
    peer.close();
    taken.as_secs_f64() * 1e3
}

/// Lets another process fill a store, and kills it. Gives the most memory that it took, in MiB.
fn fill_and_kill(path: &Path, engine: &Engine, chunks: usize) -> Option<f64> {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--fill", &chunks.to_string(), &CHUNK_BYTES.to_string(), "--engine", engine.name, "--dir"]);
    let mut child = command.arg(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let most =
        line.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("{}: the filling process failed", engine.name));
    most.parse().ok()
}

/// What the other process does: it fills and reads a store, says so, and waits to be killed.
pub(crate) fn fill_and_wait(options: &Options, (chunks, chunk_bytes): (usize, usize)) {
    let engine = ENGINES.iter().find(|engine| options.engines.iter().any(|name| name == engine.name)).unwrap();
    let peer = (engine.open)(options.dir.as_deref().unwrap());
    let mut texts = Texts::new();
    let batches: Vec<_> = (0..16).map(|_| texts.chat(APPEND_CHUNKS, chunk_bytes)).collect();
    let conversations = chunks.div_ceil(CONVERSATION_CHUNKS);
    let appends = chunks / APPEND_CHUNKS;
    peer.fill(&mut (0..appends).map(|at| (conversation(at % conversations), batches[at % batches.len()].as_slice())));
    for at in 0..LAST_APPENDS {
        peer.append(conversation(at % conversations), None, &batches[0][..2]);
    }
    for number in 0..conversations {
        assert!(!peer.load(conversation(number)).is_empty());
    }
    let most = memory("VmHWM").map(|most| most.to_string()).unwrap_or_default();
    println!("ready {most}");
    std::io::stdout().flush().unwrap();
    // Ends with the process that reads, should it end first.
    let _ = std::io::stdin().read(&mut [0]);
}
