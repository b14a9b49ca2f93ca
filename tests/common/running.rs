//! A server in a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::http::Client;

/// A server, its store and its keys; all of it goes when it is dropped.
pub(crate) struct Running {
    pub(crate) dir: TempDir,
    url: String,
    pub(crate) args: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    pub(crate) client: Client,
    pub(crate) admin: Option<Client>,
}

fn convo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convo"));
    command
        .env_remove("CONVO_STORE")
        .env_remove("CONVO_CONFIG")
        .env("RUST_BACKTRACE", "0")
        .args(args)
        .stdin(Stdio::null());
    command
}

impl Running {
    /// A server without keys, on a store in memory.
    pub(crate) fn open() -> Self {
        Self::start("memory:", &[])
    }

    /// A server on a store of sled, which outlives it.
    pub(crate) fn durable(args: &[&str]) -> Self {
        Self::start("sled:DIR/store?cache_mb=1", args)
    }

    /// A server that needs keys, on a store in memory, and a client for each of the owners and scopes.
    pub(crate) fn with_keys(owners: &[(&str, &str)]) -> (Self, Vec<Client>) {
        Self::with_keys_on("memory:", owners, &[])
    }

    /// As [`Running::with_keys`], on another store and with further arguments.
    pub(crate) fn with_keys_on(url: &str, owners: &[(&str, &str)], args: &[&str]) -> (Self, Vec<Client>) {
        let dir = crate::common::tempdir().unwrap();
        let keys = dir.path().join("keys.json");
        let secrets: Vec<String> = owners.iter().map(|(owner, scopes)| create_key(&keys, owner, scopes)).collect();
        let running = Self::start_in(dir, url, &[&["--keys", "DIR/keys.json"], args].concat(), &[]);
        let clients = secrets.iter().map(|secret| running.client.with_key(secret)).collect();
        (running, clients)
    }

    /// A server; `DIR` in its arguments is a directory of its own.
    pub(crate) fn start(url: &str, args: &[&str]) -> Self {
        Self::start_in(crate::common::tempdir().unwrap(), url, args, &[])
    }

    /// As [`Running::start`], with these variables.
    pub(crate) fn start_in_environment(url: &str, args: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_in(crate::common::tempdir().unwrap(), url, args, environment)
    }

    fn start_in(dir: TempDir, url: &str, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let replace = |text: &str| text.replace("DIR", dir.path().to_str().unwrap());
        let (url, args) = (replace(url), args.iter().map(|arg| replace(arg)).collect::<Vec<_>>());
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment: Vec<_> = environment.collect();
        let (child, client, admin) = spawn(&dir, &url, &args, &environment);
        Self { dir, url, args, environment, child, client, admin }
    }

    /// Ends it as a power cut would end its process, and starts it again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.restart();
    }

    pub(crate) fn restart(&mut self) {
        let key = self.client.key.clone();
        (self.child, self.client, self.admin) = spawn(&self.dir, &self.url, &self.args, &self.environment);
        self.client.key = key;
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end: its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes of its memory.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS")
    }

    /// How many more bytes of memory it takes while something is done than before.
    pub(crate) fn growth(&self, act: impl FnOnce()) -> u64 {
        // The highest figure is counted anew from now on.
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
        let before = self.resident();
        act();
        self.memory("VmHWM").saturating_sub(before)
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// The time of processors that it has used, in hundredths of a second.
    pub(crate) fn processor_time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // After the name, which may have spaces: fields 14 and 15 of proc(5), in ticks.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// What it logged, with the lines of all that was answered by now: they are written beside the answers.
    pub(crate) fn log_so_far(&self) -> String {
        let id = format!("mark-{}", self.log().len());
        self.client.send("GET", "/v1/conversations", &[("x-request-id", &id)], b"");
        let begun = Instant::now();
        while !self.log().contains(&id) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
        self.log()
    }

    /// What is written of its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.dir.path().join("keys.json")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(
    dir: &TempDir,
    url: &str,
    args: &[String],
    environment: &[(String, String)],
) -> (Child, Client, Option<Client>) {
    let log = File::options().create(true).append(true).open(dir.path().join("log")).unwrap();
    let mut command = convo(&["--store", url, "--json", "serve"]);
    if !args.iter().any(|arg| arg == "--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let mut child = command.args(args).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let log = || std::fs::read_to_string(dir.path().join("log")).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}: {}", log()));
    let client = |name: &str| {
        let address = listening[name].as_str()?.split("://").nth(1)?.to_owned();
        Some(Client { address, key: None })
    };
    (child, client("listening").unwrap(), client("admin"))
}

/// Makes a key: its secret.
pub(crate) fn create_key(keys: &std::path::Path, owner: &str, scopes: &str) -> String {
    let keys = keys.to_str().unwrap();
    let output = convo(&["keys", "create", "--keys", keys, "--owner", owner, "--scopes", scopes]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let secret = String::from_utf8(output.stdout).unwrap();
    assert_eq!(secret.lines().count(), 1, "the secret alone");
    secret.trim().to_owned()
}

/// Runs the program to its end: its exit code, stdout, stderr.
pub(crate) fn run(args: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = convo(args).envs(environment.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
