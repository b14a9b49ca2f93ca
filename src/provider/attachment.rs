//! Images, sound and documents on their way into a target's own parts; and the outputs of tools, which may hold them.

use std::borrow::Cow;

use crate::group::StoredMessage;
use crate::model::{Audio, File, Image, Output, PartBody};
use crate::reconcile::{ReportLine, Rule};

/// Told where a tool gave back nothing but what has to follow.
pub(super) const OUTPUT_FOLLOWS: &str = "The output follows in the next user message.";

/// What can be made of an image, sound or document.
#[derive(Debug)]
pub(super) enum Attachment<'a, P> {
    /// A part, and what had to be mended for it.
    Part { part: P, mended: Option<String> },
    /// Words in its place.
    Transcript(&'a str),
    /// Nothing, and why.
    Unfit { what: &'static str, why: String },
}

/// How a target takes attachments.
#[derive(Debug)]
pub(super) struct Attach<'a, P> {
    pub(super) image: fn(&'a Image) -> Attachment<'a, P>,
    pub(super) audio: fn(&'a Audio) -> Attachment<'a, P>,
    pub(super) file: fn(&'a File) -> Attachment<'a, P>,
}

/// A piece of what a tool gave back.
#[derive(Debug)]
pub(super) enum Piece<'a, P> {
    /// Text, the text of a JSON value, or words in the place of an attachment.
    Text(Cow<'a, str>),
    Part(P),
}

impl<'a, P> Attachment<'a, P> {
    /// Sound: a part, else what was said in it.
    pub(super) fn of_audio(audio: &'a Audio, part: Result<(P, Option<String>), String>) -> Self {
        let transcript = audio.transcript.as_deref().filter(|text| !text.trim().is_empty());
        match (part, transcript) {
            (Ok((part, mended)), _) => Self::Part { part, mended },
            (Err(_), Some(transcript)) => Self::Transcript(transcript),
            (Err(why), None) => Self::Unfit { what: "audio", why },
        }
    }

    /// The part, or the text that stands in its place; with a line in the report unless it is as it was.
    pub(super) fn settle(
        self,
        stored: &StoredMessage,
        chunk: usize,
        report: &mut Vec<ReportLine>,
    ) -> Result<P, Cow<'a, str>> {
        let (settled, line) = match self {
            Self::Part { part, mended } => (Ok(part), mended.map(|mended| (Rule::Altered, mended))),
            Self::Transcript(text) => {
                let detail = "its transcript stands for the audio".to_owned();
                (Err(Cow::Borrowed(text)), Some((Rule::Altered, detail)))
            }
            Self::Unfit { what, why } => {
                let detail = format!("the {what} was left out: {why}");
                (Err(Cow::Owned(format!("[{what} left out: {why}]"))), Some((Rule::LeftOut, detail)))
            }
        };
        report.extend(line.map(|(rule, detail)| ReportLine::chunk(rule, stored, chunk, detail)));
        settled
    }
}

/// What a tool gave back, in order.
pub(super) fn pieces<'a, P>(
    output: &'a Output,
    attach: &Attach<'a, P>,
    stored: &StoredMessage,
    chunk: usize,
    report: &mut Vec<ReportLine>,
) -> Vec<Piece<'a, P>> {
    let parts = match output {
        Output::Text(text) => return vec![Piece::Text(Cow::Borrowed(text))],
        Output::Parts(parts) => parts,
    };
    let mut pieces = Vec::new();
    for part in parts {
        let attachment = match &part.body {
            PartBody::Text { text } => {
                pieces.push(Piece::Text(Cow::Borrowed(text)));
                continue;
            }
            PartBody::Json { json } => {
                pieces.push(Piece::Text(Cow::Borrowed(json.as_str())));
                continue;
            }
            PartBody::Image(image) => (attach.image)(image),
            PartBody::Audio(audio) => (attach.audio)(audio),
            PartBody::File(file) => (attach.file)(file),
            PartBody::Unknown { kind } => {
                let detail = format!("a part of the unknown kind {kind:?}");
                report.push(ReportLine::chunk(Rule::LeftOut, stored, chunk, detail));
                continue;
            }
        };
        pieces.push(match attachment.settle(stored, chunk, report) {
            Ok(part) => Piece::Part(part),
            Err(text) => Piece::Text(text),
        });
    }
    pieces
}
