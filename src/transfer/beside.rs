//! What messages hold of pictures, sounds and documents, as files beside an export.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use super::take;
use crate::history::StoredMessage;
use crate::model::{Audio, Body, File as Document, Image, Output, PartBody};

/// A folder beside an export. It is created with its first file.
pub(super) struct Beside<'a> {
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
            (Some(data), _) => Some((mime_type.unwrap_or_default(), data.as_str())),
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
