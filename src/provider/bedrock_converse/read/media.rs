//! Images, documents, video and sound: a format, and bytes or where they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{Audio, File, Image};
use crate::provider::read::fields::Fields;

/// Formats of documents that are not named as their type is. Source: botocore 1.44.5, `DocumentFormat`, `VideoFormat`.
pub(crate) const TYPES: &[(&str, &str)] = &[
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
];

/// The image, and whether that is all of it.
pub(crate) fn image(fields: &mut Fields<'_>) -> Option<(Image, bool)> {
    let format = fields.string("format")?;
    let (url, whole) = source(fields, &format!("image/{format}"))?;
    Some((Image { url, mime_type: None }, whole))
}

/// The document.
pub(crate) fn document(fields: &mut Fields<'_>) -> Option<(File, bool)> {
    let name = fields.string("name");
    let format = fields.string("format");
    let known = TYPES.iter().find(|(known, _)| format.as_deref() == Some(*known)).map(|(_, mime_type)| *mime_type);
    let mime_type = known.map(str::to_owned);
    let mut source = fields.object("source")?;
    if let Some(text) = source.string("text") {
        let data = Some(STANDARD.encode(text));
        let mime_type = mime_type.or_else(|| Some("text/plain".to_owned()));
        return Some((File { name, data, mime_type, url: None }, false));
    }
    let (data, url) = (source.string("bytes"), location(&mut source));
    let is_alone = source.rest().next().is_none();
    let whole = known.is_some() && data.is_some() && url.is_none() && is_alone;
    (data.is_some() || url.is_some()).then_some((File { name, url, data, mime_type }, whole))
}

/// A film, as a file: nothing else has a place for one, so that it stays the provider's block, too.
pub(crate) fn video(fields: &mut Fields<'_>) -> Option<File> {
    let format = fields.string("format")?;
    let mime_type = Some(if format.contains('/') { format } else { format!("video/{format}") });
    let mut source = fields.object("source")?;
    let (data, url) = (source.string("bytes"), location(&mut source));
    (data.is_some() || url.is_some()).then_some(File { name: None, url, data, mime_type })
}

/// Sound.
pub(crate) fn audio(fields: &mut Fields<'_>) -> Option<Audio> {
    let mime_type = Some(format!("audio/{}", fields.string("format")?));
    let mut source = fields.object("source")?;
    let (data, url) = (source.string("bytes"), location(&mut source));
    (data.is_some() || url.is_some()).then_some(Audio { url, data, mime_type, transcript: None })
}

fn source(fields: &mut Fields<'_>, media_type: &str) -> Option<(String, bool)> {
    let mut source = fields.object("source")?;
    let bytes = source.string("bytes").map(|bytes| format!("data:{media_type};base64,{bytes}"));
    let stored = location(&mut source);
    let whole = bytes.is_some() && stored.is_none() && source.rest().next().is_none();
    Some((bytes.or(stored)?, whole))
}

/// Where it is stored.
fn location(source: &mut Fields<'_>) -> Option<String> {
    source.object("s3Location")?.string("uri")
}
