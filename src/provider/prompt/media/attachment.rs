//! Images, sound and documents on their way into a target's own parts: where an image is, what else has for data, and the words
//! in the place of what a target does not take.

use std::borrow::Cow;

use super::bytes::{DataUrl, IMAGE_TYPES, decode_base64, is_web_address, may_begin, normalize_base64, shown};
use crate::history::report::{Fact, Mended, Unfit};
use crate::history::{ReportLine, StoredMessage};
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
        Err(Cow::Owned(left_out(what, &why)))
    }
}

const LEFT_OUT: &str = " left out: ";

/// The text in the place of an attachment.
pub(crate) fn left_out(what: &str, why: &Unfit) -> String {
    format!("[{what}{LEFT_OUT}{why}]")
}

/// Why there is no attachment in the place of this line, if it is the text for one.
pub(crate) fn why_left_out(line: &str) -> Option<&str> {
    let (what, why) = line.strip_prefix('[')?.split_once(LEFT_OUT)?;
    ["image", "audio", "file", "document"].contains(&what).then(|| why.strip_suffix(']').unwrap_or(why))
}

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picture<'a> {
    /// At an http(s) address.
    Address(&'a str),
    /// Here.
    Data {
        media_type: &'a str,
        base64: Cow<'a, str>,
        /// What was not as it should be, and was mended.
        mended: Option<Mended>,
    },
}

impl<'a> Picture<'a> {
    /// The image, or why no target takes it.
    pub(crate) fn of(image: &'a Image) -> Result<Self, Unfit> {
        if is_web_address(&image.url) {
            return Ok(Self::Address(&image.url));
        }
        let Some(given) = DataUrl::parse(&image.url).or_else(|| bare(&image.url)) else {
            return Err(Unfit::NoAddress);
        };
        let data = given.unwrapped();
        if !data.base64 {
            return Err(Unfit::UrlNotBase64);
        }
        let base64 = normalize_base64(data.payload).ok_or(Unfit::NotBase64)?;
        let shown = shown(&base64);
        let media_type = match shown {
            Some(shown) if IMAGE_TYPES.contains(&shown) => shown,
            Some(shown) => return Err(Unfit::Shows(shown.to_owned(), "png, jpeg, gif and webp")),
            None => {
                let labels = [data.media_type, image.mime_type.as_deref().unwrap_or_default()];
                let bytes = decode_base64(&base64).unwrap_or_default();
                let is_begun = |label: &&str| IMAGE_TYPES.contains(label) && may_begin(&bytes, label);
                labels.into_iter().find(is_begun).ok_or_else(|| Unfit::NoImage(data.media_type.to_owned()))?
            }
        };
        let mended = match (media_type == data.media_type, matches!(base64, Cow::Borrowed(_))) {
            (true, true) if data == given => None,
            (true, _) => Some(Mended::Canonical),
            (false, _) if data.payload.len() == image.url.len() => Some(Mended::Bare(media_type.to_owned())),
            (false, _) => Some(Mended::Labelled(data.media_type.to_owned(), media_type.to_owned())),
        };
        Ok(Self::Data { media_type, base64, mended })
    }

    /// Its address, or itself as a data URL; and what was mended.
    pub(crate) fn into_url(self) -> (String, Option<Mended>) {
        match self {
            Self::Address(url) => (url.to_owned(), None),
            Self::Data { media_type, base64, mended } => (format!("data:{media_type};base64,{base64}"), mended),
        }
    }
}

/// The data of an image without a data URL's head, known by its first bytes.
fn bare(url: &str) -> Option<DataUrl<'_>> {
    let is_image = shown(url.trim_ascii_start()).is_some_and(|shown| IMAGE_TYPES.contains(&shown));
    is_image.then_some(DataUrl { media_type: "", base64: true, payload: url })
}

/// The base64 data of a chunk that has them as such or in a data URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload<'a> {
    /// As labelled: by the chunk, or by the data URL where the chunk names no type. May be empty.
    pub(crate) media_type: &'a str,
    pub(crate) base64: Cow<'a, str>,
    /// What was not as it should be, and was mended.
    pub(crate) mended: Option<Mended>,
}

impl<'a> Payload<'a> {
    /// The sound, or why no target takes it.
    pub(crate) fn of_audio(audio: &'a Audio) -> Result<Self, Unfit> {
        Self::of(audio.data.as_deref(), audio.url.as_deref(), audio.mime_type.as_deref())
    }

    /// The document, or why no target takes it.
    pub(crate) fn of_file(file: &'a File) -> Result<Self, Unfit> {
        Self::of(file.data.as_deref(), file.url.as_deref(), file.mime_type.as_deref())
    }

    fn of(data: Option<&'a str>, url: Option<&'a str>, media_type: Option<&'a str>) -> Result<Self, Unfit> {
        let from_url = url.and_then(DataUrl::parse).filter(|url| url.base64).map(DataUrl::unwrapped);
        let from_data = data.map(|data| {
            let parsed = DataUrl::parse(data).filter(|url| url.base64);
            parsed.map_or((None, data), |url| (Some(url.media_type), url.payload))
        });
        let (labelled, data) = match (from_data, from_url) {
            (Some(found), _) => found,
            (None, Some(url)) => (Some(url.media_type), url.payload),
            (None, None) if url.is_some() => return Err(Unfit::AddressOnly),
            (None, None) => return Err(Unfit::NoData),
        };
        let base64 = normalize_base64(data).ok_or(Unfit::NotBase64)?;
        let mended = matches!(base64, Cow::Owned(_)).then_some(Mended::Canonical);
        let named = media_type.filter(|label| names_a_type(label)).or(labelled.filter(|label| !label.is_empty()));
        Ok(Self { media_type: named.or(media_type).unwrap_or_default(), base64, mended })
    }

    /// As a data URL, of the type that the bytes show where no label says it.
    pub(crate) fn to_url(&self) -> String {
        let labelled = Some(self.media_type).filter(|label| !label.is_empty());
        let media_type = labelled.or_else(|| shown(&self.base64)).unwrap_or("application/octet-stream");
        format!("data:{media_type};base64,{}", self.base64)
    }
}

/// Whether a label is a type and a subtype, and not other words in their place.
fn names_a_type(label: &str) -> bool {
    label.split_once('/').is_some_and(|(kind, subtype)| !kind.is_empty() && !subtype.is_empty())
}

/// The document's name, or this.
pub(crate) fn file_name<'a>(file: &'a File, otherwise: &'a str) -> &'a str {
    file.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(url: &str) -> Result<(String, bool), Unfit> {
        let image = Image { url: url.to_owned(), mime_type: None };
        Picture::of(&image).map(|picture| match picture {
            Picture::Address(address) => (address.to_owned(), false),
            Picture::Data { media_type, base64, mended } => (format!("{media_type} {base64}"), mended.is_some()),
        })
    }

    #[test]
    fn the_label_of_the_data_holds_where_the_chunk_names_no_type() {
        const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";
        let unknown = "data:tool;base64,iVBORw0KGgo=";
        for (label, url, shown) in [
            (None, PNG, PNG),
            (Some("tool"), PNG, PNG),
            (Some(""), PNG, PNG),
            (Some("application/pdf"), PNG, "data:application/pdf;base64,iVBORw0KGgo="),
            (None, "data:;base64,iVBORw0KGgo=", PNG),
            // It came so, and may be known to who takes it.
            (None, unknown, unknown),
        ] {
            let label = label.map(str::to_owned);
            let file = File { name: None, url: Some(url.to_owned()), data: None, mime_type: label.clone() };
            assert_eq!(Payload::of_file(&file).unwrap().to_url(), shown, "{label:?} {url}");
        }
    }

    #[test]
    fn the_bytes_tell_the_type() {
        let table = [
            ("https://x.test/a.png", Ok(("https://x.test/a.png", false))),
            ("data:image/png;base64,iVBORw0KGgo=", Ok(("image/png iVBORw0KGgo=", false))),
            ("data:image/png;base64,iVBORw0", Ok(("image/png iVBORw0=", true))),
            // Stored without the head of a data URL.
            ("iVBORw0KGgo=", Ok(("image/png iVBORw0KGgo=", true))),
            ("/9j/4AAQ", Ok(("image/jpeg /9j/4AAQ", true))),
            ("data:image/png;base64,/9j/4AAQ", Ok(("image/jpeg /9j/4AAQ", true))),
            ("data:image/jpg;base64,/9j/4AAQ", Ok(("image/jpeg /9j/4AAQ", true))),
            ("data:image/png;base64,JVBERi0x", Err(())),
            // Bytes that are no image, whatever they are labelled.
            ("data:image/png;base64,aGVsbG8gd29ybGQ=", Err(())),
            ("data:image/svg+xml,<svg/>", Err(())),
            ("data:image/png;base64,", Err(())),
            ("data:image/png;base64,%%%", Err(())),
            ("data:image/tiff;base64,AAAA", Err(())),
            ("file:///tmp/a.png", Err(())),
        ];
        for (url, wanted) in table {
            let wanted = wanted.map(|(text, mended)| (text.to_owned(), mended));
            assert_eq!(picture(url).map_err(|_| ()), wanted, "{url}");
        }
    }

    #[test]
    fn data_are_found_where_they_are() {
        let of = |data, url, media_type| {
            Payload::of(data, url, media_type).map(|found| format!("{} {}", found.media_type, found.base64))
        };
        let table = [
            (Some("QUJD"), None, Some("audio/wav"), Some("audio/wav QUJD")),
            (Some("data:text/plain;base64,QQ"), None, None, Some("text/plain QQ==")),
            (None, Some("data:application/pdf;base64,QUJD"), None, Some("application/pdf QUJD")),
            (Some("QUJD"), Some("https://x.test/a.pdf"), None, Some(" QUJD")),
            (None, Some("https://x.test/a.pdf"), None, None),
            (Some("%%%"), None, None, None),
            (None, None, None, None),
        ];
        for (data, url, media_type, wanted) in table {
            assert_eq!(of(data, url, media_type).ok().as_deref(), wanted, "{data:?} {url:?}");
        }
    }
}
