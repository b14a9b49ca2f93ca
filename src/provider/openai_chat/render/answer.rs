//! Tool messages: what calls are answered.

use std::borrow::Cow;

use super::attach::Parts;
use super::renderer::Renderer;
use super::request::{Content, Message, Part};
use crate::history::report::{Fact, Moved};
use crate::history::{MessageState, StoredMessage};
use crate::model::Output;
use crate::provider::openai_chat::manner::Texts;
use crate::provider::prompt::output::{
    FAILED_WITHOUT_OUTPUT, NO_OUTPUT, OUTPUT_FOLLOWS, Piece, failure, heading, pieces,
};
use crate::provider::prompt::turns::{Call, Reply};

impl<'a> Renderer<'a> {
    /// The tool message. Its media have to follow in a user message.
    pub(crate) fn answer(&mut self, call: Call<'a>, media: &mut Vec<Part<'a>>) {
        let texts = match call.answer {
            Reply::Made(text) => vec![Cow::Borrowed(text)],
            Reply::Result { stored, chunk, output, is_error } => {
                self.result(stored, chunk, output, is_error, &call.id, media)
            }
        };
        let parts: Vec<_> = texts.into_iter().map(|text| Part::Text { text }).collect();
        let content = self.content(parts).unwrap_or(Content::Text(Cow::Borrowed("")));
        self.messages.push(Message::Tool { tool_call_id: call.id, content });
    }

    fn result(
        &mut self,
        stored: &'a StoredMessage,
        chunk: usize,
        output: &'a Output,
        is_error: bool,
        call_id: &str,
        media: &mut Vec<Part<'a>>,
    ) -> Vec<Cow<'a, str>> {
        let found_media = media.len();
        let mut texts = self.output(stored, chunk, output, call_id, media);
        let has_text = texts.iter().any(|text| !text.is_empty());
        if is_error && !has_text {
            return vec![failure(FAILED_WITHOUT_OUTPUT, stored, chunk, &mut self.report)];
        }
        // Reconcile's own answers say what they are.
        if is_error && stored.state != MessageState::Synthetic {
            self.note(Fact::ErrorFlagRemoved, stored, chunk);
        }
        if media.len() > found_media && texts.is_empty() {
            texts.push(Cow::Borrowed(OUTPUT_FOLLOWS));
        } else if !has_text && self.manner.texts != Texts::Any {
            self.note(Fact::OutputWorded { text: NO_OUTPUT }, stored, chunk);
            texts = vec![Cow::Borrowed(NO_OUTPUT)];
        }
        texts
    }

    /// The texts of a tool's output; its media are put after the batch.
    fn output(
        &mut self,
        stored: &'a StoredMessage,
        chunk: usize,
        output: &'a Output,
        call_id: &str,
        media: &mut Vec<Part<'a>>,
    ) -> Vec<Cow<'a, str>> {
        let mut texts = Vec::new();
        for piece in pieces(output, &Parts(self.manner), stored, chunk, &mut self.report) {
            match piece {
                Piece::Text(text) if !text.is_empty() && self.is_too_blank(&text) => {
                    self.note(Fact::TextBlank, stored, chunk);
                }
                Piece::Text(text) => texts.push(text),
                Piece::Part(part) => {
                    self.note(Fact::MediaMoved(Moved::Result), stored, chunk);
                    media.push(Part::Text { text: Cow::Owned(heading(call_id)) });
                    media.push(part);
                }
            }
        }
        texts
    }
}
