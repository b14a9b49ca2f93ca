//! How many requests per second a key may make.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A bucket of tokens for each key: filled at a rate, and never fuller than one second's worth.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<String, (f64, Instant)>>);

impl Rates {
    /// Takes a token; without one, returns the whole seconds until there is one.
    pub(crate) fn take(&self, key: &str, per_second: u32, now: Instant) -> Result<(), u64> {
        if per_second == 0 {
            return Ok(());
        }
        let rate = f64::from(per_second);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, filled) = buckets.entry(key.to_owned()).or_insert((rate, now));
        *tokens = rate.min(*tokens + now.saturating_duration_since(*filled).as_secs_f64() * rate);
        *filled = now;
        if *tokens < 1.0 {
            return Err(1);
        }
        *tokens -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn as_many_as_the_rate_and_then_as_time_goes() {
        let (rates, start) = (Rates::default(), Instant::now());
        let taken = |key: &str, millis: u64| {
            (0..10).filter(|_| rates.take(key, 4, start + Duration::from_millis(millis)).is_ok()).count()
        };
        assert_eq!((taken("a", 0), taken("a", 500), taken("a", 9_000), taken("b", 9_000)), (4, 2, 4, 4));
        assert!((0..100).all(|_| rates.take("c", 0, start).is_ok()));
    }
}
