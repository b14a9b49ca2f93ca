//! Images, audio and files as content parts.

use std::borrow::Cow;

use super::manner::{Images, Manner};
use super::wire::{File as FilePart, ImageUrl, InputAudio, Part};
use crate::model::{Audio, File};
use crate::provider::attachment::{Attach, Attachment};
use crate::provider::payload::{Payload, file_name};
use crate::provider::picture::Picture;

/// The audio formats that the wire takes, by media type. Source: API reference, `input_audio.format`.
const AUDIO_FORMATS: &[(&str, &str)] =
    &[("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/wave", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3")];

/// How attachments become parts; words where the target takes no such part.
pub(super) fn attach<'a>(manner: &Manner) -> Attach<'a, Part<'a>> {
    Attach {
        image: match manner.images {
            Images::Any => |image| picture(Picture::of(image)),
            Images::Data => |image| picture(Picture::of(image).and_then(in_request)),
            Images::Never => |_| Attachment::Unfit { what: "image", why: NONE.to_owned() },
        },
        audio: match manner.audio {
            true => |audio| Attachment::of_audio(audio, sound(audio)),
            false => |audio| Attachment::of_audio(audio, Err(NONE.to_owned())),
        },
        file: match manner.files {
            true => |file| document(file),
            false => |_| Attachment::Unfit { what: "file", why: NONE.to_owned() },
        },
    }
}

const NONE: &str = "the target takes none";

fn picture<'a>(picture: Result<Picture<'a>, String>) -> Attachment<'a, Part<'a>> {
    match picture.map(Picture::into_url) {
        Ok((url, mended)) => Attachment::Part { part: Part::ImageUrl { image_url: ImageUrl { url } }, mended },
        Err(why) => Attachment::Unfit { what: "image", why },
    }
}

fn in_request(picture: Picture<'_>) -> Result<Picture<'_>, String> {
    match picture {
        Picture::Address(url) => Err(format!("the target takes data, not the address {url}")),
        Picture::Data { .. } => Ok(picture),
    }
}

fn sound<'a>(audio: &'a Audio) -> Result<(Part<'a>, Option<String>), String> {
    let found = Payload::of_audio(audio)?;
    let format = AUDIO_FORMATS.iter().find(|(name, _)| *name == found.media_type);
    let (_, format) = format.ok_or_else(|| format!("its type {:?} is not wav or mp3", found.media_type))?;
    Ok((Part::InputAudio { input_audio: InputAudio { data: found.base64, format } }, found.mended))
}

fn document<'a>(file: &'a File) -> Attachment<'a, Part<'a>> {
    match Payload::of_file(file) {
        Ok(found) => {
            let file_data = found.to_url();
            let file = FilePart { filename: Cow::Borrowed(file_name(file, "file")), file_data };
            Attachment::Part { part: Part::File { file }, mended: found.mended }
        }
        Err(why) => Attachment::Unfit { what: "file", why },
    }
}
