//! Images and files as requests carry them: data URLs, base64, and what the bytes themselves say they are.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The image types that every wire takes.
pub(crate) const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Takes what providers take: bits after the last byte may be set, padding is as the caller says.
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

    /// The data, where a whole data URL is in the place of them.
    pub(crate) fn unwrapped(self) -> Self {
        let Some(inner) = Self::parse(self.payload).filter(|inner| self.base64 && inner.base64) else { return self };
        let media_type = if self.media_type.is_empty() { inner.media_type } else { self.media_type };
        Self { media_type, ..inner }
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
    if is_web_address(url) {
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

/// Decodes base64 as protobuf does: in the standard or the URL-safe alphabet, padded or not, nothing between.
pub(crate) fn decode_any_base64(text: &str) -> Option<Vec<u8>> {
    let standard = text.trim_end_matches('=').chars().map(|character| match character {
        '-' => '+',
        '_' => '/',
        other => other,
    });
    UNPADDED.decode(standard.collect::<String>()).ok()
}

/// The canonical base64 of what was meant: white space is dropped, the URL-safe alphabet and missing padding are
/// accepted. `None` if it is empty or cannot be decoded.
pub(crate) fn normalize_base64(text: &str) -> Option<Cow<'_, str>> {
    let dense: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let canonical = STRICT.encode(decode_any_base64(&dense)?);
    match canonical {
        _ if canonical.is_empty() => None,
        _ if canonical == text => Some(Cow::Borrowed(text)),
        _ => Some(Cow::Owned(canonical)),
    }
}

/// Is this an address of the web?
pub(crate) fn is_web_address(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

/// The media type that the first bytes show, if they show one.
pub(crate) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    SIGNATURES
        .iter()
        .find(|(_, signature)| signature.iter().all(|(at, magic)| holds(bytes, *at, magic)))
        .map(|row| row.0)
}

/// Whether the bytes are the beginning of a file of that type, too few to show it.
pub(crate) fn may_begin(bytes: &[u8], media_type: &str) -> bool {
    let begins = |(_, signature): &Signature| signature.first().is_some_and(|(_, magic)| magic.starts_with(bytes));
    !bytes.is_empty() && SIGNATURES.iter().filter(|(name, _)| *name == media_type).any(begins)
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

/// Width and height of a PNG, a GIF or a JPEG, in pixels (the formats' own specifications).
pub(crate) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    match sniff(bytes)? {
        "image/png" => {
            let side = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
            Some((side(16)?, side(20)?))
        }
        "image/gif" => {
            // Little endian: the low byte comes first.
            let side = |at: usize| Some(u32::from(big(at)?.swap_bytes()));
            Some((side(6)?, side(8)?))
        }
        "image/jpeg" => {
            // Segments follow each other, until a frame begins.
            let mut at = 2;
            while bytes.get(at) == Some(&0xff) {
                if matches!(bytes.get(at + 1)?, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf) {
                    return Some((u32::from(big(at + 7)?), u32::from(big(at + 5)?)));
                }
                at += 2 + usize::from(big(at + 2)?);
            }
            None
        }
        _ => None,
    }
}

/// Base64 characters from which a type can be read.
const SNIFF_CHARS: usize = 64;

/// The type that the first bytes show.
pub(crate) fn shown(base64: &str) -> Option<&'static str> {
    let start = base64.get(..SNIFF_CHARS.min(base64.len())).unwrap_or_default();
    decode_base64(start).and_then(|bytes| sniff(&bytes))
}

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

    #[test]
    fn a_data_url_in_the_place_of_data_is_unwrapped() {
        let table = [
            ("data:image/png;base64,data:image/jpeg;base64,AAAA", ("image/png", "AAAA")),
            ("data:;base64,data:image/jpeg;base64,AAAA", ("image/jpeg", "AAAA")),
            ("data:image/png;base64,AAAA", ("image/png", "AAAA")),
            ("data:image/png;base64,data:,AAAA", ("image/png", "data:,AAAA")),
            ("data:text/plain,data:image/png;base64,AAAA", ("text/plain", "data:image/png;base64,AAAA")),
        ];
        for (text, wanted) in table {
            let found = DataUrl::parse(text).map(DataUrl::unwrapped);
            assert_eq!(found.map(|url| (url.media_type, url.payload)), Some(wanted), "{text}");
        }
    }

    /// As Python's `base64.b64decode(text, validate=True)` judges.
    #[test]
    fn strict_base64() {
        for text in ["", "QUJD", "QUI=", "QQ==", "QR==", "+/+/"] {
            assert!(decode_base64(text).is_some(), "{text}");
        }
        for text in ["Q", "QQ", "QUI", "QQ=", "QQ===", "QU JD", "QUJD\n", "-_-_", "Type::@", "=", "QQ==QQ==", "QÜJD"] {
            assert!(decode_base64(text).is_none(), "{text}");
        }
    }

    #[test]
    fn base64_of_either_alphabet() {
        for text in ["", "QQ", "QQ=", "QQ===", "-_+/"] {
            assert!(decode_any_base64(text).is_some(), "{text}");
        }
        for text in ["Q", "Q Q", "QQ\n", "!!", "QQ==QQ"] {
            assert!(decode_any_base64(text).is_none(), "{text}");
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

    #[test]
    fn bytes_show_their_dimensions() {
        type Case = (&'static [u8], Option<(u32, u32)>);
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x23\x28\0\0\0\x0a";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08\x01\x02\x03\x04";
        let table: [Case; 7] = [
            (png, Some((9000, 10))),
            (png.split_at(20).0, None),
            (b"GIF89a\x01\x02\x03\x00", Some((513, 3))),
            (jpeg, Some((0x0304, 0x0102))),
            (jpeg.split_at(16).0, None),
            (b"\xff\xd8\xff\xe0\0\x04ab\0", None),
            (b"RIFF\x10\0\0\0WEBPVP8 ", None),
        ];
        for (bytes, wanted) in table {
            assert_eq!(dimensions(bytes), wanted, "{bytes:?}");
        }
    }
}
