use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment in UTC with a resolution of one microsecond, written as RFC 3339.
///
/// ```
/// use conversation_store::model::Timestamp;
///
/// let moment: Timestamp = "2026-01-02T03:04:05.678+01:00".parse()?;
/// assert_eq!(moment.to_string(), "2026-01-02T02:04:05.678Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The first and the last moment that jiff makes of microseconds.
const FIRST: i64 = -377_705_023_201_000_000;
const LAST: i64 = 253_402_207_199_999_999;

impl Timestamp {
    /// The moment this many microseconds after 1970-01-01T00:00:00Z (before it, if negative). A moment before the year
    /// -9999 or after 9999 becomes the first or the last moment that can be written.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        match micros {
            ..FIRST => Self(FIRST),
            FIRST..=LAST => Self(micros),
            _ => Self(LAST),
        }
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment that a text names: RFC 3339, or a day, which means its beginning.
    ///
    /// # Errors
    /// If it is neither.
    ///
    /// ```
    /// use conversation_store::model::Timestamp;
    ///
    /// let day = Timestamp::of_day_or_time("2026-11-25")?;
    /// assert_eq!((day.to_string(), day.day()), ("2026-11-25T00:00:00Z".to_owned(), "2026-11-25".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_day_or_time(text: &str) -> Result<Self, <Self as FromStr>::Err> {
        text.parse().or_else(|_| format!("{text}T00:00:00Z").parse())
    }

    /// The day in UTC: `2026-11-25`.
    #[must_use]
    pub fn day(self) -> String {
        let mut text = self.to_string();
        text.truncate(text.find('T').unwrap_or(text.len()));
        text
    }

    /// The system's clock.
    #[must_use]
    pub fn now() -> Self {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Self::from_micros(micros)
    }
}

/// A text that is no RFC 3339 moment.
#[derive(Debug, thiserror::Error)]
#[error("expected a moment in RFC 3339, such as 2026-01-02T03:04:05Z")]
pub struct NotATimestamp;

super::as_text!(Timestamp);

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|moment| Self::from_micros(moment.as_microsecond()))
            .map_err(|_| NotATimestamp)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or_default().fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_shown_and_read_back() {
        for micros in [i64::MIN, FIRST - 1, FIRST, -1, 0, LAST, LAST + 1, i64::MAX] {
            let moment = Timestamp::from_micros(micros);
            assert_eq!(moment.as_micros(), micros.clamp(FIRST, LAST));
            assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment, "{micros}");
        }
    }
}
