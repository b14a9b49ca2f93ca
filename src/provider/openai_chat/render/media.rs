//! Images, audio and files as content parts.

use std::borrow::Cow;

use super::wire::{File as FilePart, ImageUrl, InputAudio, Part};
use crate::model::{Audio, File, Image};
use crate::provider::attachment::{Attach, Attachment};
use crate::provider::payload::{Payload, file_name};
use crate::provider::picture::Picture;

/// The audio formats that the wire takes, by media type. Source: API reference, `input_audio.format`.
const AUDIO_FORMATS: &[(&str, &str)] =
    &[("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/wave", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3")];

/// How attachments become parts; words only where the target takes no others.
pub(super) fn attach<'a>(media: bool) -> Attach<'a, Part<'a>> {
    if media {
        return Attach { image, audio, file };
    }
    Attach {
        image: |_| Attachment::Unfit { what: "image", why: TEXT_ONLY.to_owned() },
        audio: |audio| Attachment::of_audio(audio, Err(TEXT_ONLY.to_owned())),
        file: |_| Attachment::Unfit { what: "file", why: TEXT_ONLY.to_owned() },
    }
}

const TEXT_ONLY: &str = "the target takes text only";

fn image<'a>(image: &'a Image) -> Attachment<'a, Part<'a>> {
    let (url, mended) = match Picture::of(image) {
        Ok(picture) => picture.into_url(),
        Err(why) => return Attachment::Unfit { what: "image", why },
    };
    Attachment::Part { part: Part::ImageUrl { image_url: ImageUrl { url } }, mended }
}

fn audio<'a>(audio: &'a Audio) -> Attachment<'a, Part<'a>> {
    let part = Payload::of_audio(audio).and_then(|found| {
        let format = AUDIO_FORMATS.iter().find(|(name, _)| *name == found.media_type);
        let (_, format) = format.ok_or_else(|| format!("its type {:?} is not wav or mp3", found.media_type))?;
        Ok((Part::InputAudio { input_audio: InputAudio { data: found.base64, format } }, found.mended))
    });
    Attachment::of_audio(audio, part)
}

fn file<'a>(file: &'a File) -> Attachment<'a, Part<'a>> {
    match Payload::of_file(file) {
        Ok(found) => {
            let file_data = found.to_url();
            let file = FilePart { filename: Cow::Borrowed(file_name(file, "file")), file_data };
            Attachment::Part { part: Part::File { file }, mended: found.mended }
        }
        Err(why) => Attachment::Unfit { what: "file", why },
    }
}
