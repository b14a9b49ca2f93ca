//! Answers, the tokens that they took, and errors.

use super::parameters;
use crate::server::app::{Call, Outcome, ok};
use crate::store::UsageQuery;

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["by", "since", "until", "tag", "after", "owner"])?;
    let mut query = UsageQuery::new().with_owner(parameters::for_owner(call)?.caller.owner);
    query.since = parameters::moment(call, "since")?;
    query.until = parameters::moment(call, "until")?;
    query.tags = call.query.all("tag").into_iter().map(str::to_owned).collect();
    query.by = call.query.parses("by", "day, model, conversation or error")?;
    query.after = call.query.parse("after", "cursor")?;
    ok(&call.store().usage_page(&query)?)
}
