//! Ids of calls, on a wire that may do without.

use std::collections::HashMap;

/// Names of functions that were called, or have answered, in a content: what has no id goes by its name, and by its number
/// where it is not the first of that name.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, usize>);

impl Names {
    pub(crate) fn id(&mut self, given: Option<String>, name: &str) -> String {
        if let Some(id) = given.filter(|id| !id.is_empty()) {
            return id;
        }
        let count = self.0.entry(name.to_owned()).or_default();
        *count += 1;
        if *count == 1 { name.to_owned() } else { format!("{name}_{count}") }
    }
}
