//! Images, audio and files as content parts.

use std::borrow::Cow;

use super::wire::{File as FilePart, ImageUrl, InputAudio, Part};
use crate::model::{Audio, File, Image};
use crate::provider::payload::Payload;
use crate::provider::picture::Picture;

/// What can be made of a media chunk.
#[derive(Debug)]
pub(super) enum Media<'a> {
    /// A part, and what had to be mended for it.
    Part { part: Part<'a>, mended: Option<String> },
    /// Words in its place.
    Transcript(&'a str),
    /// Nothing, and why.
    Unfit { what: &'static str, why: String },
}

/// The audio formats that the wire takes, by media type. Source: API reference, `input_audio.format`.
const AUDIO_FORMATS: &[(&str, &str)] =
    &[("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/wave", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3")];

impl<'a> Media<'a> {
    pub(super) fn image(image: &'a Image) -> Self {
        let (url, mended) = match Picture::of(image) {
            Ok(Picture::Address(url)) => (url.to_owned(), None),
            Ok(Picture::Data { media_type, base64, mended }) => (format!("data:{media_type};base64,{base64}"), mended),
            Err(why) => return Self::Unfit { what: "image", why },
        };
        Self::Part { part: Part::ImageUrl { image_url: ImageUrl { url } }, mended }
    }

    pub(super) fn audio(audio: &'a Audio) -> Self {
        let part = Payload::of_audio(audio).and_then(|found| {
            let format = AUDIO_FORMATS.iter().find(|(name, _)| *name == found.media_type);
            let (_, format) = format.ok_or_else(|| format!("its type {:?} is not wav or mp3", found.media_type))?;
            Ok((Part::InputAudio { input_audio: InputAudio { data: found.base64, format } }, found.mended))
        });
        match (part, audio.transcript.as_deref().filter(|text| !text.is_empty())) {
            (Ok((part, mended)), _) => Self::Part { part, mended },
            (Err(_), Some(transcript)) => Self::Transcript(transcript),
            (Err(why), None) => Self::Unfit { what: "audio", why },
        }
    }

    pub(super) fn file(file: &'a File) -> Self {
        let found = match Payload::of_file(file) {
            Ok(found) => found,
            Err(why) => return Self::Unfit { what: "file", why },
        };
        let media_type = if found.media_type.is_empty() { "application/octet-stream" } else { found.media_type };
        let file_data = format!("data:{media_type};base64,{}", found.base64);
        let filename = file.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("file");
        let file = FilePart { filename: Cow::Borrowed(filename), file_data };
        Self::Part { part: Part::File { file }, mended: found.mended }
    }
}
