//! The body of a call or an answer: the length of its JSON (4 bytes, big endian), the JSON, then bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The bytes of a frame.
pub(crate) fn write(head: &impl Serialize, bytes: &[u8]) -> Result<Vec<u8>> {
    let invalid = |error: &dyn std::fmt::Display| Error::InvalidInput(format!("a frame cannot be written: {error}"));
    let head = serde_json::to_vec(head).map_err(|error| invalid(&error))?;
    let length = u32::try_from(head.len()).map_err(|error| invalid(&error))?;
    Ok([&length.to_be_bytes(), head.as_slice(), bytes].concat())
}

/// The JSON of a frame, and the bytes after it.
pub(crate) fn read<T: DeserializeOwned>(frame: &[u8]) -> Result<(T, &[u8])> {
    let invalid = |detail: &str| Error::InvalidInput(format!("the body is no frame: {detail}"));
    let (length, rest) = frame.split_first_chunk::<4>().ok_or_else(|| invalid("it is cut off"))?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|error| invalid(&error.to_string()))?;
    let (head, bytes) = rest.split_at_checked(length).ok_or_else(|| invalid("its JSON is cut off"))?;
    let head = serde_json::from_slice(head).map_err(|error| invalid(&error.to_string()))?;
    Ok((head, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_a_part_of_it_does_not() {
        let frame = write(&[1, 2], b"bytes").unwrap();
        assert_eq!(read::<Vec<u8>>(&frame).unwrap(), (vec![1, 2], b"bytes".as_slice()));
        for length in 0..frame.len() - b"bytes".len() {
            assert!(read::<Vec<u8>>(&frame[..length]).is_err(), "{length}");
        }
    }
}
