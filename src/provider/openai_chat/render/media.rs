//! Images, audio and files as content parts, of those that the server takes.

use std::borrow::Cow;

use super::request::{File as FilePart, ImageUrl, InputAudio, Part};
use crate::history::report::Unfit;
use crate::model::{Audio, File, Image};
use crate::provider::openai_chat::manner::{ImagesTaken, Manner};
use crate::provider::prompt::media::attachment::{Attach, Made, Payload, Picture, file_name};

/// The audio formats that the wire takes, by media type. Source: API reference, `input_audio.format`.
const AUDIO_FORMATS: &[(&str, &str)] =
    &[("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/wave", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3")];

/// How attachments become parts.
pub(crate) struct Parts(pub(crate) &'static Manner);

impl<'a> Attach<'a> for Parts {
    type Part = Part<'a>;

    fn image(&self, image: &'a Image) -> Made<Part<'a>> {
        if self.0.images == ImagesTaken::Never {
            return Err(Unfit::NotTaken);
        }
        let picture = Picture::of(image)?;
        if let Picture::Address(url) = &picture
            && self.0.images == ImagesTaken::Data
        {
            return Err(Unfit::AddressNotTaken((*url).to_owned()));
        }
        let (url, mended) = picture.into_url();
        Ok((Part::ImageUrl { image_url: ImageUrl { url, detail: None } }, mended))
    }

    fn audio(&self, audio: &'a Audio) -> Made<Part<'a>> {
        if !self.0.audio {
            return Err(Unfit::NotTaken);
        }
        let found = Payload::of_audio(audio)?;
        let format = AUDIO_FORMATS.iter().find(|(name, _)| *name == found.media_type);
        let (_, format) = format.ok_or_else(|| Unfit::Type(found.media_type.to_owned(), "wav or mp3"))?;
        Ok((Part::InputAudio { input_audio: InputAudio { data: found.base64, format } }, found.mended))
    }

    fn file(&self, file: &'a File) -> Made<Part<'a>> {
        if !self.0.files {
            return Err(Unfit::NotTaken);
        }
        let found = Payload::of_file(file)?;
        let filename = Cow::Borrowed(file_name(file, "file"));
        Ok((Part::File { file: FilePart { filename, file_data: found.to_url() } }, found.mended))
    }
}
