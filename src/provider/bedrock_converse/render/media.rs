//! Images, sound and files as blocks: bytes only. Documents have names, each once in a request (BC-19), and are few: the
//! oldest give way to words (BC-21).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::request::{Block, Document, Image, Media, Source};
use crate::history::ReportLine;
use crate::history::report::{Fact, Unfit};
use crate::model;
use crate::provider::bedrock_converse::check::{DOCUMENTS, is_name_character};
use crate::provider::bedrock_converse::read::request::TYPES;
use crate::provider::prompt::alternating::Message;
use crate::provider::prompt::media::attachment::{Attach, Made, Payload, Picture, left_out};
use crate::provider::prompt::media::bytes::{decode_base64, sniff};
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

/// The oldest documents leave this many at a time, so that a prompt that goes on keeps its beginning for a while.
const STEP: usize = DOCUMENTS / 2;

pub(crate) fn keep_to_limits(messages: &mut [Message<Block<'_>>], report: &mut Vec<ReportLine>) {
    let mut documents = Vec::new();
    messages.iter_mut().for_each(|message| collect(&mut message.content, &mut documents));
    let over = documents.len().saturating_sub(DOCUMENTS).div_ceil(STEP) * STEP;
    for (Origin { stored, chunk }, block) in documents.into_iter().take(over) {
        let why = Unfit::Many(DOCUMENTS, "documents");
        report.push(ReportLine::chunk(Fact::AttachmentRemoved { what: "document", why: &why }, stored, chunk));
        *block = Block::Text(Cow::Owned(left_out("document", &why)));
    }
}

fn collect<'b, 'a>(blocks: &'b mut [Block<'a>], documents: &mut Vec<(Origin<'a>, &'b mut Block<'a>)>) {
    for block in blocks {
        match (block.document(), block) {
            (Some(origin), block) => documents.push((origin, block)),
            (None, Block::ToolResult(result)) => collect(&mut result.content, documents),
            _ => {}
        }
    }
}

/// Characters of a name that are kept; a number may follow them.
const KEPT: usize = 180;
/// The name of what has none.
const NAMELESS: &str = "Document";

/// The names of a request's documents so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: HashSet<String>,
    /// How many were made of one.
    counts: HashMap<String, u32>,
}

impl Names {
    /// The name of the next document: its own where it can be.
    pub(crate) fn next(&mut self, own: &str) -> String {
        let fitted = fitted(own);
        if self.take(&fitted) {
            return fitted;
        }
        let mut count = self.counts.get(&fitted).copied().unwrap_or(1);
        loop {
            count += 1;
            let name = format!("{fitted} ({count})");
            if self.take(&name) {
                self.counts.insert(fitted, count);
                return name;
            }
        }
    }

    /// Takes a name as it is. False: another document has it.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        self.used.insert(name.to_owned())
    }
}

fn fitted(own: &str) -> String {
    let spelled: String =
        own.chars().map(|character| if is_name_character(character) { character } else { '-' }).collect();
    let words: Vec<&str> = spelled.split_ascii_whitespace().collect();
    let name: String = words.join(" ").chars().take(KEPT).collect();
    let name = name.trim_end();
    if name.is_empty() { NAMELESS.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::bedrock_converse::check::is_name;

    #[test]
    fn names_fit_and_come_once() {
        let mut names = Names::default();
        let long = "x".repeat(500);
        let given = ["Document 1", "a.pdf", "a-pdf", "", " ", "Document (2)", "é  ü", &long, &long];
        let made: Vec<String> = given.iter().map(|own| names.next(own)).collect();
        assert_eq!(made[..6], ["Document 1", "a-pdf", "a-pdf (2)", "Document", "Document (2)", "Document (2) (2)"]);
        assert!(made.iter().all(|name| is_name(name)), "{made:?}");
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
    }
}
