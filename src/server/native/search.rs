//! What the words of a query are found in.

use super::parameters;
use crate::model::Role;
use crate::search::SearchQuery;
use crate::server::app::{Call, Outcome, ok};
use crate::server::refusal::Refusal;

/// Hits of an answer, if the caller does not say: what a person looks at.
const HITS: u64 = 20;
/// The most hits of an answer: each is read from the store.
const MOST: u64 = 100;

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["q", "in", "conversation", "tag", "role", "since", "until", "limit", "after", "owner"])?;
    let Some(words) = call.query.get("q") else {
        let message = "Missing required parameter: 'q'.";
        return Err(Refusal::invalid("q", "missing_required_parameter", message));
    };
    let call = &parameters::for_owner(call)?;
    let mut query = SearchQuery::new(words).with_owner(&*call.caller.owner);
    query.within = call.query.parses("in", "texts, calls or results")?;
    query.conversation = call.query.get("conversation").map(|name| parameters::named(call, name).id());
    query.tags = call.query.all("tag").into_iter().map(str::to_owned).collect();
    let role = |name: &str| {
        let names = Role::ALL.map(Role::as_str).join(", ");
        Role::from_name(name).ok_or_else(|| Refusal::value("role", &format!("{name:?}: expected one of {names}")))
    };
    query.role = call.query.get("role").map(role).transpose()?;
    query.since = parameters::moment(call, "since")?;
    query.until = parameters::moment(call, "until")?;
    query.limit = usize::try_from(call.query.number("limit", 1, MOST)?.unwrap_or(HITS)).unwrap_or_default();
    query.after = call.query.parse("after", "cursor")?;
    ok(&call.app.finder.find(call.store(), &query)?)
}
