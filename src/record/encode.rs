//! Entries to bytes.

use std::borrow::Cow;

use bincode::Encode;

use super::envelope::{CONFIG, Text};
use super::v1;
use crate::error::{Error, Result};
use crate::model::{self, Chunk, Extra, Message, Metadata, Role};

/// version, flags, checksum(4), time(8), base(8), next message index(8), commit(8)
pub(super) const HEADER_BYTES: usize = 38;

/// What most entries take beside their content.
const ENTRY_BYTES: usize = 48;

/// The encoded entries of one append, with room for the record's header in front.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    entries: u64,
    /// The providers' item ids, each with the place of its entry.
    items: Vec<(u64, String)>,
}

/// A fragment of an open message's chunk.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) chunk_index: u32,
    pub(crate) chunk: Chunk,
}

impl Body {
    /// No entries.
    pub(crate) fn new() -> Self {
        Self::with_room(0)
    }

    /// No entries, and room for so many bytes of them.
    fn with_room(room: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + room);
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes, entries: 0, items: Vec::new() }
    }

    /// Whole messages, indexed from the record's base on. Their chunks hold `content` bytes.
    pub(crate) fn messages(messages: &[Message], content: usize) -> Result<Self> {
        let entries: usize = messages.iter().map(|message| message.chunks.len().max(1)).sum();
        let mut body = Self::with_room(content + entries * ENTRY_BYTES);
        for (relative, message) in (0..).zip(messages) {
            let Some((first, rest)) = message.chunks.split_first() else {
                body.begin(relative, message.role, None, message)?;
                continue;
            };
            body.chunk(relative, 0, message.role, first, Some(message))?;
            for (index, chunk) in (1..).zip(rest) {
                body.chunk(relative, index, message.role, chunk, None)?;
            }
        }
        Ok(body)
    }

    /// Fragments of the message at the record's base.
    pub(crate) fn fragments(role: Role, fragments: &[Fragment]) -> Result<Self> {
        let mut body = Self::new();
        for fragment in fragments {
            body.chunk(0, fragment.chunk_index, role, &fragment.chunk, None)?;
        }
        Ok(body)
    }

    /// The beginning of a message; `epoch` of its writer, or none for a whole message without chunks.
    pub(crate) fn begin(&mut self, message: u64, role: Role, epoch: Option<u64>, of: &Message) -> Result<()> {
        self.item(of.metadata.id.as_deref());
        let extra = extra(&of.metadata.extra);
        let header = header(of, extra.as_deref());
        self.entry(v1::BEGIN, &v1::Begin { message, role: role_byte(role), epoch, header })
    }

    /// The end of the message at the record's base, and what is known of it since it began. True: it was cut, and counts as
    /// interrupted.
    pub(crate) fn finish(&mut self, of: &Message) -> Result<bool> {
        self.item(of.metadata.id.as_deref());
        let extra = extra(&of.metadata.extra);
        let header = header(of, extra.as_deref());
        self.entry(v1::FINISH, &v1::Finish { message: 0, role: role_byte(of.role), header })?;
        let is_cut = of.finish_reason == Some(model::FinishReason::Interrupted);
        if is_cut {
            self.interrupt(v1::InterruptCause::Dropped)?;
        }
        Ok(is_cut)
    }

    /// New data of the conversation itself.
    pub(crate) fn meta(meta: &v1::Meta<'_>) -> Result<Self> {
        let mut body = Self::new();
        body.entry(v1::META, meta)?;
        Ok(body)
    }

    /// New data of the conversation itself, after the entries that there are.
    pub(crate) fn change(&mut self, meta: &v1::Meta<'_>) -> Result<()> {
        self.entry(v1::META, meta)
    }

    /// A rewind.
    pub(crate) fn rewind(rewind: v1::Rewind) -> Result<Self> {
        let mut body = Self::new();
        body.entry(v1::REWIND, &rewind)?;
        Ok(body)
    }

    /// The removal of a message or a chunk.
    pub(crate) fn removal(remove: v1::Remove) -> Result<Self> {
        let mut body = Self::new();
        body.entry(v1::REMOVE, &remove)?;
        Ok(body)
    }

    /// That the message at the record's base takes no more.
    pub(crate) fn interrupt(&mut self, cause: v1::InterruptCause) -> Result<()> {
        self.entry(v1::INTERRUPT, &v1::Interrupt { message: 0, cause })
    }

    /// A summary.
    pub(crate) fn summary(summary: &v1::Summary<'_>) -> Result<Self> {
        let mut body = Self::new();
        body.entry(v1::SUMMARY, summary)?;
        Ok(body)
    }

    /// An entry as it is stored.
    pub(super) fn raw(&mut self, entry: &[u8]) -> Result<()> {
        let (kind, fields) = entry.split_first().unwrap_or((&0, &[]));
        let at = self.start(*kind);
        self.bytes.extend_from_slice(fields);
        self.end(at)
    }

    /// A chunk as it is stored.
    pub(super) fn line(&mut self, line: &v1::ChunkLine<'_>) -> Result<()> {
        self.entry(v1::CHUNK, line)
    }

    /// A beginning as it is stored.
    pub(super) fn begin_line(&mut self, begin: &v1::Begin<'_>) -> Result<()> {
        self.entry(v1::BEGIN, begin)
    }

    /// An end as it is stored.
    pub(super) fn finish_line(&mut self, finish: &v1::Finish<'_>) -> Result<()> {
        self.entry(v1::FINISH, finish)
    }

    /// That content was erased.
    pub(crate) fn redaction(redact: v1::Redact) -> Result<Self> {
        let mut body = Self::new();
        body.entry(v1::REDACT, &redact)?;
        Ok(body)
    }

    fn chunk(&mut self, message: u64, index: u32, role: Role, chunk: &Chunk, first_of: Option<&Message>) -> Result<()> {
        self.item(first_of.and_then(|message| message.metadata.id.as_deref()));
        self.item(chunk.id.as_deref());
        let message_extra = first_of.and_then(|message| extra(&message.metadata.extra));
        let line = v1::ChunkLine {
            message,
            chunk: index,
            role: role_byte(role),
            header: first_of.map(|message| header(message, message_extra.as_deref())),
            id: chunk.id.as_deref(),
            native: native(chunk.native.as_ref()),
            extra: extra(&chunk.extra).map(Cow::Owned),
            content: content(&chunk.body),
        };
        self.entry(v1::CHUNK, &line)
    }

    /// Notes an item id of the next entry.
    fn item(&mut self, id: Option<&str>) {
        self.items.extend(id.map(|id| (self.entries, id.to_owned())));
    }

    fn entry(&mut self, kind: u8, entry: &impl Encode) -> Result<()> {
        let at = self.start(kind);
        bincode::encode_into_std_write(entry, &mut self.bytes, CONFIG)
            .map_err(|error| Error::InvalidInput(format!("an entry cannot be encoded: {error}")))?;
        self.end(at)
    }

    /// Makes room for the length of an entry, and gives its place.
    fn start(&mut self, kind: u8) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0, 0, 0, kind]);
        at
    }

    fn end(&mut self, at: usize) -> Result<()> {
        let length = self.bytes.len() - at - 4;
        let length = u32::try_from(length).map_err(|_| Error::LimitExceeded {
            what: "an entry",
            actual: format!("{length} bytes"),
            limit: format!("{} bytes", u32::MAX),
        })?;
        if let Some(place) = self.bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.entries += 1;
        Ok(())
    }

    /// How many entries there are.
    pub(crate) const fn entries(&self) -> u64 {
        self.entries
    }

    /// The providers' item ids, each with the place of its entry, from 0.
    pub(crate) fn items(&self) -> &[(u64, String)] {
        &self.items
    }

    /// How many bytes they take.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The entries' bytes, from which a content digest is made: times and indexes of the store are not among them.
    pub(crate) fn content(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The byte of a role: its place in [`Role::ALL`].
fn role_byte(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    }
}

fn header<'a>(message: &'a Message, extra: Option<&'a str>) -> v1::Header<'a> {
    let Metadata { model, provider, created_at, turn_id, step_id, id, native: block, extra: _ } = &message.metadata;
    v1::Header {
        finish_reason: message.finish_reason.as_ref().map(model::FinishReason::as_str),
        usage: message.usage.as_ref().map(model::Json::as_str),
        model: model.as_deref(),
        provider: provider.as_deref(),
        created_at: created_at.map(model::Timestamp::as_micros),
        turn_id: turn_id.as_deref(),
        step_id: step_id.as_deref(),
        id: id.as_deref(),
        native: native(block.as_ref()),
        extra: extra.map(Cow::Borrowed),
    }
}

fn native(native: Option<&model::Native>) -> Option<v1::Native<'_>> {
    native.map(|native| v1::Native { wire: &native.wire, json: Text(native.json.as_str()) })
}

/// Unknown fields as one JSON object.
fn extra(extra: &Extra) -> Option<String> {
    if extra.is_empty() {
        return None;
    }
    let mut object = String::from("{");
    for (name, value) in extra.iter() {
        if object.len() > 1 {
            object.push(',');
        }
        // A string always serialises.
        object.push_str(&serde_json::to_string(name).unwrap_or_default());
        object.push(':');
        object.push_str(value.as_str());
    }
    object.push('}');
    Some(object)
}

fn content(body: &model::Body) -> v1::Content<'_> {
    use model::Body;
    match body {
        Body::Text { text, annotations } => {
            v1::Content::Text { text: Text(text), annotations: annotations.as_ref().map(model::Json::as_str) }
        }
        Body::Thinking { text, signature, redacted } => {
            v1::Content::Thinking { text: Text(text), signature: signature.as_deref(), redacted: redacted.as_deref() }
        }
        Body::Refusal { text } => v1::Content::Refusal { text: Text(text) },
        Body::ToolCall { id, name, arguments, signature, server } => v1::Content::ToolCall {
            id,
            name,
            arguments: Text(arguments),
            signature: signature.as_deref(),
            server: *server,
        },
        Body::ToolResult { tool_call_id, name, output, is_error } => v1::Content::ToolResult {
            tool_call_id,
            name: name.as_deref(),
            output: match output {
                model::Output::Text(text) => v1::Output::Text(Text(text)),
                model::Output::Parts(parts) => v1::Output::Parts(parts.iter().map(part).collect()),
            },
            is_error: *is_error,
        },
        Body::Image(value) => v1::Content::Image(image(value)),
        Body::Audio(value) => v1::Content::Audio(audio(value)),
        Body::File(value) => v1::Content::File(file(value)),
        Body::Error { message, code } => v1::Content::Error { message, code: code.as_deref() },
        Body::Opaque { provider, kind, json } => v1::Content::Opaque { provider, kind, json: Text(json.as_str()) },
        Body::Unknown { kind } => v1::Content::Unknown { kind },
    }
}

fn part(part: &model::Part) -> v1::Part<'_> {
    use model::PartBody;
    let body = match &part.body {
        PartBody::Text { text } => v1::PartBody::Text(Text(text)),
        PartBody::Image(value) => v1::PartBody::Image(image(value)),
        PartBody::Audio(value) => v1::PartBody::Audio(audio(value)),
        PartBody::File(value) => v1::PartBody::File(file(value)),
        PartBody::Json { json } => v1::PartBody::Json(Text(json.as_str())),
        PartBody::Unknown { kind } => v1::PartBody::Unknown(kind),
    };
    v1::Part { body, extra: extra(&part.extra).map(Cow::Owned) }
}

fn image(image: &model::Image) -> v1::Image<'_> {
    v1::Image { url: Text(&image.url), mime_type: image.mime_type.as_deref() }
}

fn audio(audio: &model::Audio) -> v1::Audio<'_> {
    let model::Audio { url, data, mime_type, transcript } = audio;
    v1::Audio {
        url: url.as_deref().map(Text),
        data: data.as_deref().map(Text),
        mime_type: mime_type.as_deref(),
        transcript: transcript.as_deref(),
    }
}

fn file(file: &model::File) -> v1::File<'_> {
    let model::File { name, url, data, mime_type } = file;
    v1::File {
        name: name.as_deref(),
        url: url.as_deref().map(Text),
        data: data.as_deref().map(Text),
        mime_type: mime_type.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Body {
        /// Adds an entry of any kind, also of one that nothing writes yet.
        pub(in crate::record) fn with_entry(mut self, kind: u8, entry: &impl Encode) -> Self {
            self.entry(kind, entry).unwrap();
            self
        }
    }
}
