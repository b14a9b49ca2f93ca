//! A server that nobody knows, on OpenAI's chat wire.

use serde_json::Value;

use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::rule::{ProtocolRule, rules};
use crate::provider::openai_chat::manner::{Manner, OPENAI, UserContent};
use crate::provider::openai_chat::rules::{OC_01, OC_03, OC_07, OC_08, OC_09, OC_18, OC_32};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "compatible",
    about: "any other server that takes the wire",
    wire: "openai-chat",
    rules: RULES,
    parameters: &[],
    check,
    manner: &MANNER,
};

/// What most servers take: text as strings, images at an address or as data.
static MANNER: Manner = Manner {
    providers: &["compatible"],
    own_ids: true,
    arrays: false,
    user: UserContent::Joined,
    audio: false,
    files: false,
    refusal: false,
    ..OPENAI
};

rules! {
    /// Nothing is known to be refused by a server that is not known.
}

/// What no server of this wire can read: no messages, messages that are none, half a character. And calls without their
/// results, or results without their calls, which most refuse.
const READABLE: &[&ProtocolRule] = &[&OC_01, &OC_03, &OC_07, &OC_08, &OC_09, &OC_18, &OC_32];

#[expect(clippy::ptr_arg, reason = "the signature of every dialect")]
fn check(_: &Value, out: &mut Vec<Finding>) {
    let of_openai = |finding: &&mut Finding| READABLE.iter().all(|rule| rule.id != finding.rule);
    let refused = out.iter_mut().filter(|finding| finding.level.is_refused()).filter(of_openai);
    refused.for_each(|finding| finding.level = Level::Soft);
}
