//! JSON values that follow each other: lines of JSON, an array of objects as it grows, one object over many lines.

use memchr::memchr2;

use crate::json::text::Strings;

/// What is in the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An object: brackets that match, at least.
    Object(Vec<u8>),
    /// Anything else.
    Stray(Vec<u8>),
}

/// Splits bytes into objects. Arrays around them, commas and white space between them are dropped.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    bytes: Vec<u8>,
    depth: usize,
    strings: Strings,
}

impl Documents {
    /// Bytes that wait for the rest of their object.
    pub(crate) fn pending(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Found>) {
        while let Some((first, rest)) = bytes.split_first() {
            self.take(*first, out);
            // What only goes on is taken at once.
            let length = match self.depth {
                0 if self.bytes.is_empty() => 0,
                0 => memchr2(b'{', b'\n', rest).unwrap_or(rest.len()),
                _ => self.strings.same(rest),
            };
            let (same, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            self.bytes.extend_from_slice(same);
            bytes = rest;
        }
    }

    fn take(&mut self, byte: u8, out: &mut Vec<Found>) {
        if self.depth == 0 {
            return self.between(byte, out);
        }
        self.bytes.push(byte);
        match byte {
            byte if !self.strings.is_outside(char::from(byte)) => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    out.push(Found::Object(std::mem::take(&mut self.bytes)));
                }
            }
            _ => {}
        }
    }

    /// The text has ended. Gives the beginning of an object that has not.
    pub(crate) fn finish(&mut self, out: &mut Vec<Found>) -> Option<Vec<u8>> {
        if self.depth > 0 {
            return Some(std::mem::take(self).bytes);
        }
        self.stray(out);
        None
    }

    fn between(&mut self, byte: u8, out: &mut Vec<Found>) {
        match byte {
            b'{' => {
                self.stray(out);
                self.bytes.push(byte);
                self.depth = 1;
            }
            b'\n' => self.stray(out),
            b'[' | b']' | b',' | b'\r' | b'\t' | b' ' | b'\x1e' if self.bytes.is_empty() => {}
            _ => self.bytes.push(byte),
        }
    }

    fn stray(&mut self, out: &mut Vec<Found>) {
        if !self.bytes.is_empty() {
            out.push(Found::Stray(std::mem::take(&mut self.bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, size: usize) -> (Vec<String>, bool) {
        let (mut documents, mut out) = (Documents::default(), Vec::new());
        text.as_bytes().chunks(size).for_each(|piece| documents.push(piece, &mut out));
        let is_cut = documents.finish(&mut out).is_some();
        let found = out.into_iter().map(|found| match found {
            Found::Object(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Found::Stray(bytes) => format!("stray {}", String::from_utf8_lossy(&bytes)),
        });
        (found.collect(), is_cut)
    }

    #[test]
    fn objects_are_told_apart() {
        let table: [(&str, &[&str], bool); 9] = [
            ("{\"a\":1}", &["{\"a\":1}"], false),
            ("{\n \"a\": {}\n}\n", &["{\n \"a\": {}\n}"], false),
            ("{}\n{}\r\n{}", &["{}", "{}", "{}"], false),
            ("[{\"a\":[1]},\n{}\n]", &["{\"a\":[1]}", "{}"], false),
            (r#"{"a":"}\"]"}{}"#, &[r#"{"a":"}\"]"}"#, "{}"], false),
            ("{\"a\":", &[], true),
            ("{}\nbad gateway\n{}", &["{}", "stray bad gateway", "{}"], false),
            ("[]", &[], false),
            ("", &[], false),
        ];
        for (text, wanted, is_cut) in table {
            let wanted: Vec<String> = wanted.iter().map(|text| (*text).to_owned()).collect();
            for size in [1, 2, usize::MAX] {
                assert_eq!(found(text, size), (wanted.clone(), is_cut), "{text:?} {size}");
            }
        }
    }
}
