//! What is in the journal and not in the engine yet: sorted, in memory, before the engine's own data.

use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, ControlFlow, Range};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::super::contract::{Batch, LARGE_BYTES, Visit};
use crate::log::Order;

/// How many pairs a scan takes from a layer at a time: no lock is held while a visitor runs.
const PAGE: usize = 64;

/// The last operation on a key.
#[derive(Debug, Clone)]
pub(super) struct Last {
    /// Absent: the key was removed.
    pub(super) value: Option<Arc<Vec<u8>>>,
    /// Whether the engine's own value of this key may be large.
    pub(super) rewrites: bool,
}

/// The last operations on the keys of one region.
#[derive(Default)]
pub(super) struct Layer {
    last: RwLock<BTreeMap<Vec<u8>, Last>>,
}

/// Without the stored data.
impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer").finish_non_exhaustive()
    }
}

impl Layer {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Vec<u8>, Last>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// The bytes of its keys and values.
    pub(super) fn bytes(&self) -> u64 {
        self.read()
            .iter()
            .map(|(key, last)| (key.len() + last.value.as_ref().map_or(0, |value| value.len())) as u64)
            .sum()
    }

    pub(super) fn apply(&self, batch: Batch, rewrites: bool) {
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in batch.ops {
            let new = Last { value: value.map(Arc::new), rewrites };
            match last.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(new);
                }
                Entry::Occupied(mut entry) => {
                    // A checkpoint that was cut off may have given the engine any of them.
                    let was_large = entry.get().value.as_ref().is_some_and(|value| value.len() > LARGE_BYTES);
                    let rewrites = rewrites || entry.get().rewrites || was_large;
                    entry.insert(Last { rewrites, ..new });
                }
            }
        }
    }
}

/// The layers that a reader sees.
#[derive(Debug, Default, Clone)]
pub(super) struct Layers {
    /// Takes what is written.
    pub(super) active: Arc<Layer>,
    /// Older, and never changes again. Its checkpoint is being made.
    pub(super) frozen: Option<Arc<Layer>>,
}

impl Layers {
    /// The newest first.
    fn each(&self) -> impl DoubleEndedIterator<Item = &Layer> {
        [Some(&*self.active), self.frozen.as_deref()].into_iter().flatten()
    }

    /// The last operation on a key, if there is one.
    pub(super) fn get(&self, key: &[u8]) -> Option<Last> {
        self.each().find_map(|layer| layer.read().get(key).cloned())
    }

    /// The first keys of a range, and whether there may be more.
    fn page(&self, start: Bound<&[u8]>, end: Bound<&[u8]>, order: Order) -> (VecDeque<(Vec<u8>, Last)>, bool) {
        let mut merged = BTreeMap::new();
        // The last key of a layer that may have more of them: those after it have to wait.
        let mut edge: Option<Vec<u8>> = None;
        for layer in self.each().rev() {
            let last = layer.read();
            let range = last.range::<[u8], _>((start, end)).map(|(key, last)| (key.clone(), last.clone()));
            let page: Vec<_> = match order {
                Order::Ascending => range.take(PAGE).collect(),
                Order::Descending => range.rev().take(PAGE).collect(),
            };
            if let Some((key, _)) = page.get(PAGE - 1) {
                let is_nearer = edge.as_deref().is_none_or(|edge| compare(order, key, edge) == Ordering::Less);
                edge = if is_nearer { Some(key.clone()) } else { edge };
            }
            merged.extend(page);
        }
        if let Some(edge) = &edge {
            merged.retain(|key, _| compare(order, key, edge) != Ordering::Greater);
        }
        let page = match order {
            Order::Ascending => merged.into_iter().collect(),
            Order::Descending => merged.into_iter().rev().collect(),
        };
        (page, edge.is_some())
    }
}

/// Which of two keys a scan shows first.
fn compare(order: Order, a: &[u8], b: &[u8]) -> Ordering {
    match order {
        Order::Ascending => a.cmp(b),
        Order::Descending => b.cmp(a),
    }
}

/// A scan over the layers, beside one over the engine.
pub(super) struct Cursor<'a> {
    layers: Layers,
    range: Range<&'a [u8]>,
    order: Order,
    page: VecDeque<(Vec<u8>, Last)>,
    /// The last key of the page before.
    edge: Option<Vec<u8>>,
    has_more: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(layers: Layers, range: Range<&'a [u8]>, order: Order) -> Self {
        let has_more = range.start < range.end;
        Self { layers, range, order, page: VecDeque::new(), edge: None, has_more }
    }

    fn fill(&mut self) {
        let edge = self.edge.as_deref();
        let (start, end) = match self.order {
            Order::Ascending => {
                (edge.map_or(Bound::Included(self.range.start), Bound::Excluded), Bound::Excluded(self.range.end))
            }
            Order::Descending => (Bound::Included(self.range.start), Bound::Excluded(edge.unwrap_or(self.range.end))),
        };
        // BTreeMap panics on a range that ends before it starts, or excludes one key from both sides.
        let is_empty = matches!((start, end), (Bound::Included(a) | Bound::Excluded(a), Bound::Excluded(b)) if a >= b);
        (self.page, self.has_more) =
            if is_empty { (VecDeque::new(), false) } else { self.layers.page(start, end, self.order) };
        self.edge = self.page.back().map(|(key, _)| key.clone());
    }

    /// Shows the values of the layers up to a key of the engine's, or all that are left. Continues with whether the
    /// layers have that key: what the engine has under it does not count.
    pub(super) fn show_to(&mut self, key: Option<&[u8]>, show: Visit<'_>) -> ControlFlow<(), bool> {
        loop {
            if self.page.is_empty() && self.has_more {
                self.fill();
            }
            let Some((ours, _)) = self.page.front() else { return ControlFlow::Continue(false) };
            let place = key.map_or(Ordering::Less, |key| compare(self.order, ours, key));
            if place == Ordering::Greater {
                return ControlFlow::Continue(false);
            }
            if let Some((ours, Last { value: Some(value), .. })) = self.page.pop_front() {
                show(&ours, &value)?;
            }
            if place == Ordering::Equal {
                return ControlFlow::Continue(true);
            }
        }
    }
}
