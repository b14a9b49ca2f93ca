//! Asking before something is erased for good.

use std::io::{self, BufRead, IsTerminal, Write};

use super::failure::Failure;

/// Asks on a terminal, unless the command line has the answer. Without a terminal there is nobody to ask, so the
/// command line must have it. Fails unless the answer is yes.
pub(super) fn confirm(yes: bool, question: &str, otherwise: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("there is no terminal to ask on: {otherwise}"))
            .with_hint("--yes confirms it on the command line"));
    }
    let mut stderr = anstream::stderr();
    // A user who cannot see the question answers no.
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::finding("declined", otherwise)),
    }
}
