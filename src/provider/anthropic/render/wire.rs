//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: `MessageParam` of the official Python SDK (anthropic 2.11.0).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::history::StoredMessage;
use crate::provider::tools::Declared;

#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: Speaker,
    /// Always an array: a later message of the same role adds to it.
    pub(super) content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Speaker {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
        /// The longer side, where the bytes show it.
        #[serde(skip)]
        side: Option<u32>,
        #[serde(skip)]
        origin: Origin<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: String,
        name: Cow<'a, str>,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block of the provider's own, as it came.
    #[serde(untagged)]
    Own(Own<'a>),
}

impl Block<'_> {
    /// Whether the model may think behind it, as it does at the beginning of its turn.
    pub(super) fn is_server_result(&self) -> bool {
        matches!(self, Self::Own(own) if own.kind == OwnKind::ServerResult)
    }
}

/// A block of the provider's own.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Own<'a> {
    pub(super) json: Box<RawValue>,
    #[serde(skip)]
    pub(super) kind: OwnKind,
    #[serde(skip)]
    pub(super) origin: Option<Origin<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnKind {
    /// The result of a tool that the provider ran: the model may think again behind it.
    ServerResult,
    /// It counts among the images.
    Image,
    Other,
}

/// The chunk that a block was made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) stored: &'a StoredMessage,
    pub(super) chunk: usize,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: Cow<'a, str> },
    Url { url: &'a str },
    Text { media_type: &'static str, data: String },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// A tool that may be called.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Box<RawValue>,
}

impl<'a> From<Declared<'a>> for Tool<'a> {
    fn from(tool: Declared<'a>) -> Self {
        Self { name: tool.name, description: tool.description, input_schema: tool.parameters }
    }
}

impl Content<'_> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}
