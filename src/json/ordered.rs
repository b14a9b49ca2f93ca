//! Fields in the order in which they came, each found by its name at the same cost among few and among many.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

/// The fields. A name is there once.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<V> {
    fields: Vec<(String, V)>,
    at: HashMap<String, usize>,
}

impl<V> Ordered<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        self.at.get(name).and_then(|at| self.fields.get(*at)).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.at.get(name).and_then(|at| self.fields.get_mut(*at)).map(|(_, value)| value)
    }

    /// Adds a field at the end, unless its name is there.
    pub(crate) fn add(&mut self, name: String, value: V) {
        if !self.at.contains_key(&name) {
            self.at.insert(name.clone(), self.fields.len());
            self.fields.push((name, value));
        }
    }

    /// Gives a field another value, or adds it at the end.
    pub(crate) fn set(&mut self, name: String, value: V) {
        match self.get_mut(&name) {
            Some(known) => *known = value,
            None => self.add(name, value),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self { fields: Vec::new(), at: HashMap::new() }
    }
}

impl<V> IntoIterator for Ordered<V> {
    type IntoIter = std::vec::IntoIter<(String, V)>;
    type Item = (String, V);

    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

/// Of a name that comes twice the last value counts.
impl<V> FromIterator<(String, V)> for Ordered<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(fields: I) -> Self {
        let mut ordered = Self::default();
        fields.into_iter().for_each(|(name, value)| ordered.set(name, value));
        ordered
    }
}

impl<V: Serialize> Serialize for Ordered<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
