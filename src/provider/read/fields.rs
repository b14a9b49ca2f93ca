//! Where the wires look for an object's fields.

pub(crate) use crate::json::fields::{Fields, array, is_empty, string, text};
pub(crate) use crate::model::extra::{Owner, compact, json};
