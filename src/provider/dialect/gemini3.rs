//! Gemini 3 and later, where the name of the model does not tell.

use serde_json::Value;

use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::gemini::check::{turns, unsigned_calls};
use crate::provider::gemini::manner::{AI_STUDIO, Manner};
use crate::provider::gemini::rules::GM_17;
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "gemini3",
    about: "Gemini 3 and later, under any name",
    wire: "gemini",
    rules: RULES,
    parameters: &[],
    overrides: Overrides { waived: &[&GM_17], ..Overrides::NONE },
    check,
    manner: &MANNER,
};

static MANNER: Manner = Manner { signs: true, ..AI_STUDIO };

rules! {
    /// What is sure where the model is one of Gemini 3.
    G3_01 "G3-01" Hard
        "Calls of the current turn bear their signatures: GM-17, which is hard here, whatever the name of the model."
        "send back the signature that came with the call; for calls of other models the documented dummy \
         skip_thought_signature_validator"
        "ai.google.dev thought-signatures"
}

fn check(request: &Value, out: &mut Findings) {
    let Some(turns) = turns(request) else { return };
    out.extend(unsigned_calls(&turns).map(|finding| finding.with_level(Level::Hard)));
}
