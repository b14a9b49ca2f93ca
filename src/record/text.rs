//! Long texts of an entry.

use bincode::de::{BorrowDecode, BorrowDecoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

/// A text that may be long. It is stored as a `str` is; when it is read, more bytes are checked at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Encode for Text<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }
}

impl<'de: 'a, 'a, C> BorrowDecode<'de, C> for Text<'a> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let bytes = <&[u8]>::borrow_decode(decoder)?;
        if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
            return Ok(Text(text));
        }
        // It says where the text breaks off.
        std::str::from_utf8(bytes).map(Text).map_err(|inner| DecodeError::Utf8 { inner })
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{CONFIG, decode};
    use super::*;

    #[test]
    fn a_text_is_stored_as_a_str_and_refused_as_one() {
        for length in [0, 1, 63, 64, 800, 70_000] {
            let text = "aä€😀".repeat(length / 10 + 1);
            let bytes = bincode::encode_to_vec(Text(&text), CONFIG).unwrap();
            assert_eq!(bytes, bincode::encode_to_vec(text.as_str(), CONFIG).unwrap());
            assert_eq!(decode::<Text<'_>>("a text", &bytes).unwrap(), Text(&text));
            for at in [bytes.len() - 1, bytes.len() - text.len() / 2, bytes.len() - text.len()] {
                let mut broken = bytes.clone();
                broken[at] = 0xff;
                let error = decode::<Text<'_>>("a text", &broken).unwrap_err().to_string();
                assert_eq!(error, decode::<&str>("a text", &broken).unwrap_err().to_string());
            }
        }
    }
}
