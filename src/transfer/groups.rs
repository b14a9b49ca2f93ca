//! Values that are parts of conversations, assembled: a part waits until its conversation is complete.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::BufRead;

use super::values::{LIMIT, Value, Values};
use crate::json;

/// The most bytes of values that wait for the rest of their conversations.
const WAITING: usize = 1024 * 1024 * 1024;

/// The values of a conversation up to now, and their bytes; `None` if they are too many.
struct Parts {
    /// Its number among the conversations, in the order in which they began.
    place: usize,
    values: Option<Vec<String>>,
    bytes: usize,
}

impl Parts {
    fn extend(&mut self, later: Self) {
        self.bytes += later.bytes;
        self.values = match (self.values.take(), later.values) {
            (Some(values), Some(later)) => Some(values.into_iter().chain(later).collect()),
            _ => None,
        };
    }
}

/// Values that wait for the rest of their conversation.
#[derive(Default)]
pub(super) struct Groups {
    parts: HashMap<String, Parts>,
    bytes: usize,
    pub(super) current: Option<(usize, String)>,
    /// Conversations up to now: those that began, and those that were read.
    pub(super) seen: usize,
    pub(super) number: usize,
    /// Values that were cut off.
    pub(super) cut: u64,
}

impl Groups {
    /// Begins the key of a conversation that has no id.
    pub(super) const UNNAMED: char = '\0';

    pub(super) fn unnamed(list: usize) -> String {
        format!("{}{list}", Self::UNNAMED)
    }

    fn key(
        current: &mut Option<(usize, String)>,
        group: fn(&str) -> Option<String>,
        text: &str,
        list: usize,
    ) -> String {
        let key = match (group(text), &*current) {
            (Some(key), _) => key,
            (None, Some((of, key))) if *of == list => key.clone(),
            (None, _) => Self::unnamed(list),
        };
        *current = Some((list, key.clone()));
        key
    }

    pub(super) fn add(&mut self, group: fn(&str) -> Option<String>, text: String, list: usize) {
        let key = Self::key(&mut self.current, group, &text, list);
        let unnamed = Self::unnamed(list);
        // Values before the first one that names its conversation belong to that conversation.
        if key != unnamed
            && let Some(waiting) = self.parts.remove(&unnamed)
        {
            match self.parts.entry(key.clone()) {
                Entry::Vacant(entry) => _ = entry.insert(waiting),
                Entry::Occupied(mut entry) => entry.get_mut().extend(waiting),
            }
        }
        self.bytes += text.len();
        let seen = &mut self.seen;
        let parts = self.parts.entry(key).or_insert_with(|| {
            *seen += 1;
            Parts { place: *seen, values: Some(Vec::new()), bytes: 0 }
        });
        parts.bytes += text.len();
        match &mut parts.values {
            Some(values) if self.bytes <= WAITING && parts.bytes <= LIMIT => values.push(text),
            _ => {
                self.bytes -= parts.bytes;
                (parts.values, parts.bytes) = (None, 0);
            }
        }
    }

    /// The conversations whose last value this was.
    pub(super) fn ready(&mut self, number: usize, last: &HashMap<String, usize>) -> Vec<(String, Option<Vec<String>>)> {
        let Some((_, key)) = &self.current else { return Vec::new() };
        if last.get(key) != Some(&number) {
            return Vec::new();
        }
        let key = key.clone();
        let Some(parts) = self.parts.remove(&key) else { return Vec::new() };
        self.bytes -= parts.bytes;
        vec![(key, parts.values)]
    }

    pub(super) fn all(&mut self) -> Vec<(String, Option<Vec<String>>)> {
        let mut parts: Vec<_> = std::mem::take(&mut self.parts).into_iter().collect();
        parts.sort_unstable_by_key(|(_, parts)| parts.place);
        parts.into_iter().map(|(key, parts)| (key, parts.values)).collect()
    }
}

/// The number of the last value of each conversation.
pub(super) fn last_values(
    input: &mut dyn BufRead,
    group: fn(&str) -> Option<String>,
) -> std::io::Result<HashMap<String, usize>> {
    let (mut last, mut number, mut current) = (HashMap::new(), 0, None);
    let mut values = Values::new(input);
    while let Some(value) = values.next()? {
        if let Value::Whole(bytes) = value {
            let text = String::from_utf8_lossy(&bytes);
            let text = json::replace_lone_surrogates(&text);
            let key = Groups::key(&mut current, group, &text, values.list());
            let unnamed = Groups::unnamed(values.list());
            if key != unnamed {
                last.remove(&unnamed);
            }
            last.insert(key, number);
        }
        number += 1;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `NAME:text` is of a conversation, anything else names none.
    fn named(text: &str) -> Option<String> {
        text.split_once(':').map(|(name, _)| name.to_owned())
    }

    #[test]
    fn values_wait_in_the_order_in_which_conversations_began() {
        let mut groups = Groups::default();
        for (list, text) in [(0, "a:1"), (0, "b:2"), (1, "3"), (1, "a:4"), (1, "5"), (2, "6")] {
            groups.add(named, text.to_owned(), list);
        }
        let all: Vec<_> = groups.all().into_iter().map(|(key, values)| (key, values.unwrap().join(" "))).collect();
        let wanted = [("a", "a:1 3 a:4 5"), ("b", "b:2"), (&Groups::unnamed(2), "6")];
        assert_eq!(all, wanted.map(|(key, values)| (key.to_owned(), values.to_owned())));
    }
}
