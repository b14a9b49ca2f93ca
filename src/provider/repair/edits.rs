//! A request between what was given and what was rendered: which of the differences are made.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::align::Reading;
use super::list::{List, Owner, Piece};
use super::outline::{Outline, Part};
use super::rename;
use super::said::{Moves, Units, moves};
use crate::history::report::Refusal;
use crate::json::fields::{Fields, array, string};
use crate::provider::check::finding::Finding;
use crate::provider::parameters::{choice, column};
use crate::provider::target::Target;
use crate::provider::text::is_spelling_of;

/// What was given and what was rendered, difference by difference.
#[derive(Debug)]
pub(super) struct Edits<'a> {
    target: Target,
    list_name: &'static str,
    /// Of the request, which may be just the list.
    request: Outline<'a>,
    is_list: bool,
    fields: Vec<Field<'a>>,
    list: List<'a>,
    /// What moves between the pieces, and the fields after them.
    moves: Moves,
    /// Of each of them: those from which or to which something moves. All of them are made, or none.
    ties: Vec<Vec<usize>>,
}

/// A field of the request, other than the list of messages.
#[derive(Debug)]
struct Field<'a> {
    name: String,
    /// Its position in the given request.
    given: Option<usize>,
    rendered: Option<&'a RawValue>,
    state: State,
    /// What it says, as it was given and as it was rendered.
    said: (Units, Units),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Given,
    Rendered,
    /// Without some of its items, or with other names of tools.
    Edited(String),
    LeftOut,
}

/// What was done because of a finding.
#[derive(Debug)]
pub(super) enum Done {
    /// Something to a message.
    Message,
    /// This field, or item of it, was left out.
    Removed(String),
    /// This field was written again.
    Rebuilt(String),
    /// A tool got another name.
    Renamed { from: String, to: String },
}

/// A request as it is now, and the piece of each of its messages.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) text: String,
    owners: Vec<Owner>,
}

/// Which differences are made.
#[derive(Debug)]
pub(super) struct Made {
    pieces: Vec<Option<String>>,
    respelled: HashSet<usize>,
    fields: Vec<State>,
}

impl<'a> Edits<'a> {
    /// `None` where there is no list of messages to edit.
    pub(super) fn new(target: Target, given: &'a RawValue, rendered: &'a RawValue) -> Option<Self> {
        let list_name = target.wire().messages;
        let request = Outline::of(given)?;
        let is_list = given.get().starts_with('[');
        let at = request.members.iter().rposition(|member| member.name == list_name);
        let given_list = if is_list { given } else { request.members.get(at?)?.value };
        let rendered = Fields::of(rendered)?;
        let lists = Outline::of(given_list).filter(|_| given_list.get().starts_with('['));
        let lists = lists.and_then(|outline| Some((outline, array(rendered.peek(list_name)?)?)));
        let has_list = lists.is_some();

        let mut fields = Vec::new();
        for (at, member) in request.members.iter().enumerate().filter(|_| !is_list) {
            if member.name != list_name || !has_list {
                let rendered = rendered.peek(&member.name);
                fields.push(Field::new(target, &member.name, Some((at, member.value)), rendered));
            }
        }
        for (name, value) in rendered.pairs() {
            if (name != list_name || !has_list) && !fields.iter().any(|field| field.name == name) {
                fields.push(Field::new(target, &name, None, Some(value)));
            }
        }
        let list = match lists {
            Some((outline, rendered)) => List::new(target, outline, rendered),
            None => List::new(target, Outline::of(serde_json::from_str("[]").ok()?)?, Vec::new()),
        };
        let said = list.pieces.iter().map(|piece| list.said(piece));
        let said = said.chain(fields.iter().map(|field| field.said.clone()));
        let mut ties = vec![Vec::new(); list.pieces.len() + fields.len()];
        let moves = moves(said);
        for (from, to) in moves.pairs() {
            for (one, other) in [(from, to), (to, from)] {
                ties.get_mut(one).into_iter().for_each(|ties: &mut Vec<usize>| ties.push(other));
            }
        }
        Some(Self { target, list_name, request, is_list, fields, list, moves, ties })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.list.pieces
    }

    /// Whether something moves between a piece and another, or a field.
    pub(super) fn is_tied(&self, piece: usize) -> bool {
        self.ties.get(piece).is_some_and(|ties| !ties.is_empty())
    }

    /// Of the rendered messages that are written now, where they are.
    pub(super) fn places(&self) -> HashMap<usize, usize> {
        let (_, owners) = self.list.written();
        owners.into_iter().enumerate().filter_map(|(at, owner)| Some((owner.made?, at))).collect()
    }

    /// The made pieces that gain a result of this call; `None` if no piece does.
    pub(super) fn gain_result(&self, tool_call_id: &str) -> Option<Vec<&Piece>> {
        let gainers = self.moves.gain_result(tool_call_id);
        let pieces = gainers.iter().filter_map(|at| self.list.pieces.get(*at)).filter(|piece| piece.why.is_some());
        (!gainers.is_empty()).then(|| pieces.collect())
    }

    /// Makes all differences in what is said, not those in spelling; without `deletions` none that only leaves something out.
    pub(super) fn make_all(&mut self, deletions: bool, why: &str) -> bool {
        let mut any = false;
        for at in 0..self.list.pieces.len() {
            let is_asked = self.list.pieces.get(at).is_some_and(|piece| {
                !piece.stretch.same
                    && (deletions || !piece.stretch.rendered.is_empty() || piece.stretch.given.is_empty())
            });
            any |= is_asked && self.make(at, why);
        }
        any
    }

    /// Makes the differences of messages that are nested too deep to be judged. False if none is.
    pub(super) fn make_deep(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.list.pieces.len() {
            if self.list.is_deep(at) {
                any |= self.make(at, "nested too deep to be judged");
            }
        }
        any
    }

    /// Makes the differences in spelling too: of what the target still refuses.
    pub(super) fn respell(&mut self, why: &str) -> bool {
        let mut any = false;
        for made in 0..self.list.rendered.len() {
            any |= self.list.respell_moved(made);
        }
        for at in 0..self.list.pieces.len() {
            any |= self.make(at, why);
        }
        any
    }

    /// Which differences are made now.
    pub(super) fn state(&self) -> Made {
        Made {
            pieces: self.list.pieces.iter().map(|piece| piece.why.clone()).collect(),
            respelled: self.list.respelled.clone(),
            fields: self.fields.iter().map(|field| field.state.clone()).collect(),
        }
    }

    /// Makes those differences, and no others.
    pub(super) fn restore(&mut self, state: Made) {
        self.list.pieces.iter_mut().zip(state.pieces).for_each(|(piece, why)| piece.why = why);
        self.list.respelled = state.respelled;
        self.fields.iter_mut().zip(state.fields).for_each(|(field, state)| field.state = state);
    }

    /// Takes back the differences in spelling alone. False if there are none.
    pub(super) fn unspell(&mut self) -> bool {
        let mut any = !std::mem::take(&mut self.list.respelled).is_empty();
        for piece in self.list.pieces.iter_mut().filter(|piece| piece.stretch.same) {
            any |= piece.why.take().is_some();
        }
        any
    }

    /// Whether a field that holds messages, such as `system`, is another one now.
    pub(super) fn has_other_fields(&self) -> bool {
        let is_other = |field: &Field<'_>| match field.state {
            State::Given => false,
            State::Rendered => true,
            State::Edited(_) | State::LeftOut => field.said.0 != field.said.1,
        };
        self.fields.iter().any(is_other)
    }

    /// Makes the difference of a piece, and those that go with it. False if it was made before.
    fn make(&mut self, at: usize, why: &str) -> bool {
        let is_new = self.make_one(at, why);
        let mut next = if is_new { self.ties.get(at).cloned().unwrap_or_default() } else { Vec::new() };
        while let Some(at) = next.pop() {
            if self.make_one(at, why) {
                next.extend(self.ties.get(at).into_iter().flatten());
            }
        }
        is_new
    }

    /// Makes the difference of a piece or field alone.
    fn make_one(&mut self, at: usize, why: &str) -> bool {
        if let Some(piece) = self.list.pieces.get_mut(at) {
            let is_new = piece.why.is_none();
            piece.why.get_or_insert_with(|| why.to_owned());
            return is_new;
        }
        let field = at.checked_sub(self.list.pieces.len()).and_then(|at| self.fields.get_mut(at));
        let Some(field) = field.filter(|field| field.state == State::Given) else { return false };
        field.state = if field.rendered.is_some() { State::Rendered } else { State::LeftOut };
        true
    }

    /// Makes a difference for a finding on what is written now. Nothing if nothing is left to do.
    pub(super) fn answer(&mut self, finding: &Finding, written: &Written) -> Vec<Done> {
        let why = Refusal::from(finding.clone()).to_string();
        let Some((name, item)) = place(finding) else { return Vec::new() };
        if name == self.list_name && self.fields.iter().all(|field| field.name != name) {
            return self.answer_message(item, &why, written).into_iter().collect();
        }
        let before = self.field_now(name);
        let done = self.answer_field(name, item, &why);
        let freed = if let Some(Done::Removed(_)) = done { self.free_choice(name, before) } else { Vec::new() };
        done.into_iter().chain(freed).collect()
    }

    fn answer_message(&mut self, item: Option<usize>, why: &str, written: &Written) -> Option<Done> {
        let Owner { piece: at, made } = *written.owners.get(item?)?;
        if made.is_some_and(|made| self.list.respell_moved(made)) {
            return Some(Done::Message);
        }
        let piece = self.list.pieces.get(at)?;
        let changes = !piece.stretch.same || self.list.is_respelled(piece);
        if piece.why.is_none() && changes && self.make(at, why) {
            return Some(Done::Message);
        }
        let neighbour = self.neighbour(at)?;
        self.make(neighbour, why).then_some(Done::Message)
    }

    /// Gives a tool another name whose own the target refuses: the one that its calls get, where it is declared and where it is
    /// chosen. `None` if the finding is another one.
    pub(super) fn rename(&mut self, finding: &Finding) -> Option<Done> {
        let wire = self.target.wire();
        let path = finding.place.strip_prefix(wire.tools.field).filter(|_| finding.field() == rename::NAME)?;
        let tools = self.field_now(wire.tools.field)?;
        let declared = rename::at(&tools, path)?;
        let from = string(declared)?;
        let to = (wire.names)(self.target).fit(&from).into_owned();
        if to == from {
            return None;
        }
        let beside = self.choice_beside().and_then(|path| rename::at(&tools, path));
        let beside = beside.map(|choice| rename::chosen(choice, &from));
        let places = beside.into_iter().flatten().chain([declared]).collect();
        let text = rename::with(&tools, places, &to)?;
        self.set(wire.tools.field, State::Edited(text));
        for name in self.choices() {
            let Some(choice) = self.field_now(&name) else { continue };
            let places = rename::chosen(&choice, &from);
            if !places.is_empty()
                && let Some(text) = rename::with(&choice, places, &to)
            {
                self.set(&name, State::Edited(text));
            }
        }
        Some(Done::Renamed { from, to })
    }

    /// Where, in the field of the tools, they are chosen: on one wire.
    fn choice_beside(&self) -> Option<&'static str> {
        choice::PLACES.get(column(self.target))?.strip_prefix(self.target.wire().tools.field)
    }

    /// The fields of a request that say which tools are called.
    fn choices(&self) -> Vec<String> {
        let place = choice::PLACES.get(column(self.target)).copied().unwrap_or_default();
        let of = place.split('.').next().unwrap_or_default();
        let fields = self.fields.iter().map(|field| field.name.clone()).filter(|name| is_spelling_of(of, name));
        fields.filter(|name| name != self.target.wire().tools.field).collect()
    }

    /// Leaves out what chooses a tool that is not declared any more, if that field has the tools. `before`: as it was.
    fn free_choice(&mut self, name: &str, before: Option<Box<RawValue>>) -> Vec<Done> {
        let form = &self.target.wire().tools;
        let Some(before) = before.filter(|_| name == form.field) else { return Vec::new() };
        let names = |tools: &RawValue| -> HashSet<String> {
            let items = (form.items)(tools).map(|(items, _)| items).unwrap_or_default();
            items.into_iter().flat_map(|tool| rename::declared(tool, form)).collect()
        };
        let now = self.field_now(form.field);
        let left = now.as_deref().map(names).unwrap_or_default();
        let gone: Vec<String> = names(&before).into_iter().filter(|name| !left.contains(name)).collect();
        let mut removed = self.choices();
        match now {
            Some(_) => removed.retain(|name| {
                let choice = self.field_now(name);
                choice.is_some_and(|choice| gone.iter().any(|gone| !rename::chosen(&choice, gone).is_empty()))
            }),
            None => removed.push(choice::PARALLEL.to_owned()),
        }
        removed.retain(|name| self.field_now(name).is_some());
        removed.iter().for_each(|name| self.set(name, State::LeftOut));
        removed.into_iter().map(Done::Removed).collect()
    }

    /// Whether a finding is on a message.
    pub(super) fn is_message(&self, finding: &Finding) -> bool {
        place(finding).is_some_and(|(name, _)| name == self.list_name)
    }

    /// Makes the difference in spelling of the message that a finding is on.
    pub(super) fn respell_at(&mut self, finding: &Finding, written: &Written) {
        let item = place(finding).filter(|(name, _)| *name == self.list_name).and_then(|(_, item)| item);
        let Some(owner) = item.and_then(|item| written.owners.get(item)) else { return };
        if !owner.made.is_some_and(|made| self.list.respell_moved(made)) {
            self.make(owner.piece, &Refusal::from(finding.clone()).to_string());
        }
    }

    /// The nearest difference after a piece that adds or changes something, else the nearest before it.
    fn neighbour(&self, at: usize) -> Option<usize> {
        let is_open = |at: &usize| {
            self.list
                .pieces
                .get(*at)
                .is_some_and(|piece| piece.why.is_none() && !piece.stretch.same && !piece.stretch.rendered.is_empty())
        };
        (at + 1..self.list.pieces.len()).take(NEAR).find(is_open).or_else(|| (0..at).rev().take(NEAR).find(is_open))
    }

    fn answer_field(&mut self, name: &str, item: Option<usize>, why: &str) -> Option<Done> {
        let at = self.fields.iter().rposition(|field| field.name == name)?;
        let node = self.list.pieces.len() + at;
        let moves = self.ties.get(node).is_some_and(|ties| !ties.is_empty());
        let field = self.fields.get_mut(at)?;
        match (&field.state, field.rendered) {
            (State::Given, rendered) if moves || rendered.is_some() => {
                self.make(node, why);
                let of = name.to_owned();
                return Some(if rendered.is_some() { Done::Rebuilt(of) } else { Done::Removed(of) });
            }
            (State::LeftOut | State::Rendered, _) => return None,
            _ => {}
        }
        let left = self.field_now(name);
        if let (Some(left), Some(item)) = (left.as_deref().and_then(Outline::of), item)
            && left.members.len() > 1
            && item < left.members.len()
        {
            let kept = (0..left.members.len()).filter(|at| *at != item).map(Part::Given);
            self.set(name, State::Edited(left.written(kept)));
            return Some(Done::Removed(format!("{name}[{item}]")));
        }
        self.set(name, State::LeftOut);
        Some(Done::Removed(name.to_owned()))
    }

    /// A field as it is written now; `None` if it is not.
    fn field_now(&self, name: &str) -> Option<Box<RawValue>> {
        let field = self.fields.iter().rfind(|field| field.name == name)?;
        match &field.state {
            State::Given => field.given.and_then(|at| self.request.members.get(at)).map(|of| of.value.to_owned()),
            State::Rendered => field.rendered.map(RawValue::to_owned),
            State::Edited(text) => RawValue::from_string(text.clone()).ok(),
            State::LeftOut => None,
        }
    }

    fn set(&mut self, name: &str, state: State) {
        if let Some(field) = self.fields.iter_mut().rfind(|field| field.name == name) {
            field.state = state;
        }
    }

    /// The names of the given fields that may be left out.
    pub(super) fn given_fields(&self) -> Vec<String> {
        let fields = self.fields.iter().filter(|field| field.given.is_some() && field.state == State::Given);
        let fields = fields.filter(|field| field.said.0.is_empty() && !MEANT.contains(&field.name.as_str()));
        fields.map(|field| field.name.clone()).collect()
    }

    /// The request without one of its fields.
    pub(super) fn without(&mut self, name: &str) -> Option<Written> {
        let at = self.fields.iter().rposition(|field| field.name == name)?;
        let state = std::mem::replace(&mut self.fields.get_mut(at)?.state, State::LeftOut);
        let written = self.written();
        self.fields.get_mut(at)?.state = state;
        Some(written)
    }

    pub(super) fn leave_out(&mut self, name: &str) -> Vec<Done> {
        let before = self.field_now(name);
        self.set(name, State::LeftOut);
        let freed = self.free_choice(name, before);
        [Done::Removed(name.to_owned())].into_iter().chain(freed).collect()
    }

    /// The request as it is now.
    pub(super) fn written(&self) -> Written {
        let (list, owners) = self.list.written();
        let news = self.fields.iter().filter(|field| field.given.is_none() && field.state == State::Rendered);
        let news: Vec<(&str, &str)> =
            news.filter_map(|field| Some((field.name.as_str(), field.rendered?.get()))).collect();
        if self.is_list {
            if news.is_empty() {
                return Written { text: list, owners };
            }
            let fields = news.iter().map(|(name, value)| format!("{}:{value}", serde_json::Value::from(*name)));
            let fields: Vec<String> = fields.collect();
            return Written { text: format!("{{\"{}\":{list},{}}}", self.list_name, fields.join(",")), owners };
        }
        let states: HashMap<usize, &Field<'_>> =
            self.fields.iter().filter_map(|field| Some((field.given?, field))).collect();
        let parts = (0..self.request.members.len()).filter_map(|at| match states.get(&at) {
            None => Some(Part::Changed(at, &list)),
            Some(field) => match &field.state {
                State::Given => Some(Part::Given(at)),
                State::Rendered => Some(Part::Changed(at, field.rendered?.get())),
                State::Edited(text) => Some(Part::Changed(at, text)),
                State::LeftOut => None,
            },
        });
        let parts = parts.chain(news.into_iter().map(|(name, value)| Part::New(Some(name), value)));
        Written { text: self.request.written(parts), owners }
    }
}

/// What no message is worth: which model answers, what the server keeps, whose request it is, what is held to be safe.
const MEANT: &[&str] = &[
    "model",
    "store",
    "background",
    "metadata",
    "user",
    "safety_identifier",
    "safetySettings",
    "safety_settings",
    "guardrailConfig",
];

/// How far off the difference may be that a finding on a message asks for.
pub(super) const NEAR: usize = 64;

/// The field that a finding is on, and the item of it.
pub(super) fn place(finding: &Finding) -> Option<(&str, Option<usize>)> {
    let end = finding.place.find(['.', '[']).unwrap_or(finding.place.len());
    let (name, rest) = finding.place.split_at_checked(end)?;
    let item = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')?.0.parse().ok());
    (!name.is_empty()).then_some((name, item))
}

impl<'a> Field<'a> {
    fn new(target: Target, name: &str, given: Option<(usize, &'a RawValue)>, rendered: Option<&'a RawValue>) -> Self {
        let said = |value: Option<&RawValue>| {
            value.map(|value| Reading::of_field(target, name, value).units).unwrap_or_default()
        };
        let said = (said(given.map(|(_, value)| value)), said(rendered));
        Self { name: name.to_owned(), given: given.map(|(at, _)| at), rendered, state: State::Given, said }
    }
}
