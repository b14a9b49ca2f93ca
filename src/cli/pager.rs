//! A program that shows long output page by page, where there is a terminal.

use std::env;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A pager that runs. Dropped, it is at the end of its input, and is waited for.
pub(super) struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the pager that the user wants: CONVO_PAGER, else PAGER, else `less`. None if that is `cat` or empty.
    ///
    /// # Errors
    /// The name of a pager that was asked for and cannot be started. That `less` is missing is no error.
    pub(super) fn start() -> Result<Option<Self>, String> {
        let asked = ["CONVO_PAGER", "PAGER"].into_iter().find_map(|name| env::var(name).ok());
        let line = asked.as_deref().unwrap_or("less");
        let mut words = line.split_whitespace();
        let Some(program) = words.next().filter(|program| *program != "cat") else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            // F: end at once if it fits on a page; R: colours; X: leave it on the screen; K: Ctrl-C ends it.
            command.env("LESS", "FRXK");
        }
        match command.spawn() {
            Ok(mut child) => Ok(child.stdin.take().map(|input| Self { child, input: Some(input) })),
            Err(_) if asked.is_none() => Ok(None),
            Err(error) => Err(format!("the pager `{program}` cannot be started: {error}")),
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Ok(bytes.len()), |input| input.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        self.input = None;
        // What it says of its end is the user's and its own matter.
        let _ = self.child.wait();
    }
}
