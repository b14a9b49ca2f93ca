//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: OpenAI API reference, "Create a model response"; types of the official Python SDK.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::provider::prompt::tools::Declared;

#[derive(Debug, Serialize)]
pub(crate) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<&'a str>,
    pub(crate) input: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<Tool<'a>>,
}

/// A tool that may be called.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Tool<'a> {
    Function {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        parameters: Box<RawValue>,
        /// Else the service takes the schema for one of its strict kind.
        strict: bool,
    },
}

impl<'a> From<Declared<'a>> for Tool<'a> {
    fn from(tool: Declared<'a>) -> Self {
        let Declared { name, description, parameters, strict } = tool;
        Self::Function { name, description, parameters, strict: strict.unwrap_or(false) }
    }
}

/// An item, of our making or as the provider wrote it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Entry<'a> {
    Item(Item<'a>),
    Raw(Box<RawValue>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    /// Without the server's id: what is not complete cannot be referred to (OR-08, OR-09).
    Reasoning {
        summary: Vec<Summary<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: String,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    CustomToolCall {
        call_id: String,
        name: Cow<'a, str>,
        input: &'a str,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    CustomToolCallOutput {
        call_id: String,
        output: Output<'a>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Summary<'a> {
    SummaryText { text: &'a str },
}

/// A part, of our making or as the provider wrote it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a> {
    Part(Part<'a>),
    Raw(Box<RawValue>),
}

/// The first three are said to the model, the others by it (OR-17).
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: String,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
    },
    OutputText {
        text: Cow<'a, str>,
    },
    Refusal {
        refusal: &'a str,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> From<Part<'a>> for Content<'a> {
    fn from(part: Part<'a>) -> Self {
        Self::Part(part)
    }
}
