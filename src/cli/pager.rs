//! A program that shows long output page by page on a terminal.

use std::env;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A running pager. Dropping it ends its input and waits for it.
pub(super) struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the user's pager: CONVO_PAGER, else PAGER, else `less`. None if that is `cat` or empty.
    ///
    /// # Errors
    /// Names the pager that the user chose and that cannot be started. A missing `less` is no error.
    pub(super) fn start() -> Result<Option<Self>, String> {
        let asked = ["CONVO_PAGER", "PAGER"].into_iter().find_map(|name| env::var(name).ok());
        let line = asked.as_deref().unwrap_or("less");
        let mut words = line.split_whitespace();
        let Some(program) = words.next().filter(|program| *program != "cat") else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            // F: exit at once if it fits on a page; R: colours; X: leave the text on the screen; K: Ctrl-C exits.
            command.env("LESS", "FRXK");
        }
        match command.spawn() {
            Ok(mut child) => Ok(child.stdin.take().map(|input| Self { child, input: Some(input) })),
            Err(_) if asked.is_none() => Ok(None),
            Err(error) => Err(format!("cannot start the pager `{program}`: {error}")),
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
        // The pager's exit code concerns only the user.
        let _ = self.child.wait();
    }
}
