//! The list of conversations, read from the indexes.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Catalogue;
use crate::embedded::engine::Order;
use crate::embedded::state::LONGEST_LAG;
use crate::embedded::stored::{damage_of, forks, sound_head, stored_head};
use crate::error::{Error, Result};
use crate::log::Problem;
use crate::log::list::{ListPage, ListQuery, ListSort, Listed, MOST_SCANNED, Pager, Place};
use crate::model::ConversationId;
use crate::record::{self, Head, key, listed_micros};

/// The most heads that are read at once.
const BATCH: usize = 1_000;

/// A head is read in the time of some ten keys of the index.
const KEYS_OF_A_HEAD: usize = 10;

/// The longest page of a list whose heads stay in memory. Only a first page does: it is the one that is read again and again.
const REMEMBERED_PAGE: usize = 200;

/// The keys of an owner's index that a page may have to look at.
fn range(owner: &[u8; 16], query: &ListQuery) -> (Vec<u8>, Vec<u8>) {
    let all = key::index_of(owner);
    let (mut start, mut end) = (all.clone(), key::after(&all));
    if query.sort == ListSort::Created {
        return (start, end);
    }
    let (newest, oldest) = match query.sort {
        ListSort::Oldest => (query.ends(), query.begins()),
        _ => (query.begins(), query.ends()),
    };
    if let Some(Place { micros, conversation }) = newest {
        // Times before 1970 have one place, whatever their order.
        start = match listed_micros(micros) {
            0 => key::index_from(owner, 0),
            micros => key::index(owner, micros, conversation),
        };
    }
    // A conversation may be at a place from which it moved less than a second ago.
    if let Some(Place { micros, .. }) = oldest
        && let Ok(micros @ 1..) = u64::try_from(micros.saturating_sub_unsigned(LONGEST_LAG))
    {
        end = key::index_from(owner, micros - 1);
    }
    (start, end)
}

/// What a page has not read yet of its owner's index.
struct Unread {
    start: Vec<u8>,
    end: Vec<u8>,
    order: Order,
    /// At most this many keys are read.
    keys: usize,
    is_all_read: bool,
}

impl Unread {
    /// `saved`: so many heads need not be read, because these keys are. They take no more time than those.
    fn new(query: &ListQuery, saved: Option<usize>) -> Self {
        let (start, end) = range(&record::owner_digest(&query.owner), query);
        let order = if query.sort == ListSort::Oldest { Order::Descending } else { Order::Ascending };
        let keys = saved.map_or(usize::MAX, |heads| heads.saturating_mul(KEYS_OF_A_HEAD));
        Self { start, end, order, keys, is_all_read: false }
    }
}

fn place(micros: u64, conversation: ConversationId) -> Place {
    Place { micros: i64::try_from(micros).unwrap_or(i64::MAX), conversation }
}

/// A head, if there is one, or its damage.
type Found = std::result::Result<Option<Arc<Head>>, Box<Error>>;

impl Catalogue {
    pub(crate) fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let mut pager = Pager::new(query)?;
        if let Some(parent) = query.forked_from {
            let forks: Vec<_> = forks(&*self.engine, parent)?.into_iter().map(|fork| fork.child).collect();
            forks.chunks(BATCH).try_for_each(|ids| self.add_to_list(ids, &mut pager).map(|_| ()))?;
            return Ok(pager.page());
        }
        // A conversation that gets a tag meanwhile moves.
        let mark = self.commit.lock().order.begin_reading();
        let read = self.tagged(query).and_then(|tagged| self.list_all(query, tagged.as_deref(), &mut pager));
        let mut moved = self.commit.lock().order.end_reading(mark);
        let seen = read?;
        if !moved.is_empty() {
            for id in &seen {
                moved.remove(id);
            }
            let missed: Vec<_> = moved.into_iter().collect();
            self.add_to_list(&missed, &mut pager)?;
            pager.keep_newest_of_each();
        }
        Ok(pager.page())
    }

    /// Reads the owner's index, the newest first. A commit under way has moved its conversations there already, but readers do
    /// not see it yet: the page has such a conversation at its old place, or not at all.
    ///
    /// `among`: only the heads of these are read, which are sorted. Of all of them, if these are few, or rare in the index.
    ///
    /// Returns the conversations whose heads it read. A scan may meet one twice that moves meanwhile: at its new place and at
    /// its old one.
    fn list_all(
        &self,
        query: &ListQuery,
        among: Option<&[ConversationId]>,
        pager: &mut Pager<'_>,
    ) -> Result<Vec<ConversationId>> {
        let is_by_activity = query.sort != ListSort::Created;
        // One more than the page holds shows whether there is a next page.
        let needed = if is_by_activity { query.limit.saturating_add(1) } else { usize::MAX };
        let begins = query.begins();
        let is_filtered = among.is_none() && (query.filters() || !query.tags.is_empty());
        let saved = among.map(|among| among.len().saturating_sub(needed.max(REMEMBERED_PAGE)));
        let mut unread = Unread::new(query, saved);
        let mut batch = needed.min(BATCH);
        let (mut in_place, mut scanned, mut seen, mut rounds) = (0, 0, Vec::new(), 0);
        while in_place < needed && unread.keys > 0 {
            let places = self.next_places(&mut unread, batch, among)?;
            let ids: Vec<_> = places.iter().map(|place| place.conversation).collect();
            let added = self.add_to_list(&ids, pager)?;
            // Times before 1970 have one place, whatever their order.
            in_place += added.into_iter().zip(&places).filter(|(added, place)| *added == Some(place.micros)).count();
            // What the page before has was met once more where places lag.
            scanned += places.iter().filter(|met| begins.is_none_or(|begins| query.follows(**met, begins))).count();
            seen.extend(ids);
            if unread.is_all_read {
                return Ok(seen);
            }
            if let Some(last) =
                places.last().filter(|_| is_by_activity && is_filtered && scanned >= MOST_SCANNED && in_place < needed)
            {
                pager.stop(*last);
                return Ok(seen);
            }
            // Few are left out of a page, and all of them where none belongs there.
            rounds += 1;
            batch = BATCH.min((needed - in_place.min(needed)).saturating_mul(1 << rounds.min(10)));
        }
        if let Some(among) = among.filter(|_| in_place < needed) {
            let met: HashSet<_> = seen.iter().copied().collect();
            let rest: Vec<_> = among.iter().copied().filter(|id| !met.contains(id)).collect();
            rest.chunks(BATCH).try_for_each(|ids| self.add_to_list(ids, pager).map(|_| ()))?;
            seen.extend(rest);
        }
        Ok(seen)
    }

    /// The next places in an owner's index, so many at most; `among`: of these conversations.
    fn next_places(&self, unread: &mut Unread, most: usize, among: Option<&[ConversationId]>) -> Result<Vec<Place>> {
        let mut places = Vec::with_capacity(most.min(BATCH));
        let (start, end, order) = (unread.start.clone(), unread.end.clone(), unread.order);
        unread.is_all_read = true;
        self.engine.keys(&start..&end, order, &mut |key, _| {
            let Some((_, micros, id)) = key::parse_index(key) else { return ControlFlow::Continue(()) };
            if among.is_none_or(|among| among.binary_search(&id).is_ok()) {
                places.push(place(micros, id));
            }
            unread.keys -= 1;
            if places.len() < most && unread.keys > 0 {
                return ControlFlow::Continue(());
            }
            match order {
                Order::Ascending => unread.start = key::after(key),
                Order::Descending => unread.end = key.to_vec(),
            }
            unread.is_all_read = false;
            ControlFlow::Break(())
        })?;
        Ok(places)
    }

    /// The conversations that have the first tag of a query, sorted. None: it has no tag, or more than [`MOST_SCANNED`] have this
    /// one.
    fn tagged(&self, query: &ListQuery) -> Result<Option<Vec<ConversationId>>> {
        let Some(tag) = query.tags.first() else { return Ok(None) };
        let prefix = key::tagged(&record::owner_digest(&query.owner), &record::digest(tag.as_bytes()));
        let mut ids = Vec::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            ids.extend(key::parse_tag(key));
            if ids.len() > MOST_SCANNED { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((ids.len() <= MOST_SCANNED).then_some(ids))
    }

    /// Adds the conversations to a page that belong there. Returns the time of the last activity of each that was added.
    fn add_to_list(&self, ids: &[ConversationId], pager: &mut Pager<'_>) -> Result<Vec<Option<i64>>> {
        let is_remembered = pager.is_first() && ids.len() <= REMEMBERED_PAGE;
        let mut add = |(id, head): (&ConversationId, Found)| match head {
            Ok(head) => {
                // No head: the conversation is new and not durable yet, or it is being deleted.
                let head = head?;
                let micros = head.last_activity;
                pager.add(Listed { id: *id, head }).then_some(micros)
            }
            Err(error) => {
                pager.unreadable.push(Problem::from_error(*id, &error));
                None
            }
        };
        Ok(ids.iter().zip(self.heads_for_list(ids, is_remembered)?.into_iter().flatten()).map(&mut add).collect())
    }

    /// The head that readers see; the conversation does not become one of those in use.
    pub(crate) fn head_for_list(&self, id: ConversationId) -> Result<Option<Arc<Head>>> {
        self.heads_for_list(&[id], false)?.pop().flatten().unwrap_or(Ok(None)).map_err(|error| *error)
    }

    /// The heads that readers see, or the damage of each; the conversations do not become ones in use. Each is there.
    /// `is_remembered`: a head may come from a page before, and stays for the next one.
    fn heads_for_list(&self, ids: &[ConversationId], is_remembered: bool) -> Result<Vec<Option<Found>>> {
        let mut heads: Vec<Option<Found>> = ids.iter().map(|_| None).collect();
        let (mut generation, mut loaded) = (None, None);
        loop {
            let mut state = self.commit.lock();
            let slots = &state.slots;
            let is_current = generation.replace(slots.generation()) == Some(slots.generation());
            if !is_current {
                heads.fill_with(|| None);
            }
            if loaded.replace(slots.loaded()) != Some(slots.loaded()) || !is_current {
                for (id, head) in ids.iter().zip(&mut heads) {
                    if let Some(slot) = slots.get(*id) {
                        *head = Some(Ok(slot.published().cloned()));
                    } else if let Some(listed) = slots.listed(*id).filter(|_| is_remembered) {
                        *head = Some(Ok(Some(Arc::clone(listed))));
                    }
                }
            }
            // What was read holds: it was not in use, and is not now.
            if heads.iter().all(Option::is_some) {
                if is_remembered {
                    for (id, head) in ids.iter().zip(&heads) {
                        if let Some(Ok(Some(head))) = head {
                            state.slots.remember(*id, head);
                        }
                    }
                }
                return Ok(heads);
            }
            drop(state);
            for (id, head) in ids.iter().zip(&mut heads).filter(|(_, head)| head.is_none()) {
                *head = Some(damage_of(self.listed_head(*id))?.map_err(Box::new));
            }
        }
    }

    /// The head in the engine of a conversation that the list has: it exists, and damage to its head is another matter.
    fn listed_head(&self, id: ConversationId) -> Result<Option<Arc<Head>>> {
        // A head is large: it is not moved once it is read.
        match damage_of(stored_head(&*self.engine, id).map(|head| head.map(Arc::new)))? {
            Ok(Some(head)) => Ok(Some(head)),
            Ok(None) | Err(_) => Ok(sound_head(&*self.engine, id)?.map(Arc::new)),
        }
    }
}
