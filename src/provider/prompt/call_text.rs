//! Calls that a model wrote as text, or that a server did not recognise: they are in a text or in thinking.
//!
//! They are sent as the text that they are, never as calls: nobody knows what ran. A line of the report states each.
//! `src/docs/targets.md` has the sources of the forms.

use std::collections::HashSet;

use crate::history::report::Fact;
use crate::history::{ReportLine, Severity, StoredMessage};
use crate::model::{Body, Chunk, Role};

/// How a family of models writes a call: what it begins with, and what comes next.
struct Form {
    models: &'static str,
    begin: &'static str,
    next: Next,
}

/// What comes after the beginning of a call. It parts a call from a text about calls.
#[derive(Clone, Copy)]
enum Next {
    /// Anything but a quotation mark: the beginning is a token that nobody writes by chance.
    Content,
    /// White space, then one of these.
    Opening(&'static [u8]),
    /// A name that ends with one of these.
    Name(&'static [u8]),
}

const FORMS: &[Form] = &[
    Form { models: "Hermes and Qwen", begin: "<tool_call>", next: Next::Opening(b"{") },
    Form { models: "Qwen Coder and Llama 3", begin: "<function=", next: Next::Name(b">") },
    Form { models: "GLM", begin: "<arg_key>", next: Next::Name(b"<") },
    Form { models: "Llama 3", begin: "<|python_tag|>", next: Next::Content },
    Form { models: "Llama 4", begin: "<|python_start|>", next: Next::Content },
    Form { models: "DeepSeek", begin: "<｜tool▁calls▁begin｜>", next: Next::Content },
    Form { models: "DeepSeek", begin: "<｜tool▁call▁begin｜>", next: Next::Content },
    Form { models: "DeepSeek V3.2", begin: "<｜DSML｜", next: Next::Content },
    Form { models: "Mistral", begin: "[TOOL_CALLS]", next: Next::Content },
    Form { models: "Kimi", begin: "<|tool_call_begin|>", next: Next::Content },
    Form { models: "Granite", begin: "<|tool_call|>", next: Next::Opening(b"[{") },
    Form { models: "Claude and MiniMax", begin: "<invoke name=\"", next: Next::Name(b"\"") },
    Form { models: "gpt-oss", begin: "<|channel|>commentary to=", next: Next::Name(b" <") },
    Form { models: "gpt-oss", begin: "<|channel|>analysis to=", next: Next::Name(b" <") },
    Form { models: "gpt-oss", begin: "<|start|>assistant to=", next: Next::Name(b" <") },
];

/// The longest name, and the most white space, that is looked at.
const LOOKED_AT: usize = 128;

impl Form {
    /// Of the first call in a text.
    fn first_in(text: &str) -> Option<&'static Self> {
        let places = text.match_indices(['<', '[']).map(|(at, _)| text.get(at..).unwrap_or_default());
        places.into_iter().find_map(|rest| {
            FORMS.iter().find(|form| rest.strip_prefix(form.begin).is_some_and(|rest| form.next.is_at(rest)))
        })
    }
}

impl Next {
    fn is_at(self, rest: &str) -> bool {
        let mut bytes = rest.bytes().take(LOOKED_AT);
        match self {
            Self::Content => bytes.next().is_some_and(|first| !matches!(first, b'`' | b'"' | b'\'')),
            Self::Opening(openings) => {
                bytes.find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| openings.contains(&first))
            }
            Self::Name(ends) => {
                let length = bytes.position(|byte| !(byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte)));
                length.is_some_and(|length| {
                    length > 0 && rest.as_bytes().get(length).is_some_and(|end| ends.contains(end))
                })
            }
        }
    }
}

/// States the calls in texts and thinking of the assistant that are sent. `report`: what was done to them.
pub(crate) fn report(messages: &[StoredMessage], report: &mut Vec<ReportLine>) {
    let said = messages.iter().filter(|stored| stored.message.role == Role::Assistant);
    let chunks = said.flat_map(|stored| stored.message.chunks.iter().enumerate().map(move |chunk| (stored, chunk)));
    let found = chunks.filter_map(|(stored, (at, chunk))| Some((stored, at, Form::first_in(words(chunk)?)?)));
    let mut lines: Vec<_> = found
        .map(|(stored, at, form)| {
            ReportLine::chunk(Fact::CallAsText { models: form.models, begin: form.begin }, stored, at)
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    let lost = report.iter().filter(|line| line.severity == Severity::Lost);
    let lost: HashSet<_> = lost.map(|line| (line.message_index, line.chunk_index)).collect();
    lines.retain(|line| !lost.contains(&(line.message_index, line.chunk_index)));
    report.append(&mut lines);
}

fn words(chunk: &Chunk) -> Option<&str> {
    match &chunk.body {
        Body::Text { text, .. } | Body::Thinking { text, .. } => Some(text),
        _ => None,
    }
}
