//! The error of a text that is not JSON.

/// The text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {message} at line {line}, column {column}")]
#[non_exhaustive]
pub struct NotJson {
    /// Line of the text, from 1.
    pub line: usize,
    /// Byte of that line, from 1; 0 where the text ends before one.
    pub column: usize,
    /// What the parser ran into.
    pub message: String,
}

impl From<serde_json::Error> for NotJson {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
        Self { line, column, message }
    }
}
