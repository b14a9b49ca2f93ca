//! The tokens that answers took.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::Timestamp;
use crate::server::app::{Call, Outcome, ok};
use crate::store::{Usage, UsageQuery};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UsageRows")]
pub(super) struct Rows {
    rows: Vec<Usage>,
}

/// A time, or a day: its beginning.
pub(super) struct Moment(pub(super) Timestamp);

impl FromStr for Moment {
    type Err = <Timestamp as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Timestamp::of_day_or_time(text).map(Self)
    }
}

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["by", "since", "until", "tag"])?;
    let mut query = UsageQuery::new().with_owner(&*call.caller.owner);
    let moment = |name| call.query.parse::<Moment>(name, "day or time");
    query.since = moment("since")?.map(|Moment(time)| time);
    query.until = moment("until")?.map(|Moment(time)| time);
    query.tags = call.query.all("tag").into_iter().map(str::to_owned).collect();
    query.by = call.query.parses("by", "day, model or conversation")?;
    ok(&Rows { rows: call.store().usage(&query)? })
}
