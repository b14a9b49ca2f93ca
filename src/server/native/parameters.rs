//! What several calls accept: the conversation that a path names, and the parameters of a request that appends, or renders.

use std::str::FromStr;

use crate::history::Conversation;
use crate::log::{AppendOptions, Durability, ExpectedHead};
use crate::model::{ConversationId, Json, Name, Timestamp};
use crate::provider::{OptionValues, PROMPT_OPTIONS, PromptOption, PromptOptions, Target, Tool};
use crate::server::app::Call;
use crate::server::keys::{Scope, check_owner};
use crate::server::refusal::Refusal;
use crate::server::schemas::Object;

/// The parameter that names the last seq of a conversation as it was.
pub(in crate::server) const AT: &str = "at";

/// `expect`, `durability`, and the idempotency key.
pub(super) fn append(call: &Call) -> Result<AppendOptions, Refusal> {
    let mut options = AppendOptions::new();
    options.idempotency_key = call.idempotency_key()?.map(str::to_owned);
    options.expected = match call.query.get("expect") {
        None => ExpectedHead::Any,
        Some("new") => ExpectedHead::NewConversation,
        Some(at) => {
            let refused = |_| Refusal::value("expect", "expected the last seq, a cursor, or `new`");
            ExpectedHead::AtCursor(at.parse().map_err(refused)?)
        }
    };
    let durability = [("durable", Durability::Durable), ("buffered", Durability::Buffered)];
    options.durability = one_of(call, "durability", &durability)?.unwrap_or_default();
    Ok(options)
}

/// A time, or a day: its beginning.
struct Moment(Timestamp);

impl FromStr for Moment {
    type Err = <Timestamp as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Timestamp::of_day_or_time(text).map(Self)
    }
}

/// A parameter that is a time, or a day.
pub(in crate::server) fn moment(call: &Call, name: &str) -> Result<Option<Timestamp>, Refusal> {
    Ok(call.query.parse::<Moment>(name, "day or time")?.map(|Moment(time)| time))
}

/// A parameter that is one of a few words, if it is there.
fn one_of<T: Copy>(call: &Call, name: &str, words: &[(&str, T)]) -> Result<Option<T>, Refusal> {
    let Some(text) = call.query.get(name) else { return Ok(None) };
    let word = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    word.map(Some).ok_or_else(|| Refusal::value(name, &format!("expected one of {}", known())))
}

/// A target: the wire, or the wire and its dialect, as in `openai-chat/mistral`.
pub(in crate::server) fn target(call: &Call, name: &str) -> Result<Target, Refusal> {
    let Some(text) = call.query.get(name) else {
        let message = format!("Missing required parameter: '{name}'.");
        return Err(Refusal::invalid(name, "missing_required_parameter", message));
    };
    Target::from_str(text).map_err(|error| Refusal::value(name, &error.to_string()))
}

/// Fails on a parameter that neither [`prompt`] nor [`conversation`] reads.
pub(in crate::server) fn check_prompt(call: &Call) -> Result<(), Refusal> {
    let names: Vec<_> = ["for", AT].into_iter().chain(PROMPT_OPTIONS.iter().map(|option| option.name)).collect();
    call.query.check(&names)
}

/// The conversation that is rendered: as it is, or as it was at a seq.
pub(in crate::server) fn conversation(call: &Call, name: &Name) -> Result<Conversation, Refusal> {
    Ok(match call.query.number(AT, 1, u64::MAX)? {
        Some(seq) => call.store().load_at(name, seq)?,
        None => call.store().load(name)?,
    })
}

/// How to render a conversation.
pub(in crate::server) fn prompt(call: &Call, tools: Vec<Tool>) -> Result<PromptOptions, Refusal> {
    let mut options = PromptOptions::new().with_tools(tools);
    for PromptOption { name, values, .. } in PROMPT_OPTIONS {
        match values {
            OptionValues::Text(set) => call.query.get(name).into_iter().for_each(|text| set(&mut options, text)),
            OptionValues::Number { least, set } => {
                let number = call.query.number(name, *least, u64::MAX)?;
                number.into_iter().for_each(|number| set(&mut options, number));
            }
            OptionValues::Words(words) => {
                let words: Vec<_> = words.iter().map(|word| (word.name, word.set)).collect();
                one_of(call, name, &words)?.into_iter().for_each(|set| set(&mut options));
            }
        }
    }
    Ok(options)
}

/// A tool, as a body declares it.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(super) struct Declared {
    name: String,
    description: Option<String>,
    #[schemars(with = "Object")]
    parameters: Box<serde_json::value::RawValue>,
}

/// The tools of a body.
pub(super) fn tools(declared: Vec<Declared>) -> Result<Vec<Tool>, Refusal> {
    let tool = |(at, declared): (usize, Declared)| {
        let parameters = Json::new(declared.parameters.get())
            .map_err(|error| Refusal::value(format!("tools[{at}].parameters"), &error.to_string()))?;
        let mut tool = Tool::new(declared.name, parameters);
        tool.description = declared.description;
        Ok(tool)
    };
    declared.into_iter().enumerate().map(tool).collect()
}

/// The request for the conversations of the `owner` that it names. To name another one is for admins.
pub(in crate::server) fn for_owner(call: &Call) -> Result<Call, Refusal> {
    let Some(owner) = call.query.parse::<String>("owner", "name")? else { return Ok(call.clone()) };
    if owner != call.caller.owner && !call.caller.scopes.contains(&Scope::Admin) {
        return Err(Refusal::missing_scope(Scope::Admin));
    }
    check_owner(&owner).map_err(|error| Refusal::value("owner", &error.to_string()))?;
    Ok(call.of(owner))
}

/// The caller's conversation: a UUID, an id of the OpenAI API, or a key.
pub(in crate::server) fn name(call: &Call) -> Name {
    named(call, call.part("conversation"))
}

/// As [`name`], of a text.
pub(super) fn named(call: &Call, text: &str) -> Name {
    let id = text.strip_prefix("conv_").filter(|digits| digits.len() == 32);
    match id.and_then(|digits| digits.parse::<ConversationId>().ok()) {
        Some(id) => call.own(id),
        None => call.own(text),
    }
}

/// The conversation to add to. A key creates one; an id names an existing one: a caller who could create a conversation
/// of any id could take the id of another owner's key.
pub(super) fn writable(call: &Call) -> Result<Name, Refusal> {
    let name = name(call);
    if name.key().is_none() {
        call.store().describe(&name)?;
    }
    Ok(name)
}

/// The name of a new conversation: of a key, or without one. No key looks like an id.
pub(super) fn new(call: &Call, key: Option<&str>) -> Result<Name, Refusal> {
    let Some(key) = key else { return Ok(call.own(ConversationId::new())) };
    let name = named(call, key);
    if key.is_empty() || name.key().is_none() {
        return Err(Refusal::value("key", "a key is any text except a UUID or the id of a conversation"));
    }
    Ok(name)
}
