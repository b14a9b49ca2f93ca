//! Answers, the tokens that they took, and errors.

use schemars::JsonSchema;
use serde::Serialize;

use super::parameters;
use crate::server::app::{Call, Outcome, ok};
use crate::store::{Usage, UsageQuery};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageRows")]
pub(super) struct Rows {
    rows: Vec<Usage>,
}

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["by", "since", "until", "tag"])?;
    let mut query = UsageQuery::new().with_owner(&*call.caller.owner);
    query.since = parameters::moment(call, "since")?;
    query.until = parameters::moment(call, "until")?;
    query.tags = call.query.all("tag").into_iter().map(str::to_owned).collect();
    query.by = call.query.parses("by", "day, model, conversation or error")?;
    ok(&Rows { rows: call.store().usage(&query)? })
}
