//! Servers that translate OpenAI's chat wire back to Anthropic's: Databricks, proxies before Bedrock, Copilot, OpenRouter.

use std::collections::HashSet;

use crate::json::is_object;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, is_filled, role, sequence};
use crate::provider::openai_chat::check::{call_ids, calls};
use crate::provider::openai_chat::manner::{Ends, ImagesTaken, Manner, OPENAI, Order, Texts, UserContent};
use crate::provider::prompt::tool_id::IdRule;
use crate::provider::target::Dialect;
use crate::provider::text::{is_blank, is_word};
use serde_json::Value;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "databricks",
    about: "Databricks and others who translate to Anthropic",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides::NONE,
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["databricks_options", "thinking", "top_k", "usage_context"];

/// DB-01, DB-03, DB-04, DB-06. Neighbours of one role are one message, as Bedrock wants them (BR-03). Claude's endpoints
/// refuse images at an address (gh:maximhq/bifrost#6958).
static MANNER: Manner = Manner {
    providers: &["databricks"],
    ids: IdRule { min: 1, max: ID, allows: |character| character.is_ascii_alphanumeric() || "_-".contains(character) },
    arrays: false,
    user: UserContent::Array,
    images: ImagesTaken::Data,
    audio: false,
    files: false,
    refusal: false,
    texts: Texts::NotBlank,
    order: Order { begins: true, merges: true, bridges: false, ends: Ends::Asking },
    declares: true,
    ..OPENAI
};

rules! {
    /// What is left of Anthropic's rules after such a translation.
    DB_01 "DB-01" Hard
        "No empty or blank text anywhere, also not as assistant content beside `tool_calls`. A tool message may be empty."
        "send null or no content beside calls; leave out other empty text, or say in words that there is none"
        "gh:NousResearch/hermes-agent#11929; gh:anomalyco/opencode#31259"
    DB_02 "DB-02" Hard
        "`function.arguments` is the JSON text of an object."
        "repair the arguments to the JSON text of an object, `{}` if nothing can be saved"
        "gh:Portkey-AI/gateway#768"
    DB_03 "DB-03" Hard
        "The ids of calls are 1 to 64 of `a-z A-Z 0-9 _ -`, and none is used twice in the conversation."
        "map the ids, in calls and tool messages alike"
        "gh:tailcallhq/forgecode#1142; gh:anthropics/claude-code#28515"
    DB_04 "DB-04" Hard
        "The first message after the system ones is a user message, the last one is not an assistant message."
        "begin at a user message, and append the user's next message at the end"
        "gh:aj47/SpeakMCP#1037; gh:experientiallabs/experiential#850"
    DB_05 "DB-05" Hard
        "The tool messages of a run follow each other, so that they can become one user turn."
        "move what is between them after the last of them"
        "gh:netease-lcap/wave-agent#1368; gh:Zoo-Code-Org/Zoo-Code#1705"
    DB_06 "DB-06" Hard
        "`tools` is there when the history holds tool calls."
        "declare the tools again, or stubs of them"
        "portkey.ai/error-library 10488; gh:patriceckhart/zot#18"
}

/// Characters of an id.
const ID: usize = 64;

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let mut used = HashSet::new();
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        check_texts(message, &format!("{place}.content"), out);
        check_calls(message, &format!("{place}.tool_calls"), &mut used, out);
    }
    check_ends(&messages, out);
    check_runs(&messages, out);
    let whole = request.as_object().is_some_and(|request| request.len() > 1);
    let calls = messages.iter().any(|message| calls(message).next().is_some());
    if whole && calls && !request.get("tools").is_some_and(is_filled) {
        out.push(DB_06.at("tools", "calls in the history, but no tools in the request"));
    }
}

fn check_texts(message: &Object, place: &str, out: &mut Findings) {
    match message.get("content") {
        Some(Value::String(text)) if text.is_empty() && role(message) == "tool" => {}
        Some(Value::String(text)) if is_blank(text) => out.push(DB_01.at(place, "text is empty or blank")),
        Some(Value::Array(parts)) => {
            for (i, part) in parts.iter().enumerate() {
                let is_text = part.get("type").is_some_and(|name| name == "text");
                if is_text && part.get("text").and_then(Value::as_str).is_some_and(is_blank) {
                    out.push(DB_01.at(format!("{place}[{i}].text"), "text is empty or blank"));
                }
            }
        }
        _ => {}
    }
}

/// `used` holds the ids of earlier calls.
fn check_calls<'a>(message: &'a Object, place: &str, used: &mut HashSet<&'a str>, out: &mut Findings) {
    for (i, call) in calls(message) {
        let place = format!("{place}[{i}]");
        let arguments = call.get("function").and_then(|function| function.get("arguments")).and_then(Value::as_str);
        if arguments.is_some_and(|arguments| !is_object(arguments)) {
            out.push(DB_02.at(format!("{place}.function.arguments"), "not the JSON text of an object"));
        }
        let Some(id) = call.get("id").and_then(Value::as_str) else { continue };
        if !is_word(id, ID) {
            out.push(DB_03.at(format!("{place}.id"), format!("id is {id:?}")));
        }
        if !used.insert(id) {
            out.push(DB_03.at(format!("{place}.id"), format!("{id:?} is the id of an earlier call")));
        }
    }
}

fn check_ends(messages: &[&Object], out: &mut Findings) {
    let mut body = messages.iter().enumerate().filter(|(_, message)| !["system", "developer"].contains(&role(message)));
    let first = body.next();
    if first.is_none_or(|(_, message)| role(message) != "user") {
        out.push(DB_04.at("messages", "the first message after the system ones is no user message"));
    }
    if let Some((i, _)) = body.next_back().or(first).filter(|(_, message)| role(message) == "assistant") {
        out.push(DB_04.at(format!("messages[{i}]"), "the conversation ends with the assistant"));
    }
}

/// A call that is not answered in its run, although the conversation goes on: something comes before its answer.
fn check_runs(messages: &[&Object], out: &mut Findings) {
    for (i, message) in messages.iter().enumerate().filter(|(_, message)| role(message) == "assistant") {
        let rest = messages.get(i + 1..).unwrap_or_default();
        let run: Vec<_> = rest.iter().take_while(|next| role(next) == "tool").collect();
        let answered: HashSet<&Value> =
            run.iter().map(|tool| tool.get("tool_call_id").unwrap_or(&Value::Null)).collect();
        if run.len() < rest.len() && !call_ids(message).iter().all(|id| answered.contains(id)) {
            out.push(
                DB_05.at(format!("messages[{i}].tool_calls"), "another message comes before the last tool message"),
            );
        }
    }
}
