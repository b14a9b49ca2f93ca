//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: `Message` and `ToolConfiguration` of the official Python SDK (botocore 1.44.5).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::prompt::alternating::{self, Message};
use crate::provider::prompt::tools::Declared;
use crate::provider::prompt::turns::Origin;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) system: Vec<Block<'a>>,
    pub(crate) messages: Vec<Message<Block<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_config: Option<ToolConfig<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Block<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
    Document(Document<'a>),
    Video(Media<'a>),
    ToolUse(ToolUse<'a>),
    ToolResult(ToolResult<'a>),
    ReasoningContent(Reasoning<'a>),
    /// A block as it came.
    #[serde(untagged)]
    Raw(Raw<'a>),
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Raw<'a> {
    pub(crate) json: Box<RawValue>,
    /// Of a document, which counts.
    #[serde(skip)]
    pub(crate) document: Option<Origin<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Source<'a> {
    pub(crate) bytes: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Image<'a> {
    pub(crate) format: &'a str,
    pub(crate) source: Source<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    pub(crate) source: Source<'a>,
    #[serde(skip)]
    pub(crate) origin: Origin<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Media<'a> {
    pub(crate) format: &'static str,
    pub(crate) source: Source<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolUse<'a> {
    pub(crate) tool_use_id: String,
    pub(crate) name: Cow<'a, str>,
    pub(crate) input: Box<RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult<'a> {
    pub(crate) tool_use_id: String,
    pub(crate) content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reasoning<'a> {
    ReasoningText { text: &'a str, signature: &'a str },
    RedactedContent(&'a str),
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolConfig<'a> {
    pub(crate) tools: Vec<Tool<'a>>,
}

/// A tool that may be called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Tool<'a> {
    ToolSpec(Spec<'a>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Schema,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Schema {
    json: Box<RawValue>,
}

impl<'a> From<Declared<'a>> for Tool<'a> {
    fn from(tool: Declared<'a>) -> Self {
        let input_schema = Schema { json: tool.parameters };
        let strict = tool.strict.filter(|strict| *strict);
        Self::ToolSpec(Spec { name: tool.name, description: tool.description, input_schema, strict })
    }
}

impl<'a> alternating::Block<'a> for Block<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

impl<'a> Block<'a> {
    /// The chunk that a document was made of.
    pub(crate) fn document(&self) -> Option<Origin<'a>> {
        match self {
            Self::Document(document) => Some(document.origin),
            Self::Raw(raw) => raw.document,
            _ => None,
        }
    }
}
