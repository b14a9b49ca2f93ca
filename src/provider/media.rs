//! Images and files as requests carry them: data URLs, base64, and what the bytes themselves say they are.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The image types that every wire takes.
pub(crate) const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Takes what providers take: bits behind the last byte may be set, padding is as the caller says.
const fn decoder(padding: DecodePaddingMode) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&STANDARD, config.with_decode_padding_mode(padding))
}

const STRICT: GeneralPurpose = decoder(DecodePaddingMode::RequireCanonical);
const UNPADDED: GeneralPurpose = decoder(DecodePaddingMode::RequireNone);

/// A `data:` URL (RFC 2397), its parts as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataUrl<'a> {
    /// For example `image/png`; may be empty, in any case of letters.
    pub(crate) media_type: &'a str,
    /// Whether the payload is base64; else it is percent-encoded text.
    pub(crate) base64: bool,
    pub(crate) payload: &'a str,
}

impl<'a> DataUrl<'a> {
    /// `None` if this is no data URL.
    pub(crate) fn parse(url: &'a str) -> Option<Self> {
        let (head, payload) = url.strip_prefix("data:")?.split_once(',')?;
        let mut parameters = head.split(';');
        let media_type = parameters.next().unwrap_or_default();
        Some(Self { media_type, base64: parameters.any(|parameter| parameter == "base64"), payload })
    }
}

/// What is wrong with the URL of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlFault {
    #[error("url is empty")]
    Empty,
    #[error("neither an http(s) nor a data URL")]
    Scheme,
    #[error("media type is {0:?}")]
    MediaType(String),
    #[error("data URL is not ;base64")]
    NotBase64,
    #[error("payload is not base64")]
    Payload,
}

/// `None` if the URL may stand for an image on OpenAI's wires: http(s), or base64 data of an image.
pub(crate) fn image_url_fault(url: &str) -> Option<UrlFault> {
    if url.is_empty() {
        return Some(UrlFault::Empty);
    }
    if ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return None;
    }
    match DataUrl::parse(url) {
        None => Some(UrlFault::Scheme),
        Some(data) if !IMAGE_TYPES.contains(&data.media_type) => Some(UrlFault::MediaType(data.media_type.to_owned())),
        Some(data) if !data.base64 => Some(UrlFault::NotBase64),
        Some(data) if data.payload.is_empty() || decode_base64(data.payload).is_none() => Some(UrlFault::Payload),
        Some(_) => None,
    }
}

/// Decodes base64 as providers do: standard alphabet, full padding, nothing between.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STRICT.decode(text).ok()
}

/// The canonical base64 of what was meant: white space is dropped, the URL-safe alphabet and missing padding are
/// accepted. `None` if it is empty or cannot be decoded.
pub(crate) fn normalize_base64(text: &str) -> Option<Cow<'_, str>> {
    let standard: String = text
        .trim_end_matches(|character: char| character == '=' || character.is_ascii_whitespace())
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .map(|character| match character {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let canonical = STRICT.encode(UNPADDED.decode(standard).ok()?);
    match canonical {
        _ if canonical.is_empty() => None,
        _ if canonical == text => Some(Cow::Borrowed(text)),
        _ => Some(Cow::Owned(canonical)),
    }
}

/// The media type that the first bytes show, if they show one.
pub(crate) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    SIGNATURES
        .iter()
        .find(|(_, signature)| signature.iter().all(|(at, magic)| holds(bytes, *at, magic)))
        .map(|row| row.0)
}

fn holds(bytes: &[u8], at: usize, magic: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(magic))
}

/// Media types and the bytes they are known by, with their places (the formats' own specifications).
type Signature = (&'static str, &'static [(usize, &'static [u8])]);
const SIGNATURES: &[Signature] = &[
    ("image/png", &[(0, b"\x89PNG\r\n\x1a\n")]),
    ("image/jpeg", &[(0, b"\xff\xd8\xff")]),
    ("image/gif", &[(0, b"GIF87a")]),
    ("image/gif", &[(0, b"GIF89a")]),
    ("image/webp", &[(0, b"RIFF"), (8, b"WEBP")]),
    ("image/bmp", &[(0, b"BM")]),
    ("image/heic", &[(4, b"ftypheic")]),
    ("image/heic", &[(4, b"ftypheix")]),
    ("application/pdf", &[(0, b"%PDF")]),
    ("audio/wav", &[(0, b"RIFF"), (8, b"WAVE")]),
    ("audio/mpeg", &[(0, b"ID3")]),
    ("audio/mpeg", &[(0, b"\xff\xfb")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_come_apart() {
        let url = |media_type, base64, payload| Some(DataUrl { media_type, base64, payload });
        let table = [
            ("data:image/png;base64,AAAA", url("image/png", true, "AAAA")),
            ("data:text/plain;charset=utf-8;base64,QQ==", url("text/plain", true, "QQ==")),
            ("data:,a%20b", url("", false, "a%20b")),
            ("data:image/svg+xml,<svg,>", url("image/svg+xml", false, "<svg,>")),
            ("data:image/png;base64", None),
            ("https://example.org/a.png", None),
            ("", None),
        ];
        for (text, wanted) in table {
            assert_eq!(DataUrl::parse(text), wanted, "{text}");
        }
    }

    /// As Python's `base64.b64decode(text, validate=True)` judges.
    #[test]
    fn strict_base64() {
        for text in ["", "QUJD", "QUI=", "QQ==", "QR==", "+/+/"] {
            assert!(decode_base64(text).is_some(), "{text}");
        }
        for text in ["Q", "QQ", "QUI", "QQ=", "QQ===", "QU JD", "QUJD\n", "-_-_", "@@@", "=", "QQ==QQ==", "QÜJD"] {
            assert!(decode_base64(text).is_none(), "{text}");
        }
    }

    #[test]
    fn base64_is_repaired() {
        assert!(matches!(normalize_base64("QUI="), Some(Cow::Borrowed("QUI="))));
        let table = [
            ("QUI", Some("QUI=")),
            (" QU\r\nI\t= \n", Some("QUI=")),
            ("QUI===", Some("QUI=")),
            ("QUJD=", Some("QUJD")),
            ("-_-_", Some("+/+/")),
            ("QR", Some("QQ==")),
            ("", None),
            (" \n", None),
            ("==", None),
            ("Q", None),
            ("QQ==QQ==", None),
            ("data:,a", None),
            ("QÜJD", None),
        ];
        for (text, wanted) in table {
            assert_eq!(normalize_base64(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn bytes_show_their_type() {
        let table: [(&[u8], Option<&str>); 12] = [
            (b"\x89PNG\r\n\x1a\n....", Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"RIFF\x10\0\0\0AVI ", None),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"BM6\0", Some("image/bmp")),
            (b"\0\0\0\x18ftypheic", Some("image/heic")),
            (b"ID3\x04", Some("audio/mpeg")),
            (b"RIFF", None),
            (b"", None),
        ];
        for (bytes, wanted) in table {
            assert_eq!(sniff(bytes), wanted, "{bytes:?}");
        }
    }
}
