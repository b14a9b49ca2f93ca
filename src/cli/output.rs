//! Everything that is printed: results on stdout, the rest on stderr; long output through a pager.
//!
//! A bar on stderr, if that is a terminal and the work takes some time. Dropping it removes it.

use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use conversation_store::model::Name;
use conversation_store::{Receipt, ReportLine};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde::Serialize;

use super::failure::Failure;
use super::text;
use super::text::{DIM, ERROR, WARNING};

/// The form of the output, from the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    /// JSON, even on a terminal, and on stderr.
    pub(super) json: bool,
    /// Text, even if stdout is no terminal.
    pub(super) text: bool,
    /// No notes and no reports on stderr.
    pub(super) quiet: bool,
    /// No pager.
    pub(super) unpaged: bool,
}

/// What stderr needs to know everywhere. Set once, before a command runs.
static FORM: OnceLock<Form> = OnceLock::new();

fn form() -> Form {
    FORM.get().copied().unwrap_or_default()
}

/// Where results go, and in which form.
pub(super) struct Output {
    stdout: BufWriter<Box<dyn Write>>,
    is_terminal: bool,
    form: Form,
    /// What to do when the reader has gone: end, or finish the work.
    outlives_reader: bool,
    reader_gone: bool,
}

impl Output {
    /// JSON if the caller asked for it, or if stdout is no terminal and the caller did not ask for text.
    pub(super) fn new(form: Form) -> Self {
        // Only the first call counts, and there is only one.
        let form = *FORM.get_or_init(|| form);
        let is_terminal = io::stdout().is_terminal();
        // Only text has colours to strip. JSON passes unchanged.
        let is_text = !form.json && (is_terminal || form.text);
        let stdout: Box<dyn Write> = if is_text { Box::new(anstream::stdout()) } else { Box::new(io::stdout()) };
        Self { stdout: BufWriter::new(stdout), is_terminal, form, outlives_reader: false, reader_gone: false }
    }

    /// Whether `--json` was given.
    pub(super) const fn is_json(&self) -> bool {
        self.form.json
    }

    /// Whether results are text for people.
    pub(super) const fn is_text(&self) -> bool {
        !self.form.json && (self.is_terminal || self.form.text)
    }

    /// From now on, a reader that goes away does not end the work.
    pub(super) const fn outlive_reader(&mut self) {
        self.outlives_reader = true;
    }

    /// From now on, text on a terminal goes through the user's pager, until [`Self::end_pages`].
    pub(super) fn begin_pages(&mut self) {
        if !self.is_text() || !self.is_terminal || self.form.unpaged {
            return;
        }
        match Pager::start() {
            Ok(None) => {}
            Ok(Some(pager)) => {
                let choice = match AutoStream::choice(&io::stdout()) {
                    ColorChoice::Never => ColorChoice::Never,
                    _ => ColorChoice::AlwaysAnsi,
                };
                let pager: Box<dyn Write> = Box::new(pager);
                self.stdout = BufWriter::new(Box::new(AutoStream::new(pager, choice)));
            }
            Err(problem) => warn(&problem),
        }
    }

    /// Waits until the user has read the pages. What is printed after them is not paged.
    pub(super) fn end_pages(&mut self) -> Result<(), Failure> {
        let flushed = self.flush();
        if self.is_text() {
            self.stdout = BufWriter::new(Box::new(anstream::stdout()));
        }
        flushed
    }

    /// A result: a line of JSON, or text.
    pub(super) fn result(&mut self, json: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.is_text() { self.text(&text()) } else { self.json(json) }
    }

    /// A line of JSON, even on a terminal.
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let json =
            serde_json::to_string(value).map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        if self.is_terminal { self.line(&text::escape_json(&json)) } else { self.line(&json) }
    }

    /// Text for people.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.line(text.trim_end_matches('\n'))
    }

    /// Text for other programs, unchanged.
    pub(super) fn verbatim(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.stdout.write_all(text.as_bytes());
        self.check(written)
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.stdout.write_all(line.as_bytes()).and_then(|()| self.stdout.write_all(b"\n"));
        self.check(written)
    }

    /// Flushes what was printed.
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

    /// The report on a conversation: text on stderr, the worst first; with `--json` one JSON line each.
    pub(super) fn report(&self, of: Option<&str>, report: &[ReportLine]) {
        if self.form.quiet || report.is_empty() {
            return;
        }
        if self.form.json {
            report.iter().for_each(|line| print(&serde_json::to_string(line).unwrap_or_default()));
        } else {
            print(text::report(of, report).trim_end());
        }
    }
}

/// Whether `--quiet` was given.
fn is_quiet() -> bool {
    form().quiet
}

/// A line on stderr. It is no failure if nobody reads it.
fn print(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// A line of JSON on stderr: an object of one field.
fn print_json(name: &str, value: impl Serialize) {
    let object = std::collections::BTreeMap::from([(name, value)]);
    print(&text::escape_json(&serde_json::to_string(&object).unwrap_or_default()));
}

/// A note on stderr, unless `--quiet` was given.
pub(super) fn note(what: &str) {
    match form() {
        Form { quiet: true, .. } => {}
        Form { json: true, .. } => print_json("note", what),
        _ => print(&text::printable(what)),
    }
}

/// A warning on stderr.
pub(super) fn warn(what: &str) {
    if form().json {
        print_json("warning", what);
    } else {
        print(&format!("{WARNING}warning:{WARNING:#} {}", text::printable(what)));
    }
}

/// A failure, on stderr.
pub(super) fn error(failure: &Failure) {
    if form().json {
        return print_json("error", failure);
    }
    print(&format!("{ERROR}error:{ERROR:#} {}", text::printable(&failure.message)));
    if let Some(cure) = &failure.cure {
        print(&format!("  cure: {}", text::printable(cure)));
    }
}

/// A receipt, with the key that the caller used.
#[derive(Serialize)]
struct ShownReceipt<'a> {
    #[serde(flatten)]
    receipt: &'a Receipt,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

/// Prints a receipt.
pub(super) fn receipt(name: &Name, receipt: &Receipt, output: &mut Output) -> Result<(), Failure> {
    let shown = ShownReceipt { receipt, key: name.key() };
    output.result(&shown, || receipt_text(receipt))
}

fn receipt_text(receipt: &Receipt) -> String {
    let indexes = match receipt.message_indexes.as_slice() {
        [] => String::new(),
        [index] => format!("message {index}, "),
        [first, .., last] => format!("messages {first} to {last}, "),
    };
    let seqs = seqs(receipt.first_seq, receipt.last_seq);
    let duplicate = if receipt.duplicate { format!("{DIM}, was stored already{DIM:#}") } else { String::new() };
    format!("{indexes}{seqs}{duplicate}")
}

/// `seq 3`, `seq 3 to 5`.
pub(super) fn seqs(first: u64, last: u64) -> String {
    if first == last { format!("seq {first}") } else { format!("seq {first} to {last}") }
}

/// A running pager. Dropping it ends its input and waits for it.
struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the user's pager: CONVO_PAGER, else PAGER, else `less`. None if that is `cat` or empty.
    ///
    /// # Errors
    /// Names the pager that the user chose and that cannot be started. A missing `less` is no error.
    fn start() -> Result<Option<Self>, String> {
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

/// Work that is done sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
}

impl Progress {
    /// Over the bytes of a file, or a count of them if its length is not known.
    pub(super) fn bytes(length: Option<u64>) -> Self {
        Self::new(length, if length.is_some() { "{wide_bar} {percent} % of {total_bytes}" } else { "{bytes}" })
    }

    /// Over conversations.
    pub(super) fn conversations() -> Self {
        Self::new(Some(0), "{wide_bar} {pos} of {len} conversations")
    }

    /// Over steps of several kinds.
    pub(super) fn steps() -> Self {
        Self::new(Some(0), "{wide_bar} {percent} %")
    }

    /// Over the seconds of a measurement.
    pub(super) fn seconds() -> Self {
        Self::new(Some(0), "{wide_bar} {pos} of {len} s")
    }

    fn new(length: Option<u64>, template: &str) -> Self {
        let bar =
            ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden()).with_finish(ProgressFinish::AndClear);
        // The templates above are well-formed: a mistake in one would show the default style.
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, begun: Instant::now() }
    }

    pub(super) fn set(&self, position: u64) {
        if self.bar.is_hidden() && !is_quiet() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(position);
    }

    pub(super) fn set_of(&self, position: u64, length: u64) {
        self.bar.set_length(length);
        self.set(position);
    }
}
