//! The times that calls took: a histogram, so that a long run needs no more memory than a short one.

use std::time::Duration;

/// Buckets between a power of two and the next: a figure is at most 1/32 too high.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.ilog2();
const BUCKETS: usize = 64 * STEPS as usize;

/// Microseconds, counted.
#[derive(Clone, Debug)]
pub(super) struct Latency {
    counts: Vec<u64>,
    max: u64,
}

impl Latency {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], max: 0 }
    }

    pub(super) fn note(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(micros)) {
            *count += 1;
        }
        self.max = self.max.max(micros);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.max = self.max.max(other.max);
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// The time in which this many calls of a hundred were done.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        at.map_or(0, upper).min(self.max)
    }
}

/// Exact below `STEPS`, then `STEPS` buckets for each power of two.
fn bucket(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let shift = micros.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS + (micros >> shift)) as usize
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let first = (bucket - shift * STEPS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_falls_into_a_bucket_that_is_close() {
        for micros in (0..5000).chain([65_535, 65_536, 1_000_000, 86_400_000_000]) {
            let upper = upper(bucket(micros));
            assert!(upper >= micros && upper - micros <= micros / STEPS, "{micros}: {upper}");
            assert!(bucket(micros) < BUCKETS);
        }
    }

    #[test]
    fn percentiles() {
        let mut latency = Latency::new();
        for micros in 1..=100 {
            latency.note(Duration::from_micros(micros));
        }
        let mut all = Latency::new();
        all.add(&latency);
        assert_eq!((all.count(), all.max()), (100, 100));
        assert_eq!(all.percentile(1), 1);
        assert!((50..=51).contains(&all.percentile(50)));
        assert!((99..=100).contains(&all.percentile(99)));
        assert_eq!(Latency::new().percentile(99), 0);
    }
}
