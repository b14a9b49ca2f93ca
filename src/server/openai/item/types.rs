//! What is known of types of items. Nothing is required of other types: they appear faster than servers are released.

/// What a field must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A text, or a list of objects.
    Content,
    List,
}

/// A type of item: the prefix of its ids, whether an answer has a status, and its required fields.
/// Source: OpenAI's OpenAPI document of 2026-08-21.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) prefix: &'static str,
    pub(super) has_status: bool,
    pub(super) fields: &'static [(&'static str, Kind)],
}

const fn known(name: &'static str, prefix: &'static str) -> Type {
    Type { name, prefix, has_status: false, fields: &[] }
}

const fn whole(name: &'static str, prefix: &'static str, fields: &'static [(&'static str, Kind)]) -> Type {
    Type { name, prefix, has_status: true, fields }
}

const fn plain(name: &'static str, prefix: &'static str, fields: &'static [(&'static str, Kind)]) -> Type {
    Type { name, prefix, has_status: false, fields }
}

pub(super) const TYPES: &[Type] = &[
    whole("message", "msg", &[("role", Kind::Text), ("content", Kind::Content)]),
    whole("function_call", "fc", &[("call_id", Kind::Text), ("name", Kind::Text), ("arguments", Kind::Text)]),
    whole("function_call_output", "fco", &[("call_id", Kind::Text), ("output", Kind::Content)]),
    plain("custom_tool_call", "ctc", &[("call_id", Kind::Text), ("name", Kind::Text), ("input", Kind::Text)]),
    plain("custom_tool_call_output", "ctco", &[("call_id", Kind::Text), ("output", Kind::Content)]),
    plain("reasoning", "rs", &[("summary", Kind::List)]),
    plain("compaction", "cmp", &[("encrypted_content", Kind::Text)]),
    whole("computer_call_output", "cuo", &[("call_id", Kind::Text)]),
    known("computer_call", "cu"),
    known("file_search_call", "fs"),
    known("web_search_call", "ws"),
    known("image_generation_call", "ig"),
    known("code_interpreter_call", "ci"),
    known("local_shell_call", "lsh"),
    known("local_shell_call_output", "lsho"),
    known("shell_call", "sh"),
    known("shell_call_output", "sho"),
    known("apply_patch_call", "apc"),
    known("apply_patch_call_output", "apco"),
    known("mcp_list_tools", "mcpl"),
    known("mcp_approval_request", "mcpr"),
    known("mcp_approval_response", "mcpa"),
    known("mcp_call", "mcp"),
    known("tool_search_call", "tsc"),
    known("tool_search_output", "tso"),
    known("additional_tools", "at"),
    known("program", "prog"),
    known("program_output", "prog"),
];

/// The roles of messages that OpenAI knows.
pub(super) const ROLES: &[&str] =
    &["user", "assistant", "system", "developer", "tool", "critic", "discriminator", "unknown"];

/// The most characters of a call's id.
pub(super) const CALL_ID: usize = 64;
/// The most characters of an output.
pub(super) const OUTPUT: usize = 10_485_760;
/// The most characters of a compaction's content.
pub(super) const COMPACTION: usize = 20_971_520;

pub(super) fn find(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|known| known.name == name)
}

/// The field that holds the text of a part of this type.
pub(super) fn text_of(part: &str) -> Option<&'static str> {
    match part {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => Some("text"),
        "refusal" => Some("refusal"),
        _ => None,
    }
}

/// The prefix of a type's ids.
pub(crate) fn prefix(name: &str) -> &'static str {
    find(name).map_or("item", |known| known.prefix)
}
