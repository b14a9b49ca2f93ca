//! What is read of a log: entries, messages, metadata. The same for every log.

use std::ops::{ControlFlow, RangeInclusive};

use super::contract::Log;
use super::contract::{Order, Reading, View};
use super::hidden;
use super::limits::message_bytes;
use super::records::{Hide, entries_at};
use super::replay::Names;
use super::results::Unfinished;
use crate::error::{Error, Result};
use crate::history::{Conversation, Entry, Grouped, Grouper, MessageState, Source, StoredMessage};
use crate::model::{Json, Name};
use crate::record::{Line, Record};

/// The last seq that there can be.
pub(crate) const LAST_SEQ: u64 = u64::MAX - 1;

/// What readers see of a conversation now.
pub(crate) fn view(log: &dyn Log, name: &Name) -> Result<View> {
    log.view(name)?.ok_or_else(|| Error::no_conversation(name))
}

/// Reads again while a conversation is deleted, and perhaps made again, during the read: what is missing then is not damage.
fn settled<T>(log: &dyn Log, name: &Name, read: impl Fn(&View) -> Result<(T, bool)>) -> Result<T> {
    loop {
        let view = view(log, name)?;
        let result = read(&view);
        if matches!(result, Ok((_, true))) || log.is_there(&view)? {
            return result.map(|(value, _)| value);
        }
    }
}

/// All messages, grouped, and what could not be read of them.
pub(crate) fn group(log: &dyn Log, view: &View) -> Result<Grouped> {
    let messages = usize::try_from(view.head.next_message_index).unwrap_or(usize::MAX);
    let grouper = Grouper::new(view.epoch, view.live.clone(), messages);
    group_from(log, view, grouper, 1)
}

fn group_from(log: &dyn Log, view: &View, mut grouper: Grouper, first: u64) -> Result<Grouped> {
    log.read(view, first..=view.last_seq(), Order::Ascending, &mut |reading| {
        match reading {
            Reading::Record { record, last, own } => grouper.push(record, last, own),
            Reading::Damaged(error) => grouper.damaged(error),
            Reading::Stray(_) => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(grouper.finish())
}

/// A conversation, grouped, with the view that it is of.
pub(crate) fn grouped(log: &dyn Log, name: &Name) -> Result<(Grouped, View)> {
    settled(log, name, |view| {
        let grouped = group(log, view)?;
        let is_whole = grouped.damage.is_empty();
        Ok(((named(grouped, name), view.clone()), is_whole))
    })
}

/// The same, with its damage under the caller's name.
fn named(mut grouped: Grouped, name: &Name) -> Grouped {
    grouped.damage = grouped.damage.into_iter().map(|error| error.named(name)).collect();
    grouped
}

/// A conversation as it is durable now.
pub(crate) fn load(log: &dyn Log, name: &Name) -> Result<Conversation> {
    let (grouped, view) = grouped(log, name)?;
    let source = source(name, &view, &grouped.messages, 0);
    Ok(Conversation::loaded(grouped, source))
}

/// A conversation as a fork at a seq has it: what was open there is interrupted. What was redacted since is redacted.
pub(crate) fn load_at(log: &dyn Log, name: &Name, seq: u64) -> Result<Conversation> {
    let grouped = settled(log, name, |view| {
        let last_seq = view.last_seq();
        if seq > last_seq {
            return Err(Error::CursorOutOfRange { conversation: name.clone(), cursor: seq, last_seq });
        }
        let mut grouper = Grouper::new(view.epoch, Vec::new(), 0);
        log.read(view, 1..=seq, Order::Ascending, &mut |reading| {
            match reading {
                Reading::Record { record, last, .. } => grouper.push(record, last.min(seq), false),
                Reading::Damaged(error) => grouper.damaged(error),
                Reading::Stray(_) => {}
            }
            ControlFlow::Continue(())
        })?;
        let grouped = grouper.finish();
        let is_whole = grouped.damage.is_empty();
        Ok((named(grouped, name), is_whole))
    })?;
    Ok(Conversation::from_grouped(grouped))
}

/// What was read of a view, whose messages from `settled` on these are.
fn source(name: &Name, view: &View, messages: &[StoredMessage], settled: u64) -> Source {
    let is_open = |stored: &&StoredMessage| view.head.open.contains(&stored.index) || view.live.contains(&stored.index);
    let open = messages.iter().find(is_open);
    Source {
        name: name.clone(),
        incarnation: view.head.incarnation,
        seq: view.last_seq(),
        commit: view.commit,
        next_message: view.head.next_message_index,
        open: open.map(|stored| (stored.index, stored.first_seq)),
        settled,
    }
}

/// Brings a loaded conversation up to date. Reads what is new, and what was not settled before it.
pub(crate) fn refresh(log: &dyn Log, conversation: &mut Conversation) -> Result<()> {
    let Some(before) = conversation.source().cloned() else {
        return Err(Error::InvalidInput("this conversation was not loaded from a store".to_owned()));
    };
    let view = view(log, &before.name)?;
    let is_same = view.head.incarnation == before.incarnation
        && view.last_seq() >= before.seq
        // A redaction through a fork, or what this one was forked from, leaves no entry here.
        && !log.is_redacted_since(&view, before.commit)?;
    if is_same && view.last_seq() == before.seq && before.open.is_none() {
        return Ok(());
    }
    if is_same && let Some((settled, first)) = conversation.unsettled() {
        let grouper = Grouper::new(view.epoch, view.live.clone(), 0).from(settled).after(before.seq);
        let news = group_from(log, &view, grouper, first)?;
        let source = source(&before.name, &view, &news.messages, settled);
        if conversation.renew(news, source) {
            return Ok(());
        }
    }
    *conversation = load(log, &before.name)?;
    Ok(())
}

/// Up to `limit` visible messages from an index on, as they were appended. Reads from where the first of them begins to
/// where the last of them ends.
pub(crate) fn messages(log: &dyn Log, name: &Name, from: u64, limit: usize) -> Result<Vec<StoredMessage>> {
    // Of one message, nothing else is held while it goes on.
    let bytes = if limit == 1 { 0 } else { usize::MAX };
    page(log, name, from, &PageSize { limit, bytes, shows_hidden: false }).map(|(messages, _)| messages)
}

/// What a page of messages holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSize {
    /// The most messages.
    pub(crate) limit: usize,
    /// The page ends with the message that makes these bytes full.
    pub(crate) bytes: usize,
    /// Whether it has what is rewound or removed.
    pub(crate) shows_hidden: bool,
}

impl PageSize {
    fn hides(&self, log: &dyn Log, view: &View) -> Result<Vec<Hide>> {
        if self.shows_hidden { Ok(Vec::new()) } else { hidden::all(log, view) }
    }
}

/// The messages from an index on. Also returns where the next page begins, if there is one.
pub(crate) fn page(
    log: &dyn Log,
    name: &Name,
    from: u64,
    size: &PageSize,
) -> Result<(Vec<StoredMessage>, Option<u64>)> {
    let (grouped, next) = settled(log, name, |view| {
        let (grouped, next) = messages_of(log, view, &size.hides(log, view)?, from, size)?;
        let is_whole = grouped.damage.is_empty();
        Ok(((grouped, next), is_whole))
    })?;
    raw(grouped).map(|messages| (messages, next))
}

/// The newest messages, or those before an index. If the limit of them is more than the bytes, half of it is read, and half
/// of that, down to one message.
#[cfg(feature = "server")]
pub(crate) fn page_before(
    log: &dyn Log,
    name: &Name,
    before: Option<u64>,
    size: &PageSize,
) -> Result<Vec<StoredMessage>> {
    let grouped = settled(log, name, |view| {
        let before = before.unwrap_or(u64::MAX).min(view.head.next_message_index);
        let hides = size.hides(log, view)?;
        let hidden = hidden::ranges(&hides);
        let mut limit = size.limit.min(usize::try_from(before).unwrap_or(usize::MAX));
        loop {
            let from = hidden::first_of_newest(before, limit, &hidden);
            let (mut grouped, next) = messages_of(log, view, &hides, from, &PageSize { limit, ..*size })?;
            let is_all = next.is_none_or(|next| next >= before);
            let is_whole = grouped.damage.is_empty();
            if is_all || limit <= 1 || !is_whole {
                // Where fewer than the limit are left, some of those after them were read.
                grouped.messages.retain(|stored| stored.index < before);
                return Ok((grouped, is_whole));
            }
            limit /= 2;
        }
    })?;
    raw(grouped)
}

/// The newest visible messages, in order of their index.
pub(crate) fn newest_messages(log: &dyn Log, name: &Name, count: usize) -> Result<(Grouped, View)> {
    settled(log, name, |view| {
        let hides = hidden::all(log, view)?;
        let from = hidden::first_of_newest(view.head.next_message_index, count, &hidden::ranges(&hides));
        let all = PageSize { limit: usize::MAX, bytes: usize::MAX, shows_hidden: false };
        let (grouped, _) = messages_of(log, view, &hides, from, &all)?;
        let is_whole = grouped.damage.is_empty();
        Ok(((named(grouped, name), view.clone()), is_whole))
    })
}

/// As [`load`], without what comes before the newest messages.
pub(crate) fn load_newest(log: &dyn Log, name: &Name, count: usize) -> Result<Conversation> {
    let (grouped, view) = newest_messages(log, name, count)?;
    let source = source(name, &view, &grouped.messages, 0);
    Ok(Conversation::loaded(grouped, source))
}

/// The messages, unless something could not be read.
pub(crate) fn raw(mut grouped: Grouped) -> Result<Vec<StoredMessage>> {
    if grouped.damage.is_empty() { Ok(grouped.messages) } else { Err(grouped.damage.remove(0)) }
}

/// Reads until there are so many messages, or at least one and so many bytes were read. Also returns the index of the first
/// message after these, if there is one.
fn messages_of(
    log: &dyn Log,
    view: &View,
    hides: &[Hide],
    from: u64,
    size: &PageSize,
) -> Result<(Grouped, Option<u64>)> {
    let from = hidden::skip(from, hides);
    let mut grouper = Grouper::new(view.epoch, view.live.clone(), 0).from(from);
    if size.shows_hidden {
        grouper = grouper.with_hidden();
    }
    let (mut whole, mut visible, mut read, mut most) = (0, 0, 0, size.limit);
    if size.limit > 0 && from < view.head.next_message_index {
        let first = first_seq_of(log, view, from)?;
        log.read(view, first..=view.last_seq(), Order::Ascending, &mut |reading| {
            match reading {
                Reading::Record { record, last, own } => {
                    // Of a record that begins before the page, a part is wanted, or nothing.
                    read += if record.header.base < from { 0 } else { record.content().len() };
                    grouper.push(record, last, own);
                }
                Reading::Damaged(error) => grouper.damaged(error),
                Reading::Stray(_) => {}
            }
            while let Some(index) = grouper.whole_at(whole) {
                visible += usize::from(!hides.iter().any(|hide| hide.hides(index)));
                whole += 1;
            }
            if read >= size.bytes {
                if visible == 0 {
                    // The first one is not hidden. It goes on, and what is between its parts is not held meanwhile.
                    grouper.keep_first();
                }
                most = most.min(visible.max(1));
            }
            if visible >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    let mut grouped = grouper.finish();
    // What came after the part that was read may hide some of it.
    grouped.messages.retain(|stored| !hides.iter().any(|hide| hide.hides(stored.index)));
    for stored in &mut grouped.messages {
        let index = stored.index;
        let hidden = |chunk| hides.iter().any(|hide| hide.hides_chunk(index, chunk));
        if stored.chunk_indexes.iter().any(|chunk| hidden(*chunk)) {
            *stored = stored.select(|position| !hidden(stored.chunk_index(position)));
        }
    }
    grouped.messages.truncate(most);
    if size.bytes < usize::MAX {
        // One record may hold many messages.
        let mut room = Some(size.bytes);
        let fits = |stored: &&StoredMessage| {
            let before = room;
            room = before.and_then(|room| room.checked_sub(message_bytes(&stored.message)));
            before.is_some()
        };
        let fitting = grouped.messages.iter().take_while(fits).count();
        grouped.messages.truncate(fitting);
    }
    let next = grouped.messages.last().map_or(view.head.next_message_index, |stored| stored.index + 1);
    let next = hidden::skip(next, hides);
    Ok((grouped, (next < view.head.next_message_index).then_some(next)))
}

/// The seq at which to begin reading for a message. Indexes never go back, so it is between two known places. It is looked for
/// where it is if all messages between these have as many entries, and every other time in the middle.
fn first_seq_of(log: &dyn Log, view: &View, message: u64) -> Result<u64> {
    let (mut low, mut high) = (1, view.last_seq());
    // So many messages begin before them.
    let (mut before_low, mut before_end) = (0, view.head.next_message_index);
    let (mut found, mut halves) = (high, false);
    while low <= high {
        let between = high - low;
        let at = if halves {
            low + between / 2
        } else {
            let messages = before_end.saturating_sub(before_low).max(1);
            let share =
                u128::from(message.saturating_sub(before_low)) * (u128::from(between) + 1) / u128::from(messages);
            low + u64::try_from(share).unwrap_or(between).min(between)
        };
        halves = !halves;
        let mut probe = None;
        log.read(view, at..=at, Order::Ascending, &mut |reading| {
            match reading {
                Reading::Record { record, own, .. } => {
                    // A fork reads no more of its parent's record than up to the fork point: its own records follow there.
                    let end = if own { record.first_seq + record.len() } else { at + 1 };
                    probe = Some((record.first_seq, end, record.header.next_message_index, first_beginning(record)));
                }
                Reading::Stray(_) => return ControlFlow::Continue(()),
                Reading::Damaged(_) => {}
            }
            ControlFlow::Break(())
        })?;
        // Around what cannot be read, all is read.
        let Some((first, end, next, beginning)) = probe else { return Ok(1) };
        if next <= message {
            (low, before_low) = (end.max(at + 1), next);
        } else if beginning.is_some_and(|beginning| beginning <= message) {
            return Ok(first);
        } else {
            found = first;
            (high, before_end) = (first.saturating_sub(1), beginning.unwrap_or(next));
        }
    }
    Ok(found)
}

/// The message that a record begins with, unless its first entry is another message's part, or about one.
fn first_beginning(record: &Record<'_>) -> Option<u64> {
    match record.lines().next()?.ok()?.1 {
        Line::Begin(begin) => Some(record.message_index(begin.message)),
        Line::Chunk(chunk) => chunk.header.map(|_| record.message_index(chunk.message)),
        _ => None,
    }
}

/// Up to `limit` entries of a range, in this order of seqs. Damage is an error.
pub(crate) fn entries(
    log: &dyn Log,
    name: &Name,
    seqs: RangeInclusive<u64>,
    order: Order,
    limit: usize,
) -> Result<Vec<Entry>> {
    settled(log, name, |view| Ok((entries_of(log, view, seqs.clone(), order, limit, usize::MAX)?, true)))
}

/// The entries of a view. Those of one record come together: it ends with the first record after which there are `bytes`
/// of them.
pub(crate) fn entries_of(
    log: &dyn Log,
    view: &View,
    seqs: RangeInclusive<u64>,
    order: Order,
    limit: usize,
    bytes: usize,
) -> Result<Vec<Entry>> {
    Ok(sized_entries_of(log, view, seqs, order, limit, bytes)?.0)
}

/// As [`entries_of`], with the bytes of the records that were read for them.
pub(crate) fn sized_entries_of(
    log: &dyn Log,
    view: &View,
    seqs: RangeInclusive<u64>,
    order: Order,
    limit: usize,
    bytes: usize,
) -> Result<(Vec<Entry>, usize)> {
    let (mut entries, mut result, mut read) = (Vec::new(), Ok(()), 0);
    let seqs = *seqs.start()..=view.last_seq().min(*seqs.end());
    if limit == 0 || seqs.is_empty() {
        return Ok((entries, read));
    }
    log.read(view, seqs.clone(), order, &mut |reading| {
        result = match reading {
            Reading::Record { record, last, .. } => {
                read += record.content().len();
                collect(record, *seqs.start()..=last.min(*seqs.end()), order, limit, &mut entries)
            }
            Reading::Damaged(error) => Err(error),
            Reading::Stray(_) => Ok(()),
        };
        let goes_on = result.is_ok() && entries.len() < limit && read < bytes;
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result.map(|()| (entries, read))
}

/// Adds the entries of a record that lie in the range, up to `limit` in all: no others are decoded whole.
fn collect(
    record: &Record<'_>,
    wanted: RangeInclusive<u64>,
    order: Order,
    limit: usize,
    entries: &mut Vec<Entry>,
) -> Result<()> {
    let (mut first, mut last) = wanted.into_inner();
    first = first.max(record.first_seq);
    last = last.min((record.first_seq + record.len()).saturating_sub(1));
    let before = entries.len();
    let others = (limit - before).saturating_sub(1) as u64;
    match order {
        Order::Ascending => last = last.min(first.saturating_add(others)),
        Order::Descending => first = first.max(last.saturating_sub(others)),
    }
    for line in record.lines() {
        let (seq, line) = line?;
        if (first..=last).contains(&seq) {
            entries.push(Entry::read(record, seq, &line)?);
        }
    }
    if order == Order::Descending {
        entries.get_mut(before..).unwrap_or_default().reverse();
    }
    Ok(())
}

/// The title that the visible messages give, and its message.
pub(crate) fn title(log: &dyn Log, view: &View) -> Result<Option<(u64, String)>> {
    let mut names = Names::default();
    log.read(view, 1..=view.last_seq(), Order::Ascending, &mut |reading| {
        if let Reading::Record { record, last, .. } = reading {
            names.read(record, last);
        }
        ControlFlow::Continue(())
    })?;
    Ok(names.first_said())
}

/// The metadata of a conversation, if some was set.
pub(crate) fn metadata(log: &dyn Log, name: &Name) -> Result<Option<Json>> {
    settled(log, name, |view| {
        let mut seq = view.head.last_meta;
        let entries = entries_at(log, view);
        while seq > 0 {
            let (metadata, previous) = entries.meta(seq)?;
            if metadata.is_some() {
                return Ok((metadata, true));
            }
            seq = previous;
        }
        Ok((None, true))
    })
}

/// The messages of a view that were begun and are not finished.
pub(crate) fn unfinished(view: &View) -> Vec<Unfinished> {
    let state = |index: &u64| match view.live.contains(index) {
        true => MessageState::Streaming,
        false => MessageState::Interrupted,
    };
    let messages = view.head.interrupted.iter().chain(&view.head.open);
    let unfinished = messages.map(|index| Unfinished {
        conversation: view.id,
        owner: view.head.owner.clone(),
        key: view.head.key.clone(),
        message_index: *index,
        state: state(index),
    });
    unfinished.collect()
}
