//! Calls of tools that are no functions (a shell, a computer, a patch, a search of the client's), and the items that the
//! caller answered them with: they belong together, and the answer comes after its call (OR-04, OR-05).

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::native::Given;
use crate::history::{OUTCOME_UNKNOWN, ToolKind, answered, asked};
use crate::model::Body;
use crate::provider::openai_responses::manner::PROVIDER;
use crate::provider::prompt::turns::Turn;

/// A picture of one white pixel, where the screenshot that a computer's call asks for is not known.
const BLANK_SCREEN: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

/// The place of a chunk: the turn, and the position in its message.
pub(crate) type Place = (usize, usize);

/// Which items answer which calls.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// The answer of a call.
    pub(crate) answers: HashMap<Place, Place>,
    /// The call of an answer.
    pub(crate) calls: HashMap<Place, Place>,
}

impl Pairs {
    /// In one pass: an answer belongs to the earliest open call of its kind and id.
    pub(crate) fn find(turns: &[Turn<'_>], providers: &[&str]) -> Self {
        let mut open: HashMap<(ToolKind, String), VecDeque<Place>> = HashMap::new();
        let mut pairs = Self::default();
        for (turn, said) in turns.iter().enumerate().filter(|(_, said)| said.is_by(providers, None)) {
            for (chunk, content) in said.stored.message.chunks.iter().enumerate() {
                let Body::Opaque { provider, json, .. } = &content.body else { continue };
                let given = Given::read(json).filter(|given| provider == PROVIDER && given.refusal().is_none());
                let Some(given) = given else { continue };
                let place = (turn, chunk);
                if let Some(asked) = asked(given.kind(), json) {
                    open.entry((asked.kind, asked.id)).or_default().push_back(place);
                } else if let Some(call) = answered(given.kind(), json).and_then(|key| open.get_mut(&key)?.pop_front())
                {
                    pairs.answers.insert(call, place);
                    pairs.calls.insert(place, call);
                }
            }
        }
        pairs
    }
}

impl Given<'_> {
    /// Whether it is an answer, which is nothing without its call.
    pub(crate) fn is_answer(&self) -> bool {
        answered(self.kind(), self.json()).is_some()
    }

    /// Whether the target refuses it as long as nothing answers it.
    pub(crate) fn wants_answer(&self) -> bool {
        asked(self.kind(), self.json()).is_some_and(|asked| asked.kind != ToolKind::McpApproval)
    }

    /// What the call is answered in place of an answer that is not there. `None` where none is wanted.
    pub(crate) fn made_answer(&self) -> Option<Value> {
        let (id, why) = (self.text("call_id"), OUTCOME_UNKNOWN);
        Some(match self.kind() {
            // Nobody has looked at what the service warns of.
            "computer_call" if self.has("pending_safety_checks") => return None,
            "computer_call" => json!({"type": "computer_call_output", "call_id": id,
                "output": {"type": "computer_screenshot", "image_url": BLANK_SCREEN}}),
            "shell_call" => json!({"type": "shell_call_output", "call_id": id,
                "output": [{"stdout": "", "stderr": why, "outcome": {"type": "timeout"}}]}),
            "apply_patch_call" => {
                json!({"type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": why})
            }
            "local_shell_call" => json!({"type": "local_shell_call_output", "id": id, "output": why}),
            "tool_search_call" if self.text("execution") == "client" => {
                json!({"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": []})
            }
            _ => return None,
        })
    }
}
