//! Amazon's event streams (`application/vnd.amazon.eventstream`): frames of headers and a payload, each with checksums.
//!
//! A frame is its length (4 bytes, big endian), the length of its headers (4), a CRC-32 of these eight bytes (4), the
//! headers, the payload, and a CRC-32 of all before it (4). A header is the length of its name (1), the name, the type of
//! its value (1), and the value. Source: Smithy 2.0, "Amazon Event Stream Specification".

use serde_json::value::RawValue;

/// What a frame amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An event, or an error in place of one: its name and its payload.
    Event { name: String, payload: Vec<u8> },
    /// Bytes that are no frame.
    Stray(Vec<u8>),
}

/// The bytes before the headers, and after the payload.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// Splits bytes into frames.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Bytes came that are no frame. Where the next one begins is not known, so all that follows is stray.
    broken: bool,
    /// How much of what is stray is kept.
    stray: usize,
}

impl Frames {
    /// Keeps `stray` bytes, at most, of what follows the last frame that is one.
    pub(crate) const fn new(stray: usize) -> Self {
        Self { bytes: Vec::new(), broken: false, stray }
    }

    /// Whether a stream that begins with this byte may be one: no frame is as long as 16 MiB, and no text begins so.
    pub(crate) const fn may_begin_with(byte: u8) -> bool {
        byte == 0
    }

    /// Bytes that wait for the rest of their frame.
    pub(crate) fn pending(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Found>) {
        self.bytes.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some(rest) = self.bytes.get(taken..).filter(|rest| rest.len() >= PRELUDE && !self.broken) {
            let Some(length) = frame_length(rest) else {
                self.broken = true;
                break;
            };
            let Some(frame) = rest.get(..length) else { break };
            out.push(event(frame).unwrap_or_else(|| Found::Stray(frame.to_vec())));
            taken += length;
        }
        self.bytes.drain(..taken);
        if self.broken {
            self.bytes.truncate(self.stray);
        }
    }

    /// The stream has ended. A frame that is not whole was cut off, and is dropped.
    pub(crate) fn finish(self, out: &mut Vec<Found>) {
        if self.broken {
            out.push(Found::Stray(self.bytes));
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// The length of the frame that begins here, if one does.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let is_sound = crc32fast::hash(bytes.get(..8)?) == number(bytes, 8)?;
    let length = usize::try_from(number(bytes, 0)?).ok()?;
    let headers = usize::try_from(number(bytes, 4)?).ok()?;
    (is_sound && length >= PRELUDE + headers + CHECKSUM).then_some(length)
}

fn event(frame: &[u8]) -> Option<Found> {
    let end = frame.len().checked_sub(CHECKSUM)?;
    if crc32fast::hash(frame.get(..end)?) != number(frame, end)? {
        return None;
    }
    let headers = usize::try_from(number(frame, 4)?).ok()?;
    let payload = frame.get(PRELUDE + headers..end)?.to_vec();
    let headers = read_headers(frame.get(PRELUDE..PRELUDE + headers)?)?;
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let name = header(":event-type").or_else(|| header(":exception-type")).or_else(|| header(":error-code"));
    // An error may have its words in a header.
    let payload = match header(":error-message").filter(|_| payload.is_empty()) {
        Some(message) => format!("{{\"message\":{}}}", serde_json::Value::from(message)).into_bytes(),
        None => unwrapped(payload),
    };
    Some(Found::Event { name: name.unwrap_or_default(), payload })
}

/// What a model said in its own words is base64 in a payload: `{"bytes": ".."}`.
fn unwrapped(payload: Vec<u8>) -> Vec<u8> {
    #[derive(serde::Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        bytes: &'a RawValue,
    }
    let wrapped: Option<Wrapped<'_>> = serde_json::from_slice(&payload).ok();
    let text = wrapped.and_then(|wrapped| serde_json::from_str::<String>(wrapped.bytes.get()).ok());
    let bytes = text.and_then(|text| crate::provider::prompt::media::bytes::decode_base64(&text));
    bytes.unwrap_or(payload)
}

/// The headers whose values are strings.
fn read_headers(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let size = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => 2 + usize::from(u16::from_be_bytes(*rest.first_chunk()?)),
            9 => 16,
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(size)?;
        if *kind == 7 {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            headers.push((text(name), text(value.get(2..)?)));
        }
        bytes = rest;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame, by the specification.
    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(u8::try_from(name.len()).unwrap());
            head.extend_from_slice(name.as_bytes());
            head.push(7);
            head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let length = u32::try_from(PRELUDE + head.len() + payload.len() + CHECKSUM).unwrap();
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(&u32::try_from(head.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(payload.as_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    fn found(bytes: &[u8], piece: usize) -> Vec<String> {
        let (mut frames, mut out) = (Frames::new(1000), Vec::new());
        bytes.chunks(piece).for_each(|bytes| frames.push(bytes, &mut out));
        frames.finish(&mut out);
        let events = out.into_iter().map(|found| match found {
            Found::Event { name, payload } => format!("{name} {}", String::from_utf8(payload).unwrap()),
            Found::Stray(bytes) => format!("stray {}", bytes.len()),
        });
        events.collect()
    }

    #[test]
    fn frames_are_taken_apart_wherever_they_are_split() {
        let mut stream = frame(&[(":message-type", "event"), (":event-type", "messageStop")], r#"{"a":1}"#);
        stream.extend(frame(&[(":exception-type", "throttlingException")], r#"{"message":"m"}"#));
        stream.extend(frame(&[(":error-code", "e"), (":error-message", "w")], ""));
        stream.extend(frame(&[(":event-type", "chunk")], r#"{"bytes":"eyJiIjoyfQ=="}"#));
        stream.extend_from_slice(&frame(&[], "{}")[..15]);
        let wanted = [
            r#"messageStop {"a":1}"#,
            r#"throttlingException {"message":"m"}"#,
            r#"e {"message":"w"}"#,
            r#"chunk {"b":2}"#,
        ];
        for piece in [1, 7, stream.len()] {
            assert_eq!(found(&stream, piece), wanted);
        }
    }

    #[test]
    fn damage_is_told() {
        let sound = frame(&[(":event-type", "a")], "{}");
        let mut damaged = sound.clone();
        *damaged.last_mut().unwrap() ^= 1;
        let length = damaged.len();
        damaged.extend_from_slice(&sound);
        assert_eq!(found(&damaged, 5), [format!("stray {length}"), "a {}".to_owned()]);
        // Where the next frame begins is not known.
        let mut lost = vec![0; 40];
        lost.extend_from_slice(&sound);
        for piece in [1, 30, 100] {
            assert_eq!(found(&lost, piece), [format!("stray {}", lost.len())]);
        }
        assert_eq!(found(&[0; 3000], 700), ["stray 1000"]);
    }
}
