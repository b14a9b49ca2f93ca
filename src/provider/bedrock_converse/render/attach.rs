//! Images, sound and files as blocks: bytes only.

use super::request::{Block, Document, Image, Media, Source};
use crate::history::report::Unfit;
use crate::model;
use crate::provider::bedrock_converse::read::media::TYPES;
use crate::provider::prompt::media::attachment::{Attach, Made};
use crate::provider::prompt::media::bytes::{decode_base64, sniff};
use crate::provider::prompt::media::payload::Payload;
use crate::provider::prompt::media::picture::Picture;
use crate::provider::prompt::turns::Origin;
use crate::provider::text::is_blank;

/// How the attachments of a chunk become blocks. The name of a document is still its own.
pub(crate) struct Blocks<'a> {
    pub(crate) origin: Origin<'a>,
}

/// Formats of films and of sound, by the second half of their type. Source: botocore 1.44.5, `VideoFormat`, `AudioFormat`.
const FILMS: &[(&str, &str)] = &[
    ("video/mp4", "mp4"),
    ("video/quicktime", "mov"),
    ("video/mov", "mov"),
    ("video/webm", "webm"),
    ("video/x-matroska", "mkv"),
    ("video/mkv", "mkv"),
    ("video/x-flv", "flv"),
    ("video/flv", "flv"),
    ("video/mpeg", "mpeg"),
    ("video/x-ms-wmv", "wmv"),
    ("video/wmv", "wmv"),
    ("video/3gpp", "three_gp"),
    ("video/three_gp", "three_gp"),
];

impl<'a> Attach<'a> for Blocks<'a> {
    type Part = Block<'a>;

    fn image(&self, image: &'a model::Image) -> Made<Block<'a>> {
        match Picture::of(image)? {
            Picture::Address(url) => Err(Unfit::AddressNotTaken(url.to_owned())),
            Picture::Data { media_type, base64, mended } => {
                let format = media_type.strip_prefix("image/").unwrap_or(media_type);
                Ok((Block::Image(Image { format, source: Source { bytes: base64 } }), mended))
            }
        }
    }

    fn audio(&self, _: &'a model::Audio) -> Made<Block<'a>> {
        Err(Unfit::NoTranscript)
    }

    fn file(&self, file: &'a model::File) -> Made<Block<'a>> {
        let Payload { media_type, base64, mended } = Payload::of_file(file)?;
        let source = Source { bytes: base64 };
        if let Some((_, format)) = FILMS.iter().find(|(known, _)| *known == media_type) {
            return Ok((Block::Video(Media { format, source }), mended));
        }
        let bytes = decode_base64(&source.bytes).unwrap_or_default();
        let labelled = TYPES.iter().find(|(_, known)| *known == media_type).map(|(format, _)| *format);
        let is_text = || std::str::from_utf8(&bytes).is_ok_and(|text| !is_blank(text));
        let format = match (sniff(&bytes), labelled) {
            (Some("application/pdf"), _) => "pdf",
            (None, Some("txt" | "md" | "html" | "csv")) if !is_text() => return Err(Unfit::Blank),
            (None, Some(format)) if format != "pdf" => format,
            (None, None) if media_type.starts_with("text/") && is_text() => "txt",
            (shown, _) => return Err(Unfit::Shows(shown.unwrap_or(media_type).to_owned(), "documents and text")),
        };
        let name = file.name.clone().unwrap_or_default();
        Ok((Block::Document(Document { format, name, source, origin: self.origin }), mended))
    }
}
