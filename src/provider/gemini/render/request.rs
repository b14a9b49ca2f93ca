//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: Gemini API reference, `Content` and `Part`; types of the official Python SDK.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::prompt::alternating::{Block, Message};
use crate::provider::prompt::tools::Declared;
use crate::provider::prompt::turns::Speaker;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_instruction: Option<System<'a>>,
    pub(crate) contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<[Functions<'a>; 1]>,
}

/// The tools that may be called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Functions<'a> {
    pub(crate) function_declarations: Vec<Declaration<'a>>,
}

/// Source: `FunctionDeclaration` of the official Python SDK. `parameters` takes a part of OpenAPI's schemas only.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Declaration<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters_json_schema: Box<RawValue>,
}

impl<'a> From<Declared<'a>> for Declaration<'a> {
    fn from(tool: Declared<'a>) -> Self {
        Self { name: tool.name, description: tool.description, parameters_json_schema: tool.parameters }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct System<'a> {
    pub(crate) parts: Vec<Part<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Content<'a> {
    /// Always there (VX-01).
    role: &'static str,
    parts: Vec<Part<'a>>,
}

impl<'a> From<Message<Part<'a>>> for Content<'a> {
    fn from(message: Message<Part<'a>>) -> Self {
        let role = match message.role {
            Speaker::User => "user",
            Speaker::Assistant => "model",
        };
        Self { role, parts: message.content }
    }
}

/// One of these at a time (GM-05).
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Thought {
        text: &'a str,
        thought: bool,
        thought_signature: &'a str,
    },
    Inline {
        inline_data: Blob<'a>,
    },
    File {
        file_data: FileData<'a>,
    },
    Call {
        function_call: FunctionCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Response {
        function_response: FunctionResponse<'a>,
    },
    /// As the provider wrote it.
    Raw(Box<RawValue>),
}

impl<'a> Block<'a> for Part<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. })
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blob<'a> {
    pub(crate) mime_type: String,
    pub(crate) data: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileData<'a> {
    pub(crate) mime_type: String,
    pub(crate) file_uri: &'a str,
}

#[derive(Debug, Serialize)]
pub(crate) struct FunctionCall<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) args: Box<RawValue>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FunctionResponse<'a> {
    /// The call's, where the provider gave it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) response: Response<'a>,
    /// What else the caller sent with it.
    #[serde(flatten)]
    pub(crate) beside: BTreeMap<&'static str, Box<RawValue>>,
}

/// Always an object (GM-15).
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Response<'a> {
    Result(Texts<'a>),
    Error(Texts<'a>),
    /// An object that the tool gave.
    #[serde(untagged)]
    Object(Box<RawValue>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Texts<'a> {
    One(Cow<'a, str>),
    Several(Vec<Cow<'a, str>>),
}
