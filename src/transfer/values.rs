//! JSON values, one after the other, from a stream of any length: the items of a list, lines, consecutive objects.
//!
//! Only one value is in memory at a time. Brackets and quotes are counted; nothing is parsed, and nothing recurses.

use std::io::{self, BufRead};

use crate::json::text::Strings;

/// The most bytes of one value: one conversation of an export, or one line.
pub(crate) const LIMIT: usize = 256 * 1024 * 1024;
/// The most files of an archive, or of a folder.
pub(super) const FILES: usize = 1_000_000;
/// The most bytes of an attachment that is included in its message.
pub(super) const ATTACHMENT: u64 = 20 * 1024 * 1024;

/// What is said of a database or an archive in a build that cannot read it.
#[cfg(not(feature = "archives"))]
pub(super) const WITHOUT_ARCHIVES: &str = "this program was built without the feature `archives`, which reads zip archives and SQLite \
                                databases: install it with `cargo install --path . --features cli,archives`";

/// What a stream contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A value's text; at least its brackets match.
    Whole(Vec<u8>),
    /// A value that is cut off by the end of the stream, or of its line.
    Cut(Vec<u8>),
    /// A value larger than the limit; it was skipped.
    TooLong,
}

/// The values of a stream.
pub(crate) struct Values<R> {
    input: R,
    limit: usize,
    /// Bytes taken so far.
    position: u64,
    /// How many lists have begun; a value outside of any list belongs to list 0.
    list: usize,
    in_list: bool,
    /// Whether each line is a value: the first one ended with its line.
    lines: Option<bool>,
}

/// The position of the stream in a value.
#[derive(Default)]
struct Scan {
    depth: usize,
    strings: Strings,
    broke_line: bool,
}

/// What a byte does to a value.
#[derive(PartialEq, Eq)]
enum Step {
    Goes,
    /// It ends with this byte.
    Ends,
    /// It ended before this byte.
    Ended,
}

impl<R: BufRead> Values<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_limit(input, LIMIT)
    }

    fn with_limit(input: R, limit: usize) -> Self {
        Self { input, limit, position: 0, list: 0, in_list: false, lines: None }
    }

    /// Bytes read up to now.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// The number of the list that holds the last value: 0 if none does.
    pub(crate) const fn list(&self) -> usize {
        self.list
    }

    /// The next value; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Value>> {
        let Some(first) = self.begin()? else { return Ok(None) };
        let mut scan = Scan::default();
        let mut value = Vec::new();
        let mut length = 0_usize;
        let is_line = !self.in_list && self.lines == Some(true);
        let is_scalar = !matches!(first, b'{' | b'[');
        loop {
            let bytes = fill(&mut self.input)?;
            if bytes.is_empty() {
                // A number, or a string, may end with the stream.
                let whole = is_scalar && !scan.strings.has_begun();
                return Ok(Some(self.ended(value, length, whole)));
            }
            let (mut used, mut step) = (0, Step::Goes);
            for byte in bytes {
                step = scan.step(*byte, is_line, is_scalar);
                if step != Step::Ended {
                    used += 1;
                }
                if step != Step::Goes {
                    break;
                }
            }
            let part = bytes.get(..used).unwrap_or_default();
            length += part.len();
            if length <= self.limit {
                value.extend_from_slice(part);
            } else {
                value = Vec::new();
            }
            self.input.consume(used);
            self.position += used as u64;
            if step != Step::Goes {
                let whole = step == Step::Ends || is_scalar && scan.depth == 0 && !scan.strings.has_begun();
                if !self.in_list && !is_line && self.lines.is_none() && whole {
                    self.lines = Some(!scan.broke_line && self.line_ends()?);
                }
                return Ok(Some(self.ended(value, length, whole)));
            }
        }
    }

    fn ended(&self, mut value: Vec<u8>, length: usize, whole: bool) -> Value {
        match (length > self.limit, whole) {
            (true, _) => Value::TooLong,
            (false, true) => {
                value.truncate(value.trim_ascii_end().len());
                Value::Whole(value)
            }
            (false, false) => Value::Cut(value),
        }
    }

    /// Skips what is between values. Returns the first byte of the next one, which is not consumed yet.
    fn begin(&mut self) -> io::Result<Option<u8>> {
        loop {
            let bytes = fill(&mut self.input)?;
            let between = bytes.iter().take_while(|byte| is_between(**byte) || !self.in_list && **byte == b']').count();
            let first = bytes.get(between).copied();
            let ends = bytes.is_empty();
            self.input.consume(between);
            self.position += between as u64;
            match first {
                None if ends => return Ok(None),
                None => {}
                Some(b']') => {
                    self.in_list = false;
                    self.take_one();
                }
                Some(b'[') if !self.in_list => {
                    self.in_list = true;
                    self.list += 1;
                    self.take_one();
                }
                Some(first) => return Ok(Some(first)),
            }
        }
    }

    fn take_one(&mut self) {
        self.input.consume(1);
        self.position += 1;
    }

    /// Whether only blanks remain before the end of the line.
    fn line_ends(&mut self) -> io::Result<bool> {
        let bytes = fill(&mut self.input)?;
        let next = bytes.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        Ok(next.is_some_and(|byte| *byte == b'\n'))
    }
}

impl Scan {
    fn step(&mut self, byte: u8, is_line: bool, is_scalar: bool) -> Step {
        if byte == b'\n' {
            self.broke_line = true;
            if is_line {
                return Step::Ended;
            }
        }
        match byte {
            byte if !self.strings.is_outside(char::from(byte)) => {}
            b']' | b'}' | b',' | b'\n' if is_scalar && self.depth == 0 => return Step::Ended,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 && !is_scalar {
                    return Step::Ends;
                }
            }
            _ => {}
        }
        Step::Goes
    }
}

/// White space, commas, the bytes of a byte order mark, the separator of JSON text sequences, and closing brackets
/// without an opening one.
const fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b'}' | 0xef | 0xbb | 0xbf | 0x1e)
}

fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    // Called twice, because a borrow that is returned cannot be tried again.
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(text: &str, limit: usize) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        // A buffer of three bytes: values are split anywhere.
        let mut values = Values::with_limit(BufReader::with_capacity(3, text.as_bytes()), limit);
        while let Some(value) = values.next().unwrap() {
            let shown = match value {
                Value::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                Value::Cut(bytes) => format!("cut {}", String::from_utf8(bytes).unwrap()),
                Value::TooLong => "too long".to_owned(),
            };
            found.push((values.list(), shown));
        }
        assert_eq!(values.position(), text.len() as u64);
        found
    }

    #[test]
    fn values_are_found_in_lists_lines_and_objects() {
        let table: &[(&str, &[(usize, &str)])] = &[
            ("", &[]),
            ("[]", &[]),
            (
                " [ {\"a\":\"]}\\\"\"} , [1,[2]] ,3, \"x,]\" ]\n",
                &[(1, "{\"a\":\"]}\\\"\"}"), (1, "[1,[2]]"), (1, "3"), (1, "\"x,]\"")],
            ),
            ("\u{feff}{\"a\":1}\n{\"b\":2}", &[(0, "{\"a\":1}"), (0, "{\"b\":2}")]),
            ("{\n\"a\":1\n}\n{\n\"b\":2}", &[(0, "{\n\"a\":1\n}"), (0, "{\n\"b\":2}")]),
            // A truncated line takes no other line with it.
            ("{\"a\":1}\n{\"b\":[\"\n{\"c\":3}\n", &[(0, "{\"a\":1}"), (0, "cut {\"b\":[\""), (0, "{\"c\":3}")]),
            ("[1]\n[2,3]", &[(1, "1"), (2, "2"), (2, "3")]),
            ("[{\"a\":1},{\"b\":", &[(1, "{\"a\":1}"), (1, "cut {\"b\":")]),
            ("nonsense\nmore", &[(0, "nonsense"), (0, "more")]),
            ("]]}", &[]),
        ];
        for (text, wanted) in table {
            let wanted: Vec<_> = wanted.iter().map(|(list, value)| (*list, (*value).to_owned())).collect();
            assert_eq!(all(text, LIMIT), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_value_over_the_limit_is_passed_over() {
        let found = all("[\"aaaaaaaaaaaa\",{\"b\":1}]", 8);
        assert_eq!(found, [(1, "too long".to_owned()), (1, "{\"b\":1}".to_owned())]);
    }
}
