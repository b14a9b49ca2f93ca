//! stub
use serde_json::value::RawValue;
use crate::error::{Error, Result};
use crate::group::StoredMessage;
use crate::provider::{PromptOptions, Target};
use crate::reconcile::ReportLine;

/// m
#[derive(Debug)]
pub(in crate::provider) struct Manner {}

pub(super) fn render(
    target: Target,
    _messages: &[StoredMessage],
    _options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    Err(Error::NothingToSend(format!("{target}")))
}
