//! Images as targets take them: an http(s) address, or base64 data of a type that its bytes show.

use std::borrow::Cow;

use super::bytes::{DataUrl, IMAGE_TYPES, decode_base64, is_web_address, may_begin, normalize_base64, sniff};
use crate::history::report::{Mended, Unfit};
use crate::model::Image;

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

/// Base64 characters from which an image's type can be read.
const SNIFF_CHARS: usize = 64;

impl<'a> Picture<'a> {
    /// The image, or why no target takes it.
    pub(crate) fn of(image: &'a Image) -> Result<Self, Unfit> {
        if is_web_address(&image.url) {
            return Ok(Self::Address(&image.url));
        }
        let Some(data) = DataUrl::parse(&image.url).or_else(|| bare(&image.url)) else {
            return Err(Unfit::NoAddress);
        };
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
            (true, true) => None,
            (true, false) => Some(Mended::Canonical),
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

/// The type that the first bytes show.
fn shown(base64: &str) -> Option<&'static str> {
    let start = base64.get(..SNIFF_CHARS.min(base64.len())).unwrap_or_default();
    decode_base64(start).and_then(|bytes| sniff(&bytes))
}

/// The data of an image without a data URL's head, known by its first bytes.
fn bare(url: &str) -> Option<DataUrl<'_>> {
    let is_image = shown(url.trim_ascii_start()).is_some_and(|shown| IMAGE_TYPES.contains(&shown));
    is_image.then_some(DataUrl { media_type: "", base64: true, payload: url })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<(String, bool), Unfit> {
        let image = Image { url: url.to_owned(), mime_type: None };
        Picture::of(&image).map(|picture| match picture {
            Picture::Address(address) => (address.to_owned(), false),
            Picture::Data { media_type, base64, mended } => (format!("{media_type} {base64}"), mended.is_some()),
        })
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
            assert_eq!(of(url).map_err(|_| ()), wanted, "{url}");
        }
    }
}
