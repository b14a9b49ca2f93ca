//! Values that are parts of conversations, assembled: a part waits until its conversation is complete.

use std::collections::HashMap;
use std::io::BufRead;

use super::values::{LIMIT, Value, Values};
use crate::model::json_text;

/// The most bytes of values that wait for the rest of their conversations.
const WAITING: usize = 1024 * 1024 * 1024;

/// The values of a conversation up to now, and their bytes; `None` if they are too many.
#[derive(Default)]
struct Parts {
    values: Option<Vec<String>>,
    bytes: usize,
}

/// Values that wait for the rest of their conversation.
#[derive(Default)]
pub(super) struct Groups {
    parts: HashMap<String, Parts>,
    order: Vec<String>,
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
            self.parts.insert(key.clone(), waiting);
            self.order.iter_mut().filter(|known| **known == unnamed).for_each(|known| known.clone_from(&key));
        }
        let new = !self.parts.contains_key(&key);
        if new {
            self.seen += 1;
            self.order.push(key.clone());
        }
        self.bytes += text.len();
        let new = || Parts { values: Some(Vec::new()), bytes: 0 };
        let parts = self.parts.entry(key).or_insert_with(new);
        parts.bytes += text.len();
        match &mut parts.values {
            Some(values) if self.bytes <= WAITING && parts.bytes <= LIMIT => values.push(text),
            _ => {
                self.bytes -= parts.bytes;
                *parts = Parts::default();
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
        let parts = self.parts.remove(&key).unwrap_or_default();
        self.order.retain(|known| *known != key);
        self.bytes -= parts.bytes;
        vec![(key, parts.values)]
    }

    pub(super) fn all(&mut self) -> Vec<(String, Option<Vec<String>>)> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|key| self.parts.remove(&key).map(|parts| (key, parts.values))).collect()
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
            let text = json_text::replace_lone_surrogates(&text);
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
