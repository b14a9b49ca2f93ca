//! What can be found in the text of JSON, or mended, before a parser sees it; and its strings: the text may be broken, or still
//! come in.

use std::borrow::Cow;
use std::io;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// Replaces each lone surrogate escape by `\ufffd`, the replacement character. Columns stay as they were.
///
/// JSON's grammar allows `"\ud83d"` without its second half (RFC 8259, section 8.2), Unicode does not: no parser that
/// gives Rust strings takes it.
pub(crate) fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    replace(text, &lone_surrogates(text), r"\ufffd")
}

/// Replaces each lone surrogate escape by that of a character which is not in the text, and returns that character.
/// `None` where there was none to replace.
pub(crate) fn mark_lone_surrogates(text: &str) -> (Cow<'_, str>, Option<char>) {
    let lone = lone_surrogates(text);
    if lone.is_empty() {
        return (Cow::Borrowed(text), None);
    }
    let (mark, escape) = absent_character(text);
    (replace(text, &lone, &escape), Some(mark))
}

/// Gives `found` the place of each string that holds a mark, and of each name of a field that does, as `<key>`. Goes as deep as
/// the value.
pub(crate) fn find_marked(value: &Value, mark: char, place: &str, found: &mut dyn FnMut(String)) {
    match value {
        Value::String(text) if text.contains(mark) => found(place.to_owned()),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                find_marked(item, mark, &format!("{place}[{i}]"), found);
            }
        }
        Value::Object(fields) => {
            let dot = if place.is_empty() { "" } else { "." };
            for (name, field) in fields {
                if name.contains(mark) {
                    found(format!("{place}{dot}<key>"));
                }
                find_marked(field, mark, &format!("{place}{dot}{name}"), found);
            }
        }
        _ => {}
    }
}

fn replace<'a>(text: &'a str, lone: &[usize], escape: &str) -> Cow<'a, str> {
    if lone.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for at in lone {
        out.push_str(text.get(copied..*at).unwrap_or_default());
        out.push_str(escape);
        copied = at + ESCAPE;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// A non-character that `text` holds neither plain nor escaped, and its escape. Non-characters mean nothing in
/// exchanged text (Unicode, section 23.7), so one of the 32 is free; should all of them occur, it is the last.
fn absent_character(text: &str) -> (char, String) {
    let text = text.to_ascii_lowercase();
    let absent = ('\u{fdd0}'..='\u{fdee}').find(|mark| !text.contains(*mark) && !text.contains(&escape(*mark)));
    let mark = absent.unwrap_or('\u{fdef}');
    (mark, escape(mark))
}

fn escape(character: char) -> String {
    format!(r"\u{:04x}", u32::from(character))
}

/// Reads JSON whose numbers may be out of the range of an `f64`, such as `1e999`: they are read as `1e308`. JSON's grammar
/// has no largest number, and the parser refuses what its type cannot hold.
///
/// # Errors
///
/// As the parser reports it, with the place in the given text.
pub(crate) fn value<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| match within_range(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(text) => serde_json::from_str(&text),
    })
}

/// Replaces numbers that are out of the range of an `f64`. Columns stay as they were.
fn within_range(text: &str) -> Cow<'_, str> {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let (mut out, mut copied, mut passed) = (String::new(), 0, 0);
    for (at, byte) in outside_strings(text.as_bytes()) {
        if at < passed || !matches!(byte, b'0'..=b'9' | b'-') {
            continue;
        }
        let length = text.bytes().skip(at).take_while(is_of_number).count();
        let number = text.get(at..at + length).unwrap_or_default();
        if is_out_of_range(number) {
            let large = if number.starts_with('-') { "-1e308" } else { "1e308" };
            out.push_str(text.get(copied..at).unwrap_or_default());
            // No number that is out of range is shorter.
            out.push_str(&format!("{large:length$}"));
            copied = at + length;
        }
        passed = at + length;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

fn is_out_of_range(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_infinite) && serde_json::from_str::<IgnoredAny>(number).is_ok()
}

/// JSON text on one line: line breaks are only between tokens, and become spaces.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if has_line_break(text) { Cow::Owned(text.replace(['\n', '\r'], " ")) } else { Cow::Borrowed(text) }
}

pub(crate) fn has_line_break(text: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some()
}

/// JSON text without white space between its tokens.
pub(crate) fn compact(text: &str) -> Cow<'_, str> {
    let (mut out, mut copied) = (String::new(), 0);
    for (at, byte) in outside_strings(text.as_bytes()) {
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            out.push_str(text.get(copied..at).unwrap_or_default());
            copied = at + 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether arrays and objects are nested deeper than this, as [`depth`] counts.
pub(crate) fn is_deeper(text: &str, limit: usize) -> bool {
    // Most texts have few brackets, in strings and outside of them.
    let has_more = memchr::memchr2_iter(b'[', b'{', text.as_bytes()).nth(limit).is_some();
    has_more && depth(text) > limit
}

/// How deep arrays and objects are nested in a JSON text: 0 for a plain value, 1 for `[]`. Takes broken JSON too.
pub(crate) fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for (_, byte) in outside_strings(text.as_bytes()) {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a text has a string that is no name of a field.
pub(crate) fn has_words(text: &str) -> bool {
    let (mut strings, mut has_ended) = (Strings::default(), false);
    for next in text.chars() {
        let is_in_string = strings.has_begun();
        strings.is_outside(next);
        if has_ended && !next.is_whitespace() {
            if next != ':' {
                return true;
            }
            has_ended = false;
        }
        has_ended |= is_in_string && !strings.has_begun();
    }
    has_ended || strings.has_begun()
}

/// The length in bytes of a value's shortest JSON text.
pub(crate) fn size(value: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A value always has a text, and counting does not fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// The last boundary of characters at or before a byte.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Is this the JSON text of an object? Nesting is not limited, and lone surrogate escapes pass.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Length of `\uXXXX`.
pub(crate) const ESCAPE: usize = 6;

/// Whether a string's text begins with the escape of a pair's second half.
pub(crate) fn begins_with_second_half(text: &str) -> bool {
    matches!(escaped_unit(text.as_bytes(), 0), Some(0xdc00..=0xdfff))
}

/// Where a string's text ends with the escape of a pair's first half.
pub(crate) fn first_half_at_end(text: &str) -> Option<usize> {
    let at = lone_surrogates(text).pop()?;
    let is_first = matches!(escaped_unit(text.as_bytes(), at), Some(0xd800..=0xdbff));
    (is_first && at + ESCAPE == text.len()).then_some(at)
}

/// The positions of lone surrogate escapes. Outside of strings JSON has no backslash, so strings need no tracking.
fn lone_surrogates(text: &str) -> Vec<usize> {
    let (mut lone, mut at, bytes) = (Vec::new(), 0, text.as_bytes());
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += next;
        match escaped_unit(bytes, at) {
            None => at += 2,
            Some(0xd800..=0xdbff) if matches!(escaped_unit(bytes, at + ESCAPE), Some(0xdc00..=0xdfff)) => {
                at += 2 * ESCAPE;
            }
            Some(unit) => {
                if (0xd800..=0xdfff).contains(&unit) {
                    lone.push(at);
                }
                at += ESCAPE;
            }
        }
    }
    lone
}

/// The UTF-16 code unit that the escape at this place means.
fn escaped_unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE)?.strip_prefix(br"\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + u16::try_from(char::from(*digit).to_digit(16)?).ok()?))
}

/// The bytes of a JSON text that are outside of strings, with their places; a quote is not. A string is passed at once.
pub(crate) fn outside_strings(text: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let byte = *text.get(at)?;
            at += 1;
            if byte != b'"' {
                return Some((at - 1, byte));
            }
            at = end_of_string(text, at);
        }
    })
}

/// Where a string that begins here has ended, with its quote; past the text if it does not end.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// Follows a text, character by character, and knows which of them stand within strings. A byte of a longer character may be
/// given as a character of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strings {
    inside: bool,
    escaped: bool,
}

impl Strings {
    /// Takes the next character. Whether it is outside of strings; a quote does not.
    pub(crate) const fn is_outside(&mut self, next: char) -> bool {
        match next {
            _ if self.escaped => {
                self.escaped = false;
                return false;
            }
            '\\' => self.escaped = self.inside,
            '"' => {
                self.inside = !self.inside;
                return false;
            }
            _ => {}
        }
        !self.inside
    }

    /// How many of the bytes that come next are within the string that has begun, and do not end it.
    pub(crate) fn same(self, next: &[u8]) -> usize {
        match self {
            Self { inside: true, escaped: false } => memchr::memchr2(b'"', b'\\', next).unwrap_or(next.len()),
            _ => 0,
        }
    }

    /// Whether a string has begun that has not ended.
    pub(crate) const fn has_begun(self) -> bool {
        self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_the_largest_in_place() {
        let table = [
            (r#"{"a":1e999,"b":[-1.5E+400]}"#, r#"{"a":1e308,"b":[-1e308   ]}"#),
            (r#"{"1e999":"-1e999 \" 1e999","b":1e308}"#, r#"{"1e999":"-1e999 \" 1e999","b":1e308}"#),
            ("[0e999, -0, 1e-999]", "[0e999, -0, 1e-999]"),
            ("[01e999, 1.e999]", "[01e999, 1.e999]"),
            ("1e309", "1e308"),
        ];
        for (text, wanted) in table {
            let got = within_range(text);
            assert_eq!(got, wanted);
            assert_eq!(got.len(), text.len());
        }
        let long = "9".repeat(400);
        assert_eq!(value::<f64>(&long).ok(), Some(1e308));
        assert!(value::<f64>("1e999,").is_err());
    }

    #[test]
    fn lone_surrogates_are_replaced_in_place() {
        let table = [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83dx\ude00""#, r#""\ufffdx\ufffd""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""é\uDfFfé""#, r#""é\ufffdé""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\u+83d\"#, r#""\u+83d\"#),
            ("", ""),
        ];
        for (text, wanted) in table {
            let got = replace_lone_surrogates(text);
            assert_eq!(got, wanted);
            assert_eq!(got.len(), text.len());
            assert_eq!(matches!(got, Cow::Borrowed(_)), text == wanted, "{text}");
        }
    }

    #[test]
    fn a_first_half_is_at_the_end_or_nowhere() {
        let table = [
            (r"a\ud83d", Some(1)),
            (r"\ud83da", None),
            (r"\ud83d\ude00", None),
            (r"\ude00", None),
            (r"\ud83d\ud83d", Some(6)),
            ("a", None),
        ];
        for (text, at) in table {
            assert_eq!(first_half_at_end(text), at, "{text}");
        }
    }

    #[test]
    fn a_mark_stands_where_the_lone_surrogate_stood() {
        assert_eq!(mark_lone_surrogates(r#""\ud83d\ude00""#), (Cow::Borrowed(r#""\ud83d\ude00""#), None));
        assert_eq!(mark_lone_surrogates(r#""\ud83d""#), (r#""\ufdd0""#.into(), Some('\u{fdd0}')));
        let taken = "\"\u{fdd0} \\ufdd1 \\uFdD2 \\udfff\"";
        assert_eq!(mark_lone_surrogates(taken).1, Some('\u{fdd3}'));
        let all: String = ('\u{fdd0}'..='\u{fdef}').chain("\\udfff".chars()).collect();
        assert_eq!(mark_lone_surrogates(&all).1, Some('\u{fdef}'));
    }

    #[test]
    fn compact_text_is_the_same_json() {
        let table = [
            ("{\n  \"a b\" : [ 1.50 ,\t\"\\\" x\\\\\" , null ]\r\n}", "{\"a b\":[1.50,\"\\\" x\\\\\",null]}"),
            ("{}", "{}"),
            (" ", ""),
        ];
        for (text, wanted) in table {
            assert_eq!(compact(text), wanted);
        }
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        let table = [("1", 0), ("[]", 1), (r#"{"a":[{}]}"#, 3), (r#"["[[", "\"[["]"#, 1), ("[],[[]]", 2), ("]]][", 1)];
        for (text, wanted) in table {
            assert_eq!(depth(text), wanted, "{text}");
            for limit in 0..5 {
                assert_eq!(is_deeper(text, limit), wanted > limit, "{text}");
            }
        }
        assert_eq!(depth(&"[".repeat(1_000_000)), 1_000_000);
    }

    #[test]
    fn words_are_strings_that_name_no_field() {
        for text in ["", "1", r#"{"a":1,"b" : {"\"c":[true]}}"#] {
            assert!(!has_words(text), "{text}");
        }
        for text in [r#""a""#, r#"{"a":"b"}"#, r#"{"a":["b"]}"#, r#"{"a\":1,"b\\":"c"}"#, r#"{"a"#, r#""a":"b""#] {
            assert!(has_words(text), "{text}");
        }
    }

    #[test]
    fn size_is_that_of_the_text() {
        for text in ["null", "-1.5", r#"{"a":["é\n",{}]}"#] {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            assert_eq!(size(&value), text.len(), "{text}");
        }
    }

    #[test]
    fn objects_are_told_from_other_json() {
        for text in
            ["{}", " \n{\"a\":1}", r#"{"a":"\ud83d"}"#, &format!("{{\"a\":{}{}}}", "[".repeat(900), "]".repeat(900))]
        {
            assert!(is_object(text), "{text}");
        }
        for text in ["", "[]", "{", "{}}", "{'a':1}", "null", "\"{}\"", "{\"a\":NaN}", "\u{a0}{}"] {
            assert!(!is_object(text), "{text}");
        }
    }

    #[test]
    fn strings_end_at_a_quote_that_is_not_escaped() {
        let table = [
            (r#"{"a":[1]}"#, "{:[1]}", false),
            (r#""\"[" , "\\"]"#, " , ]", false),
            (r#"\"a\""#, r"\", true),
            (r#"["a\"#, "[", true),
        ];
        for (text, wanted, has_begun) in table {
            let mut strings = Strings::default();
            let outside: String = text.chars().filter(|next| strings.is_outside(*next)).collect();
            assert_eq!((outside.as_str(), strings.has_begun()), (wanted, has_begun), "{text}");
            let at_once: String = outside_strings(text.as_bytes()).map(|(_, byte)| char::from(byte)).collect();
            assert_eq!(at_once, wanted, "{text}");
        }
    }
}
