//! Images, audio and files as blocks.

use super::Manner;
use super::text::is_blank;
use super::wire::{Block, Origin, Source};
use crate::model::{Audio, File, Image};
use crate::provider::media::{decode_base64, dimensions, sniff};
use crate::provider::payload::Payload;
use crate::provider::picture::Picture;

/// What can be made of a media chunk.
#[derive(Debug)]
pub(super) enum Media<'a> {
    /// A block, and what had to be mended for it.
    Block { block: Block<'a>, mended: Option<String> },
    /// Words in its place.
    Transcript(&'a str),
    /// Nothing, and why.
    Unfit { what: &'static str, why: String },
}

/// Bytes of an image (AN-30). They are counted as base64: an image of 4.7 MB was refused as 6.3 MB
/// (gh:lobehub/lobehub#14711, gh:langchain-ai/langchain#21654).
const IMAGE_BYTES: usize = 5_242_880;
/// Pixels of an image's longer side (AN-30).
const IMAGE_SIDE: u32 = 8000;
/// Characters of a document's title. From memory.
const TITLE: usize = 500;
const PDF: &str = "application/pdf";

impl<'a> Media<'a> {
    pub(super) fn image(image: &'a Image, origin: Origin<'a>, manner: &Manner) -> Self {
        match Self::of_picture(image, origin, manner) {
            Ok(media) => media,
            Err(why) => Self::Unfit { what: "image", why },
        }
    }

    fn of_picture(image: &'a Image, origin: Origin<'a>, manner: &Manner) -> Result<Self, String> {
        let (source, side, mended) = match Picture::of(image)? {
            Picture::Address(url) if manner.addresses => (Source::Url { url }, None, None),
            Picture::Address(url) => return Err(format!("the target takes data, not the address {url}")),
            Picture::Data { media_type, base64, mended } => {
                if base64.len() > IMAGE_BYTES {
                    return Err(format!("it has {} bytes as base64, at most {IMAGE_BYTES} are taken", base64.len()));
                }
                let sides = decode_base64(&base64).and_then(|bytes| dimensions(&bytes));
                let side = sides.map(|(width, height)| width.max(height));
                if let Some(side) = side.filter(|side| *side > IMAGE_SIDE) {
                    return Err(format!("its longer side has {side} pixels, at most {IMAGE_SIDE} are taken"));
                }
                (Source::Base64 { media_type, data: base64 }, side, mended)
            }
        };
        Ok(Self::Block { block: Block::Image { source, side, origin }, mended })
    }

    pub(super) fn audio(audio: &'a Audio) -> Self {
        match audio.transcript.as_deref().filter(|text| !is_blank(text)) {
            Some(transcript) => Self::Transcript(transcript),
            None => Self::Unfit { what: "audio", why: "the target takes none, and there is no transcript".to_owned() },
        }
    }

    pub(super) fn file(file: &'a File, manner: &Manner) -> Self {
        match Self::of_file(file, manner) {
            Ok(media) => media,
            Err(why) => Self::Unfit { what: "file", why },
        }
    }

    /// A PDF by its bytes, or text. Of addresses only those of a PDF are taken.
    fn of_file(file: &'a File, manner: &Manner) -> Result<Self, String> {
        let named = file.name.as_deref().filter(|name| !is_blank(name));
        let title = named.filter(|name| name.chars().count() <= TITLE);
        let long = (title != named).then(|| "its name is too long for a title and was left out".to_owned());
        if let Some(url) = pdf_address(file).filter(|_| manner.addresses) {
            return Ok(Self::Block { block: Block::Document { source: Source::Url { url }, title }, mended: long });
        }
        let Payload { media_type, base64, mended } = Payload::of_file(file)?;
        let bytes = decode_base64(&base64).unwrap_or_default();
        let (source, mended) = match sniff(&bytes) {
            Some(PDF) => (Source::Base64 { media_type: PDF, data: base64 }, mended),
            None if media_type.starts_with("text/") => {
                let text = String::from_utf8(bytes).map_err(|_| "its text is not UTF-8")?;
                if is_blank(&text) {
                    return Err("its text is blank".to_owned());
                }
                let mended = "its base64 was decoded: it is plain text in this prompt".to_owned();
                (Source::Text { media_type: "text/plain", data: text }, Some(mended))
            }
            shown => return Err(format!("it is {:?}; PDF and text are taken", shown.unwrap_or(media_type))),
        };
        Ok(Self::Block { block: Block::Document { source, title }, mended: mended.or(long) })
    }
}

/// The http(s) address of a file that has no data and is a PDF by its label or its name.
fn pdf_address(file: &File) -> Option<&str> {
    let url = file.url.as_deref().filter(|_| file.data.is_none())?;
    let is_address = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_pdf = file.mime_type.as_deref().map_or_else(|| path.ends_with(".pdf"), |label| label == PDF);
    (is_address && is_pdf).then_some(url)
}
