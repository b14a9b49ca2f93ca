//! A file that holds a request.

use std::path::Path;

use serde::de::IgnoredAny;

use super::failure::Failure;
use super::lines::Input;

/// A request, or the array of its messages: text that is JSON.
pub(super) struct Request {
    /// As errors name it.
    pub(super) name: String,
    pub(super) json: String,
}

/// Reads a request; `-` is stdin.
pub(super) fn read(path: &Path) -> Result<Request, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let json = input.read_text()?;
    if json.trim().is_empty() {
        return Err(Failure::usage(format!("{name}: it is empty; expected a request as JSON")));
    }
    // What is wrong with the text is told here, with its place. Lone surrogate escapes pass.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(&json) {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        return Err(not_json(&name, line, column, message));
    }
    Ok(Request { name, json })
}

/// The failure of a text that is no JSON, at its place.
pub(super) fn not_json(name: &str, line: usize, column: usize, message: &str) -> Failure {
    Failure::usage(format!("{name}:{line}:{column}: not JSON: {message}"))
}
