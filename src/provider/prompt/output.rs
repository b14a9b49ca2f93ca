//! What tools gave back, on its way into a target's own parts; and what is said where they gave nothing.

use std::borrow::Cow;

use serde_json::Value;

use super::media::attachment::{Attach, Attachment};
use crate::history::report::Fact;
use crate::history::{ReportLine, StoredMessage};
use crate::model::{Extra, Output, PartBody};

/// The output of a tool that gave nothing, where the target wants a word.
pub(crate) const NO_OUTPUT: &str = "The tool gave no output.";
/// The text of an output that is nothing but what has to follow.
pub(crate) const OUTPUT_FOLLOWS: &str = "The output follows in the next user message.";
/// The text of a failure that gave none.
pub(crate) const FAILED_WITHOUT_OUTPUT: &str = "The tool failed and gave no output.";

/// The words of a failure that has none of its own.
pub(crate) fn failure(
    text: &'static str,
    stored: &StoredMessage,
    chunk: usize,
    report: &mut Vec<ReportLine>,
) -> Cow<'static, str> {
    report.push(ReportLine::chunk(Fact::FailureWorded { text }, stored, chunk));
    Cow::Borrowed(text)
}

/// Said before what a call gave, and its result cannot hold.
pub(crate) fn heading(call_id: &str) -> String {
    format!("Output of the tool call {call_id}:")
}

/// A piece of what a tool gave back.
#[derive(Debug)]
pub(crate) enum Piece<'a, P> {
    /// Text, the text of a JSON value, or words in the place of an attachment.
    Text(Cow<'a, str>),
    Part(P),
}

/// What a tool gave back, in order.
pub(crate) fn pieces<'a, A: Attach<'a>>(
    output: &'a Output,
    attach: &A,
    stored: &StoredMessage,
    chunk: usize,
    report: &mut Vec<ReportLine>,
) -> Vec<Piece<'a, A::Part>> {
    let parts = match output {
        Output::Text(text) => return vec![Piece::Text(Cow::Borrowed(text))],
        Output::Parts(parts) => parts,
    };
    let pieces = parts.iter().map(|part| {
        let attachment = match &part.body {
            PartBody::Text { text } => return Piece::Text(Cow::Borrowed(text.as_str())),
            PartBody::Json { json } => return Piece::Text(Cow::Borrowed(json.as_str())),
            PartBody::Image(image) => Attachment::Image(image),
            PartBody::Audio(audio) => Attachment::Audio(audio),
            PartBody::File(file) => Attachment::File(file),
            PartBody::Unknown { kind } => {
                report.push(ReportLine::chunk(Fact::PartAsJson { kind }, stored, chunk));
                return Piece::Text(Cow::Owned(unknown(kind, &part.extra)));
            }
        };
        attachment.place(attach, stored, chunk, report).map_or_else(Piece::Text, Piece::Part)
    });
    pieces.collect()
}

/// The JSON of a part that is of no kind that this crate knows: what a tool gave back is for the model to read.
fn unknown(kind: &str, extra: &Extra) -> String {
    let mut json = format!("{{\"type\":{}", Value::from(kind));
    for (name, value) in extra.iter() {
        json.push_str(&format!(",{}:{}", Value::from(name), value.as_str()));
    }
    json.push('}');
    json
}
