//! Images, sound and documents on their way into a target's own parts.

use std::borrow::Cow;

use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::{Fact, Mended, Unfit};
use crate::model::{Audio, Body, File, Image};
use crate::provider::text::is_blank;

/// A part, and what had to be mended for it; or why there is none.
pub(crate) type Made<P> = Result<(P, Option<Mended>), Unfit>;

/// How a target takes attachments.
pub(crate) trait Attach<'a> {
    /// One of the target's own parts.
    type Part;

    fn image(&self, image: &'a Image) -> Made<Self::Part>;
    fn audio(&self, audio: &'a Audio) -> Made<Self::Part>;
    fn file(&self, file: &'a File) -> Made<Self::Part>;
}

/// An image, sound or document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attachment<'a> {
    Image(&'a Image),
    Audio(&'a Audio),
    File(&'a File),
}

impl<'a> Attachment<'a> {
    pub(crate) fn of(body: &'a Body) -> Option<Self> {
        match body {
            Body::Image(image) => Some(Self::Image(image)),
            Body::Audio(audio) => Some(Self::Audio(audio)),
            Body::File(file) => Some(Self::File(file)),
            _ => None,
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::File(_) => "file",
        }
    }

    /// Said by the assistant where it stood, on wires on which only the user may have it.
    pub(crate) const fn moved(self) -> &'static str {
        match self {
            Self::Image(_) => "[image: it is in the next user message]",
            Self::Audio(_) => "[audio: it is in the next user message]",
            Self::File(_) => "[file: it is in the next user message]",
        }
    }

    /// Said by the user before it, there.
    pub(crate) const fn by_assistant(self) -> &'static str {
        match self {
            Self::Image(_) => "Image by the assistant:",
            Self::Audio(_) => "Audio by the assistant:",
            Self::File(_) => "File by the assistant:",
        }
    }

    /// The part, or the text in its place: what was said in a sound, or why there is none. With a line in the
    /// report unless it is as it was.
    pub(crate) fn place<A: Attach<'a>>(
        self,
        attach: &A,
        stored: &StoredMessage,
        chunk: usize,
        report: &mut Vec<ReportLine>,
    ) -> Result<A::Part, Cow<'a, str>> {
        let what = self.kind();
        let made = match self {
            Self::Image(image) => attach.image(image),
            Self::Audio(audio) => attach.audio(audio),
            Self::File(file) => attach.file(file),
        };
        let mut note = |fact: Fact<'_>| report.push(ReportLine::chunk(fact, stored, chunk));
        let why = match made {
            Ok((part, mended)) => {
                mended.iter().for_each(|how| note(Fact::AttachmentMended { what, how }));
                return Ok(part);
            }
            Err(why) => why,
        };
        if let Self::Audio(Audio { transcript: Some(transcript), .. }) = self
            && !is_blank(transcript)
        {
            note(Fact::TranscriptSent);
            return Err(Cow::Borrowed(transcript));
        }
        note(Fact::AttachmentRemoved { what, why: &why });
        Err(Cow::Owned(format!("[{what} left out: {why}]")))
    }
}
