//! From the words of a refusal, or the id of a rule, to what the rule says.
//!
//! The table has how providers word a refusal, and the rules that lead to it. The texts are those of the reports that the rules
//! name. **To add one**: a row, in lower case, without quotation marks. The more particular text comes first.

use std::collections::HashMap;

use serde::Serialize;

use super::check::finding::Level;
use super::check::rule::ProtocolRule;
use super::{DIALECTS, WIRES};

/// A rule that a refused request may have broken.
///
/// Serialized with the keys `rule`, `level`, `target`, `cause`, `cure`, `source`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The rule's id, for example `OC-07`.
    pub rule: &'static str,
    /// What breaking it leads to, as a rule.
    pub level: Level,
    /// The wire or dialect whose rule it is.
    pub target: String,
    /// The condition that the request does not meet.
    pub cause: &'static str,
    /// What to do about it.
    pub cure: &'static str,
    /// Where the provider, or a report, says so: see [`ProtocolRule::source`].
    pub source: &'static str,
}

/// Explains the text of a provider's error, or the id of a rule: the rules that lead to it, the most likely first. Empty if no
/// text that is known is in it. [`check`](super::check()) finds the place in the request.
///
/// ```
/// use conversation_store::provider::explain;
///
/// let error = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01";
/// assert_eq!(explain(error)[0].rule, "AN-10");
/// assert_eq!(explain("an-10"), explain(error)[..1]);
/// ```
#[must_use]
pub fn explain(text: &str) -> Vec<Explanation> {
    let wires = WIRES.iter().flat_map(|wire| wire.rules.iter().map(|rule| (wire.name.to_owned(), *rule)));
    let dialects = DIALECTS
        .iter()
        .flat_map(|dialect| dialect.rules.iter().map(|rule| (format!("{}/{}", dialect.wire, dialect.name), *rule)));
    let rules: HashMap<&str, (String, &ProtocolRule)> =
        wires.chain(dialects).map(|(target, rule)| (rule.id, (target, rule))).collect();
    let upper = text.to_ascii_uppercase();
    let named = upper.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let plain = plain(text);
    let said = REFUSALS.iter().filter(|refusal| refusal.words.iter().all(|word| plain.contains(word)));
    let mut found: Vec<Explanation> = Vec::new();
    for id in named.chain(said.flat_map(|refusal| refusal.rules).copied()) {
        let Some((target, rule)) = rules.get(id).filter(|_| !found.iter().any(|found| found.rule == id)) else {
            continue;
        };
        let ProtocolRule { id, level, text, cure, source } = rule;
        found.push(Explanation { rule: id, level: *level, target: target.clone(), cause: text, cure, source });
    }
    found
}

/// A text as [`REFUSALS`] has it: in lower case, without quotation marks, with one space between words.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '`' | '"' | '\'' | '\\')).collect();
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A refusal, as the provider words it.
pub(super) struct Refusal {
    /// Parts of its text. All of them are in it.
    pub(super) words: &'static [&'static str],
    /// The rules that the request broke.
    pub(super) rules: &'static [&'static str],
}

macro_rules! refusals {
    ($($($word:literal)+ => $($rule:literal)+;)*) => {
        &[$(Refusal { words: &[$($word),+], rules: &[$($rule),+] }),*]
    };
}

static REFUSALS: &[Refusal] = refusals! {
    // Calls and results.
    "tool_use ids were found without tool_result blocks" => "AN-10" "AN-12" "DB-05";
    "tool_use ids were not found in tool_result blocks" => "AN-10";
    "did not find" "tool_result block(s) at the beginning of this message" => "AN-10" "AN-11";
    "unexpected tool_use_id found in tool_result blocks" => "AN-13";
    "each tool_use must have a single result" => "AN-14";
    "tool_use ids must be unique" => "AN-15" "DB-03";
    "tool_result block must have a corresponding server_tool_use" => "AN-37";
    "messages with role tool must be a response to a prece" "message with tool_calls" => "OC-08";
    "assistant message with tool_calls must be followed by tool messages" => "OC-07";
    "duplicate value for tool_call_id" => "OC-09";
    "missing parameter tool_call_id" => "OC-18";
    "no tool output found for" => "OR-04";
    "no tool call found for" => "OR-05";
    "function call turn comes immediately after a user turn" => "GM-07" "GM-23";
    "function response turn comes immediately after a function call turn" => "GM-09";
    "number of function response parts is equal to the number of function call parts" => "GM-08";
    "expected toolresult blocks at" => "BC-09" "BR-05";
    "number of toolresult blocks" "exceeds the number of tooluse blocks" => "BC-10";
    "not the same number of function calls and responses" => "MI-04";
    "unexpected role user after role tool" => "MI-02";
    "unexpected role tool after role user" => "MI-09";
    "unexpected role system after role" => "MI-07";
    "conversation blocks and tool result blocks cannot be provided in the same turn" => "BR-06";
    // Of LangGraph and the AI SDK, which refuse before they send.
    "aimessages with tool_calls that do not have a corresponding toolmessage" => "OC-07" "AN-10";
    "tool result" "missing for tool call" => "OC-07" "AN-10";
    // Tools that are not declared.
    "requests which include tool_use or tool_result blocks must define tools" => "AN-35" "BR-04" "DB-06";
    "toolconfig field must be defined" => "BC-14" "BR-04";
    "[] is too short" "tool_calls" => "OC-12";
    "[] is too short" "tools" => "DS-05";
    "tool_calls: empty array" => "OC-12";
    // Ids, names, arguments.
    "tool call id was" "length of 9" => "MI-01";
    "call_id" "string too long" => "OR-13" "OC-13";
    "string too long" "maximum length 40" => "OC-13";
    "string too long" ".id" => "OC-13" "OR-12";
    "duplicate item found with id" => "OR-06";
    "expected an id that begins with" => "OR-10" "OR-11";
    "expected an id that contains letters" => "OR-12";
    "tool_use.id" "string should match pattern" => "AN-16" "DB-03";
    "tool_use.name" => "AN-17";
    "custom.name" "string should match pattern" => "AN-17";
    "string does not match pattern" "name" => "OC-14" "OR-16";
    "invalid function name" => "GM-16";
    "function_response.name" "name cannot be empty" => "GM-10";
    "tool_use.input" "valid dictionary" => "AN-18" "DB-02";
    "function.arguments must be valid json" => "OC-16" "OR-15";
    "arguments" "expected a string, but got an object" => "OC-15" "OR-14";
    "proto field is not repeating, cannot start list" => "GM-15";
    "value at" "toolu" "failed to satisfy constraint" => "BC-12" "BR-01";
    // Thinking and signatures.
    "expected thinking or redacted_thinking, but found" => "AN-23";
    "a final assistant message must start with a thinking block" => "AN-23";
    "when thinking is disabled, an assistant message in the final position cannot contain thinking" => "AN-26";
    "final block in an assistant message cannot be thinking" => "AN-25";
    "latest assistant message cannot be modified" => "AN-24" "AN-43";
    "invalid signature in thinking block" => "AN-21" "AN-43";
    "block is bound to a different conversation" => "AN-43";
    "thinking.signature" "field required" => "AN-21";
    "missing a thought_signature" => "GM-17" "G3-01";
    "thought signature" => "GM-18";
    "reasoning_content in the thinking mode must be passed back" => "DS-03";
    "reasoning_content is missing in assistant tool call message" => "MS-01";
    "property reasoning_content is unsupported" => "GQ-01" "OC-25";
    "without its required following item" => "OR-08";
    "without its required reasoning item" => "OR-09";
    "items are not persisted when store is set to false" => "OR-21" "OR-22";
    "encrypted content" "could not be verified" => "OR-31";
    ".summary" "missing required parameter" => "OR-19";
    ".content" "array too long" "maximum length 0" => "OR-20";
    // Empty and blank texts.
    "cache_control cannot be set for empty text blocks" => "AN-27" "AN-07";
    "blocks with cache_control may be provided" => "AN-27";
    "text content blocks must contain non-whitespace text" => "AN-08" "DB-01";
    "text content blocks must be non-empty" => "AN-07" "DB-01" "OC-28";
    "must have non-empty content" => "AN-06";
    "final assistant content cannot end with trailing whitespace" => "AN-09";
    "must have a text parameter" => "GM-06" "VX-02";
    "parts must not be empty" => "GM-04";
    "must include at least one parts field" => "GM-04";
    "required oneof field data must have one initialized field" => "GM-05";
    "oneof field data is already set" => "GM-05";
    "the content field in the message object at" "is empty" => "BC-04";
    "the text field in the contentblock object at" "is blank" => "BC-08";
    "must have either content or tool_calls" => "MI-05";
    "message at position" "must not be empty" => "MS-02";
    "content: expected a string, got null" => "OC-04" "OC-05";
    "expected a string, got null" => "OC-04" "OC-05";
    "expected content to be a string or an array" => "VL-04";
    "invalid message content type: <nil>" => "VL-04";
    // Turns.
    "at least one message is required" => "AN-01";
    "messages: empty array" => "OC-01";
    "contents is not specified" => "GM-01";
    "first message must use the user role" => "AN-05" "DB-04";
    "conversation must start with a user message" => "BC-05" "BR-03";
    "a conversation must alternate between user and assistant roles" => "BC-06" "BR-03";
    "conversation roles must alternate" => "VL-01" "VL-02";
    "roles must alternate" => "AN-38" "BR-03" "VL-01";
    "should alternate with assistant message" => "PX-01";
    "last message must have role user" => "PX-03";
    "multiturn requests alternate between user and model" => "GM-14";
    "requests ending with a model turn are not supported" => "GM-12";
    "expected last role" "but got assistant" => "MI-03";
    "the last message of deepseek" "must be a user message" => "DS-06";
    "does not support successive user or assistant messages" => "DS-07";
    "the first message (except the system message)" "must be a user message" => "DS-08";
    "does not support assistant message prefill" => "AN-34" "DB-04";
    "system message must be at the beginning" => "VL-02" "OC-35";
    "system cannot be the first message" => "AN-04";
    "unknown variant developer" => "DS-04";
    "please use a valid role: user, model" => "GM-03" "VX-01";
    "invalid value: tool. supported values are" => "OR-03";
    "supported values are: output_text and refusal" => "OR-17";
    "input should be user or assistant" => "AN-03";
    // Media.
    "image urls are only allowed for messages with role user" => "OC-19";
    "image blocks are not permitted within assistant turns" => "AN-20";
    "does not match the provided media type" => "AN-29";
    "but the image appears to be a" => "AN-29";
    "many-image requests" => "AN-32";
    "image dimensions exceed max allowed size" => "AN-30";
    "image exceeds" "maximum" => "AN-30";
    "too much media" => "AN-31";
    "media_type: input should be" => "AN-28";
    "invalid base64 image_url" => "OC-22";
    "only image types are supported" => "OC-21";
    "unsupported mime type" => "GM-19";
    "invalid base64 data" => "AN-44";
    "base64 decoding failed" => "GM-19" "GM-18";
    "unknown variant image_url" => "DS-02";
    "all content must be type text if is_error is true" => "AN-40";
    // The request as a whole.
    "invalid type: sequence, expected a string" => "DS-01";
    "no low surrogate in string" => "AN-39" "OC-32" "OR-28" "BC-20";
    "could not parse the json body" => "OC-32" "OR-28";
    "request_too_large" => "AN-42";
    "request payload size exceeds the limit" => "GM-21";
    "invalid value at system_instruction" => "GM-25";
    "additional properties are not allowed" => "OC-25" "OC-34";
    "extra inputs are not permitted" => "AN-02" "AN-33" "MI-06";
    "unknown name" "cannot find field" => "GM-22" "GM-02";
    "max_tokens: field required" => "AN-45";
    "unknown parameter: input[" => "OR-25";
    "unknown parameter" => "OC-02" "OR-02";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_rules_that_there_are_and_is_found_by_its_words() {
        for refusal in REFUSALS {
            let text = refusal.words.join(" ... ");
            assert_eq!(plain(&text), text, "not as texts are compared");
            let found = explain(&text);
            for rule in refusal.rules {
                assert!(found.iter().any(|found| found.rule == *rule), "{rule}: {text}");
            }
        }
    }
}
