//! Who speaks when: messages as the server's order of roles wants them.
//!
//! Where a message is, and whether it is one with the message before it, is decided by what precedes it alone. What is
//! there only because the list ends is the bridge.

use std::borrow::Cow;

use super::Renderer;
use super::request::{AnyCall, Content, ExtraFields, Message, Part, SEPARATOR};
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::{Fact, Taken};
use crate::model::Role;
use crate::provider::openai_chat::manner::{Ends, System, Texts, UserContent};
use crate::provider::prompt::options::NoContent;
use crate::provider::prompt::turns::{BEGINNING, BRIDGE, CONTINUE, Turn};
use crate::provider::text::is_blank;

/// Said by nobody, where the assistant has to speak between tools and the user.
const BETWEEN: &str = "I have the results.";

/// What was thought before one message, and before the next.
fn both(before: Option<String>, after: Option<String>) -> Option<String> {
    match (before, after) {
        (Some(before), Some(after)) if !is_blank(&before) && !is_blank(&after) => Some(before + SEPARATOR + &after),
        (Some(before), Some(after)) if is_blank(&after) => Some(before),
        (before, after) => after.or(before),
    }
}

impl<'a> Renderer<'a> {
    /// What a system message says, under a role that the server takes there.
    pub(super) fn system(&mut self, turn: &Turn<'a>, parts: Vec<Part<'a>>) {
        let fits = match (self.manner.system, self.messages.last_mut()) {
            (System::First, Some(Message::System { content, .. })) => {
                return content.extend(parts);
            }
            (System::Anywhere, _) | (_, None) => true,
            (System::NotBehindModel, Some(last)) => matches!(last, Message::System { .. } | Message::User { .. }),
            (System::First, Some(_)) => false,
        };
        if !fits {
            for (at, _) in turn.said() {
                self.note(Fact::SaidByUser(Taken::LaterSystem), turn.stored, at);
            }
            self.user(turn.stored, parts);
        } else if let Some(content) = self.content(parts) {
            self.messages.push(Message::System { name: None, content });
        }
    }

    /// What the user says.
    pub(super) fn user(&mut self, stored: &StoredMessage, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.manner.order.bridges && matches!(self.messages.last(), Some(Message::Tool { .. })) {
            self.added(Role::Assistant, BETWEEN, stored);
            let content = Some(Content::Text(Cow::Borrowed(BETWEEN)));
            let bridge = Message::Assistant {
                name: None,
                content,
                reasoning_content: None,
                refusal: None,
                tool_calls: Vec::new(),
                extra: ExtraFields::default(),
            };
            self.messages.push(bridge);
        }
        match self.messages.last_mut() {
            Some(Message::User { content, .. }) if self.manner.order.merges => content.extend(parts),
            _ => {
                let content = self.user_content(parts);
                self.messages.extend(content.map(|content| Message::User { name: None, content }));
            }
        }
    }

    /// A message that nobody said comes next, before what this one says.
    fn added(&mut self, role: Role, text: &str, stored: &StoredMessage) {
        let place = self.next_place();
        self.report.push(ReportLine::message(Fact::TurnAdded { role, text }, stored).at(place));
    }

    fn next_place(&self) -> String {
        format!("messages[{}]", self.messages.len())
    }

    fn user_content(&self, parts: Vec<Part<'a>>) -> Option<Content<'a>> {
        let is_text = |part: &Part<'_>| matches!(part, Part::Text { .. });
        match self.manner.user {
            UserContent::Array => Some(Content::Parts(parts)),
            UserContent::Joined if parts.iter().all(is_text) => Content::joined(parts),
            UserContent::Joined | UserContent::Natural => Content::of(parts),
        }
    }

    /// What the assistant says. Where a neighbour of its role takes it up, that one has no calls: their answers would stand
    /// between.
    pub(super) fn say(
        &mut self,
        stored: &StoredMessage,
        content: Option<Content<'a>>,
        reasoning_content: Option<String>,
        refusal: Option<String>,
        tool_calls: Vec<AnyCall<'a>>,
        extra: ExtraFields<'a>,
    ) {
        // From the end: what is said here stops the next look.
        let is_first = || self.messages.iter().rev().all(|message| matches!(message, Message::System { .. }));
        if self.manner.order.begins && is_first() {
            self.added(Role::User, BEGINNING, stored);
            self.user(stored, vec![Part::Text { text: Cow::Borrowed(BEGINNING) }]);
        }
        let takes_empty = self.manner.texts == Texts::Any;
        let takes_null = self.manner.null && !(takes_empty && self.options.no_content == NoContent::Empty);
        let is_absent = content.is_none() && refusal.is_none() && !takes_null;
        let content = if is_absent { Some(Content::Text(Cow::Borrowed(""))) } else { content };
        match self.messages.last_mut() {
            Some(Message::Assistant {
                content: before,
                reasoning_content: thought,
                tool_calls: calls,
                extra: fields,
                ..
            }) if self.manner.order.merges => {
                match (before, content) {
                    (Some(before), Some(content)) => before.extend(content.into_parts()),
                    (before @ None, content) => *before = content,
                    (Some(_), None) => {}
                }
                *thought = both(thought.take(), reasoning_content);
                // The message before had none.
                *calls = tool_calls;
                fields.add(extra);
            }
            _ => self.messages.push(Message::Assistant {
                name: None,
                content,
                reasoning_content,
                refusal,
                tool_calls,
                extra,
            }),
        }
    }

    /// Adds what has to stand at the end. Gives whether there is anything to send.
    pub(super) fn end(&mut self) -> bool {
        let order = self.manner.order;
        let is_system = |message: &Message<'_>| matches!(message, Message::System { .. });
        if (order.begins || order.ends != Ends::Anyone) && self.messages.iter().all(is_system) {
            return false;
        }
        let continues = self.options.continue_last;
        let ends = match (order.ends, self.messages.last_mut()) {
            (_, Some(Message::User { .. } | Message::Tool { .. })) => true,
            (Ends::AskingOrPrefix, Some(Message::Assistant { content, extra, .. })) => {
                if continues && content.is_some() && !extra.is_prefix() {
                    extra.set_prefix();
                }
                extra.is_prefix()
            }
            (Ends::Anyone, Some(Message::Assistant { .. })) => !continues,
            (Ends::Anyone, _) => true,
            _ => false,
        };
        if !ends {
            let is_said = matches!(self.messages.last(), Some(Message::Assistant { .. }));
            let text = if continues && is_said { CONTINUE } else { BRIDGE };
            let place = self.next_place();
            if text == CONTINUE {
                self.report.push(ReportLine::new(Fact::NotContinued).at(place.clone()));
            }
            self.report.push(ReportLine::new(Fact::BridgeAdded { text }).at(place));
            let content = self.user_content(vec![Part::Text { text: Cow::Borrowed(text) }]);
            self.messages.extend(content.map(|content| Message::User { name: None, content }));
        }
        !self.messages.is_empty()
    }
}
