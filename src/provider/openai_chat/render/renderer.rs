//! What is said so far, on its way into a request.

use super::request::{Content, Message, Part};
use crate::history::StoredMessage;
use crate::history::{ReportLine, Rule};
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
}

impl<'a> Renderer<'a> {
    /// The content of a message that is not the user's.
    pub(super) fn content(&self, parts: Vec<Part<'a>>) -> Option<Content<'a>> {
        if self.manner.arrays { Content::of(parts) } else { Content::joined(parts) }
    }

    pub(super) fn note(&mut self, rule: Rule, stored: &StoredMessage, chunk: usize, detail: impl Into<String>) {
        self.report.push(ReportLine::chunk(rule, stored, chunk, detail));
    }
}
