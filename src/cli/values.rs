//! Values of arguments that several commands take.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;

/// A conversation's name: any text except the empty one.
pub(super) fn conversation() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
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
