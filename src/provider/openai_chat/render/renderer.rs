//! What is said so far, on its way into a request.

use std::cell::RefCell;
use std::collections::HashMap;

use super::request::{Content, Message, Part};
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::Fact;
use crate::provider::openai_chat::manner::Manner;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::target::Target;

pub(super) struct Renderer<'a> {
    pub(super) target: Target,
    pub(super) manner: &'static Manner,
    /// Whether what only OpenAI's own server is known to take comes back as it came.
    pub(super) echoes: bool,
    pub(super) options: &'a PromptOptions,
    pub(super) report: Vec<ReportLine>,
    pub(super) messages: Vec<Message<'a>>,
    /// Which fields of the assistant's the target takes text in, of those that were asked for.
    pub(super) text_fields: RefCell<HashMap<String, bool>>,
}

impl<'a> Renderer<'a> {
    /// The content of a message that is not the user's.
    pub(super) fn content(&self, parts: Vec<Part<'a>>) -> Option<Content<'a>> {
        if self.manner.arrays { Content::of(parts) } else { Content::joined(parts) }
    }

    pub(super) fn note(&mut self, fact: Fact<'_>, stored: &StoredMessage, chunk: usize) {
        self.report.push(ReportLine::chunk(fact, stored, chunk));
    }
}
