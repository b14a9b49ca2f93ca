//! Prompts without images, for models that see none: words stand where they stood.

use std::borrow::Cow;

use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::Fact;
use crate::model::{Body, Output, PartBody};

/// The text in the place of an image.
const LEFT_OUT: &str = "[image left out: the model takes none]";

/// The messages without their images.
pub(crate) fn without_images<'a>(
    messages: Cow<'a, [StoredMessage]>,
    report: &mut Vec<ReportLine>,
) -> Cow<'a, [StoredMessage]> {
    if !messages.iter().any(|stored| stored.message.chunks.iter().any(|chunk| holds_image(&chunk.body))) {
        return messages;
    }
    let mut messages = messages.into_owned();
    for stored in &mut messages {
        for at in 0..stored.message.chunks.len() {
            let Some(chunk) = stored.message.chunks.get_mut(at).filter(|chunk| holds_image(&chunk.body)) else {
                continue;
            };
            chunk.native = None;
            match &mut chunk.body {
                Body::ToolResult { output: Output::Parts(parts), .. } => {
                    for part in parts.iter_mut().filter(|part| matches!(part.body, PartBody::Image(_))) {
                        part.body = PartBody::Text { text: LEFT_OUT.to_owned() };
                    }
                }
                body => *body = Body::Text { text: LEFT_OUT.to_owned(), annotations: None },
            }
            report.push(ReportLine::chunk(Fact::ImageOmitted, stored, at));
        }
    }
    Cow::Owned(messages)
}

fn holds_image(body: &Body) -> bool {
    match body {
        Body::Image(_) => true,
        Body::ToolResult { output: Output::Parts(parts), .. } => {
            parts.iter().any(|part| matches!(part.body, PartBody::Image(_)))
        }
        _ => false,
    }
}
