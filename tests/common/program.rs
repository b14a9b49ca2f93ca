//! The program `convo` as a child process: run with a limit, or writing until it is killed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What does not end by then hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A run that came to its end.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Absent if a signal ended it.
    pub(crate) exit: Option<i32>,
    pub(crate) hung: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Stdout, which is one line of JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) fn convo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convo"));
    command.env_remove("CONVO_STORE").env("RUST_BACKTRACE", "0").args(args).stdin(Stdio::null());
    command
}

/// Runs a command; what does not end within the limit is killed.
pub(crate) fn run(mut command: Command, limit: Duration) -> Ended {
    let dir = crate::common::tempdir().unwrap();
    let (out, err) = (dir.path().join("out"), dir.path().join("err"));
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let mut hung = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > limit {
            hung = true;
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(2));
    };
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Ended { exit: status.code(), hung, stdout: text(&out), stderr: text(&err) }
}

/// `convo bench`, writing to a store until it is killed, and what it acknowledged.
pub(crate) struct Writer {
    child: Child,
    acks: PathBuf,
    stderr: PathBuf,
    /// How long the acks were, at which time.
    samples: Vec<(Instant, u64)>,
}

impl Writer {
    /// Starts it, and returns once it acknowledged something. `acks` is a new file, on another disk.
    pub(crate) fn start(store: &str, acks: &Path, load: &[&str]) -> Self {
        let stderr = acks.with_extension("stderr");
        let mut command = convo(&["bench", "--store", store, "--seconds", "3600", "--acks", acks.to_str().unwrap()]);
        command.args(load).stdout(Stdio::null()).stderr(File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let begun = Instant::now();
        while fs::metadata(acks).map_or(0, |acks| acks.len()) == 0 {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{store}: the writer ended: {}", fs::read_to_string(&stderr).unwrap());
            assert!(begun.elapsed() < PATIENCE, "{store}: nothing is acknowledged");
            thread::sleep(Duration::from_micros(200));
        }
        Self { child, acks: acks.to_owned(), stderr, samples: Vec::new() }
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Lets it write for a time.
    pub(crate) fn write_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            // The time first: what is there now was acknowledged before now or a little later.
            let now = Instant::now();
            self.samples.push((now, fs::metadata(&self.acks).unwrap().len()));
            thread::sleep(Duration::from_millis(1).min(until - now));
        }
    }

    /// Stops it. The signal is not enough: on a busy machine threads run on for a tenth of a second, and may acknowledge more.
    pub(crate) fn stop(&self) {
        signal("STOP", self.child.id());
        let tasks = format!("/proc/{}/task", self.child.id());
        let stands = |task: &Path| {
            // The state follows the name, which is in parentheses. A thread that has ended does nothing more.
            let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_none_or(|state| state.is_empty() || state.starts_with(['T', 'Z', 'X']))
        };
        let begun = Instant::now();
        while !fs::read_dir(&tasks).unwrap().all(|task| stands(&task.unwrap().path())) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not stop");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills it. It may have ended because its disk was gone, but not before it was told to write for long enough.
    pub(crate) fn kill(mut self) -> Acks {
        // It may be gone already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
        let lines = fs::read_to_string(&self.acks).unwrap();
        fs::remove_file(&self.stderr).unwrap();
        Acks { lines, samples: self.samples }
    }
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap();
    assert!(status.success());
}

/// What a writer acknowledged, line by line.
pub(crate) struct Acks {
    lines: String,
    samples: Vec<(Instant, u64)>,
}

impl Acks {
    /// The lines that have an end.
    pub(crate) fn whole(&self) -> &str {
        self.lines.rfind('\n').map_or("", |end| self.lines.split_at(end + 1).0)
    }

    /// When the first of what is missing was acknowledged, at the earliest.
    pub(crate) fn first_lost(&self, kept: &HashMap<String, u64>) -> Option<Instant> {
        let mut position = 0;
        for line in self.whole().split_inclusive('\n') {
            if is_lost(line, kept) {
                let before = self.samples.iter().rev().find(|(_, length)| *length <= position);
                return before.or(self.samples.first()).map(|(time, _)| *time);
            }
            position += line.len() as u64;
        }
        None
    }
}

/// The acknowledgements without those of what is gone.
pub(crate) fn still_owed(acks: &str, kept: &HashMap<String, u64>) -> String {
    acks.split_inclusive('\n').filter(|line| !is_lost(line, kept)).collect()
}

/// Whether a line acknowledges more than is there. `kept`: the last seqs of the conversations that end too early.
fn is_lost(line: &str, kept: &HashMap<String, u64>) -> bool {
    let (conversation, seq) = line.trim_end().split_once(' ').unwrap();
    kept.get(conversation).is_some_and(|kept| seq.parse::<u64>().unwrap() > *kept)
}

/// What `convo verify --acks` says of a store.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Conversations that end before what was acknowledged, with the last seq that is there.
    pub(crate) lost: HashMap<String, u64>,
    /// Everything else: the store does not open, or is not consistent.
    pub(crate) broken: Vec<String>,
    pub(crate) entries: u64,
}

impl Verdict {
    pub(crate) fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.broken.is_empty()
    }
}

/// Verifies a store against what was acknowledged; then writes to it.
pub(crate) fn verify(store: &str, acks: &Path) -> Verdict {
    let ended = run(convo(&["verify", "--json", "--store", store, "--acks", acks.to_str().unwrap()]), PATIENCE);
    let mut verdict = Verdict { lost: HashMap::new(), broken: Vec::new(), entries: 0 };
    if ended.hung || ended.stdout.is_empty() {
        verdict.broken.push(if ended.hung { "verify hangs".to_owned() } else { ended.stderr });
        return verdict;
    }
    let found = ended.json();
    verdict.entries = found["entries"].as_u64().unwrap();
    for problem in found["problems"].as_array().unwrap() {
        match (problem["conversation"].as_str(), problem["seq"].as_u64()) {
            (Some(id), Some(seq)) if problem["detail"].as_str().unwrap().starts_with("it was acknowledged up to") => {
                verdict.lost.insert(id.to_owned(), seq - 1);
            }
            _ => verdict.broken.push(problem.to_string()),
        }
    }
    assert_eq!(ended.exit, Some(i32::from(!verdict.is_clean())), "{verdict:?}");
    if verdict.broken.is_empty() {
        let written = run(convo(&["bench", "--store", store, "--seconds", "0.02"]), PATIENCE);
        if written.exit != Some(0) {
            verdict.broken.push(format!("it cannot be written: {}", written.stderr));
        }
    }
    verdict
}

/// Times and the like, different in each run. The seed is printed, to look at a run again.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        let seed = std::env::var("CONVO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64
        });
        Self::seeded(seed)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        println!("CONVO_SEED={seed}");
        Self(seed)
    }

    /// One of many, whose seeds nobody wants to read.
    pub(crate) const fn quiet(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// A time up to `most`: every second one is short.
    pub(crate) fn time(&mut self, most: Duration) -> Duration {
        let most = most.as_micros() as u64;
        let most = if self.below(2) == 0 { most / 8 } else { most };
        Duration::from_micros(self.below(most))
    }
}

/// Copies a directory, with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A number from the environment.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}
