//! Readers see what the model says.

use std::collections::BTreeSet;

use conversation_store::model::Name;
use conversation_store::{Conversation as Loaded, Cursor, Entry, EntryKind, Error, ListQuery, MessageState, next_step};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::op::ITEMS;
use super::plain::{Conversation, Line, What};
use super::{NAMES, World, name, owner};

impl World<'_> {
    /// The messages of a conversation whose writers live.
    fn live(&self, at: usize) -> BTreeSet<u64> {
        let live = self.writers.iter().filter(|(_, writer)| writer.conversation == at && !writer.closed);
        live.map(|(_, writer)| writer.message).collect()
    }

    /// Whether readers see what the model says.
    pub(super) fn check(&self, at: usize) -> Result<(), TestCaseError> {
        self.checked.set(Some(at));
        let (store, name) = (self.store(), name(at));
        let Some(known) = &self.conversations[at] else {
            not_found(store.load(&name))?;
            not_found(store.entries_since(&name, 0, 1))?;
            return Ok(());
        };
        let messages = known.messages(&self.live(at));
        prop_assert_eq!(&store.load_raw(&name).unwrap(), &messages);
        let loaded = store.load_strict(&name).unwrap();
        prop_assert_eq!(loaded.summary().cloned(), known.summary());
        same(&loaded, &Loaded::new(messages.clone()))?;
        same(&store.load(&name).unwrap(), &loaded)?;
        let item = store.describe(&name).unwrap();
        prop_assert_eq!((item.last_seq, item.messages), (known.last_seq(), messages.len() as u64));
        prop_assert_eq!(item.messages + item.hidden, known.next_message());
        prop_assert_eq!((item.tags, item.owner.as_str(), item.key.as_deref()), (known.tags(), owner(at), name.key()));
        prop_assert_eq!(store.metadata(&name).unwrap(), known.metadata());
        prop_assert_eq!((item.created_at.as_micros(), item.last_activity.as_micros()), (known.created, known.activity));
        let parent = known.parent.map(|(parent, last)| (self::name(parent).id(), last as u64));
        prop_assert_eq!(item.parent.map(|fork| (fork.conversation, fork.at_seq)), parent);
        for item in ITEMS {
            let found = store.find_item(&name, item).unwrap();
            let place = found.as_ref().map(|item| (item.seq, item.message_index, item.chunk_index));
            prop_assert_eq!(place, known.find(item));
        }
        // It belongs to nobody else.
        for stranger in [name.clone().with_owner("bob"), Name::from(name.id()).with_owner("bob")] {
            not_found(store.load(&stranger))?;
            not_found(store.delete(stranger))?;
        }
        Ok(())
    }

    /// The same, of all conversations, and in parts; and what was loaded some time ago is brought up to date.
    pub(super) fn check_all(&mut self) -> Result<(), TestCaseError> {
        for at in 0..NAMES {
            self.check(at)?;
            self.check_cursors(at)?;
            self.check_kept(at)?;
            if let Some(known) = &self.conversations[at] {
                self.check_parts(at, known)?;
                self.check_entries(at, known)?;
            }
        }
        self.check_list()?;
        self.check_unfinished()
    }

    /// So many things, in parts of what sizes: of each where a call is one of this process, else of those at the edges.
    fn parts(&self, of: usize) -> Vec<usize> {
        if self.place.is_near() {
            return (0..=of + 1).collect();
        }
        let edges = BTreeSet::from([0, 1, of / 2, of.saturating_sub(1), of, of + 1]);
        edges.into_iter().collect()
    }

    /// Sizes of a part: all of them, or where a call takes long one of them, another one for each beginning.
    fn sizes(&self, from: usize, mut all: Vec<usize>) -> Vec<usize> {
        all.push(usize::MAX);
        if self.place.is_near() { all } else { vec![all[(self.records + from) % all.len()]] }
    }

    /// Messages page by page, and the newest of them.
    fn check_parts(&self, at: usize, known: &Conversation) -> Result<(), TestCaseError> {
        let messages = known.messages(&self.live(at));
        for from in self.parts(known.next_message() as usize).into_iter().map(|from| from as u64) {
            let rest = &messages[messages.partition_point(|stored| stored.index < from)..];
            for limit in self.sizes(from as usize, self.parts(rest.len())) {
                let page = self.store().messages(name(at), from, limit).unwrap();
                prop_assert_eq!(&page, &rest[..limit.min(rest.len())], "from {} limit {}", from, limit);
            }
        }
        for count in self.parts(messages.len()) {
            let newest = &messages[messages.len().saturating_sub(count)..];
            prop_assert_eq!(&self.store().newest_messages(name(at), count).unwrap(), newest);
            same(&self.store().load_newest(name(at), count).unwrap(), &Loaded::new(newest.to_vec()))?;
        }
        Ok(())
    }

    fn check_entries(&self, at: usize, known: &Conversation) -> Result<(), TestCaseError> {
        let store = self.store();
        let entries = store.entries(name(at), .., usize::MAX).unwrap();
        prop_assert_eq!(entries.len(), known.lines.len());
        for ((seq, entry), line) in (1..).zip(&entries).zip(&known.lines) {
            prop_assert_eq!(entry.seq, seq);
            check_entry(entry, line)?;
        }
        let last = known.lines.len();
        for start in self.parts(last).into_iter().filter(|start| *start <= last) {
            let rest = &entries[start..];
            for limit in self.sizes(start, vec![2]) {
                let page = store.entries_since(name(at), start as u64, limit).unwrap();
                prop_assert_eq!(&page, &rest[..rest.len().min(limit)], "since {} limit {}", start, limit);
            }
            prop_assert_eq!(&store.newest_entries(name(at), last - start).unwrap(), rest);
        }
        Ok(())
    }

    /// A cursor is of one conversation, and not past its end.
    fn check_cursors(&self, at: usize) -> Result<(), TestCaseError> {
        let past = Cursor::from(self.last_seq(at) + 1);
        let result = self.store().entries_since(name(at), past, 1);
        match (&self.conversations[at], &self.kept[at]) {
            (None, _) => prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}"),
            (Some(known), kept) => {
                prop_assert!(matches!(result, Err(Error::CursorOutOfRange { .. })), "{result:?}");
                let Some((made, kept)) = kept else { return Ok(()) };
                let cursor = kept.cursor().unwrap();
                let result = self.store().entries_since(name(at), cursor, usize::MAX);
                if *made == known.made {
                    prop_assert_eq!(result.unwrap().len() as u64, known.last_seq() - cursor.seq());
                } else {
                    prop_assert!(matches!(result, Err(Error::StaleCursor { .. })), "{result:?}");
                }
            }
        }
        Ok(())
    }

    /// A conversation that somebody keeps is, brought up to date, what is loaded anew.
    pub(super) fn check_kept(&mut self, at: usize) -> Result<(), TestCaseError> {
        let kept = self.kept[at].take();
        let Some(known) = &self.conversations[at] else {
            if let Some((_, mut kept)) = kept {
                not_found(self.store().refresh(&mut kept))?;
            }
            return Ok(());
        };
        let fresh = self.store().load(name(at)).unwrap();
        let made = known.made;
        let kept = match kept {
            None => fresh,
            Some((_, mut kept)) => {
                self.store().refresh(&mut kept).unwrap();
                same(&kept, &fresh)?;
                prop_assert_eq!(kept.summary(), fresh.summary());
                prop_assert_eq!(kept.cursor(), fresh.cursor());
                prop_assert_eq!(next_step(&kept), next_step(&fresh));
                kept
            }
        };
        self.kept[at] = Some((made, kept));
        Ok(())
    }

    /// The list of each owner is exact by time, also within a second.
    fn check_list(&self) -> Result<(), TestCaseError> {
        for whose in ["", "ada", "bob"] {
            let known = self.conversations.iter().enumerate().filter(|(at, _)| owner(*at) == whose);
            let known = known.filter_map(|(at, known)| Some((known.as_ref()?, name(at).id())));
            let mut listed: Vec<_> = known.map(|(known, id)| (known.activity, id, known.tags())).collect();
            listed.sort_unstable();
            listed.reverse();
            let query = ListQuery::new().with_owner(whose);
            let ids = |query: &ListQuery| -> Vec<_> {
                self.store().list(query).unwrap().items.into_iter().map(|item| item.id).collect()
            };
            prop_assert_eq!(ids(&query), listed.iter().map(|(_, id, _)| *id).collect::<Vec<_>>());
            let tagged = listed.iter().filter(|(_, _, tags)| tags.contains(&"tag 0".to_owned()));
            let tagged: Vec<_> = tagged.map(|(_, id, _)| *id).collect();
            prop_assert_eq!(ids(&query.clone().with_tag("tag 0")), tagged);
            let (mut paged, mut next) = (Vec::new(), query.with_limit(1));
            loop {
                let page = self.store().list(&next).unwrap();
                paged.extend(page.items.iter().map(|item| item.id));
                let Some(after) = page.next else { break };
                next = next.with_after(after);
            }
            prop_assert_eq!(paged, listed.iter().map(|(_, id, _)| *id).collect::<Vec<_>>());
            for item in self.store().list(&ListQuery::new().with_owner(whose)).unwrap().items {
                prop_assert_eq!(&self.store().describe(item.id).unwrap(), &item);
            }
        }
        Ok(())
    }

    fn check_unfinished(&self) -> Result<(), TestCaseError> {
        let mut wanted = Vec::new();
        for (at, known) in self.conversations.iter().enumerate() {
            let Some(known) = known else { continue };
            let (interrupted, open) = known.unfinished();
            wanted.extend(interrupted.into_iter().map(|index| (name(at).id(), index, MessageState::Interrupted)));
            wanted.extend(open.into_iter().map(|index| (name(at).id(), index, MessageState::Streaming)));
        }
        wanted.sort_unstable_by_key(|(id, index, _)| (*id, *index));
        let found = self.store().unfinished().unwrap();
        let mut found: Vec<_> =
            found.iter().map(|found| (found.conversation, found.message_index, found.state)).collect();
        prop_assert!(found.is_sorted_by_key(|(id, ..)| *id));
        found.sort_unstable_by_key(|(id, index, _)| (*id, *index));
        prop_assert_eq!(found, wanted);
        Ok(())
    }
}

fn not_found<T: std::fmt::Debug>(result: conversation_store::Result<T>) -> Result<(), TestCaseError> {
    prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    Ok(())
}

/// Whether two conversations are the same, but for the order of lines in their reports.
fn same(left: &Loaded, right: &Loaded) -> Result<(), TestCaseError> {
    prop_assert_eq!(left.messages(), right.messages());
    if left.report() == right.report() {
        return Ok(());
    }
    let report = |conversation: &Loaded| {
        let mut lines: Vec<String> = conversation.report().iter().map(|line| format!("{line:?}")).collect();
        lines.sort_unstable();
        lines
    };
    prop_assert_eq!(report(left), report(right));
    Ok(())
}

fn check_entry(entry: &Entry, line: &Line) -> Result<(), TestCaseError> {
    let (kind, message, chunk) = match &line.what {
        What::Whole { chunk, .. } => ("chunk", line.message, Some(u32::try_from(*chunk).unwrap())),
        What::Fragment(chunk, _) => ("chunk", line.message, Some(*chunk)),
        What::Begin(..) | What::Empty(_) => ("begin", line.message, None),
        What::Finish(_) => ("finish", line.message, None),
        What::Interrupt(_) => ("interrupt", line.message, None),
        What::Rewind { to, .. } => ("rewind", Some(*to), None),
        What::Remove { message, chunk } => ("remove", Some(*message), *chunk),
        What::Redact { message, chunk } => ("redact", Some(*message), *chunk),
        What::Summary { through, .. } => ("summary", Some(*through), None),
        What::Meta { .. } => ("meta", None, None),
    };
    prop_assert_eq!((entry.kind.name(), entry.message_index, entry.chunk_index), (kind, message, chunk));
    match (&entry.kind, &line.what) {
        (EntryKind::Chunk { chunk, .. }, What::Whole { message, chunk: at }) => {
            prop_assert_eq!(&**chunk, &message.chunks[*at]);
            prop_assert_eq!(entry.role, Some(message.role));
        }
        (EntryKind::Chunk { chunk, .. }, What::Fragment(_, fragment)) => prop_assert_eq!(&**chunk, fragment),
        (EntryKind::Interrupt { cause }, What::Interrupt(known)) => prop_assert_eq!(cause, known),
        (EntryKind::Rewind { end }, What::Rewind { end: known, .. }) => prop_assert_eq!(end, known),
        (EntryKind::Summary { text }, What::Summary { summary, .. }) => prop_assert_eq!(text, summary),
        (EntryKind::Meta { title, metadata, .. }, What::Meta { title: known, metadata: kept, .. }) => {
            prop_assert_eq!((title, metadata), (known, kept));
        }
        _ => {}
    }
    Ok(())
}
