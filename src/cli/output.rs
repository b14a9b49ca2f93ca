//! Everything that is printed: results on stdout, all else on stderr.

use std::io::{self, BufWriter, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use conversation_store::ReportLine;
use serde::Serialize;

use super::failure::Failure;
use super::{report, text};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default();

/// Where results go, and in which form.
pub(super) struct Output {
    stdout: BufWriter<Box<dyn Write>>,
    is_terminal: bool,
    json: bool,
    /// What to do when the reader has gone: end, or finish the work.
    outlives_reader: bool,
    reader_gone: bool,
}

impl Output {
    /// JSON if it is asked for, or if stdout is no terminal.
    pub(super) fn new(json: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        // Only text has colours to strip. JSON passes as it is.
        let stdout: Box<dyn Write> =
            if is_terminal && !json { Box::new(anstream::stdout()) } else { Box::new(io::stdout()) };
        Self { stdout: BufWriter::new(stdout), is_terminal, json, outlives_reader: false, reader_gone: false }
    }

    /// Whether `--json` was given.
    pub(super) const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether results are text for people.
    pub(super) const fn is_text(&self) -> bool {
        self.is_terminal && !self.json
    }

    /// From now on a reader that goes away does not end the work.
    pub(super) const fn outlive_reader(&mut self) {
        self.outlives_reader = true;
    }

    /// A result: a line of JSON, or text.
    pub(super) fn result(&mut self, json: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.is_text() { self.text(&text()) } else { self.json(json) }
    }

    /// A line of JSON, also on a terminal.
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let json =
            serde_json::to_string(value).map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        if self.is_terminal { self.line(&text::escape_json(&json)) } else { self.line(&json) }
    }

    /// Text for people.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.line(text.trim_end_matches('\n'))
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.stdout.write_all(line.as_bytes()).and_then(|()| self.stdout.write_all(b"\n"));
        self.check(written)
    }

    /// Shows what was printed so far.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.stdout.flush();
        self.check(flushed)
    }

    fn check(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        let Err(error) = written else { return Ok(()) };
        let failure = Failure::output(&error);
        if self.reader_gone || (self.outlives_reader && failure.is_reader_gone()) {
            self.reader_gone = true;
            return Ok(());
        }
        Err(failure)
    }

    /// What was done to a conversation on the way out: text on stderr, the worst first, with `--json` a line of JSON each.
    pub(super) fn report(&self, of: Option<&str>, report: &[ReportLine]) {
        if self.json {
            report.iter().for_each(|line| note(&serde_json::to_string(line).unwrap_or_default()));
        } else if !report.is_empty() {
            note(report::text(of, report).trim_end());
        }
    }
}

/// A line on stderr. That nobody reads it is no failure.
pub(super) fn note(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Something to know, on stderr.
pub(super) fn warn(what: &str) {
    note(&format!("{WARNING}warning:{WARNING:#} {}", text::printable(what)));
}

/// A failure, on stderr.
pub(super) fn error(failure: &Failure) {
    note(&format!("{ERROR}error:{ERROR:#} {}", text::printable(&failure.message)));
    if let Some(hint) = &failure.hint {
        note(&format!("  hint: {}", text::printable(hint)));
    }
}
