//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: Gemini API reference, `Content` and `Part`; types of the official Python SDK.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::tools::Declared;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<System<'a>>,
    pub(super) contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<[Functions<'a>; 1]>,
}

/// The tools that may be called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Functions<'a> {
    pub(super) function_declarations: Vec<Declaration<'a>>,
}

/// Source: `FunctionDeclaration` of the official Python SDK. `parameters` takes a part of OpenAPI's schemas only.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration<'a> {
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
pub(super) struct System<'a> {
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    /// Always there (VX-01).
    pub(super) role: Speaker,
    pub(super) parts: Vec<Part<'a>>,
    /// Whether the parts are answers to calls: nothing else stands beside them (GM-24).
    #[serde(skip)]
    pub(super) answers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Speaker {
    User,
    Model,
}

/// One of these at a time (GM-05).
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Part<'a> {
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
    Given(Box<RawValue>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    pub(super) mime_type: String,
    pub(super) data: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'a> {
    pub(super) mime_type: String,
    pub(super) file_uri: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionCall<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) args: Box<RawValue>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionResponse<'a> {
    /// The call's, where the provider gave it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) name: Cow<'a, str>,
    pub(super) response: Response<'a>,
}

/// Always an object (GM-15).
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Response<'a> {
    Result(Texts<'a>),
    Error(Texts<'a>),
    /// An object that the tool gave.
    #[serde(untagged)]
    Object(Box<RawValue>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Texts<'a> {
    One(Cow<'a, str>),
    Several(Vec<Cow<'a, str>>),
}
