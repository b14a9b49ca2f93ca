//! Decides what a control entry may do, once for every log.
//!
//! A log either keeps the conversation from changing meanwhile, or writes only if the head is the one that was decided on.
//! A log needs to know nothing else of control entries.

use std::ops::RangeInclusive;

use super::contract::Control;
use super::contract::Log;
use super::contract::View;
use super::hidden;
use super::limits::{Limits, check_append, check_key, check_metadata, check_name, check_tags};
use super::options::{Changes, NewConversation};
use super::reading;
use crate::error::{Error, Result};
use crate::history::Conversation;
use crate::model::{Json, Name};
use crate::record::{Body, Head, Meta, Remove, Rewind, Summary, TitleSource};

/// A control entry that may be written.
pub(crate) struct Decision {
    pub(crate) body: Body,
    /// The writers of the messages from this one on end with it.
    pub(crate) closes: Option<u64>,
    pub(crate) change: Change,
}

/// What a control entry does to the head, beside moving it.
#[derive(Default)]
pub(crate) struct Change {
    title: Option<(Option<String>, TitleSource)>,
    tags: Option<Vec<String>>,
    /// Messages that give no title any more.
    untitled: Option<RangeInclusive<u64>>,
    /// Messages that are hidden whole.
    hidden: Option<RangeInclusive<u64>>,
    /// The seq of the entry, if it changes what is known of the conversation.
    last_meta: Option<u64>,
    /// The seq of the entry, if it hides something.
    last_hide: Option<u64>,
}

impl Decision {
    fn new(body: Body, change: Change) -> Self {
        Self { body, closes: None, change }
    }
}

impl Change {
    /// Changes the head that it was decided on.
    pub(crate) fn apply(self, head: &mut Head) {
        let Self { title, tags, untitled, hidden, last_meta, last_hide } = self;
        if let Some((title, source)) = title {
            (head.title, head.title_source) = (title, source);
        }
        if let Some(tags) = tags {
            head.tags = tags;
        }
        if let Some(hidden) = hidden {
            head.forget_unfinished(hidden);
        }
        if let TitleSource::Message(index) = head.title_source
            && untitled.is_some_and(|messages| messages.contains(&index))
        {
            (head.title, head.title_source) = (None, TitleSource::Pending);
        }
        head.last_meta = last_meta.unwrap_or(head.last_meta);
        head.last_hide = last_hide.unwrap_or(head.last_hide);
    }

    /// The conversation's tags after it.
    pub(crate) fn tags(&self, head: &Head) -> Vec<String> {
        self.tags.as_ref().unwrap_or(&head.tags).clone()
    }
}

/// What a control entry does to a conversation as it is now. `None`: it would change nothing.
pub(crate) fn decide(log: &dyn Log, name: &Name, view: &View, control: &Control<'_>) -> Result<Option<Decision>> {
    match *control {
        Control::Title(title) => set_title(log, view, title).map(Some),
        Control::Tags { remove, add } => change_tags(&view.head, remove, add),
        Control::Metadata(metadata) => set_metadata(&view.head, metadata).map(Some),
        Control::Rewind { to } => rewind(log, name, view, to).map(Some),
        Control::Remove { message, chunk } => remove(log, name, view, message, chunk).map(Some),
        Control::Summarize { through, text } => summarize(log, name, view, through, text).map(Some),
    }
}

/// The first entry of a conversation that is made without messages.
pub(crate) fn create(name: &Name, new: &NewConversation) -> Result<Decision> {
    check_key(name)?;
    new.title.as_deref().map_or(Ok(()), |title| check_name("a title", title))?;
    new.metadata.as_ref().map_or(Ok(()), check_metadata)?;
    let tags = added(Vec::new(), new.tags.iter().map(String::as_str))?;
    let body = Body::meta(&Meta {
        title: new.title.as_deref().map(Some),
        tags: (!tags.is_empty()).then(|| tags.iter().map(String::as_str).collect()),
        metadata: new.metadata.as_ref().map(Json::as_str),
        previous: 0,
    })?;
    let title = new.title.clone().map(|title| (Some(title), TitleSource::Caller));
    Ok(Decision::new(body, Change { title, tags: Some(tags), last_meta: Some(1), ..Change::default() }))
}

/// Ends an append to this head with the entry of what changes, and gives what it does to the head.
pub(crate) fn append(body: &mut Body, head: Option<&Head>, changes: &Changes) -> Result<Change> {
    let (next_seq, previous) = head.map_or((1, 0), |head| (head.next_seq, head.last_meta));
    let before = head.map_or(Vec::new(), |head| head.tags.clone());
    let tags = changes.has_tags().then(|| retagged(before, &changes.remove_tags, &changes.add_tags)).transpose()?;
    let last_meta = Some(next_seq + body.entries());
    body.change(&Meta {
        title: changes.title.as_deref().map(Some),
        tags: tags.as_ref().map(|tags| tags.iter().map(String::as_str).collect()),
        metadata: changes.metadata.as_ref().map(Json::as_str),
        previous,
    })?;
    check_append(body.len())?;
    let title = changes.title.clone().map(|title| (Some(title), TitleSource::Caller));
    Ok(Change { title, tags, last_meta, ..Change::default() })
}

fn set_title(log: &dyn Log, view: &View, title: Option<&str>) -> Result<Decision> {
    let head = &view.head;
    let body = Body::meta(&Meta { title: Some(title), tags: None, metadata: None, previous: head.last_meta })?;
    let said = if title.is_none() { reading::title(log, view)? } else { None };
    let title = match (title, said) {
        (Some(title), _) => (Some(title.to_owned()), TitleSource::Caller),
        (None, Some((index, title))) => (Some(title), TitleSource::Message(index)),
        (None, None) => (None, TitleSource::Pending),
    };
    Ok(Decision::new(body, Change { title: Some(title), last_meta: Some(head.next_seq), ..Change::default() }))
}

fn change_tags(head: &Head, remove: &[&str], add: &[&str]) -> Result<Option<Decision>> {
    let tags = retagged(head.tags.clone(), remove, add)?;
    if tags == head.tags {
        return Ok(None);
    }
    let body = Body::meta(&Meta {
        title: None,
        tags: Some(tags.iter().map(String::as_str).collect()),
        metadata: None,
        previous: head.last_meta,
    })?;
    let change = Change { tags: Some(tags), last_meta: Some(head.next_seq), ..Change::default() };
    Ok(Some(Decision::new(body, change)))
}

/// The tags without some, then others.
fn retagged(mut tags: Vec<String>, remove: &[impl AsRef<str>], add: &[impl AsRef<str>]) -> Result<Vec<String>> {
    tags.retain(|tag| !remove.iter().any(|removed| removed.as_ref() == tag));
    added(tags, add.iter().map(AsRef::as_ref))
}

/// The tags, then the others that are not among them.
fn added<'a>(mut tags: Vec<String>, others: impl Iterator<Item = &'a str>) -> Result<Vec<String>> {
    for tag in others {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
            // A request may have any number: no more of them are compared than a conversation may have.
            if tags.len() > Limits::TAGS {
                break;
            }
        }
    }
    check_tags(&tags)?;
    Ok(tags)
}

fn set_metadata(head: &Head, metadata: &Json) -> Result<Decision> {
    let meta = Meta { title: None, tags: None, metadata: Some(metadata.as_str()), previous: head.last_meta };
    Ok(Decision::new(Body::meta(&meta)?, Change { last_meta: Some(head.next_seq), ..Change::default() }))
}

fn rewind(log: &dyn Log, name: &Name, view: &View, to: u64) -> Result<Decision> {
    let head = &view.head;
    check_visible(log, name, view, to)?;
    let body = Body::rewind(Rewind { to, end: head.next_message_index, previous: head.last_hide })?;
    let hidden = Some(to..=u64::MAX);
    let change = Change { untitled: hidden.clone(), hidden, last_hide: Some(head.next_seq), ..Change::default() };
    Ok(Decision { closes: Some(to), ..Decision::new(body, change) })
}

fn remove(log: &dyn Log, name: &Name, view: &View, message: u64, chunk: Option<u32>) -> Result<Decision> {
    let head = &view.head;
    let grouped = reading::group(log, view)?;
    let stored = grouped.messages.iter().find(|stored| stored.index == message);
    let is_there = stored.is_some_and(|stored| chunk.is_none_or(|chunk| stored.chunk_indexes.contains(&chunk)));
    if !is_there {
        let what = chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
        let whose = match stored {
            Some(_) => format!("message {message} in conversation {name}"),
            None => absent(view, name, message),
        };
        return Err(Error::NotFound { what: what + &whose });
    }
    let whole = chunk.is_none().then_some(message..=message);
    if let Some(messages) = whole.clone() {
        check_written(name, view, messages)?;
    }
    let body = Body::removal(Remove { message, chunk, previous: head.last_hide })?;
    let change = Change {
        untitled: Some(message..=message),
        hidden: whole,
        last_hide: Some(head.next_seq),
        ..Change::default()
    };
    Ok(Decision::new(body, change))
}

fn summarize(log: &dyn Log, name: &Name, view: &View, through: u64, text: &str) -> Result<Decision> {
    check_visible(log, name, view, through)?;
    check_written(name, view, 0..=through)?;
    if let Some(message) = Conversation::from_grouped(reading::group(log, view)?).parted_call(through) {
        let detail = format!(
            "message {message} calls a tool whose result comes after message {through}, or is still to come: cover the \
             result too, or end before the call"
        );
        return Err(Error::InvalidInput(detail));
    }
    Ok(Decision::new(Body::summary(&Summary { through, text, tokens: None })?, Change::default()))
}

fn check_visible(log: &dyn Log, name: &Name, view: &View, message: u64) -> Result<()> {
    if hidden::is_visible(log, view, message)? {
        return Ok(());
    }
    Err(Error::NotFound { what: absent(view, name, message) })
}

/// A message that no reader sees, for an error.
fn absent(view: &View, name: &Name, message: u64) -> String {
    match view.head.next_message_index.checked_sub(1) {
        Some(last) if message <= last => format!("message {message} (it is hidden) in conversation {name}"),
        Some(last) => format!("message {message} (the last is {last}) in conversation {name}"),
        None => format!("message {message} (there are none) in conversation {name}"),
    }
}

/// Fails while one of these messages is being written.
pub(crate) fn check_written(name: &Name, view: &View, messages: RangeInclusive<u64>) -> Result<()> {
    match view.live.iter().filter(|index| messages.contains(index)).min() {
        Some(index) => Err(Error::BeingWritten { conversation: name.clone(), message_index: *index }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_tags_are_looked_at_than_there_may_be() {
        let endless: Vec<String> = (0..=Limits::TAGS).map(|tag| tag.to_string()).collect();
        let looked_at = std::cell::Cell::new(0);
        let tags = endless.iter().cycle().inspect(|_| looked_at.set(looked_at.get() + 1));
        assert!(added(Vec::new(), tags.map(String::as_str)).is_err());
        assert_eq!(looked_at.get(), Limits::TAGS + 1);
    }
}
