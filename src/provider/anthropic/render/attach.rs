//! Images, audio and files as blocks.

use super::request::{Block, Source};
use crate::history::report::{Mended, Unfit};
use crate::model::{Audio, File, Image};
use crate::provider::anthropic::check::seen::{CHARACTERS, PIXELS};
use crate::provider::anthropic::manner::Manner;
use crate::provider::prompt::media::attachment::{Attach, Made};
use crate::provider::prompt::media::bytes::{decode_base64, dimensions, is_web_address, sniff};
use crate::provider::prompt::media::payload::Payload;
use crate::provider::prompt::media::picture::Picture;
use crate::provider::prompt::turns::Origin;
use crate::provider::text::is_blank;

/// How the attachments of a chunk become blocks.
pub(crate) struct Blocks<'a> {
    pub(crate) manner: &'static Manner,
    pub(crate) origin: Origin<'a>,
}

/// Characters of a document's title. From memory.
const TITLE: usize = 500;
const PDF: &str = "application/pdf";

impl<'a> Attach<'a> for Blocks<'a> {
    type Part = Block<'a>;

    fn image(&self, image: &'a Image) -> Made<Block<'a>> {
        let (source, side, mended) = match Picture::of(image)? {
            Picture::Address(url) if self.manner.addresses => (Source::Url { url }, None, None),
            Picture::Address(url) => return Err(Unfit::AddressNotTaken(url.to_owned())),
            Picture::Data { media_type, base64, mended } => {
                if base64.len() > CHARACTERS {
                    return Err(Unfit::Long(base64.len(), CHARACTERS));
                }
                let sides = decode_base64(&base64).and_then(|bytes| dimensions(&bytes));
                let side = sides.map(|(width, height)| width.max(height));
                if let Some(side) = side.filter(|side| *side > PIXELS) {
                    return Err(Unfit::Wide(side, PIXELS));
                }
                (Source::Base64 { media_type, data: base64 }, side, mended)
            }
        };
        Ok((Block::Image { source, side, origin: self.origin }, mended))
    }

    fn audio(&self, _: &'a Audio) -> Made<Block<'a>> {
        Err(Unfit::NoTranscript)
    }

    /// A PDF by its bytes, or text. Of addresses only those of a PDF are taken.
    fn file(&self, file: &'a File) -> Made<Block<'a>> {
        let named = file.name.as_deref().filter(|name| !is_blank(name));
        let title = named.filter(|name| name.chars().count() <= TITLE);
        let long = (title != named).then_some(Mended::LongTitle);
        if let Some(url) = pdf_address(file).filter(|_| self.manner.addresses) {
            return Ok((Block::Document { source: Source::Url { url }, title }, long));
        }
        let Payload { media_type, base64, mended } = Payload::of_file(file)?;
        let bytes = decode_base64(&base64).unwrap_or_default();
        let (source, mended) = match sniff(&bytes) {
            Some(PDF) => (Source::Base64 { media_type: PDF, data: base64 }, mended),
            None if media_type.starts_with("text/") => {
                let text = String::from_utf8(bytes).map_err(|_| Unfit::NotUtf8)?;
                if is_blank(&text) {
                    return Err(Unfit::Blank);
                }
                (Source::Text { media_type: "text/plain", data: text }, Some(Mended::Decoded))
            }
            shown => return Err(Unfit::Shows(shown.unwrap_or(media_type).to_owned(), "PDF and text")),
        };
        Ok((Block::Document { source, title }, mended.or(long)))
    }
}

/// The http(s) address of a file that has no data and is a PDF by its label or its name.
fn pdf_address(file: &File) -> Option<&str> {
    let url = file.url.as_deref().filter(|_| file.data.is_none())?;
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_pdf = file.mime_type.as_deref().map_or_else(|| path.ends_with(".pdf"), |label| label == PDF);
    (is_web_address(url) && is_pdf).then_some(url)
}
