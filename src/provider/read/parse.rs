//! A request that somebody has, broken ones too, to the messages in it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::parsed::{Given, Parsed, no_messages, not_json};
use super::unnamed::answer_open_calls;
use crate::error::Result;
use crate::history::ReportLine;
use crate::history::report::{Fact, Surrogates};
use crate::json::fields::Fields;
use crate::provider::target::Target;

/// Reads the messages of a request: of a whole one, or of just the array of its messages.
///
/// It takes what it can: results without calls, contents that are `null`, arguments that are objects, roles of other
/// wires. If something had to be taken for something else, a note says so. Unknown parts become opaque chunks, and
/// unknown fields become `extra`. Nothing is judged or repaired: see [`check`](crate::provider::check()) and
/// [`repair`](crate::provider::repair()).
///
/// ```
/// use conversation_store::model::{Chunk, Role};
/// use conversation_store::provider::{Target, parse};
///
/// let request = r#"[{"role": "human", "content": "What time is it?"},
///                   {"role": "tool", "tool_call_id": "call_1", "content": "10:34"}]"#;
/// let parsed = parse(Target::OPENAI_CHAT, request)?;
/// assert_eq!(parsed.messages[1].chunks, [Chunk::tool_result("call_1", "10:34")]);
/// assert_eq!((parsed.messages[0].role, parsed.notes.len()), (Role::User, 1));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` if the text is no JSON, or has no list of messages.
pub fn parse(target: Target, request: &str) -> Result<Parsed> {
    let text = Readable::of(request);
    Request::read(target, &text).map(|request| request.parsed)
}

/// A request's text as a JSON parser takes it: lone surrogate escapes are replaced.
#[derive(Debug)]
pub(crate) struct Readable<'a>(Cow<'a, str>);

impl<'a> Readable<'a> {
    pub(crate) fn of(request: &'a str) -> Self {
        Self(crate::json::replace_lone_surrogates(request.trim_start_matches('\u{feff}')))
    }

    pub(crate) fn get(&self) -> &str {
        &self.0
    }

    /// The request as a value, without white space around it.
    pub(crate) fn raw(&self) -> Result<&RawValue> {
        serde_json::from_str(&self.0).map_err(not_json)
    }

    /// The line for what was replaced.
    pub(crate) fn note(&self) -> Option<ReportLine> {
        matches!(self.0, Cow::Owned(_)).then(|| ReportLine::new(Fact::SurrogatesReplaced(Surrogates::Request)))
    }
}

/// A request, taken apart.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) parsed: Parsed,
    /// What is no part of the conversation.
    pub(crate) rest: Fields<'a>,
}

impl<'a> Request<'a> {
    /// Takes a request apart. An array is that of the messages.
    pub(crate) fn read(target: Target, text: &'a Readable<'_>) -> Result<Self> {
        let wire = target.wire();
        let given = if text.get().trim_start().starts_with('{') {
            Given::Object(text.get())
        } else {
            let list = text.raw()?;
            if !list.get().starts_with('[') {
                return Err(no_messages(wire.messages));
            }
            Given::List(list)
        };
        let (mut parsed, rest) = (wire.parse)(target, given)?;
        answer_open_calls(&mut parsed);
        if let Some(note) = text.note() {
            parsed.notes.insert(0, note);
        }
        Ok(Self { parsed, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    /// Where a message is, its number there, and where each of its chunks is in it.
    type Place = (&'static str, Option<usize>, &'static [&'static str]);

    #[test]
    fn messages_and_chunks_keep_their_places() -> Result<()> {
        let table: [(Target, &str, &[Place]); 6] = [
            (
                Target::OPENAI_CHAT,
                r#"[{"role":"assistant","reasoning":"r","content":[null,"a"],"tool_calls":[{"id":"c"}],"x":1},
                    {"role":"tool","tool_call_id":"c","content":"b"},7]"#,
                &[
                    ("messages[0]", Some(1), &[".reasoning", ".content[1]", ".tool_calls[0]", ".x"]),
                    ("messages[1]", Some(2), &[""]),
                    ("messages[2]", Some(3), &[""]),
                ],
            ),
            (
                Target::ANTHROPIC,
                r#"{"system":["s","t"],"messages":[{"role":"user","content":"a"}]}"#,
                &[("system", None, &["[0]", "[1]"]), ("messages[0]", Some(1), &[".content"])],
            ),
            (
                Target::BEDROCK_CONVERSE,
                r#"{"system":"s","messages":[{"role":"user","content":[{"text":"a"},{"toolResult":{"toolUseId":"c"}}]}]}"#,
                &[
                    ("system", None, &[""]),
                    ("messages[0]", Some(1), &[".content[1]"]),
                    ("messages[0]", Some(1), &[".content[0]"]),
                ],
            ),
            (
                Target::GEMINI,
                r#"{"contents":[{"parts":{"text":"a"}}],"system_instruction":{"parts":[{"text":"s"}]}}"#,
                &[("system_instruction", None, &[".parts[0]"]), ("contents[0]", Some(1), &[".parts"])],
            ),
            (
                Target::OPENAI_RESPONSES,
                r#"{"instructions":"s","input":[{"type":"reasoning","summary":[]},
                    {"role":"assistant","content":[{"type":"output_text","text":"a"}]},{"role":"user","content":"b"}]}"#,
                &[
                    ("instructions", None, &[""]),
                    ("input[0]", Some(2), &["", "input[1].content[0]"]),
                    ("input[2]", Some(3), &[".content"]),
                ],
            ),
            (Target::OPENAI_RESPONSES, r#"{"input":"a"}"#, &[("input", None, &[""])]),
        ];
        for (target, request, wanted) in table {
            let Parsed { messages, places, .. } = parse(target, request)?;
            let by_tools = messages.iter().filter(|message| message.role == Role::Tool).count();
            assert_eq!(
                by_tools,
                request.matches("\"tool\"").count() + request.matches("toolResult").count(),
                "{request}"
            );
            let found: Vec<_> =
                places.iter().map(|place| (place.whole(), place.items.clone().map(|of| of.end))).collect();
            let whole = |(whole, end, _): &Place| ((*whole).to_owned(), *end);
            assert_eq!(found, wanted.iter().map(whole).collect::<Vec<_>>(), "{request}");
            for (place, (whole, _, chunks)) in places.iter().zip(wanted) {
                let full =
                    |part: &&str| if part.starts_with("input") { (*part).to_owned() } else { format!("{whole}{part}") };
                assert_eq!(
                    (0..).map_while(|at| place.chunk(at)).collect::<Vec<_>>(),
                    chunks.iter().map(full).collect::<Vec<_>>(),
                    "{request}"
                );
            }
        }
        Ok(())
    }
}
