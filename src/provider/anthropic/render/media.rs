//! Images, audio and files as blocks. Of more images than a request may hold the oldest give way to words.

use super::request::{Block, Content, RawKind, Source};
use crate::history::ReportLine;
use crate::history::report::{Fact, Mended, Unfit};
use crate::model::{Audio, File, Image};
use crate::provider::anthropic::check::message::{CHARACTERS, PIXELS};
use crate::provider::anthropic::manner::Manner;
use crate::provider::prompt::alternating::{Block as _, Message};
use crate::provider::prompt::media::attachment::{Attach, Made, Payload, Picture, left_out};
use crate::provider::prompt::media::bytes::{decode_base64, dimensions, is_web_address, sniff};
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

/// Images in a request (AN-31).
const IMAGES: usize = 100;
/// The oldest images leave this many at a time, so that a prompt that goes on keeps its beginning for a while.
const STEP: usize = IMAGES / 2;
/// With more images than this, none may have a longer side than [`SIDE`] (AN-32).
const MANY: usize = 20;
const SIDE: u32 = 2000;

pub(crate) fn keep_to_limits(messages: &mut [Message<Block<'_>>], report: &mut Vec<ReportLine>) {
    let mut images = Vec::new();
    for message in messages {
        collect(&mut message.content, &mut images);
    }
    let over = images.len().saturating_sub(IMAGES).div_ceil(STEP) * STEP;
    let kept = images.split_off(over.min(images.len()));
    for image in images {
        leave_out(image, &Unfit::Many(IMAGES, "images"), report);
    }
    if kept.len() > MANY {
        for image in kept {
            if let Some(side) = side(image).filter(|side| *side > SIDE) {
                leave_out(image, &Unfit::WideAmong(side, SIDE, MANY), report);
            }
        }
    }
}

fn collect<'b, 'a>(blocks: &'b mut [Block<'a>], images: &mut Vec<&'b mut Block<'a>>) {
    for block in blocks {
        match block {
            Block::Image { .. } => images.push(block),
            Block::Raw(raw) if raw.kind == RawKind::Image => images.push(block),
            Block::ToolResult { content: Some(Content::Blocks(blocks)), .. } => collect(blocks, images),
            _ => {}
        }
    }
}

fn side(image: &Block<'_>) -> Option<u32> {
    if let Block::Image { side, .. } = image { *side } else { None }
}

fn leave_out(image: &mut Block<'_>, why: &Unfit, report: &mut Vec<ReportLine>) {
    let origin = match image {
        Block::Image { origin, .. } => Some(*origin),
        Block::Raw(raw) => raw.origin,
        _ => None,
    };
    if let Some(Origin { stored, chunk }) = origin {
        report.push(ReportLine::chunk(Fact::AttachmentRemoved { what: "image", why }, stored, chunk));
    }
    *image = Block::text(left_out("image", why));
}
