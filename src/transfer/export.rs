//! Conversations out of a store, in any format.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::beside::Beside;
use super::foreign::Skipped;
use super::format::{Format, Outgoing, Writer};
use super::{FORMATS, formats};
use crate::error::{Error, Result};
use crate::model::Name;
use crate::store::Store;

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExportSummary {
    /// Conversations that were written.
    pub conversations: u64,
    /// Their messages.
    pub messages: u64,
    /// What the format has no place for, and what was altered for it: the count of each kind.
    pub left_out: Skipped,
    /// Files that were written beside it.
    pub files: u64,
}

/// Writes conversations in a format. `progress` is called after each.
///
/// The transcript is lossless: importing it elsewhere gives the same messages. For any other format, the summary states
/// what was left out or altered.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::model::Message;
/// use conversation_store::transfer::export;
///
/// let store = Store::open("memory:")?;
/// store.append("plans", &[Message::user("hello")])?;
/// let mut text = Vec::new();
/// let summary = export(&store, ["plans".into()], "markdown", &mut text, &mut |_| ())?;
/// assert_eq!((summary.conversations, summary.messages), (1, 1));
/// assert!(String::from_utf8_lossy(&text).contains("hello"));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// Cost: one conversation at a time is in memory.
///
/// # Errors
/// `InvalidInput` for a format that cannot be written; `NotFound`; `Corrupt`; `Io`.
pub fn export(
    store: &Store,
    names: impl IntoIterator<Item = Name>,
    format: &str,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&Name),
) -> Result<ExportSummary> {
    all(store, names, format, None, out, progress)
}

/// Writes conversations as Markdown, and the pictures, sounds and documents that they hold as files into a folder, which must
/// not exist. The text links them as files of a folder beside it, and each is there once. Without any there is no folder.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::model::{Chunk, Message, Role};
/// use conversation_store::transfer::export_markdown;
///
/// let place = std::env::temp_dir().join(format!("export-example-{}", std::process::id()));
/// let store = Store::open("memory:")?;
/// store.append("plans", &[Message::new(Role::User, [Chunk::image("data:image/png;base64,iVBORw0K")])])?;
/// let mut text = Vec::new();
/// let summary = export_markdown(&store, ["plans".into()], &place, &mut text, &mut |_| ())?;
/// assert_eq!(std::fs::read(place.join("picture-1.png")).unwrap(), b"\x89PNG\r\n");
/// # std::fs::remove_dir_all(&place).unwrap();
/// assert_eq!(summary.files, 1);
/// assert!(String::from_utf8_lossy(&text).contains("/picture-1.png>)"));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// Cost: one conversation at a time is in memory.
///
/// # Errors
/// `NotFound`; `Corrupt`; `Io`.
pub fn export_markdown(
    store: &Store,
    names: impl IntoIterator<Item = Name>,
    folder: &Path,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&Name),
) -> Result<ExportSummary> {
    all(store, names, formats::markdown::FORMAT.name, Some(Beside::new(folder)), out, progress)
}

fn all(
    store: &Store,
    names: impl IntoIterator<Item = Name>,
    format: &str,
    mut beside: Option<Beside<'_>>,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&Name),
) -> Result<ExportSummary> {
    let writer = writer(format)?;
    let cannot = || Error::io("cannot write the export");
    let mut summary = ExportSummary::default();
    let [begin, between, end] = writer.frame;
    out.write_all(begin.as_bytes()).map_err(cannot())?;
    for (number, name) in names.into_iter().enumerate() {
        if number > 0 {
            out.write_all(between.as_bytes()).map_err(cannot())?;
        }
        let item = store.describe(&name)?;
        let session = item.id;
        let mut messages = store.load_raw(&name)?;
        if let Some(beside) = &mut beside {
            beside.take_out(&mut messages).map_err(Error::io("cannot write a file beside the export"))?;
        }
        let outgoing = Outgoing { item, messages, session, folder: String::new() };
        one(writer, &outgoing, out, &mut summary).map_err(cannot())?;
        progress(&name);
    }
    out.write_all(end.as_bytes()).map_err(cannot())?;
    out.flush().map_err(cannot())?;
    summary.files = beside.map_or(0, |beside| beside.files());
    Ok(summary)
}

/// Writes one conversation.
pub(super) fn one(
    writer: &Writer,
    outgoing: &Outgoing,
    out: &mut dyn Write,
    summary: &mut ExportSummary,
) -> io::Result<()> {
    (writer.write)(outgoing, out, &mut summary.left_out)?;
    summary.conversations += 1;
    summary.messages += outgoing.messages.len() as u64;
    Ok(())
}

pub(super) fn writer(format: &str) -> Result<&'static Writer> {
    let known = FORMATS.iter().find(|known| known.name == format).and_then(|format| format.write.as_ref());
    known.ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().filter(|format| format.is_written()).map(|format| format.name).collect();
        Error::InvalidInput(format!("there is no export format {format}; the formats are {}", names.join(", ")))
    })
}

impl Format {
    /// The extension of its files, if it can be written.
    #[must_use]
    pub fn extension(&self) -> Option<&'static str> {
        self.write.as_ref().map(|writer| writer.extension)
    }
}
