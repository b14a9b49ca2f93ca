//! Amazon Bedrock, on Anthropic's wire.

use serde_json::Value;

use crate::provider::anthropic::check::message::blocks;
use crate::provider::anthropic::check::tool_names;
use crate::provider::anthropic::manner::{Manner, PROVIDERS};
use crate::provider::anthropic::rules::{AN_05, AN_11, AN_35, AN_38, AN_40};
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, is_filled, role, sequence, text};
use crate::provider::prompt::tool_id::NameRule;
use crate::provider::target::Dialect;
use crate::provider::text::{is_word, is_word_with};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "bedrock",
    about: "Amazon Bedrock",
    wire: "anthropic",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides {
        waived: &[&AN_35],
        repeated: &[(&[&AN_05, &AN_38], Level::Soft, &BR_03), (&[&AN_11], Level::Soft, &BR_05)],
        levels: &[(&[&AN_11, &AN_40], Level::Hard)],
        ..Overrides::NONE
    },
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["anthropic_beta"];

/// BR-02, BR-04; an image is its bytes (docs.aws.amazon.com, ImageSource).
static MANNER: Manner = Manner {
    provider: "bedrock",
    providers: PROVIDERS,
    names: NameRule::words(CHARACTERS),
    addresses: false,
    declares: true,
};

rules! {
    /// What Bedrock adds to Anthropic's rules.
    BR_01 "BR-01" Hard
        "The id of a tool_use is 1 to 64 of `a-z A-Z 0-9 _ . : -`."
        "map the id to a shorter one, in the tool_use and in its tool_result alike"
        "sdk:botocore bedrock-runtime ToolUseId; gh:run-llama/llama_index#22775"
    BR_02 "BR-02" Hard
        "The name of a tool is 1 to 64 of `a-z A-Z 0-9 _ -`."
        "rename the tool, in its definition and in its calls alike"
        "sdk:botocore bedrock-runtime ToolName; gh:anthropics/claude-code#5132"
    BR_03 "BR-03" Hard
        "User and assistant messages alternate, beginning with the user."
        "merge messages of one role in a row, and begin at a user message"
        "gh:ankit373/hydra#964; gh:NousResearch/hermes-agent#63983"
    BR_04 "BR-04" Hard
        "`tools` is there when tool_use or tool_result occurs."
        "declare the tools again, or stubs of them"
        "gh:patriceckhart/zot#18; gh:vxcontrol/pentagi#196"
    BR_05 "BR-05" Hard
        "All tool_results of a turn are in one message."
        "move the tool_results into one user message"
        "gh:ankit373/hydra#964"
    BR_06 "BR-06" Soft
        "Models of other makers refuse text beside tool_result. It is not judged: this wire is Claude's."
        "send the text in a message of its own"
        "gh:langchain-ai/langchain-aws#141"
}

/// Characters of a tool's name and of an id.
const CHARACTERS: usize = 64;

fn check(request: &Value, out: &mut Findings) {
    let (Some(object), Some(messages)) = (request.as_object(), sequence(request, "messages")) else { return };
    check_names(object, out);
    let mut any = false;
    for (i, message) in messages.iter().enumerate() {
        for (place, block) in blocks(message, i) {
            let name = text(block, "type");
            any |= [("assistant", "tool_use"), ("user", "tool_result")].contains(&(role(message), name));
            if name == "tool_use" {
                check_call(block, &place, out);
            }
        }
    }
    if any && !object.get("tools").is_some_and(is_filled) {
        out.push(BR_04.at("tools", "calls in the history, but no tools in the request"));
    }
}

fn check_names(request: &Object, out: &mut Findings) {
    for (place, name) in tool_names(request) {
        let length = name.as_str().map_or(0, str::len);
        if length > CHARACTERS {
            out.push(BR_02.at(place, format!("name of {length} characters, at most {CHARACTERS}")));
        }
    }
}

fn check_call(call: &Object, place: &str, out: &mut Findings) {
    let text = |field: &str| call.get(field).and_then(Value::as_str);
    if let Some(id) = text("id").filter(|id| !is_word_with(id, CHARACTERS, b"_.:-")) {
        out.push(BR_01.at(format!("{place}.id"), format!("id is {id:?}")));
    }
    if let Some(name) = text("name").filter(|name| !is_word(name, CHARACTERS)) {
        out.push(BR_02.at(format!("{place}.name"), format!("name is {name:?}")));
    }
}

#[cfg(test)]
mod tests {
    use crate::provider::check::judge::check;
    use crate::provider::target::Target;

    #[test]
    fn a_tool_has_a_name_of_64_characters_at_most() {
        for (length, is_taken) in [(64, true), (65, false)] {
            let name = "x".repeat(length);
            let request = format!(
                r#"{{"messages":[{{"role":"user","content":"hi"}}],"tools":[{{"name":"{name}","input_schema":{{"type":"object"}}}}]}}"#
            );
            let findings = check(Target::ANTHROPIC.with_dialect("bedrock").unwrap(), &request).unwrap();
            assert_eq!(findings.iter().all(|found| found.rule != "BR-02"), is_taken, "{length}");
        }
    }
}
