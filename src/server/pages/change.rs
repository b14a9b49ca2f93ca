//! What people change on the pages. Each change is asked about on a page of its own, which says what it does.

use askama::Template;

use super::frame::{Frame, for_its_owner, page, see_other};
use super::words::titled;
use crate::error::Error;
use crate::log::{ListItem, Redaction};
use crate::model::{ConversationId, Name};
use crate::server::app::{Call, Outcome};
use crate::server::keys::Scope;
use crate::server::native::parameters;
use crate::server::refusal::Refusal;

/// What can be changed.
pub(super) struct Change {
    /// As `do` names it.
    name: &'static str,
    pub(super) label: &'static str,
    /// What it does, for who is asked.
    effect: &'static str,
    pub(super) scope: Scope,
    pub(super) of: Of,
    /// The field of its form.
    field: Option<&'static str>,
    run: fn(&Asked<'_>) -> Result<Done, Refusal>,
}

/// What it is a change of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Conversation,
    Message,
}

const CHANGES: &[Change] = &[
    Change {
        name: "title",
        label: "Title",
        effect: "The title is what lists show. Without one they show its key, or its id.",
        scope: Scope::Append,
        of: Of::Conversation,
        field: Some("Title"),
        run: title,
    },
    Change {
        name: "tags",
        label: "Tags",
        effect: "Tags, with commas between them. Those that are not there any more are removed.",
        scope: Scope::Append,
        of: Of::Conversation,
        field: Some("Tags"),
        run: tags,
    },
    Change {
        name: "delete",
        label: "Delete",
        effect: "The conversation is erased. It cannot be brought back. Forks of it keep what they share with it.",
        scope: Scope::Delete,
        of: Of::Conversation,
        field: None,
        run: delete,
    },
    Change {
        name: "fork",
        label: "Fork",
        effect: "A new conversation begins with everything up to this message, and goes on by itself. This one stays as it is.",
        scope: Scope::Append,
        of: Of::Message,
        field: None,
        run: fork,
    },
    Change {
        name: "rewind",
        label: "Rewind",
        effect: "This message and all after it are hidden, and no prompt has them any more. The log keeps them.",
        scope: Scope::Delete,
        of: Of::Message,
        field: None,
        run: rewind,
    },
    Change {
        name: "hide",
        label: "Hide",
        effect: "This message is hidden, and no prompt has it any more. The log keeps it.",
        scope: Scope::Delete,
        of: Of::Message,
        field: None,
        run: hide,
    },
    Change {
        name: "redact",
        label: "Redact",
        effect: "The content of this message is erased, also from the log. It cannot be brought back. That there was a message stays.",
        scope: Scope::Delete,
        of: Of::Message,
        field: None,
        run: redact,
    },
];

/// What is shown after a change.
enum Done {
    /// A page.
    See(String),
    /// What may quote what was redacted: an address, and what is there.
    Quoted(Vec<(String, String)>),
}

/// A link to the page that asks.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: String,
    pub(super) label: &'static str,
}

impl Change {
    /// The changes that a caller may make of a conversation, or of a message of it.
    ///
    /// `address`: the page of the conversation.
    pub(super) fn links(scopes: &[Scope], address: &str, message: Option<u64>) -> Vec<Link> {
        let of = if message.is_some() { Of::Message } else { Of::Conversation };
        let may = |change: &&Self| change.of == of && scopes.contains(&change.scope);
        let at = message.map_or_else(String::new, |message| format!("&message={message}"));
        let link =
            |change: &Self| Link { address: format!("{address}/change?do={}{at}", change.name), label: change.label };
        CHANGES.iter().filter(may).map(link).collect()
    }
}

/// A change that somebody wants.
struct Asked<'a> {
    call: &'a Call,
    name: Name,
    item: ListItem,
    change: &'static Change,
    message: u64,
}

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "change.html")]
struct Question {
    frame: Frame,
    title: String,
    address: String,
    change: &'static Change,
    /// The field's name, and what is in it.
    field: Option<(&'static str, String)>,
    message: Option<u64>,
}

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "quoted.html")]
struct Quoted {
    frame: Frame,
    title: String,
    address: String,
    message: u64,
    places: Vec<(String, String)>,
}

impl<'a> Asked<'a> {
    fn new(call: &'a Call) -> Result<Self, Refusal> {
        call.query.check(&["do", "message", "value"])?;
        let wanted = call.query.get("do").unwrap_or_default();
        let change = CHANGES.iter().find(|change| change.name == wanted);
        let change = change.ok_or_else(|| Refusal::not_found("There is no such change."))?;
        if !call.caller.scopes.contains(&change.scope) {
            return Err(Refusal::missing_scope(change.scope));
        }
        let name = parameters::name(call);
        let item = call.store().describe(&name)?;
        let message = call.query.number("message", 0, u64::MAX)?;
        let message = match (change.of, message) {
            (Of::Conversation, _) => 0,
            (Of::Message, Some(message)) => message,
            (Of::Message, None) => return Err(Refusal::not_found("The change names no message.")),
        };
        Ok(Self { call, name, item, change, message })
    }

    fn value(&self) -> &str {
        self.call.query.get("value").unwrap_or_default().trim()
    }

    /// The page of the conversation, at the message.
    fn back(&self) -> String {
        let at = match self.change.of {
            Of::Conversation => String::new(),
            Of::Message => format!("?from={0}#m{0}", self.message),
        };
        format!("/pages/conversations/{}{at}", self.item.id)
    }
}

/// Asks whether it is wanted.
pub(super) fn question(call: &Call, _: &[u8]) -> Outcome {
    let call = &for_its_owner(call)?;
    let asked = Asked::new(call)?;
    let value = match asked.change.name {
        "title" => asked.item.title.clone().unwrap_or_default(),
        "tags" => asked.item.tags.join(", "),
        _ => String::new(),
    };
    let question = Question {
        frame: Frame::of(call),
        title: titled(&asked.item),
        address: asked.back(),
        change: asked.change,
        field: asked.change.field.map(|field| (field, value)),
        message: (asked.change.of == Of::Message).then_some(asked.message),
    };
    page(200, &question)
}

/// Makes a change that somebody has been asked about.
pub(super) fn change(call: &Call, body: &[u8]) -> Outcome {
    let call = &for_its_owner(call)?;
    // An empty field means something.
    let form = crate::server::query::Query::new(crate::server::body::text(body)?);
    let call = Call { query: form, ..call.clone() };
    let asked = Asked::new(&call)?;
    match (asked.change.run)(&asked)? {
        Done::See(address) => see_other(&address),
        Done::Quoted(places) => {
            let (frame, title, address) = (Frame::of(&call), titled(&asked.item), asked.back());
            page(200, &Quoted { frame, title, address, message: asked.message, places })
        }
    }
}

fn title(asked: &Asked<'_>) -> Result<Done, Refusal> {
    let title = Some(asked.value()).filter(|title| !title.is_empty());
    asked.call.store().set_title(&asked.name, title)?;
    Ok(Done::See(asked.back()))
}

fn tags(asked: &Asked<'_>) -> Result<Done, Refusal> {
    let wanted: Vec<&str> = asked.value().split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    let known: Vec<&str> = asked.item.tags.iter().map(String::as_str).collect();
    let gone: Vec<&str> = known.iter().copied().filter(|tag| !wanted.contains(tag)).collect();
    let new: Vec<&str> = wanted.iter().copied().filter(|tag| !known.contains(tag)).collect();
    if !gone.is_empty() {
        asked.call.store().untag(&asked.name, &gone)?;
    }
    if !new.is_empty() {
        asked.call.store().tag(&asked.name, &new)?;
    }
    Ok(Done::See(asked.back()))
}

fn delete(asked: &Asked<'_>) -> Result<Done, Refusal> {
    asked.call.store().delete(&asked.name)?;
    Ok(Done::See("/pages".to_owned()))
}

fn fork(asked: &Asked<'_>) -> Result<Done, Refusal> {
    let messages = asked.call.store().messages(&asked.name, asked.message, 1)?;
    let message = messages.into_iter().find(|stored| stored.index == asked.message);
    let message = message.ok_or_else(|| Error::NotFound { what: format!("message {}", asked.message) })?;
    let child = asked.call.own(ConversationId::new());
    asked.call.store().fork_to(&asked.name, Some(message.last_seq), &child)?;
    Ok(Done::See(format!("/pages/conversations/{}", child.id())))
}

fn rewind(asked: &Asked<'_>) -> Result<Done, Refusal> {
    asked.call.store().rewind(&asked.name, asked.message)?;
    Ok(Done::See(format!("/pages/conversations/{}", asked.item.id)))
}

fn hide(asked: &Asked<'_>) -> Result<Done, Refusal> {
    asked.call.store().remove(&asked.name, asked.message, None)?;
    Ok(Done::See(asked.back()))
}

fn redact(asked: &Asked<'_>) -> Result<Done, Refusal> {
    let Redaction { summaries, meta, answers, .. } = asked.call.store().redact(&asked.name, asked.message, None)?;
    let page = format!("/pages/conversations/{}", asked.item.id);
    let entry = |what: &str, seq: u64| {
        (format!("{page}/log?since={}#s{seq}", seq.saturating_sub(1)), format!("{what}, seq {seq}"))
    };
    let summaries = summaries.into_iter().map(|seq| entry("a summary", seq));
    let meta = meta.into_iter().map(|seq| entry("a title, tags or metadata", seq));
    let answers = answers
        .into_iter()
        .map(|index| (format!("{page}?from={index}#m{index}"), format!("the request of message {index}")));
    let places: Vec<_> = summaries.chain(meta).chain(answers).collect();
    Ok(if places.is_empty() { Done::See(asked.back()) } else { Done::Quoted(places) })
}
