//! The program `openssl`: makes certificates, and speaks TLS.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether it is installed. Where it is required, it has to be.
pub(crate) fn is_there() -> bool {
    let is_there = Command::new("openssl").arg("version").output().is_ok();
    assert!(is_there || std::env::var_os("CONVO_REQUIRE_OPENSSL").is_none(), "openssl is needed");
    if !is_there {
        super::skipped("TLS: the program openssl is not there");
    }
    is_there
}

/// Runs it in a directory, with words that are parted by spaces. Returns what it answers to the input.
pub(crate) fn openssl(dir: &Path, words: &str, input: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(words.split_whitespace()).current_dir(dir);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
