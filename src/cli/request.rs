//! A file that holds a request.

use std::path::Path;

use conversation_store::provider::{self, Target};
use serde::de::IgnoredAny;

use super::failure::Failure;
use super::lines::Input;
use super::output;

/// A request, or the array of its messages: text that is JSON.
pub(super) struct Request {
    /// Its name in errors.
    pub(super) name: String,
    pub(super) json: String,
}

/// Reads a request; `-` is stdin.
pub(super) fn read(path: &Path) -> Result<Request, Failure> {
    let request = read_text(path)?;
    request.check().map(|()| request)
}

/// Reads a request, or its messages, one per line.
pub(super) fn read_messages(path: &Path) -> Result<Request, Failure> {
    let mut request = read_text(path)?;
    let checked = request.check();
    if checked.is_err() {
        let lines: Vec<_> = request.json.lines().filter(|line| !line.trim().is_empty()).collect();
        let is_object =
            |line: &&str| line.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok();
        if lines.len() > 1 && lines.iter().all(is_object) {
            request.json = format!("[{}]", lines.join(",\n"));
            return Ok(request);
        }
    }
    checked.map(|()| request)
}

fn read_text(path: &Path) -> Result<Request, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let json = input.read_text()?;
    if json.trim().is_empty() {
        return Err(Failure::new("invalid_input", format!("{name}: it is empty; expected a request as JSON")));
    }
    Ok(Request { name, json })
}

impl Request {
    /// Fails on text that is no JSON, and names the place. Lone surrogate escapes pass.
    fn check(&self) -> Result<(), Failure> {
        let Err(error) = serde_json::from_str::<IgnoredAny>(&self.json) else { return Ok(()) };
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        Err(not_json(&self.name, line, column, message))
    }
}

/// A note on stderr if the request looks like one of another wire.
pub(super) fn note_other_wire(read_as: Target, request: &Request, option: &str) {
    if let Some(wire) = provider::likely_wire(read_as, &request.json) {
        let (name, wire) = (&request.name, wire.name);
        output::note(&format!(
            "{name}: it looks like a request of {wire}, not of {read_as}: say so with {option} {wire}"
        ));
    }
}

/// The failure of text that is no JSON, with its place.
pub(super) fn not_json(name: &str, line: usize, column: usize, message: &str) -> Failure {
    Failure::new("invalid_input", format!("{name}:{line}:{column}: not JSON: {message}"))
}
