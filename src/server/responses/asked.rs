//! A request for a response, read and checked.

use std::collections::HashSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::Json;
use crate::server::app::Call;
use crate::server::body;
use crate::server::openai::Taken;
use crate::server::refusal::Refusal;

/// A request for a response.
#[derive(Debug)]
pub(super) struct Asked {
    /// All fields but the input.
    pub(super) fields: Map<String, Value>,
    pub(super) model: String,
    pub(super) input: Vec<Input>,
    pub(super) instructions: Option<String>,
    /// The response that this one goes on from, and the conversation that it is of. A request has one of both at most.
    pub(super) previous: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) is_stored: bool,
    pub(super) streams: bool,
    pub(super) in_background: bool,
}

/// An item of the input.
#[derive(Debug)]
pub(super) enum Input {
    Item(Taken),
    /// An item that is stored already, by its id.
    Reference(String),
}

impl Asked {
    pub(super) fn read(call: &Call, body: &[u8]) -> Result<Self, Refusal> {
        let Parted { mut fields, input } = parted(body)?;
        let text = |fields: &Map<String, Value>, name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => {
                Err(Refusal::invalid(name, "invalid_type", format!("Invalid type for '{name}': expected a string.")))
            }
        };
        let flag = |fields: &Map<String, Value>, name: &str, without: bool| match fields.get(name) {
            None | Some(Value::Null) => Ok(without),
            Some(Value::Bool(is)) => Ok(*is),
            Some(_) => {
                Err(Refusal::invalid(name, "invalid_type", format!("Invalid type for '{name}': expected a boolean.")))
            }
        };
        let model = text(&fields, "model")?.filter(|model| !model.is_empty());
        let model = model.ok_or_else(|| Refusal::missing("model"))?;
        let conversation = match fields.get("conversation") {
            Some(Value::Object(named)) => named.get("id").and_then(Value::as_str).map(str::to_owned).map(Some),
            _ => Some(text(&fields, "conversation")?),
        };
        let conversation = conversation.ok_or_else(|| Refusal::missing("conversation.id"))?;
        let previous = text(&fields, "previous_response_id")?;
        if previous.is_some() && conversation.is_some() {
            let message = "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. Ensure you are only \
                           providing one of them.";
            return Err(Refusal::invalid("previous_response_id", "mutually_exclusive_parameters", message));
        }
        let (is_stored, in_background) = (flag(&fields, "store", true)?, flag(&fields, "background", false)?);
        if in_background && !is_stored {
            let message = "Background responses are stored: `store` cannot be false with `background`.";
            return Err(Refusal::invalid("background", "invalid_value", message));
        }
        if conversation.is_some() && !is_stored {
            let message = "A conversation keeps its items: `store` cannot be false with `conversation`.";
            return Err(Refusal::invalid("store", "invalid_value", message));
        }
        let input = input.as_deref().map(|raw| items(call, raw)).transpose()?.unwrap_or_default();
        if input.is_empty() && previous.is_none() && conversation.is_none() {
            return Err(Refusal::missing("input"));
        }
        let asked = Self {
            model,
            instructions: text(&fields, "instructions")?,
            previous,
            conversation,
            is_stored,
            streams: flag(&fields, "stream", false)?,
            in_background,
            input,
            fields: Map::new(),
        };
        fields.retain(|_, value| !value.is_null());
        Ok(Self { fields, ..asked })
    }

    /// What was asked to be included.
    pub(super) fn includes(&self, name: &str) -> bool {
        let included = self.fields.get("include").and_then(Value::as_array);
        included.is_some_and(|included| included.iter().any(|one| one == name))
    }
}

/// The fields of a body but its input, which stays as it is written.
struct Parted {
    fields: Map<String, Value>,
    input: Option<Box<RawValue>>,
}

fn parted(body: &[u8]) -> Result<Parted, Refusal> {
    let mut all: std::collections::BTreeMap<String, Box<RawValue>> = body::required(body)?;
    // Of a message by WebSocket.
    all.remove("type");
    let input = all.remove("input").filter(|raw| raw.get() != "null");
    let mut fields = Map::new();
    for (name, raw) in all {
        let value = serde_json::from_str(raw.get()).map_err(|error| Refusal::value(&*name, &error.to_string()))?;
        fields.insert(name, value);
    }
    Ok(Parted { fields, input })
}

fn items(call: &Call, raw: &RawValue) -> Result<Vec<Input>, Refusal> {
    if raw.get().starts_with('"') {
        let message = format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":{}}}", raw.get());
        let message = RawValue::from_string(message).map_err(|error| Refusal::value("input", &error.to_string()))?;
        return Ok(vec![Input::Item(Taken::new(&message, "input", false)?)]);
    }
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| {
        Refusal::invalid("input", "invalid_type", "Invalid type for 'input': expected a string, or an array of items.")
    })?;
    let is_strict = call.app.config.openai.strict_item_types;
    let mut seen = HashSet::new();
    let mut read = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}]");
        let input = match reference(item) {
            Some(id) => Input::Reference(id),
            None => Input::Item(Taken::new(item, &place, is_strict)?),
        };
        if let Input::Item(Taken { id: Some(id), .. }) = &input
            && !seen.insert(id.clone())
        {
            let message =
                format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again.");
            return Err(Refusal::invalid(place, "duplicate_item", message));
        }
        read.push(input);
    }
    Ok(read)
}

/// The id in an item that names another.
fn reference(raw: &RawValue) -> Option<String> {
    let fields = Json::fields(raw.get())?;
    let text = |name: &str| {
        let value = fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())?;
        serde_json::from_str::<String>(value).ok()
    };
    let kind = text("type");
    // A type may be left out, where nothing else is said.
    let is_reference = kind.as_deref() == Some("item_reference") || kind.is_none() && fields.len() == 1;
    is_reference.then(|| text("id")).flatten()
}
