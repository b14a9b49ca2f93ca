//! What wires call the things that all of them have: a part of each wire's row.

use serde_json::value::RawValue;

use crate::json::fields::{Fields, array};

/// Tools as they are in a request, and what is beside them.
pub(crate) type Tools<'a> = (Vec<&'a RawValue>, Fields<'a>);

/// How a wire declares tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolForm {
    /// The field of the request that holds them.
    pub(crate) field: &'static str,
    /// The tools in that field, and what else is there: most often it is their array.
    pub(crate) items: fn(&RawValue) -> Option<Tools<'_>>,
    /// The field of a tool that holds an array of declarations, where one tool holds several functions.
    pub(crate) list: Option<&'static str>,
    /// The field of a tool that holds the declaration.
    pub(crate) wrapper: Option<&'static str>,
    /// Takes the JSON Schema out of a declaration.
    pub(crate) schema: for<'a> fn(&mut Fields<'a>) -> Option<&'a RawValue>,
}

impl ToolForm {
    /// The field is an array of tools.
    pub(crate) fn array(field: &RawValue) -> Option<Tools<'_>> {
        Some((array(field)?, Fields::default()))
    }
}

/// Which texts of a stream grow from one object to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowingTexts {
    /// The fields that tell texts apart which grow under the same names.
    pub(crate) identity: &'static [&'static str],
    /// Under these names they stand.
    pub(crate) texts: &'static [&'static str],
}

/// Where an error has its words. Whatever the wire, a server before it may answer in its own way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorForm {
    /// The fields that may hold what went wrong.
    pub(crate) words: &'static [&'static str],
    /// The fields that may hold its code.
    pub(crate) codes: &'static [&'static str],
}
