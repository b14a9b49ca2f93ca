//! Other processes: this test binary, run again in another role.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Names the role, with its arguments.
const ROLE: &str = "CONVO_TEST_ROLE";
/// Begins each line that a role prints.
const MARK: &str = "role: ";

/// A process in a role.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts one.
    pub(crate) fn start(role: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process::another_process", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, [&[role], arguments].concat().join("\n"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, input, lines: BufReader::new(output).lines() }
    }

    /// The next line that it prints; nothing, if it has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.split_once(MARK)?.1.to_owned()))
    }

    /// Lets it go on.
    pub(crate) fn go(&mut self) {
        writeln!(self.input.as_mut().unwrap(), "go").unwrap();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([format!("-{signal}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// All that it still prints; waits for its end.
    pub(crate) fn rest(mut self) -> Vec<String> {
        drop(self.input.take());
        let lines = std::iter::from_fn(|| self.next()).collect();
        self.child.wait().unwrap();
        lines
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints a line for the process that started this one.
pub(crate) fn say(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

/// Waits until the process that started this one says to go on.
pub(crate) fn wait() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// What the other processes run; alone, it does nothing.
#[test]
fn another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.lines();
    let (role, arguments) = (words.next().unwrap(), words.collect::<Vec<_>>());
    match role {
        "stream" => crate::leases::stream(&arguments),
        "answer" => crate::processes::answer(&arguments),
        "append" => crate::processes::append(&arguments),
        "talk" => crate::followers::talk(&arguments),
        other => panic!("no role is called {other}"),
    }
}
