//! Images, audio and files as parts.

use super::request::Part;
use crate::history::report::{Mended, Unfit};
use crate::model::{Audio, File, Image};
use crate::provider::prompt::media::attachment::{Attach, Made, Payload, Picture, file_name};
use crate::provider::prompt::media::bytes::is_web_address;

/// How attachments become parts.
pub(crate) struct Parts;

impl<'a> Attach<'a> for Parts {
    type Part = Part<'a>;

    /// OR-23.
    fn image(&self, image: &'a Image) -> Made<Part<'a>> {
        let (image_url, mended) = Picture::of(image)?.into_url();
        Ok((Part::InputImage { image_url }, mended))
    }

    /// There is no part for audio (OR-17).
    fn audio(&self, _: &'a Audio) -> Made<Part<'a>> {
        Err(Unfit::NotTaken)
    }

    /// OR-24.
    fn file(&self, file: &'a File) -> Made<Part<'a>> {
        match (Payload::of_file(file), file.url.as_deref().filter(|url| is_web_address(url))) {
            (Ok(found), _) => {
                let (filename, file_data) = (Some(file_name(file, "file")), Some(found.to_url()));
                Ok((Part::InputFile { filename, file_data, file_url: None }, found.mended))
            }
            (Err(_), Some(url)) => {
                let mended = file.name.is_some().then_some(Mended::AddressHasNoName);
                Ok((Part::InputFile { filename: None, file_data: None, file_url: Some(url) }, mended))
            }
            (Err(why), None) => Err(why),
        }
    }
}
