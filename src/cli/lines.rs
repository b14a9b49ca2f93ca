//! A file of messages, read line by line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use conversation_store::Limits;
use conversation_store::model::{Body, Line, Output};
use serde::de::IgnoredAny;

use super::failure::Failure;
use super::output;

/// Bytes of one line, and of a whole request: what one append may hold.
pub(super) const LIMIT: usize = Limits::APPEND_BYTES;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const LINE_CURE: &str =
    r#"a line is a message as JSON: {"role": "user", "chunks": [{"type": "text", "text": "hello"}]}"#;

const PROVIDER_CURE: &str = "this looks like a message of a provider's request: \
    `convo append CONVERSATION FILE --from openai-chat` reads those; `convo targets` lists what --from takes";

/// A file, or stdin.
pub(super) struct Input {
    /// Its name in errors.
    pub(super) name: String,
    /// Its length in bytes, if it is known.
    pub(super) length: Option<u64>,
    reader: Box<dyn BufRead>,
}

/// The lines of a transcript.
pub(super) struct Lines {
    input: Input,
    buffer: Vec<u8>,
    /// Lines read, blank ones included.
    number: usize,
    /// Bytes read.
    position: u64,
}

impl Input {
    /// Opens a file; `-` is stdin.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                output::note("reading from the terminal; end with Ctrl-D");
            }
            return Ok(Self { name: "stdin".to_owned(), length: None, reader: Box::new(stdin.lock()) });
        }
        let name = path.display().to_string();
        let cannot = |error: io::Error| Failure::usage(format!("cannot read {name}: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(Failure::usage(format!("cannot read {name}: it is a directory")));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Self { name, length, reader: Box::new(BufReader::new(file)) })
    }

    /// All of it, as text.
    pub(super) fn read_text(mut self) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(LIMIT as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(&error))?;
        if bytes.len() > LIMIT {
            return Err(Failure::usage(format!("{}: it is longer than {LIMIT} bytes (128 MiB)", self.name)));
        }
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let before = valid(text, &error);
                let line = before.matches('\n').count() + 1;
                let column = before.lines().next_back().filter(|_| !before.ends_with('\n')).unwrap_or_default();
                Err(not_utf8(&format!("{}:{line}", self.name), column))
            }
        }
    }

    /// What can be read now, without waiting for more; empty at the end.
    pub(super) fn piece(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            match self.reader.fill_buf() {
                Ok(bytes) => {
                    let piece = bytes.to_vec();
                    self.reader.consume(piece.len());
                    return Ok(piece);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::failed(format!("cannot read {}: {error}", self.name))
    }
}

impl Lines {
    pub(super) const fn new(input: Input) -> Self {
        Self { input, buffer: Vec::new(), number: 0, position: 0 }
    }

    /// The input's name.
    pub(super) fn name(&self) -> &str {
        &self.input.name
    }

    /// Bytes read so far.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The place of the line that was read last: `FILE:LINE`.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.input.name, self.number)
    }

    /// The next line that is not blank. Reports replaced surrogates on stderr.
    pub(super) fn next(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            // The memory of a long line is not kept for short ones.
            self.buffer = Vec::new();
            // The line, its line break of up to two bytes, and no byte more.
            let mut limited = self.input.reader.by_ref().take(LIMIT as u64 + 2);
            let read = limited.read_until(b'\n', &mut self.buffer);
            self.position += read.map_err(|error| self.input.unreadable(&error))? as u64;
            if self.buffer.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            if let Some(line) = self.parse()? {
                let place = self.place();
                check(&line, &self.buffer, &place)?;
                for chunk in &line.replaced_surrogates {
                    output::note(&format!(
                        "{place}: chunks[{chunk}]: a lone surrogate escape was replaced by U+FFFD; the original text is kept too"
                    ));
                }
                return Ok(Some(line));
            }
        }
    }

    /// The line in the buffer, unless it is blank.
    fn parse(&self) -> Result<Option<Line>, Failure> {
        let mut bytes = self.buffer.as_slice();
        for end in [b"\n", b"\r"] {
            bytes = bytes.strip_suffix(end).unwrap_or(bytes);
        }
        if self.number == 1 {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        if bytes.len() > LIMIT {
            return Err(Failure::usage(format!("{}:1: the line is longer than {LIMIT} bytes (128 MiB)", self.place()))
                .with_cure("split long content into several chunks or messages, or refer to it by its URL"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(&self.place(), valid(bytes, &error)))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        Line::from_json(text).map(Some).map_err(|expected| {
            let (column, place, problem) = (expected.column, expected.place, expected.problem);
            let cure = if is_of_provider(text) { PROVIDER_CURE } else { LINE_CURE };
            input_failure(format!("{}:{column}: {place}: {problem}", self.place())).with_cure(cure)
        })
    }
}

/// The failure of input that is wrong.
fn input_failure(message: String) -> Failure {
    Failure::new("invalid_input", message)
}

/// Refuses a message that is very likely a mistake; warns of one that may be. `text`: as it was read.
fn check(line: &Line, text: &[u8], place: &str) -> Result<(), Failure> {
    if line.conversation.as_deref() == Some("") {
        return Err(input_failure(format!("{place}: conversation: the name is empty"))
            .with_cure("leave `conversation` out, or give it a name"));
    }
    for (at, chunk) in line.message.chunks.iter().enumerate() {
        if matches!(&chunk.body, Body::ToolResult { output: Output::Text(said), .. } if said.is_empty())
            && !has_content(text, at)
        {
            output::warn(&format!(
                "{place}: chunks[{at}]: the tool result has no `content`: it is stored as a result that is empty"
            ));
        }
        let Body::Unknown { kind } = &chunk.body else { continue };
        let problem = format!("{place}: chunks[{at}]: the type `{kind}` is not known");
        if let Some(likely) = Body::KINDS.iter().find(|known| strsim::osa_distance(known, kind) <= 2) {
            return Err(input_failure(format!("{problem}; did you mean `{likely}`?"))
                .with_cure(format!("the types are {}", Body::KINDS.join(", "))));
        }
        output::warn(&format!("{problem}: it is stored as it is, but no prompt includes it"));
    }
    if line.message.chunks.is_empty() {
        output::warn(&format!("{place}: the message has no chunks: it is stored, but no prompt includes it"));
    }
    Ok(())
}

/// Whether a chunk of a message has the field `content`.
fn has_content(text: &[u8], chunk: usize) -> bool {
    #[derive(serde::Deserialize)]
    struct Chunks {
        chunks: Vec<HashMap<String, IgnoredAny>>,
    }
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let chunks: Result<Chunks, _> = serde_json::from_slice(text);
    chunks.map_or(true, |read| read.chunks.get(chunk).is_none_or(|fields| fields.contains_key("content")))
}

/// Whether a line is a message in a provider's form: with `content`, or `parts`, in place of chunks.
fn is_of_provider(text: &str) -> bool {
    let fields: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_str(text);
    fields.is_ok_and(|fields| {
        !fields.contains_key("chunks") && ["content", "parts"].iter().any(|name| fields.contains_key(*name))
    })
}

/// The text before the first byte that is not UTF-8.
fn valid<'a>(bytes: &'a [u8], error: &std::str::Utf8Error) -> &'a str {
    bytes.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default()
}

/// `before` is what precedes the byte in its line.
fn not_utf8(place: &str, before: &str) -> Failure {
    Failure::usage(format!("{place}:{}: not UTF-8", before.chars().count() + 1))
        .with_cure("save the text as UTF-8; `iconv -t UTF-8` converts it")
}

/// The conversation of lines that name none: the file's name without directory and extension, `stdin` for stdin.
pub(super) fn default_conversation(path: &Path) -> String {
    let path = if path.as_os_str() == "-" { PathBuf::from("stdin") } else { path.to_owned() };
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}
