//! What would be sent to a model, and what a conversation waits for; requests checked and repaired, without the store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::parameters;
use crate::history::{ReportLine, next_step};
use crate::model::ConversationId;
use crate::provider::{self, Finding, PromptOptions};
use crate::server::app::{Call, Outcome, ok};
use crate::server::body;
use crate::server::body::{Judged, judged};
use crate::server::refusal::Refusal;
use crate::server::schemas::Object;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Prompt")]
pub(super) struct Shown {
    conversation: ConversationId,
    #[schemars(with = "Object")]
    request: Box<RawValue>,
    report: Vec<ReportLine>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Repaired {
    /// A request; where a list of messages was given, a list of messages.
    #[schemars(with = "serde_json::Value")]
    request: Box<RawValue>,
    report: Vec<ReportLine>,
}

/// The tools to declare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptTools {
    #[serde(default)]
    tools: Vec<parameters::Declared>,
}

pub(super) fn prompt(call: &Call, body: &[u8]) -> Outcome {
    parameters::check_prompt(call)?;
    let PromptTools { tools } = body::json(body)?;
    let (target, options) = (parameters::target(call, "for")?, parameters::prompt(call, parameters::tools(tools)?)?);
    let name = parameters::name(call);
    let prompt = provider::render(target, &parameters::conversation(call, &name)?, &options)?;
    call.app.metrics.count_report(&prompt.report);
    ok(&Shown { conversation: name.id(), request: prompt.request, report: prompt.report })
}

pub(super) fn next(call: &Call, _: &[u8]) -> Outcome {
    ok(&next_step(&call.store().load(parameters::name(call))?))
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    accepted: bool,
    findings: Vec<Finding>,
}

pub(super) fn check(call: &Call, body: &[u8]) -> Outcome {
    call.query.check(&["for"])?;
    judged(call, body, Judged::Checked)?;
    let findings = provider::check(parameters::target(call, "for")?, body::text(body)?);
    let findings = findings.map_err(|error| Refusal::new(400, "invalid_json", error.to_string()))?;
    ok(&Checked { accepted: !findings.iter().any(|finding| finding.level.is_refused()), findings })
}

pub(super) fn repair(call: &Call, body: &[u8]) -> Outcome {
    call.query.check(&["for", "from", "model"])?;
    let target = parameters::target(call, "for")?;
    let from = if call.query.get("from").is_some() { parameters::target(call, "from")? } else { target };
    judged(call, body, Judged::Repaired)?;
    let mut options = PromptOptions::new();
    options.model = call.query.get("model").map(str::to_owned);
    let repaired = provider::repair(from, target, body::text(body)?, &options)?;
    call.app.metrics.count_report(&repaired.report);
    ok(&Repaired { request: repaired.request, report: repaired.report })
}

/// The wires and dialects that `for` and `from` may name.
#[derive(Serialize, JsonSchema)]
pub(super) struct Targets {
    targets: Vec<String>,
}

pub(super) fn targets(_: &Call, _: &[u8]) -> Outcome {
    let dialects = provider::DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name));
    ok(&Targets { targets: provider::WIRES.iter().map(|wire| wire.name.to_owned()).chain(dialects).collect() })
}
