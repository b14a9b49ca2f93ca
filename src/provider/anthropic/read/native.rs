//! Blocks that are kept as they came.

use serde_json::value::RawValue;

use crate::model::{Json, Native};
use crate::provider::anthropic::manner::NAME;

/// The block, to be given back as it came.
pub(crate) fn native(raw: &RawValue) -> Option<Native> {
    Some(Native { wire: NAME.to_owned(), json: Json::from_raw(raw.to_owned()).ok()? })
}
