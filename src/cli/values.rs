//! Values of arguments that several commands take, and the name of a format, as somebody writes it.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use conversation_store::model::Timestamp;
use conversation_store::transfer::{FORMATS, Format};

use super::failure::Failure;

/// A conversation's name: any text except the empty one.
pub(super) fn conversation() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

/// A whole number.
pub(super) fn number<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "expected a whole number")
}

/// A whole number above 0.
pub(super) fn positive(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("expected a whole number, at least 1")
}

/// A time; a date means its beginning.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    Timestamp::of_day_or_time(text).map_err(|_| "expected a date such as 2027-01-01, or an RFC 3339 time".to_owned())
}

/// A time in seconds, fractions included.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds <= Duration::from_secs(86_400));
    seconds.ok_or_else(|| "expected seconds, from 0 to 86400".to_owned())
}

/// The most edits between a name and what was meant.
const EDITS: usize = 2;
/// Other names of formats.
const ALIASES: &[(&str, &str)] = &[("md", "markdown"), ("htm", "html"), ("legacy-rows", "rows")];

/// What is done with a format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Import,
    Export,
}

/// The format of this name, or what may have been meant.
pub(super) fn format_named(name: &str, way: Way) -> Result<&'static str, Failure> {
    let lower = name.to_lowercase().replace(['_', ' '], "-");
    let meant = ALIASES.iter().find(|(alias, _)| *alias == lower).map_or(lower.as_str(), |(_, meant)| meant);
    let goes = |format: &&Format| if way == Way::Import { format.is_read() } else { format.is_written() };
    let (verb, other) = if way == Way::Import { ("import", "export") } else { ("export", "import") };
    let known = FORMATS.iter().find(|format| format.name == meant);
    if let Some(format) = known.filter(goes) {
        return Ok(format.name);
    }
    let names: Vec<&str> = FORMATS.iter().filter(goes).map(|format| format.name).collect();
    let list = format!("the formats are {}", names.join(", "));
    if known.is_some() {
        let problem = format!("`{meant}` is no {verb} format: `convo {other}` has it");
        return Err(Failure::usage(problem).with_cure(list));
    }
    // A part of the name, or a slip of the pen.
    let is_near =
        |known: &&&str| known.split('-').any(|word| word == meant) || strsim::osa_distance(known, meant) <= EDITS;
    let near: Vec<String> = names.iter().filter(is_near).map(|name| format!("`{name}`")).collect();
    let near = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) };
    Err(Failure::usage(format!("there is no {verb} format `{name}`{near}")).with_cure(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_be_parts_of_one() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for bad in ["-1", "x", "nan", "inf", "1e9", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
