//! The table of tools.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::wrong::Wrong;
use super::{McpServer, Opened, reading, writing};

/// A tool that agents may call.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What it does, for the model.
    pub(super) about: &'static str,
    /// Whether it changes something.
    pub(super) writes: bool,
    /// The JSON Schema of its arguments.
    pub(super) schema: fn() -> Map<String, Value>,
    pub(super) call: fn(&McpServer, &Opened, Value) -> Result<Value, Wrong>,
}

macro_rules! tool {
    ($name:literal, $title:literal, $arguments:ty, $call:expr, $writes:literal, $about:literal) => {
        Tool {
            name: $name,
            title: $title,
            about: $about,
            writes: $writes,
            schema: schema::<$arguments>,
            call: |server, opened, arguments| $call(server, opened, read::<$arguments>(arguments)?),
        }
    };
}

pub(super) const TOOLS: &[Tool] = &[
    tool!(
        "search_conversations",
        "Search conversations",
        reading::Search,
        reading::search,
        false,
        "Search what was said in stored conversations: texts and titles, and calls of tools and their results if asked. Gives \
         excerpts, the best first; read_around shows what was said before and after one."
    ),
    tool!(
        "list_conversations",
        "List conversations",
        reading::List,
        reading::list,
        false,
        "List stored conversations, newest activity first, with their titles, tags and numbers of messages."
    ),
    tool!(
        "read_messages",
        "Read messages",
        reading::Read,
        reading::read,
        false,
        "Read the messages of a conversation in order, with calls of tools and their results, within a budget of tokens. If there \
         are more, `next` has the arguments to go on with."
    ),
    tool!(
        "read_around",
        "Read around a message",
        reading::Around,
        reading::around,
        false,
        "Read a message and those before and after it: use it on a hit of search_conversations."
    ),
    tool!(
        "find_item",
        "Find an item",
        reading::Find,
        reading::find,
        false,
        "Find the conversation and the message that have an id of a provider, such as msg_..., resp_..., call_... or toolu_..."
    ),
    tool!(
        "append_note",
        "Append a note",
        writing::Note,
        writing::append_note,
        true,
        "Append a note to a conversation, as a message of the assistant. Who goes on with that conversation reads it. To keep \
         notes apart, give them a key of their own."
    ),
    tool!("tag", "Tag a conversation", writing::Tag, writing::tag, true, "Add tags to a conversation, or remove some."),
    tool!(
        "fork",
        "Fork a conversation",
        writing::Fork,
        writing::fork,
        true,
        "Begin a conversation that shares another one's messages up to one of them. The other one stays as it is."
    ),
];

fn schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(mut schema) => {
            schema.remove("title");
            schema
        }
        _ => Map::new(),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Wrong> {
    serde_json::from_value(arguments).map_err(|error| Wrong::Argument(format!("the arguments cannot be read: {error}")))
}
