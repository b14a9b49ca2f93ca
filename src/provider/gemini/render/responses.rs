//! What tools gave back: all responses to the calls of a content in the content after it, in their order, and nothing
//! else there (GM-08, GM-11, GM-24).

use std::borrow::Cow;

use super::attach::Parts;
use super::object;
use super::renderer::Renderer;
use super::request::{Content, FunctionResponse, Part, Response, Speaker, Texts};
use crate::history::MessageState;
use crate::history::report::{Fact, Moved};
use crate::model::{Output, PartBody};
use crate::provider::prompt::media::attachment::{OUTPUT_FOLLOWS, Piece, pieces};
use crate::provider::prompt::turns::{Call, FAILED_WITHOUT_OUTPUT, Reply};

/// A call that was made, and its id where the service gave it one.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) call: Call<'a>,
    pub(crate) id: Option<String>,
}

impl<'a> Renderer<'a> {
    /// The answers, and what has to follow them.
    pub(crate) fn answer(&mut self, asked: Vec<Asked<'a>>) -> Vec<Part<'a>> {
        let mut following = Vec::new();
        let mut parts = Vec::new();
        for (at, Asked { call: Call { name, answer, .. }, id }) in asked.into_iter().enumerate() {
            let (response, media) = self.response(&answer);
            if !media.is_empty() {
                let text = Cow::Owned(format!("Output of {name}, call {} of the turn:", at + 1));
                following.push(Part::Text { text });
                following.extend(media);
            }
            parts.push(Part::Response { function_response: FunctionResponse { id, name, response } });
        }
        if !parts.is_empty() {
            self.contents.push(Content { role: Speaker::User, parts, answers: true });
        }
        following
    }

    /// The response, and what it cannot hold.
    fn response(&mut self, answer: &Reply<'a>) -> (Response<'a>, Vec<Part<'a>>) {
        let (stored, chunk, output, is_error) = match *answer {
            Reply::Made(text) => return (Response::Error(Texts::One(Cow::Borrowed(text))), Vec::new()),
            Reply::Result { stored, chunk, output, is_error } => (stored, chunk, output, is_error),
        };
        if let Some(object) = whole(output).filter(|_| !is_error).and_then(object::plain) {
            return (Response::Object(object), Vec::new());
        }
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for piece in pieces(output, &Parts, stored, chunk, &mut self.report) {
            match piece {
                Piece::Text(text) => texts.push(text),
                Piece::Part(part) => {
                    self.note(Fact::MediaMoved(Moved::Result), stored, chunk);
                    media.push(part);
                }
            }
        }
        if is_error && texts.iter().all(|text| text.is_empty()) && stored.state != MessageState::Synthetic {
            self.note(Fact::FailureWorded { text: FAILED_WITHOUT_OUTPUT }, stored, chunk);
            texts = vec![Cow::Borrowed(FAILED_WITHOUT_OUTPUT)];
        }
        let texts = match <[Cow<'a, str>; 1]>::try_from(texts) {
            Ok([text]) => Texts::One(text),
            Err(texts) if texts.is_empty() => {
                Texts::One(Cow::Borrowed(if media.is_empty() { "" } else { OUTPUT_FOLLOWS }))
            }
            Err(texts) => Texts::Several(texts),
        };
        (if is_error { Response::Error(texts) } else { Response::Result(texts) }, media)
    }
}

/// An output that is one text, or one JSON value.
fn whole(output: &Output) -> Option<&str> {
    match output {
        Output::Text(text) => Some(text),
        Output::Parts(parts) => match parts.as_slice() {
            [part] => match &part.body {
                PartBody::Text { text } => Some(text),
                PartBody::Json { json } => Some(json.as_str()),
                _ => None,
            },
            _ => None,
        },
    }
}
