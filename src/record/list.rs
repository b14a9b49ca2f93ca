//! Lists of an entry.

use bincode::de::{BorrowDecode, BorrowDecoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

/// A list. It is stored as a `Vec` is. When it is read, room is made for the items that are there, and not for the number of
/// items that it claims to have, so entries are read without a limit: bincode checks a limit with each of their fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: Encode> Encode for List<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }
}

impl<'de, C, T: BorrowDecode<'de, C>> BorrowDecode<'de, C> for List<T> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let count = u64::borrow_decode(decoder)?;
        (0..count).map(|_| T::borrow_decode(decoder)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{CONFIG, decode, decode_entry};
    use super::*;

    #[test]
    fn a_list_is_stored_as_a_vec() {
        for items in [vec![], vec!["a"], vec!["one", "", "three"]] {
            let bytes = bincode::encode_to_vec(List(items.clone()), CONFIG).unwrap();
            assert_eq!(bytes, bincode::encode_to_vec(&items, CONFIG).unwrap());
            assert_eq!(decode::<Vec<&str>>("a list", &bytes).unwrap(), items);
            assert_eq!(decode_entry::<List<&str>>("a list", &bytes).unwrap(), List(items));
        }
    }

    #[test]
    fn a_list_that_claims_more_than_it_has_is_refused() {
        for claimed in [2, 1_000_000, u64::MAX] {
            let mut bytes = bincode::encode_to_vec(claimed, CONFIG).unwrap();
            bytes.extend(bincode::encode_to_vec("one", CONFIG).unwrap());
            let error = decode_entry::<List<&str>>("a list", &bytes).unwrap_err().to_string();
            assert!(error.contains("a list"), "{error}");
        }
    }
}
