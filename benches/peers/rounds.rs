//! Short rounds, engine by engine, so that what the machine does meanwhile falls on all of them alike. A figure is the
//! median of its rounds; a ratio is the median of the rounds' ratios, not the ratio of medians.

use std::time::{Duration, Instant};

use crate::engines::Engine;

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) better: Better,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
    /// The value compares with something already.
    Neither,
}

impl Unit {
    pub(crate) const fn rate(name: &'static str) -> Self {
        Self { name, better: Better::More }
    }

    pub(crate) const fn cost(name: &'static str) -> Self {
        Self { name, better: Better::Less }
    }

    pub(crate) const fn own(name: &'static str) -> Self {
        Self { name, better: Better::Neither }
    }
}

/// The values of one workload, for every engine.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) workload: &'static str,
    pub(crate) threads: usize,
    pub(crate) unit: Unit,
    /// Of each engine, the values round by round.
    pub(crate) series: Vec<(&'static str, Vec<f64>)>,
}

impl Measured {
    /// The engine's median.
    pub(crate) fn value(&self, engine: &str) -> Option<f64> {
        median(self.values(engine)?.to_vec())
    }

    /// How much better an engine is than another: above 1, it is.
    pub(crate) fn ratio(&self, engine: &str, other: &str) -> Option<f64> {
        let pairs = self.values(engine)?.iter().zip(self.values(other)?);
        match self.unit.better {
            Better::More => median(pairs.map(|(a, b)| a / b).collect()),
            Better::Less => median(pairs.map(|(a, b)| b / a).collect()),
            Better::Neither => None,
        }
    }

    fn values(&self, engine: &str) -> Option<&[f64]> {
        self.series.iter().find(|(name, _)| *name == engine).map(|(_, values)| values.as_slice())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], upper) } else { upper })
}

/// Measures round by round, in alternating order. The first round warms up and is not counted.
pub(crate) fn interleave<T>(
    title: &str,
    rounds: usize,
    engines: &mut [(Engine, T)],
    mut measure: impl FnMut(&mut T, usize) -> f64,
) -> Vec<(&'static str, Vec<f64>)> {
    let mut series: Vec<_> = engines.iter().map(|(engine, _)| (engine.name, Vec::new())).collect();
    for round in 0..=rounds {
        eprintln!("{title}: round {round} of {rounds}");
        let mut order: Vec<usize> = (0..engines.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let value = measure(&mut engines[at].1, round);
            if round > 0 {
                series[at].1.push(value);
            }
        }
    }
    series
}

/// The time of one unit of work: `work` does some, and says how much.
pub(crate) fn time_each(least: Duration, mut work: impl FnMut() -> usize) -> Duration {
    let (start, mut done) = (Instant::now(), 0);
    while done == 0 || start.elapsed() < least {
        done += work();
    }
    start.elapsed().div_f64(done as f64)
}
