//! What holds for all bytes. One file for each fuzz target; it fails by panicking.
//!
//! An input is what the file says that it is, nothing beside it, so that a finding can be read and written by hand.

pub mod answer;
pub mod backup;
#[cfg(feature = "transfer")]
pub mod import;
pub mod journal;
pub mod prompt;
pub mod request;
pub mod store;
pub mod transcript;

/// A property, by the name of its fuzz target and of the folders of its inputs.
pub struct Property {
    /// The target.
    pub name: &'static str,
    /// Panics unless the property holds for the bytes.
    pub holds: fn(&[u8]),
}

/// All of them.
pub const ALL: &[Property] = &[
    Property { name: "answer", holds: answer::holds },
    Property { name: "backup", holds: backup::holds },
    #[cfg(feature = "transfer")]
    Property { name: "import", holds: import::holds },
    Property { name: "journal", holds: journal::holds },
    Property { name: "prompt", holds: prompt::holds },
    Property { name: "request", holds: request::holds },
    Property { name: "store", holds: store::holds },
    Property { name: "transcript", holds: transcript::holds },
];
