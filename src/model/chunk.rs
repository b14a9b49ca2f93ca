//! What a message consists of, and how fragments of one chunk become the chunk.

use super::{Extra, Json};

/// A piece of a message: what it is ([`Body`]), and what came with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// What it is.
    pub body: Body,
    /// The provider's item id. Ids may repeat.
    pub id: Option<String>,
    /// The very block that it came from, where the typed fields would not give it back.
    pub native: Option<Native>,
    /// Fields of the transcript that this crate does not know.
    pub extra: Extra,
}

/// What a chunk is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// Text that was said.
    Text {
        /// The text.
        text: String,
        /// Citations and the like, as the provider wrote them.
        annotations: Option<Json>,
    },
    /// What the model thought before it spoke.
    Thinking {
        /// The text; empty where the provider gives only a signature.
        text: String,
        /// Opaque proof, bound to the provider and model that made it.
        signature: Option<String>,
        /// Opaque data in place of the text.
        redacted: Option<String>,
    },
    /// The model declined, in words.
    Refusal {
        /// The words.
        text: String,
    },
    /// The model asks for a tool to be run.
    ToolCall {
        /// The provider's id of the call; may be empty, may repeat in later turns.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as the model wrote them: JSON text, or what should have become it.
        arguments: String,
        /// Opaque proof of the thinking that led to the call (Gemini).
        signature: Option<String>,
        /// Whether the provider runs the tool itself.
        server: bool,
    },
    /// What a tool gave back.
    ToolResult {
        /// The id of the call that it answers.
        tool_call_id: String,
        /// The tool's name, if it was given.
        name: Option<String>,
        /// What the tool gave back.
        output: Output,
        /// Whether the tool failed.
        is_error: Option<bool>,
    },
    /// A picture.
    Image(Image),
    /// Sound.
    Audio(Audio),
    /// A document.
    File(File),
    /// A generation failed. Visible to people, never to a provider.
    Error {
        /// What the provider or the server said.
        message: String,
        /// Its code.
        code: Option<String>,
    },
    /// A provider's own block, echoed to the same provider as it is.
    Opaque {
        /// The provider.
        provider: String,
        /// The provider's name of the block's kind.
        kind: String,
        /// The block.
        json: Json,
    },
    /// A kind of chunk that this crate does not know; its fields are in [`Chunk::extra`].
    Unknown {
        /// The kind's name.
        kind: String,
    },
}

/// A provider's block as it came, for one wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Native {
    /// The wire: `openai-chat`, `anthropic` ...; `transcript` for a transcript's own text.
    pub wire: String,
    /// The block.
    pub json: Json,
}

/// A picture: an http(s) address or a data URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Where it is, or the picture itself as a data URL.
    pub url: String,
    /// Its media type, if the address does not say it.
    pub mime_type: Option<String>,
}

/// Sound: an address, or base64 data; with or without its transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audio {
    /// Where it is, or the sound itself as a data URL.
    pub url: Option<String>,
    /// The sound, base64.
    pub data: Option<String>,
    /// Its media type, for example `audio/wav`.
    pub mime_type: Option<String>,
    /// What is said in it.
    pub transcript: Option<String>,
}

/// A document: an address, or base64 data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: Option<String>,
    /// Where it is, or the document itself as a data URL.
    pub url: Option<String>,
    /// The document, base64.
    pub data: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Text.
    Text(String),
    /// Several parts.
    Parts(Vec<Part>),
}

/// A part of what a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is.
    pub body: PartBody,
    /// Fields of the transcript that this crate does not know.
    pub extra: Extra,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartBody {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// Sound.
    Audio(Audio),
    /// A document.
    File(File),
    /// A JSON value.
    Json {
        /// The value.
        json: Json,
    },
    /// A kind of part that this crate does not know; its fields are in [`Part::extra`].
    Unknown {
        /// The kind's name.
        kind: String,
    },
}

impl Chunk {
    /// A chunk that text fragments may be appended to: text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Body::Text { text: text.into(), annotations: None }.into()
    }

    /// Thinking without a signature.
    #[must_use]
    pub fn thinking(text: impl Into<String>) -> Self {
        Body::Thinking { text: text.into(), signature: None, redacted: None }.into()
    }

    /// A tool call; `arguments` is JSON text.
    #[must_use]
    pub fn tool_call(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let (id, name, arguments) = (id.into(), name.into(), arguments.into());
        Body::ToolCall { id, name, arguments, signature: None, server: false }.into()
    }

    /// The result of a tool call, as text.
    #[must_use]
    pub fn tool_result(tool_call_id: impl Into<String>, text: impl Into<String>) -> Self {
        let output = Output::Text(text.into());
        Body::ToolResult { tool_call_id: tool_call_id.into(), name: None, output, is_error: None }.into()
    }

    /// A picture at an http(s) address or in a data URL.
    #[must_use]
    pub fn image(url: impl Into<String>) -> Self {
        Body::Image(Image { url: url.into(), mime_type: None }).into()
    }

    /// A failed generation.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Body::Error { message: message.into(), code: None }.into()
    }
}

impl From<Body> for Chunk {
    fn from(body: Body) -> Self {
        Self { body, id: None, native: None, extra: Extra::new() }
    }
}

impl Body {
    /// The names of all kinds that are known.
    pub const KINDS: &'static [&'static str] =
        &["text", "thinking", "refusal", "tool_call", "tool_result", "image", "audio", "file", "error", "opaque"];

    /// The kind's name in the transcript format: `text`, `tool_call` ...
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Text { .. } => "text",
            Self::Thinking { .. } => "thinking",
            Self::Refusal { .. } => "refusal",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::File(_) => "file",
            Self::Error { .. } => "error",
            Self::Opaque { .. } => "opaque",
            Self::Unknown { kind } => kind,
        }
    }
}

impl From<PartBody> for Part {
    fn from(body: PartBody) -> Self {
        Self { body, extra: Extra::new() }
    }
}

impl PartBody {
    /// The kind's name in the transcript format: `text`, `image` ...
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Text { .. } => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::File(_) => "file",
            Self::Json { .. } => "json",
            Self::Unknown { kind } => kind,
        }
    }
}

/// Why a fragment does not belong to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    /// It is of another kind.
    #[error("it is of another kind than the fragments before it")]
    OtherKind,
    /// It comes whole: only text, thinking text and arguments grow.
    #[error("a chunk of this kind comes whole, in one piece")]
    ComesWhole,
    /// It gives a second value for something that is said once.
    #[error("it says again what was said before: an id, a name, a signature, native data and unknown fields come once")]
    SaidTwice,
}

impl Chunk {
    /// Appends a fragment. The chunk is as before if it does not fit.
    pub(crate) fn push_fragment(&mut self, fragment: Self) -> Result<(), Misfit> {
        self.check_fragment(&fragment)?;
        take(&mut self.id, fragment.id);
        take(&mut self.native, fragment.native);
        if self.extra.is_empty() {
            self.extra = fragment.extra;
        }
        match (&mut self.body, fragment.body) {
            (Body::Text { text, annotations }, Body::Text { text: more, annotations: new }) => {
                text.push_str(&more);
                take(annotations, new);
            }
            (
                Body::Thinking { text, signature, redacted },
                Body::Thinking { text: more, signature: new_signature, redacted: new_redacted },
            ) => {
                text.push_str(&more);
                take(signature, new_signature);
                take(redacted, new_redacted);
            }
            (Body::Refusal { text }, Body::Refusal { text: more }) => text.push_str(&more),
            (
                Body::ToolCall { id, name, arguments, signature, server },
                Body::ToolCall {
                    id: new_id,
                    name: new_name,
                    arguments: more,
                    signature: new_signature,
                    server: new_server,
                },
            ) => {
                arguments.push_str(&more);
                if id.is_empty() {
                    *id = new_id;
                }
                if name.is_empty() {
                    *name = new_name;
                }
                take(signature, new_signature);
                *server |= new_server;
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a fragment fits.
    pub(crate) fn check_fragment(&self, fragment: &Self) -> Result<(), Misfit> {
        let said_twice = match (&self.body, &fragment.body) {
            (Body::Text { annotations: a, .. }, Body::Text { annotations: b, .. }) => a.is_some() && b.is_some(),
            (Body::Thinking { signature: a, redacted: c, .. }, Body::Thinking { signature: b, redacted: d, .. }) => {
                a.is_some() && b.is_some() || c.is_some() && d.is_some()
            }
            (Body::Refusal { .. }, Body::Refusal { .. }) => false,
            (
                Body::ToolCall { id: a, name: c, signature: e, .. },
                Body::ToolCall { id: b, name: d, signature: f, .. },
            ) => differs(a, b) || differs(c, d) || e.is_some() && f.is_some(),
            (a, b) if a.kind() != b.kind() => return Err(Misfit::OtherKind),
            _ => return Err(Misfit::ComesWhole),
        };
        let said_twice = said_twice
            || self.id.is_some() && fragment.id.is_some()
            || self.native.is_some() && fragment.native.is_some()
            || !self.extra.is_empty() && !fragment.extra.is_empty();
        if said_twice { Err(Misfit::SaidTwice) } else { Ok(()) }
    }

    /// The chunk without the text that grows: enough to check fragments against.
    pub(crate) fn shape(&self) -> Self {
        let mut shape = self.clone();
        match &mut shape.body {
            Body::Text { text, .. }
            | Body::Thinking { text, .. }
            | Body::Refusal { text }
            | Body::ToolCall { arguments: text, .. } => text.clear(),
            _ => {}
        }
        shape
    }

    /// The text that grows; empty for a chunk that comes whole.
    #[cfg(feature = "server")]
    pub(crate) fn growing(&self) -> &str {
        match &self.body {
            Body::Text { text, .. }
            | Body::Thinking { text, .. }
            | Body::Refusal { text }
            | Body::ToolCall { arguments: text, .. } => text,
            _ => "",
        }
    }
}

/// Some servers repeat id and name with every fragment.
fn differs(before: &str, now: &str) -> bool {
    !before.is_empty() && !now.is_empty() && before != now
}

fn take<T>(slot: &mut Option<T>, new: Option<T>) {
    if slot.is_none() {
        *slot = new;
    }
}
