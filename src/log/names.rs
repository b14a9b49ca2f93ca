//! Title and tags, replayed entry by entry: what a head says of them, for any point of the log.

use super::title::{is_redacted, title_of_chunk};
use crate::error::Result;
use crate::record::{Head, Line, Record, TitleSource};

/// Title and tags as they are read from entries, in order of seq.
#[derive(Default)]
pub(crate) struct Names {
    title: Option<(TitleSource, String)>,
    tags: Vec<String>,
    /// The titles that messages give, each with the message's index: those that are not hidden.
    said: Vec<(u64, String)>,
    /// The message that was appended whole and whose chunks come now.
    whole: Option<u64>,
}

impl Names {
    /// Takes a record; entries above `last` do not belong to the conversation.
    pub(crate) fn read(&mut self, record: &Record<'_>, last: u64) {
        for (_, line) in record.lines().filter_map(Result::ok).filter(|(seq, _)| *seq <= last) {
            match &line {
                Line::Chunk(chunk) => {
                    let index = record.message_index(chunk.message);
                    if chunk.header.is_some() {
                        self.whole = Some(index);
                    }
                    if let Some(title) = title_of_chunk(chunk)
                        && self.whole == Some(index)
                        && self.said.last().is_none_or(|(said, _)| *said < index)
                    {
                        if is_redacted(&title) {
                            // By a redaction in another conversation that shares the message.
                            self.whole = None;
                        } else {
                            self.hear(index, title);
                        }
                    }
                }
                Line::Meta(meta) => {
                    if let Some(tags) = &meta.tags {
                        self.tags = tags.0.iter().map(|tag| (*tag).to_owned()).collect();
                    }
                    if let Some(title) = meta.title {
                        let first = self.said.first().cloned();
                        let given = title.map(|title| (TitleSource::Caller, title.to_owned()));
                        self.title = given.or_else(|| first.map(|(index, title)| (TitleSource::Message(index), title)));
                    }
                }
                Line::Rewind(rewind) => self.hide(|index| index >= rewind.to),
                // A removed chunk may be the one that gave it.
                Line::Remove(remove) => self.hide(|index| index == remove.message),
                Line::Redact(redact) => self.hide(|index| index == redact.message),
                _ => {}
            }
        }
    }

    fn hear(&mut self, index: u64, title: String) {
        self.title.get_or_insert_with(|| (TitleSource::Message(index), title.clone()));
        self.said.push((index, title));
    }

    /// A message that is hidden or redacted gives no title any more.
    fn hide(&mut self, is_hidden: impl Fn(u64) -> bool) {
        self.said.retain(|(index, _)| !is_hidden(*index));
        if matches!(self.title, Some((TitleSource::Message(index), _)) if is_hidden(index)) {
            self.title = None;
        }
    }

    /// The title that the messages give.
    pub(crate) fn first_said(self) -> Option<(u64, String)> {
        self.said.into_iter().next()
    }

    pub(crate) fn give(self, head: &mut Head) {
        head.tags = self.tags;
        (head.title_source, head.title) = match self.title {
            Some((source, title)) => (source, Some(title)),
            None => (TitleSource::Pending, None),
        };
    }
}
