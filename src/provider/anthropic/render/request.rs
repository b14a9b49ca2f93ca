//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: `MessageParam` of the official Python SDK (anthropic 2.11.0).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::prompt::alternating::{self, Message};
use crate::provider::prompt::tools::Declared;
use crate::provider::prompt::turns::Origin;

#[derive(Debug, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) system: Vec<Block<'a>>,
    pub(crate) messages: Vec<Message<Block<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<Tool<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block<'a> {
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
    Raw(Raw<'a>),
}

impl<'a> alternating::Block<'a> for Block<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. })
    }
}

impl Block<'_> {
    /// Whether the model may think after it, as it does at the beginning of its turn.
    pub(crate) fn is_server_result(&self) -> bool {
        matches!(self, Self::Raw(raw) if raw.kind == RawKind::ServerResult)
    }

    /// Whether this is the result of a tool that the caller ran.
    pub(crate) fn is_tool_result(&self) -> bool {
        match self {
            Self::Raw(raw) => raw.kind == RawKind::ToolResult,
            _ => matches!(self, Self::ToolResult { .. }),
        }
    }
}

/// A block of the provider's own.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Raw<'a> {
    pub(crate) json: Box<RawValue>,
    #[serde(skip)]
    pub(crate) kind: RawKind,
    #[serde(skip)]
    pub(crate) origin: Option<Origin<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKind {
    /// The result of a tool that the provider ran: the model may think again after it.
    ServerResult,
    /// A call of a tool that the provider runs.
    ServerCall,
    /// The result of a tool that the caller ran.
    ToolResult,
    /// It counts among the images.
    Image,
    Other,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Source<'a> {
    Base64 { media_type: &'a str, data: Cow<'a, str> },
    Url { url: &'a str },
    Text { media_type: &'static str, data: String },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// A tool that may be called.
#[derive(Debug, Serialize)]
pub(crate) struct Tool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> From<Declared<'a>> for Tool<'a> {
    fn from(tool: Declared<'a>) -> Self {
        let strict = tool.strict.filter(|strict| *strict);
        Self { name: tool.name, description: tool.description, input_schema: tool.parameters, strict }
    }
}

impl Content<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}
