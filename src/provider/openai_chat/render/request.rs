//! The request as it is written. The order of the fields is the order of the keys, which never changes: prompt caches
//! compare bytes. Source: OpenAI API reference, "Create chat completion"; types of the official Python SDK.

use std::borrow::Cow;
use std::mem;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::provider::prompt::tools::Declared;

#[derive(Debug, Serialize)]
pub(crate) struct Request<'a> {
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<Tool<'a>>,
}

/// A tool that may be called.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Tool<'a> {
    Function { function: Declared<'a> },
}

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(crate) enum Message<'a> {
    System {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        content: Content<'a>,
    },
    User {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        content: Content<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// `null` where there is nothing to say beside calls or a refusal.
        content: Option<Content<'a>>,
        /// Not OpenAI's: DeepSeek's and Moonshot's.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<AnyCall<'a>>,
        /// The server's own, as they came.
        #[serde(flatten)]
        extra: ExtraFields<'a>,
    },
    Tool {
        tool_call_id: String,
        content: Content<'a>,
    },
}

/// Fields of the server's own.
#[derive(Debug, Default)]
pub(crate) struct ExtraFields<'a>(pub(crate) Vec<(Cow<'a, str>, Field<'a>)>);

impl<'a> ExtraFields<'a> {
    /// Adds those of a message that is one with this one. A message has a field once: of texts, such as thinking, both are
    /// said; of other values what came later stays.
    pub(crate) fn add(&mut self, later: Self) {
        for (name, value) in later.0 {
            match (self.0.iter_mut().find(|(known, _)| *known == name).map(|(_, known)| known), value) {
                (Some(Field::Text(before)), Field::Text(text)) => *before = join(mem::take(before), text),
                (Some(known), value) => *known = value,
                (None, value) => self.0.push((name, value)),
            }
        }
    }

    /// Whether the message is to be gone on with.
    pub(crate) fn is_prefix(&self) -> bool {
        let is_true = |value: &Field<'_>| matches!(value, Field::Json(json) if json.get() == "true");
        self.0.iter().any(|(name, value)| name == "prefix" && is_true(value))
    }

    /// The message is to be gone on with.
    pub(crate) fn set_prefix(&mut self) {
        self.0.retain(|(name, _)| name != "prefix");
        let json = RawValue::from_string("true".to_owned()).unwrap_or_default();
        self.0.push((Cow::Borrowed("prefix"), Field::Json(json)));
    }
}

/// The value of such a field.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Field<'a> {
    Text(Cow<'a, str>),
    Json(Box<RawValue>),
}

impl Serialize for ExtraFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    InputAudio {
        input_audio: InputAudio<'a>,
    },
    File {
        file: File<'a>,
    },
    /// A file that the provider holds.
    #[serde(rename = "file")]
    Held {
        file: Held,
    },
    /// A part of the server's own, as it came.
    #[serde(untagged)]
    Raw(Box<RawValue>),
}

#[derive(Debug, Serialize)]
pub(crate) struct ImageUrl {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct InputAudio<'a> {
    pub(crate) data: Cow<'a, str>,
    pub(crate) format: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct File<'a> {
    pub(crate) filename: Cow<'a, str>,
    pub(crate) file_data: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Held {
    pub(crate) file_id: String,
}

/// A call, of our making or as the server wrote it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum AnyCall<'a> {
    Made(ToolCall<'a>),
    Raw(RawCall<'a>),
}

/// A call as the server wrote it, and the tool's name in it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct RawCall<'a> {
    #[serde(skip)]
    pub(crate) name: Cow<'a, str>,
    pub(crate) json: Box<RawValue>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolCall<'a> {
    pub(crate) id: String,
    pub(crate) r#type: &'static str,
    pub(crate) function: Function<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Function<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) arguments: Cow<'a, str>,
}

impl<'a> Content<'a> {
    /// Text alone as a string, anything else as an array. `None` for nothing.
    pub(crate) fn of(mut parts: Vec<Part<'a>>) -> Option<Self> {
        match parts.pop() {
            None => None,
            Some(Part::Text { text }) if parts.is_empty() => Some(Self::Text(text)),
            Some(last) => {
                parts.push(last);
                Some(Self::Parts(parts))
            }
        }
    }

    /// Texts as one string, for servers that take no arrays. `None` for nothing.
    pub(crate) fn joined(parts: Vec<Part<'a>>) -> Option<Self> {
        let texts = parts.into_iter().filter_map(|part| match part {
            Part::Text { text } => Some(text),
            _ => None,
        });
        texts.reduce(join).map(Self::Text)
    }

    /// Adds to what is said: text to a string, anything else after it as a part.
    pub(crate) fn extend(&mut self, parts: Vec<Part<'a>>) {
        for part in parts {
            match (&mut *self, part) {
                (Self::Text(before), Part::Text { text }) => *before = join(mem::take(before), text),
                (Self::Text(before), part) => *self = Self::Parts(vec![Part::Text { text: mem::take(before) }, part]),
                (Self::Parts(before), part) => before.push(part),
            }
        }
    }

    /// What is said; no part for an empty string.
    pub(crate) fn into_parts(self) -> Vec<Part<'a>> {
        match self {
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) => vec![Part::Text { text }],
            Self::Parts(parts) => parts,
        }
    }
}

/// Costs nothing for what is there already: many texts may be joined to one.
fn join<'a>(before: Cow<'a, str>, text: Cow<'a, str>) -> Cow<'a, str> {
    let mut joined = before.into_owned();
    joined.push_str(SEPARATOR);
    joined.push_str(&text);
    Cow::Owned(joined)
}

/// What comes between texts that were apart.
pub(crate) const SEPARATOR: &str = "\n\n";
