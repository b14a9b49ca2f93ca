//! Records, read again: the head that they give, its title and tags for any point of the log, and whether they follow one another.

use super::results::{Problem, Verification};
use crate::error::Result;
use crate::history::Entry;
#[cfg(test)]
use crate::model::Chunk;
use crate::model::{Body, ConversationId, Message, Role};
use crate::record;
use crate::record::{Head, Lag, Line, REDACTED, Record, TitleSource};

/// What a record does to the head, but for title and tags.
pub(crate) fn replay(head: &mut Head, record: &Record<'_>) {
    head.next_seq = record.first_seq + record.len();
    head.next_message_index = record.header.next_message_index;
    head.last_activity = head.last_activity.max(record.header.time);
    for (seq, line) in record.lines().filter_map(Result::ok) {
        replay_line(head, record, seq, &line);
    }
}

/// What an entry does to the head, beside moving it.
fn replay_line(head: &mut Head, record: &Record<'_>, seq: u64, line: &Line<'_>) {
    match line {
        Line::Chunk(chunk) if chunk.header.is_some() => head.interrupted.clear(),
        Line::Begin(begin) => {
            head.interrupted.clear();
            if begin.epoch.is_some() {
                head.open.push(record.message_index(begin.message));
            }
        }
        Line::Finish(finish) => head.close(record.message_index(finish.message)),
        Line::Interrupt(interrupt) => head.interrupt(record.message_index(interrupt.message)),
        Line::Rewind(rewind) => {
            head.last_hide = seq;
            head.forget_unfinished(rewind.to..);
        }
        Line::Remove(remove) => {
            head.last_hide = seq;
            if remove.chunk.is_none() {
                head.forget_unfinished(remove.message..=remove.message);
            }
        }
        Line::Meta(_) => head.last_meta = seq,
        Line::Chunk(_) | Line::Summary(_) | Line::Redact(_) | Line::Unknown(_) => {}
    }
}

/// The head before the first record that can be read.
pub(crate) fn first_head(record: &Record<'_>, known: Option<&Head>) -> Head {
    let start = Head {
        next_seq: record.first_seq,
        next_message_index: record.header.next_message_index,
        last_activity: record.header.time,
        title: None,
        title_source: TitleSource::Pending,
        tags: Vec::new(),
        open: Vec::new(),
        interrupted: Vec::new(),
        last_hide: 0,
        last_meta: 0,
        incarnation: 0,
        owner: String::new(),
        created: record.header.time,
        key: None,
        parent: None,
        lag: Lag::default(),
    };
    match (&record.header.origin, known) {
        (Some(origin), _) => Head {
            last_hide: origin.last_hide,
            last_meta: origin.last_meta,
            incarnation: origin.incarnation,
            owner: origin.owner.clone(),
            created: origin.created,
            key: origin.key.clone(),
            parent: origin.parent,
            ..start
        },
        (None, Some(known)) => Head {
            incarnation: known.incarnation,
            owner: known.owner.clone(),
            created: known.created,
            key: known.key.clone(),
            parent: known.parent,
            // What its damaged first records did is not known: what the head says is the best there is.
            last_hide: known.last_hide,
            last_meta: known.last_meta,
            ..start
        },
        (None, None) => start,
    }
}

/// Reads all entries of a record. `expected` is the index of the first message that may begin in it.
pub(crate) fn verify_record(
    id: ConversationId,
    record: &Record<'_>,
    mut expected: Option<u64>,
    found: &mut Verification,
) {
    let mut is_gap = false;
    for line in record.lines() {
        found.entries += 1;
        let read = line.and_then(|(seq, line)| {
            let begins = match &line {
                Line::Chunk(chunk) if chunk.header.is_some() => Some(chunk.message),
                Line::Begin(begin) => Some(begin.message),
                _ => None,
            };
            if let Some(begins) = begins.map(|relative| record.message_index(relative)) {
                is_gap |= expected.is_some_and(|expected| expected != begins);
                expected = Some(begins + 1);
            }
            Entry::read(record, seq, &line)
        });
        found.problems.extend(read.err().map(|error| Problem::from_error(id, &error)));
    }
    if is_gap || expected.is_some_and(|expected| expected != record.header.next_message_index) {
        let detail = "the indexes of its messages do not follow those before it".to_owned();
        found.problems.push(Problem { conversation: Some(id), seq: Some(record.first_seq), detail });
    }
}

/// Title and tags as they are read from entries, in order of seq.
#[derive(Default)]
pub(crate) struct Names {
    title: Option<(TitleSource, String)>,
    tags: Vec<String>,
    /// The titles that messages give, each with the message's index: those that are not hidden.
    said: Vec<(u64, String)>,
    /// The first lines of the first texts of those messages, which gave titles before what no person wrote was left out.
    begun: Vec<(u64, String)>,
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
                    let is_users = record::role(chunk.role).is_ok_and(|role| role == Role::User);
                    let text = chunk.text().filter(|text| is_users && self.whole == Some(index) && !is_blank(text));
                    if let Some(text) = text
                        && self.begun.last().is_none_or(|(begun, _)| *begun < index)
                    {
                        self.begun.push((index, title_of(text)));
                    }
                    if let Some(title) = text.and_then(spoken).map(title_of)
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
        self.begun.retain(|(index, _)| !is_hidden(*index));
        if matches!(self.title, Some((TitleSource::Message(index), _)) if is_hidden(index)) {
            self.title = None;
        }
    }

    /// The tags.
    pub(super) fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Whether the caller gave the title.
    pub(super) fn is_set(&self) -> bool {
        matches!(self.title, Some((TitleSource::Caller, _)))
    }

    /// Whether the caller gave this title.
    pub(super) fn is_set_to(&self, title: &str) -> bool {
        matches!(&self.title, Some((TitleSource::Caller, set)) if set == title)
    }

    /// Whether a message that is not hidden gives this title, or gave it to an earlier program.
    pub(super) fn says(&self, message: u64, title: &str) -> bool {
        let is_of = |titles: &[(u64, String)]| {
            let found = titles.binary_search_by_key(&message, |(index, _)| *index);
            found.ok().and_then(|at| titles.get(at)).is_some_and(|(_, said)| said == title)
        };
        is_of(&self.said) || is_of(&self.begun)
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

/// Characters of a title that is made from the first user text.
const TITLE_CHARS: usize = 80;

/// The title that the first user text gives, and its message.
pub(crate) fn title(messages: &[Message]) -> Option<(u64, String)> {
    (0..).zip(messages).filter(|(_, message)| message.role == Role::User).find_map(|(index, message)| {
        let text = message.chunks.iter().find_map(|chunk| match &chunk.body {
            Body::Text { text, .. } => spoken(text),
            _ => None,
        });
        Some((index, title_of(text?)))
    })
}

/// What a person wrote of a text, if anything: programs put what a model has to know before it, in tags of their own
/// (`<environment_context>`, `<system-reminder>`), or under a heading.
pub(crate) fn spoken(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    while let Some(name) = tag(rest) {
        let close = format!("</{name}>");
        // What does not end is all of the text.
        rest = rest.split_once(&close).map_or("", |(_, after)| after.trim_start());
    }
    let is_instructions =
        ["# AGENTS.md instructions for ", "Caveat: The messages below were generated by the user while"]
            .iter()
            .any(|heading| rest.starts_with(heading));
    Some(rest).filter(|rest| !rest.is_empty() && !is_instructions)
}

/// The name of the tag with which a text begins, if it is one of a program's: of several words, as in `system-reminder`.
fn tag(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('<')?.split_once('>')?;
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let is_name = name.len() <= 64 && name.bytes().all(is_word) && name.contains(['-', '_']);
    is_name.then_some(name)
}

/// Whether a title is what a redaction leaves.
pub(crate) fn is_redacted(title: &str) -> bool {
    title == REDACTED
}

fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

/// The first line of a text, shortened.
fn title_of(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_CHARS).and_then(|(end, _)| line.get(..end)) {
        Some(start) => format!("{start}…"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_person_wrote_gives_no_title() {
        for (text, title) in [
            ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", None),
            ("<system-reminder>a</system-reminder>\n<command-name>/clear</command-name>", None),
            ("<system-reminder>a</system-reminder>\n\nFix the build", Some("Fix the build")),
            ("<system-reminder> that never ends", None),
            ("# AGENTS.md instructions for /x\n\nBe brief", None),
            ("  \n ", None),
            // What a person may write.
            ("<b>bold</b>", Some("<b>bold</b>")),
            ("<a-b c>", Some("<a-b c>")),
            ("a <system-reminder>b</system-reminder>", Some("a <system-reminder>b</system-reminder>")),
        ] {
            assert_eq!(spoken(text).map(title_of).as_deref(), title, "{text}");
        }
        let reminder = Chunk::text("<system-reminder>a</system-reminder>");
        let said =
            [Message::new(Role::User, [reminder.clone()]), Message::new(Role::User, [reminder, Chunk::text("b")])];
        assert_eq!(title(&said), Some((1, "b".to_owned())));
    }
}
