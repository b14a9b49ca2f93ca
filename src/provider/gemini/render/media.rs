//! Images, audio and files as parts. Their types are those that every model takes (GM-19).

use std::borrow::Cow;

use super::request::{Blob, FileData, Part};
use crate::history::report::{Mended, Unfit};
use crate::model::{Audio, File, Image};
use crate::provider::gemini::check::TYPES;
use crate::provider::prompt::media::attachment::{self, Attach, Payload, Picture};
use crate::provider::prompt::media::bytes::{is_web_address, shown};

/// What is made of an attachment.
type Made<'a> = attachment::Made<Part<'a>>;

/// Types of text that go by other names.
const TEXTS: &[&str] = &[
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/x-python",
    "application/yaml",
];
/// Types by the end of an address.
const ENDINGS: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("svg", "image/svg+xml"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
];
/// Of an image at an address that does not tell, as other clients do.
const ANY_IMAGE: &str = "image/jpeg";

/// How attachments become parts.
pub(crate) struct Parts;

impl<'a> Attach<'a> for Parts {
    type Part = Part<'a>;

    fn image(&self, image: &'a Image) -> Made<'a> {
        match Picture::of(image)? {
            Picture::Address(url) => {
                at_address(url, image.mime_type.as_deref().or_else(|| by_ending(url)).unwrap_or(ANY_IMAGE))
            }
            Picture::Data { media_type, base64, mended } => inline(known(media_type)?, base64, mended),
        }
    }

    fn audio(&self, audio: &'a Audio) -> Made<'a> {
        match (Payload::of_audio(audio), audio.url.as_deref().filter(|url| is_address(url))) {
            (Ok(payload), _) => of_payload(payload),
            (Err(_), Some(url)) => at_address(url, label(audio.mime_type.as_deref(), url)?),
            (Err(why), None) => Err(why),
        }
    }

    fn file(&self, file: &'a File) -> Made<'a> {
        let (part, mended) = match (Payload::of_file(file), file.url.as_deref().filter(|url| is_address(url))) {
            (Ok(payload), _) => of_payload(payload)?,
            (Err(_), Some(url)) => at_address(url, label(file.mime_type.as_deref(), url)?)?,
            (Err(why), None) => return Err(why),
        };
        Ok((part, mended.or_else(|| file.name.as_ref().map(|_| Mended::NoNames))))
    }
}

fn of_payload(payload: Payload<'_>) -> Made<'_> {
    let labelled = essence(payload.media_type);
    if let Some(shown) = shown(&payload.base64).filter(|shown| *shown != labelled) {
        let mended = Mended::Labelled(payload.media_type.to_owned(), shown.to_owned());
        return inline(known(shown)?, payload.base64, Some(mended));
    }
    if labelled != "text/plain" && (labelled.starts_with("text/") || TEXTS.contains(&labelled.as_str())) {
        let mended = Mended::TextLabelled(payload.media_type.to_owned());
        return inline("text/plain", payload.base64, Some(mended));
    }
    inline(known(&labelled)?, payload.base64, payload.mended)
}

fn inline<'a>(mime_type: &str, data: Cow<'a, str>, mended: Option<Mended>) -> Made<'a> {
    Ok((Part::Inline { inline_data: Blob { mime_type: mime_type.to_owned(), data } }, mended))
}

fn at_address<'a>(file_uri: &'a str, media_type: &str) -> Made<'a> {
    let mime_type = known(&essence(media_type))?.to_owned();
    Ok((Part::File { file_data: FileData { mime_type, file_uri } }, None))
}

fn label<'a>(labelled: Option<&'a str>, url: &str) -> Result<&'a str, Unfit> {
    labelled.or_else(|| by_ending(url)).ok_or(Unfit::TypeUnknown)
}

fn known(media_type: &str) -> Result<&str, Unfit> {
    let is_known = TYPES.contains(&media_type);
    if is_known { Ok(media_type) } else { Err(Unfit::Type(media_type.to_owned(), "one that every model takes")) }
}

/// The type without its parameters.
fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn by_ending(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let (_, ending) = path.rsplit_once('.')?;
    ENDINGS.iter().find(|(name, _)| ending.eq_ignore_ascii_case(name)).map(|(_, media_type)| *media_type)
}

/// An address of the web, or one of Google's storage.
fn is_address(url: &str) -> bool {
    is_web_address(url) || url.starts_with("gs://")
}
