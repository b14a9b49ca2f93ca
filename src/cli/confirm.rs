//! Asking before something is gone for good.

use std::io::{self, BufRead, IsTerminal, Write};

use super::failure::Failure;

/// Asks on a terminal, unless the answer was given on the command line. Elsewhere nobody is there to answer.
pub(super) fn confirm(yes: bool, question: &str) -> Result<bool, Failure> {
    if yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let mut stderr = anstream::stderr();
    // Who cannot see the question answers no.
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
