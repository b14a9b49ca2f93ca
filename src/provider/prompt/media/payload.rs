//! Audio and files as targets take them: base64 data and what they are labelled as.

use std::borrow::Cow;

use super::bytes::{DataUrl, normalize_base64};
use crate::history::report::{Mended, Unfit};
use crate::model::{Audio, File};

/// The base64 data of a chunk that has them as such or in a data URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload<'a> {
    /// As labelled; may be empty.
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
        let from_url = url.and_then(DataUrl::parse).filter(|url| url.base64);
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
        let media_type = media_type.or(labelled).unwrap_or_default();
        Ok(Self { media_type, base64, mended })
    }

    /// As a data URL.
    pub(crate) fn to_url(&self) -> String {
        let media_type = if self.media_type.is_empty() { "application/octet-stream" } else { self.media_type };
        format!("data:{media_type};base64,{}", self.base64)
    }
}

/// The document's name, or this.
pub(crate) fn file_name<'a>(file: &'a File, otherwise: &'a str) -> &'a str {
    file.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

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
