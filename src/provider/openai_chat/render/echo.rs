//! What came from this wire, and only OpenAI's own server is known to take: names of speakers, how closely an image is
//! looked at, files by their ids.

use super::renderer::Renderer;
use super::request::{Held, Message, Part};
use crate::history::StoredMessage;
use crate::model::{Chunk, Role};
use crate::provider::openai_chat::manner;
use crate::provider::prompt::turns::Turn;
use crate::provider::read::fields::Fields;
use crate::provider::text::is_word;

/// OC-24.
const NAME: usize = 64;
/// Source: API reference, `image_url.detail`.
const DETAILS: &[&str] = &["auto", "low", "high"];

impl<'a> Renderer<'a> {
    /// The name of the one who speaks, on the message that was made of this one.
    pub(crate) fn name(&mut self, stored: &StoredMessage, message: usize) {
        let given = stored.message.metadata.extra.get("name").filter(|_| self.echoes);
        let given: Option<String> = given.and_then(|name| serde_json::from_str(name.as_str()).ok());
        if let Some(Message::System { name, .. } | Message::User { name, .. } | Message::Assistant { name, .. }) =
            self.messages.get_mut(message)
        {
            *name = given.filter(|name| is_word(name, NAME));
        }
    }

    /// How closely an image is looked at.
    pub(crate) fn look(&self, part: &mut Part<'a>, chunk: Option<&Chunk>) {
        let given = chunk.filter(|_| self.echoes).and_then(|chunk| chunk.extra.get("detail"));
        let given: Option<String> = given.and_then(|detail| serde_json::from_str(detail.as_str()).ok());
        if let (Part::ImageUrl { image_url }, Some(given)) = (part, given) {
            image_url.detail = DETAILS.iter().find(|detail| **detail == given).copied();
        }
    }

    /// A file that the provider holds.
    pub(crate) fn held(&self, turn: &Turn<'a>, chunk: &Chunk) -> Option<Part<'a>> {
        let native = chunk.native.as_ref().filter(|native| self.echoes && native.wire == manner::NAME)?;
        if turn.role != Role::User || !turn.is_by(self.manner.providers, None) {
            return None;
        }
        let file_id = Fields::read(native.json.as_str()).ok()?.object("file")?.string("file_id")?;
        (!file_id.trim().is_empty()).then_some(Part::Held { file: Held { file_id } })
    }
}
