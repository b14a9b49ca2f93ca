//! Numbers as bars. What a bar shows is in words, too: columns have a table beside them, and rows are one.

use askama::Template;

use super::words::grouped;

/// The height of columns, the width of rows, and the width of a column's place, in their own units.
const LENGTH: u64 = 100;
const STEP: u64 = 10;

/// Bars side by side: one for each day.
#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "columns.html")]
pub(super) struct Columns {
    /// What is counted.
    title: &'static str,
    bars: Vec<Bar>,
    width: u64,
    most: String,
}

struct Bar {
    name: String,
    count: String,
    at: u64,
    from: u64,
    length: u64,
}

impl Columns {
    pub(super) fn new(title: &'static str, counts: impl Iterator<Item = (String, u64)>) -> Self {
        let (bars, most) = bars(counts);
        let width = bars.last().map_or(0, |bar| bar.at) + STEP;
        Self { title, bars, width, most: grouped(most) }
    }
}

/// A table with a bar in each row.
#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "rows.html")]
pub(super) struct Rows {
    /// A name in the page.
    id: &'static str,
    title: &'static str,
    /// What a row is, and what is counted.
    heads: [&'static str; 2],
    bars: Vec<Bar>,
}

impl Rows {
    pub(super) fn new(
        id: &'static str,
        title: &'static str,
        heads: [&'static str; 2],
        counts: impl Iterator<Item = (String, u64)>,
    ) -> Self {
        Self { id, title, heads, bars: bars(counts).0 }
    }
}

/// The bars, and the largest count; at least 1.
fn bars(counts: impl Iterator<Item = (String, u64)>) -> (Vec<Bar>, u64) {
    let counts: Vec<_> = counts.collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let bar = |(at, (name, count)): (u64, (String, u64))| {
        // What is not nothing can be seen.
        let length =
            u64::try_from((u128::from(count) * u128::from(LENGTH)).div_ceil(u128::from(most))).unwrap_or(LENGTH);
        Bar { name, count: grouped(count), at: at * STEP, from: LENGTH.saturating_sub(length), length }
    };
    ((0..).zip(counts).map(bar).collect(), most)
}

/// How many there are of each size, by powers of two: 1, 2 to 3, 4 to 7 and so on.
#[derive(Debug, Default)]
pub(super) struct Sizes(Vec<u64>);

impl Sizes {
    pub(super) fn add(&mut self, size: u64) {
        let class = usize::try_from(u64::BITS - size.leading_zeros()).unwrap_or_default();
        if self.0.len() <= class {
            self.0.resize(class + 1, 0);
        }
        if let Some(count) = self.0.get_mut(class) {
            *count += 1;
        }
    }

    /// The classes from the first that has some to the last one, in words, with their counts.
    pub(super) fn classes(&self) -> impl Iterator<Item = (String, u64)> {
        let counts = self.0.iter().enumerate().skip_while(|(_, count)| **count == 0);
        counts.map(|(class, count)| {
            let name = match class {
                0 => "none".to_owned(),
                1 => "1".to_owned(),
                _ => {
                    let first = 1_u128 << (class - 1);
                    let last = u64::try_from(first * 2 - 1).unwrap_or(u64::MAX);
                    format!("{} to {}", grouped(u64::try_from(first).unwrap_or(u64::MAX)), grouped(last))
                }
            };
            (name, *count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_classes_by_powers_of_two() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.classes().count(), 0);
        [1, 2, 3, 4, 1_500, 1_500].into_iter().for_each(|size| sizes.add(size));
        let classes: Vec<_> = sizes.classes().filter(|(_, count)| *count > 0).collect();
        let wanted = [("1", 1), ("2 to 3", 2), ("4 to 7", 1), ("1,024 to 2,047", 2)];
        assert_eq!(classes, wanted.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!(sizes.classes().count(), 11);
        sizes.add(0);
        sizes.add(u64::MAX);
        assert_eq!(sizes.classes().next(), Some(("none".to_owned(), 1)));
        assert!(sizes.classes().last().unwrap().0.ends_with("to 18,446,744,073,709,551,615"));
    }

    #[test]
    fn what_is_not_nothing_can_be_seen() {
        let (bars, most) = bars([0, 1, u64::MAX].into_iter().map(|count| (String::new(), count)));
        assert_eq!(most, u64::MAX);
        assert_eq!(bars.iter().map(|bar| bar.length).collect::<Vec<_>>(), [0, 1, 100]);
    }
}
