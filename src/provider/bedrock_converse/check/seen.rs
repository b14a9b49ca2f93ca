//! What counts over the whole request.

use std::collections::HashSet;

use crate::provider::bedrock_converse::rules::BC_19;
use crate::provider::check::finding::Finding;

/// Documents of a request.
pub(crate) const DOCUMENTS: usize = 5;

/// What counts over the whole request.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    /// The name of the model; most often it is not in the request.
    pub(crate) model: &'a str,
    pub(crate) documents: usize,
    pub(crate) names: HashSet<&'a str>,
    /// The place of a block that needs `toolConfig`.
    pub(crate) tools: Option<String>,
}

impl<'a> Seen<'a> {
    /// Notes the name of a document.
    pub(crate) fn name(&mut self, name: &'a str, place: String, out: &mut Vec<Finding>) {
        if !self.names.insert(name) {
            out.push(BC_19.at(place, format!("{name:?} is the name of an earlier document")));
        }
    }
}
