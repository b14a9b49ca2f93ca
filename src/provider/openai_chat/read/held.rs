//! What comes in pieces and is one chunk, or a part of one: audio, annotations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::model::{Audio, Body, Chunk, Extra, Json};
use crate::provider::prompt::media::bytes::decode_base64;
use crate::provider::read::answer::Answer;
use crate::provider::read::fields::{Fields, Owner, is_empty};

/// Takes the sound of a message; what some servers send in its place, without any of it, stays.
pub(crate) fn sound<'a>(fields: &mut Fields<'a>) -> Option<Fields<'a>> {
    let audio = fields.peek("audio").and_then(Fields::of)?;
    let says = |name: &str| audio.peek(name).is_some_and(|raw| !is_empty(raw));
    if ["id", "data", "transcript"].iter().any(|name| says(name)) { fields.object("audio") } else { None }
}

/// What is held back until the message ends.
#[derive(Debug, Default)]
pub(crate) struct Held {
    audio: Option<Sound>,
    annotations: Vec<String>,
}

#[derive(Debug)]
struct Sound {
    chunk_index: u32,
    id: Option<String>,
    data: Vec<String>,
    transcript: String,
    extra: Extra,
}

impl Held {
    /// Whether the sound has begun.
    pub(crate) const fn has_sound(&self) -> bool {
        self.audio.is_some()
    }

    /// A piece of audio: base64, in pieces that fit each other, and what is said in it.
    pub(crate) fn audio(&mut self, mut fields: Fields<'_>, answer: &mut Answer) {
        let sound = self.audio.get_or_insert_with(|| Sound {
            chunk_index: answer.new_chunk(),
            id: None,
            data: Vec::new(),
            transcript: String::new(),
            extra: Extra::new(),
        });
        let transcript = fields.string("transcript").unwrap_or_default();
        answer.hold(transcript.len());
        sound.transcript.push_str(&transcript);
        if let Some(data) = fields.string("data") {
            answer.hold(data.len());
            sound.data.push(data);
        }
        let id = fields.string("id");
        sound.id = sound.id.take().or(id);
        fields.extend(Owner::Chunk, &mut sound.extra);
    }

    /// An annotation of the text.
    pub(crate) fn annotation(&mut self, raw: &RawValue, answer: &mut Answer) {
        answer.hold(raw.get().len());
        self.annotations.push(raw.get().to_owned());
    }

    /// Says what was held back. Annotations belong to the text.
    pub(crate) fn finish(&mut self, text: &mut Option<u32>, answer: &mut Answer) {
        if let Some(Sound { chunk_index, id, data, transcript, extra }) = self.audio.take() {
            let filled = |text: String| Some(text).filter(|text| !text.is_empty());
            let (data, transcript) = (filled(joined(&data)), filled(transcript));
            let body = Body::Audio(Audio { url: None, data, mime_type: None, transcript });
            answer.delta(chunk_index, Chunk { id, extra, ..body.into() });
        }
        if let Ok(annotations) = Json::new(format!("[{}]", self.annotations.join(",")))
            && !self.annotations.is_empty()
        {
            let index = *text.get_or_insert_with(|| answer.new_chunk());
            answer.delta(index, Body::Text { text: String::new(), annotations: Some(annotations) });
        }
    }
}

/// Base64 in pieces: cut anywhere, or each encoded for itself.
fn joined(pieces: &[String]) -> String {
    let text = pieces.concat();
    if decode_base64(&text).is_some() {
        return text;
    }
    let bytes: Option<Vec<Vec<u8>>> = pieces.iter().map(|piece| decode_base64(piece)).collect();
    bytes.map_or(text, |bytes| STANDARD.encode(bytes.concat()))
}
