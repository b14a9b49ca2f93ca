//! Vertex AI and Code Assist, on Gemini's wire.

use crate::provider::check::finding::Level;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::gemini::manner::Manner;
use crate::provider::gemini::rules::{GM_03, GM_06};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "vertex",
    about: "Vertex AI",
    wire: "gemini",
    rules: RULES,
    parameters: &[],
    // Soft, where there is no role at all.
    overrides: Overrides {
        repeated: &[(&[&GM_03], Level::Soft, &VX_01)],
        levels: &[(&[&GM_06], Level::Hard)],
        ..Overrides::NONE
    },
    check: |_, _| {},
    manner: &MANNER,
};

/// Vertex signs thinking for itself.
static MANNER: Manner = Manner { providers: &["vertex", "vertex_ai"], signs: false };

rules! {
    /// What Vertex adds to Gemini's rules.
    VX_01 "VX-01" Hard
        "A content always has a role."
        "say whether the user or the model speaks"
        "gh:router-for-me/CLIProxyAPI#17"
    VX_02 "VX-02" Hard
        "Text is not only white space: GM-06, which is hard here."
        "leave the part out"
        "gh:PublicAffairs/openai-gemini#37"
}
