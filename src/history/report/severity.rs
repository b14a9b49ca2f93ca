use std::fmt;

use serde::Serialize;

/// What a report line means for the one who reads it. The worst comes first. Names in JSON are in lower case: `lost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Content of the input does not reach the output: a text, thinking, a result, a file, citations, a field.
    Lost,
    /// Content reaches the output in another form, or without something that only marks it: a name, an id, a signature, the
    /// flag of an error.
    Changed,
    /// Content is in another place.
    Moved,
    /// Something is in the output that nobody said.
    Added,
    /// Nothing of the content changed; something is good to know.
    Note,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: &'static [Self] = &[Self::Lost, Self::Changed, Self::Moved, Self::Added, Self::Note];

    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Changed => "changed",
            Self::Moved => "moved",
            Self::Added => "added",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
