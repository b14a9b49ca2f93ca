//! Values of arguments that several commands take.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use conversation_store::model::Timestamp;

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
