//! Conversations that are not at their places in the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::damage::{garble, problems, take};
use super::engines::all;
use crate::embedded::engine::{Batch, Engine, Memory};
use crate::embedded::recovery;
use crate::log::list::{ListQuery, MOST_SCANNED};
use crate::log::{AppendOptions, Changes, Durability, ForkAt, ListSort, Log};
use crate::model::{Message, Timestamp};
use crate::record::{Head, Lag, key};

/// A store on an engine in memory, with a clock.
struct Place {
    engine: Arc<Memory>,
    clock: Arc<AtomicI64>,
}

impl Place {
    fn new() -> Self {
        Self { engine: Arc::default(), clock: Arc::new(AtomicI64::new(1_700_000_000_000_000)) }
    }

    fn open(&self, read_only: bool) -> Embedded {
        let clock = Arc::clone(&self.clock);
        let clock = Arc::new(move || Timestamp::from_micros(clock.load(Ordering::Relaxed)));
        let engine = Arc::clone(&self.engine) as Arc<dyn Engine>;
        Embedded::open(engine, clock, Duration::from_secs(3600), Opening { read_only, ..Opening::default() }).unwrap()
    }

    /// Appends to a conversation, so many microseconds later.
    fn append(&self, log: &Embedded, number: usize, later: i64) {
        self.append_changing(log, number, later, &Changes::new());
    }

    fn append_changing(&self, log: &Embedded, number: usize, later: i64, changes: &Changes) {
        self.clock.fetch_add(later, Ordering::Relaxed);
        let name = format!("chat {number}");
        log.core().appender.append(&name.into(), &[Message::user("hello")], changes, &AppendOptions::new()).unwrap();
    }

    /// The conversations that are not at their places, as stored.
    fn lagging(&self) -> usize {
        let lagging = all(&*self.engine).into_iter().filter(|(key, _)| key[0] == key::LAGGING).count();
        let heads = all(&*self.engine).into_iter().filter(|(key, _)| key[0] == key::HEAD);
        let heads = heads.map(|(key, value)| Head::open(&key, &value.unwrap()).unwrap());
        assert_eq!(heads.filter(|head| head.lag != Lag::default()).count(), lagging);
        lagging
    }
}

/// The numbers of the conversations, as the list has them.
fn listed(log: &Embedded, limit: usize) -> Vec<usize> {
    listed_by(log, ListQuery::new().with_limit(limit))
}

/// The same, of all pages of a query.
fn listed_by(log: &Embedded, mut query: ListQuery) -> Vec<usize> {
    let mut found = Vec::new();
    loop {
        let page = log.list(&query).unwrap();
        let keys = page.items.into_iter().map(|item| item.key.unwrap());
        found.extend(keys.map(|key| key.strip_prefix("chat ").unwrap().parse::<usize>().unwrap()));
        let Some(next) = page.next else { return found };
        query = query.with_after(next);
    }
}

#[test]
fn the_list_is_exact_however_many_lag() {
    const CONVERSATIONS: usize = 500;
    // The first is looked for in the list. The second is often too far from its top, and few have the third: their heads are read.
    let tags_of = |number: usize| {
        let tags = [("even", number.is_multiple_of(2)), ("late", number >= 290), ("few", number % 25 == 3)];
        tags.into_iter().filter(|(_, has)| *has).map(|(tag, _)| tag)
    };
    let place = Place::new();
    let mut log = place.open(false);
    let mut expected: Vec<usize> = Vec::new();
    let (mut most, mut random) = (0, 7_usize);
    for step in 0..6_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Few conversations for a while, then all of them.
        let among = if step % 1_000 < 500 { 20 } else { CONVERSATIONS };
        let number = (random >> 33) % among;
        let faster = [1, 1, 1, 50, 50, 1_000][step / 1_000];
        let later = [1, 100, 5_000, 400_000, 3_000_000][(random >> 20) % 5] / faster;
        let changes = tags_of(number).fold(Changes::new(), Changes::with_tag);
        place.append_changing(&log, number, later.max(1), &changes);
        expected.retain(|of| *of != number);
        expected.insert(0, number);
        if step % 97 == 0 {
            most = most.max(place.lagging());
            if step % 2 == 0 {
                log.core().commit.lock().evict(0);
            }
            assert_eq!(listed(&log, 1 + step % 40), expected, "step {step}");
            assert_eq!(listed(&log, CONVERSATIONS), expected, "step {step}");
            for tag in ["even", "late", "few"] {
                let query = ListQuery::new().with_tag(tag).with_limit(1 + step % 40);
                let mut tagged: Vec<_> =
                    expected.iter().copied().filter(|number| tags_of(*number).any(|of| of == tag)).collect();
                assert_eq!(listed_by(&log, query.clone()), tagged, "step {step}");
                tagged.reverse();
                assert_eq!(listed_by(&log, query.with_sort(ListSort::Oldest)), tagged, "step {step}");
            }
        }
        if step % 970 == 0 {
            assert_eq!(problems(&log), [""; 0]);
            assert_eq!(listed(&place.open(true), 10), expected, "only read, step {step}");
            // The store is left as a crash leaves it.
            log = place.open(false);
            assert_eq!(place.lagging(), 0);
            assert_eq!(listed(&log, 10), expected, "opened again, step {step}");
        }
    }
    assert_eq!(most, 64);
}

#[test]
fn a_conversation_moves_once_a_second() {
    let place = Place::new();
    let log = place.open(false);
    let places = || -> Vec<Vec<u8>> {
        all(&*place.engine).into_iter().map(|(key, _)| key).filter(|key| key[0] == key::INDEX).collect()
    };
    place.append(&log, 0, 0);
    let mut seen = vec![places()];
    for _ in 0..100 {
        place.append(&log, 0, 50_000);
        if seen.last() != Some(&places()) {
            seen.push(places());
        }
    }
    assert_eq!(seen.len(), 6);
    assert!(seen.iter().all(|places| places.len() == 1));
    log.delete(&"chat 0".into(), None).unwrap();
    assert_eq!((places().len(), place.lagging(), listed(&log, 10)), (0, 0, vec![]));
}

/// A page that was read before comes from memory, and has all that changed since.
#[test]
fn a_first_page_is_read_once_and_is_never_old() {
    let place = Place::new();
    {
        let log = place.open(false);
        (0..6).for_each(|number| place.append(&log, number, 1_000_000));
    }
    let log = place.open(false);
    assert_eq!(listed(&log, 10), [5, 4, 3, 2, 1, 0]);
    let head = take(&*place.engine, key::HEAD, "chat 5");
    take(&*place.engine, key::RECORD, "chat 5");
    assert_eq!(listed(&log, 10), [5, 4, 3, 2, 1, 0], "read again");
    place.engine.write(Batch { ops: head }).unwrap();
    // In use, changed, and out of use again.
    place.append(&log, 2, 1_000_000);
    log.delete(&"chat 4".into(), None).unwrap();
    assert_eq!(listed(&log, 10), [2, 5, 3, 1, 0]);
    log.core().commit.lock().evict(0);
    let page = log.list(&ListQuery::new()).unwrap();
    let last_seqs: Vec<_> = page.items.iter().map(|item| item.last_seq).collect();
    assert_eq!((listed(&log, 10), last_seqs), (vec![2, 5, 3, 1, 0], vec![2, 1, 1, 1, 1]));
}

/// A page of those with a tag reads no other heads than it shows, and one more.
#[test]
fn a_page_by_a_tag_reads_what_it_shows() {
    let place = Place::new();
    {
        let log = place.open(false);
        for number in 0..600 {
            let changes = if number % 2 == 0 { Changes::new().with_tag("even") } else { Changes::new() };
            place.append_changing(&log, number, 1_000_000, &changes);
        }
    }
    for number in (12..588).chain([1, 3, 597, 599]) {
        let name = format!("chat {number}");
        garble(&*place.engine, key::RECORD, &name);
        garble(&*place.engine, key::HEAD, &name);
    }
    let log = place.open(false);
    let query = ListQuery::new().with_tag("even").with_limit(3);
    for (sort, expected) in [(ListSort::Newest, [598, 596, 594]), (ListSort::Oldest, [0, 2, 4])] {
        let page = log.list(&query.clone().with_sort(sort)).unwrap();
        assert_eq!(page.unreadable.len(), 0);
        let keys: Vec<_> = page.items.into_iter().map(|item| item.key.unwrap()).collect();
        assert_eq!(keys, expected.map(|number| format!("chat {number}")));
    }
    assert_eq!(log.list(&query.with_limit(1_000)).unwrap().unreadable.len(), 288);
}

#[test]
fn a_lost_note_of_one_that_lags_is_reported_and_made_again() {
    let place = Place::new();
    let log = place.open(false);
    (0..4).for_each(|step| place.append(&log, step % 2, 1_000));
    assert_eq!((place.lagging(), problems(&log)), (2, vec![]));
    take(&*place.engine, key::LAGGING, "chat 0");
    let id = crate::model::Name::from("chat 0").id();
    assert_eq!(problems(&log), [format!("conversation {id}: an index of conversations does not list it")]);
    recovery::rebuild_all(&*log.core().engine, false).unwrap();
    assert_eq!((place.lagging(), problems(&log)), (2, vec![]));
}

#[test]
fn a_fork_and_a_backup_begin_at_their_places() {
    let place = Place::new();
    let log = place.open(false);
    (0..4).for_each(|_| place.append(&log, 0, 1_000));
    place.clock.fetch_add(1_000, Ordering::Relaxed);
    log.core().families.fork(&"chat 0".into(), ForkAt::default(), &"chat 1".into()).unwrap();
    assert_eq!((place.lagging(), problems(&log), listed(&log, 10)), (1, vec![], vec![1, 0]));
    let dir = tempfile::tempdir().unwrap();
    recovery::backup(log.core(), &dir.path().join("backup"), &mut |_, _| ()).unwrap();
    let restored = Place::new();
    let engine = Arc::clone(&restored.engine) as Arc<dyn Engine>;
    super::super::restore(&dir.path().join("backup"), &engine, &mut |_, _| ()).unwrap();
    assert_eq!(restored.lagging(), 0);
    let log = restored.open(false);
    assert_eq!((problems(&log), listed(&log, 10)), (vec![], vec![1, 0]));
}

/// A page with a filter ends where it has looked at enough, and the pages together have what belongs there, each once.
#[test]
fn a_page_with_a_filter_looks_at_so_many_and_no_more() {
    let place = Place::new();
    let log = place.open(false);
    let count = MOST_SCANNED + 2_500;
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    for number in (0..count).chain((0..count).step_by(100)) {
        place.clock.fetch_add(700, Ordering::Relaxed);
        let kind = if number % 1_000 == 7 { "rare" } else { "chat" };
        let changes = Changes::new().with_tag("any").with_tag(kind);
        log.core()
            .appender
            .append(&format!("{kind} {number}").into(), &[Message::user("x")], &changes, &buffered)
            .unwrap();
    }
    log.sync().unwrap();
    // Few have the tag, so they are read, and each page is full. The others are looked for in the whole list.
    let filters: [(ListQuery, bool); 3] = [
        (ListQuery::new().with_key_prefix("rare"), true),
        (ListQuery::new().with_tag("any").with_tag("rare"), true),
        (ListQuery::new().with_tag("rare").with_tag("any"), false),
    ];
    for (filter, is_scanned) in filters {
        for sort in [ListSort::Newest, ListSort::Oldest] {
            for limit in [1, 3, 50] {
                let mut query = filter.clone().with_sort(sort).with_limit(limit);
                let (mut found, mut short) = (Vec::new(), 0);
                loop {
                    let page = log.list(&query).unwrap();
                    short += usize::from(page.items.len() < limit && page.next.is_some());
                    found.extend(page.items.into_iter().map(|item| item.key.unwrap()));
                    let Some(next) = page.next else { break };
                    query = query.with_after(next);
                }
                let mut expected: Vec<_> =
                    (0..count).filter(|number| number % 1_000 == 7).map(|number| format!("rare {number}")).collect();
                if sort == ListSort::Newest {
                    expected.reverse();
                }
                assert_eq!(
                    (found, short),
                    (expected, usize::from(is_scanned && limit > 3)),
                    "{filter:?} {sort} {limit}"
                );
            }
        }
    }
    let by_tag = ListQuery::new().with_tag("any").with_limit(1_000).with_sort(ListSort::Oldest);
    assert_eq!(log.list(&by_tag).unwrap().items.len(), 1_000);
    let none = ListQuery::new().with_title("nowhere").with_limit(5);
    let page = log.list(&none).unwrap();
    assert!(page.items.is_empty() && page.next.is_some());
    assert!(log.list(&none.with_after(page.next.unwrap())).unwrap().next.is_none());
}
