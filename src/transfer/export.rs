//! Conversations out of a store, in any format; and what messages hold of pictures, sounds and documents, as files beside an
//! export.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use uuid::Uuid;

use super::foreign::Skipped;
use super::format::{Format, Outgoing, Writer};
use super::{FORMATS, formats, take};
use crate::error::{Error, Result};
use crate::history::StoredMessage;
use crate::model::{Audio, Body, File as Document, Image, Name, Output, PartBody};
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

/// A folder beside an export. It is created with its first file.
struct Beside<'a> {
    folder: &'a Path,
    /// The links of what is written, by digest: what is said twice is one file.
    known: HashMap<Uuid, String>,
}

impl<'a> Beside<'a> {
    pub(super) fn new(folder: &'a Path) -> Self {
        Self { folder, known: HashMap::new() }
    }

    /// How many files there are.
    pub(super) fn files(&self) -> u64 {
        self.known.len() as u64
    }

    /// Writes what messages hold as base64 into files, and puts the links in its place. What is no base64 stays.
    pub(super) fn take_out(&mut self, messages: &mut [StoredMessage]) -> io::Result<()> {
        for chunk in messages.iter_mut().flat_map(|stored| &mut stored.message.chunks) {
            match &mut chunk.body {
                Body::Image(image) => self.image(image)?,
                Body::Audio(audio) => self.audio(audio)?,
                Body::File(file) => self.document(file)?,
                Body::ToolResult { output: Output::Parts(parts), .. } => {
                    for part in parts {
                        match &mut part.body {
                            PartBody::Image(image) => self.image(image)?,
                            PartBody::Audio(audio) => self.audio(audio)?,
                            PartBody::File(file) => self.document(file)?,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A picture of a kind that may hold a script stays where it is.
    fn image(&mut self, image: &mut Image) -> io::Result<()> {
        let Some((mime_type, data)) = data_of(&image.url).filter(|_| crate::html::is_picture(&image.url)) else {
            return Ok(());
        };
        if let Some(link) = self.write("picture", data, mime_type)? {
            image.url = link;
        }
        Ok(())
    }

    fn audio(&mut self, audio: &mut Audio) -> io::Result<()> {
        let Audio { url, data, mime_type, .. } = audio;
        self.media("sound", url, data, mime_type.as_deref())
    }

    fn document(&mut self, file: &mut Document) -> io::Result<()> {
        let Document { url, data, mime_type, .. } = file;
        self.media("file", url, data, mime_type.as_deref())
    }

    fn media(
        &mut self,
        what: &str,
        url: &mut Option<String>,
        data: &mut Option<String>,
        mime_type: Option<&str>,
    ) -> io::Result<()> {
        let held = match (&*data, url.as_deref().and_then(data_of)) {
            // Some give a data URL for the data.
            (Some(data), _) => data_of(data).or(Some((mime_type.unwrap_or_default(), data.as_str()))),
            (None, of_url) => of_url,
        };
        if let Some((mime_type, base64)) = held
            && let Some(link) = self.write(what, base64, mime_type)?
        {
            (*url, *data) = (Some(link), None);
        }
        Ok(())
    }

    /// Writes a file, and returns its link.
    fn write(&mut self, what: &str, base64: &str, mime_type: &str) -> io::Result<Option<String>> {
        let Ok(bytes) = STANDARD.decode(base64.trim()) else { return Ok(None) };
        let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, &bytes);
        if let Some(link) = self.known.get(&digest) {
            return Ok(Some(link.clone()));
        }
        if self.known.is_empty() {
            fs::create_dir(self.folder)?;
        }
        let name = format!("{what}-{}.{}", self.known.len() + 1, take::extension_of(mime_type));
        let mut file = File::create_new(self.folder.join(&name))?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let link = format!("{}/{name}", encoded(&folder));
        self.known.insert(digest, link.clone());
        Ok(Some(link))
    }
}

/// The media type and the base64 of a data URL.
fn data_of(url: &str) -> Option<(&str, &str)> {
    let (about, data) = url.strip_prefix("data:")?.split_once(',')?;
    let mime_type = about.strip_suffix(";base64")?;
    Some((mime_type.split(';').next().unwrap_or_default(), data))
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}
