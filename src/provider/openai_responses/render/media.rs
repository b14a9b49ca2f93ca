//! Images, audio and files as parts.

use super::wire::Part;
use crate::model::{Audio, File, Image};
use crate::provider::attachment::{Attach, Attachment};
use crate::provider::payload::{Payload, file_name};
use crate::provider::picture::Picture;

/// How attachments become parts.
pub(super) fn attach<'a>() -> Attach<'a, Part<'a>> {
    Attach { image, audio, file }
}

/// OR-23.
fn image<'a>(image: &'a Image) -> Attachment<'a, Part<'a>> {
    match Picture::of(image).map(Picture::into_url) {
        Ok((image_url, mended)) => Attachment::Part { part: Part::InputImage { image_url }, mended },
        Err(why) => Attachment::Unfit { what: "image", why },
    }
}

/// There is no part for audio (OR-17).
fn audio<'a>(audio: &'a Audio) -> Attachment<'a, Part<'a>> {
    Attachment::of_audio(audio, Err("the target takes no audio".to_owned()))
}

/// OR-24.
fn file<'a>(file: &'a File) -> Attachment<'a, Part<'a>> {
    let url = file.url.as_deref().filter(|url| ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)));
    match (Payload::of_file(file), url) {
        (Ok(found), _) => {
            let (filename, file_data) = (Some(file_name(file, "file")), Some(found.to_url()));
            Attachment::Part { part: Part::InputFile { filename, file_data, file_url: None }, mended: found.mended }
        }
        (Err(_), Some(url)) => {
            let mended = file.name.is_some().then(|| "an address has no name beside it; it was left out".to_owned());
            Attachment::Part { part: Part::InputFile { filename: None, file_data: None, file_url: Some(url) }, mended }
        }
        (Err(why), None) => Attachment::Unfit { what: "file", why },
    }
}
