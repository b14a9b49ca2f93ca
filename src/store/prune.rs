//! Retention: conversations that nobody has used for a long time are erased.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

use super::Store;
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::list::Place;
use crate::log::{ListCursor, ListItem, ListQuery};
use crate::model::{ConversationId, Timestamp};

/// Conversations of one read.
const PAGE: usize = 256;

/// Which conversations [`Store::prune`] erases: those of one owner whose last activity was before a moment.
///
/// ```
/// use conversation_store::{Retention, Store};
/// use conversation_store::model::{Message, Timestamp};
///
/// let store = Store::open("memory:")?;
/// for name in ["one", "two", "three"] {
///     store.append(name, &[Message::user("hello")])?;
/// }
/// let all = Retention::new(Timestamp::from_micros(i64::MAX));
/// let pruned = store.prune(&all.with_keep_last(1), |item| println!("{}", item.id))?;
/// assert_eq!(pruned.erased, 2);
/// assert!(store.load("three").is_ok());
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Those whose last activity was before this moment.
    pub idle_since: Timestamp,
    /// Those of this owner; empty, the default: those without one.
    pub owner: String,
    /// Only those that have all of these tags.
    pub tags: Vec<String>,
    /// How many of the owner's newest conversations with these tags stay, however old they are. The default is 0.
    pub keep_last: usize,
}

impl Retention {
    /// The conversations without an owner whose last activity was before this moment.
    #[must_use]
    pub const fn new(idle_since: Timestamp) -> Self {
        Self { idle_since, owner: String::new(), tags: Vec::new(), keep_last: 0 }
    }

    /// Reads how long nothing has happened: `90d`, `2w`, `1w 2h`, `36h`, `5min`.
    ///
    /// ```
    /// use conversation_store::Retention;
    ///
    /// assert_eq!(Retention::parse_idle("36h")?.as_secs(), 36 * 3600);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for anything else, and for a single `m`: it may be meant as minutes or as months.
    pub fn parse_idle(text: &str) -> Result<Duration> {
        let invalid = |problem: &str| Error::InvalidInput(format!("{text:?}: {problem}"));
        if text.split(|character: char| !character.is_alphabetic()).any(|unit| unit.eq_ignore_ascii_case("m")) {
            return Err(invalid("`m` may be minutes or months: write 5min, or 30d"));
        }
        let span = text.parse::<Span>().ok();
        let duration = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
        let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
        // What no time of the store can hold is no time.
        duration
            .filter(|duration| i64::try_from(duration.as_micros()).is_ok())
            .ok_or_else(|| invalid("expected a time of weeks, days, hours or less: 90d, 36h"))
    }

    /// Those of this owner.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Only those that have this tag too.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// So many of the newest stay, however old they are.
    #[must_use]
    pub const fn with_keep_last(mut self, conversations: usize) -> Self {
        self.keep_last = conversations;
        self
    }
}

/// What [`Store::prune`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Conversations that were erased.
    pub erased: u64,
    /// Conversations that were used, or deleted, after they were found: they were left alone.
    pub used: u64,
    /// Conversations of the list that cannot be read: they were left alone.
    pub unreadable: u64,
}

impl Store {
    /// Erases the conversations that a policy names, one after the other, the newest first. Each deletion is durable, and a
    /// conversation in which something happens meanwhile stays. `erased` gets each after it was erased.
    ///
    /// What forks share stays until the last of them is deleted, as in [`Store::delete`].
    ///
    /// Cost: one read and one deletion per conversation that is erased, and one read per conversation of `keep_last`; with
    /// tags, for every 256 that are erased a page of [`ListQuery::tags`].
    ///
    /// # Errors
    /// As [`Store::list`] and [`Store::delete`]. What was erased before the error stays erased.
    pub fn prune(&self, retention: &Retention, erased: impl FnMut(&ListItem)) -> Result<Pruned> {
        self.prune_while(retention, || true, erased)
    }

    /// As [`Store::prune`], for as long as `goes_on`, which is called before each deletion.
    pub(crate) fn prune_while(
        &self,
        retention: &Retention,
        mut goes_on: impl FnMut() -> bool,
        mut erased: impl FnMut(&ListItem),
    ) -> Result<Pruned> {
        let mut pruned = Pruned::default();
        pruned.unreadable = self.each_idle(retention, &mut |item| {
            if !goes_on() {
                return Ok(ControlFlow::Break(()));
            }
            let end = Cursor { seq: item.last_seq, incarnation: Some(item.incarnation) };
            match self.delete_at(item.id, end) {
                Ok(()) => {
                    pruned.erased += 1;
                    erased(item);
                }
                Err(Error::StaleHead { .. } | Error::StaleCursor { .. } | Error::NotFound { .. }) => {
                    pruned.used += 1;
                }
                Err(error) => return Err(error),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(pruned)
    }

    /// Gives `found` each conversation that [`Store::prune`] would erase, the newest first, and returns how many of the list
    /// cannot be read. Nothing is erased.
    ///
    /// # Errors
    /// As [`Store::list`].
    pub fn idle(&self, retention: &Retention, mut found: impl FnMut(&ListItem)) -> Result<u64> {
        self.each_idle(retention, &mut |item| {
            found(item);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn each_idle(
        &self,
        retention: &Retention,
        visit: &mut dyn FnMut(&ListItem) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        let mut query = ListQuery::new().with_owner(&retention.owner);
        query.tags.clone_from(&retention.tags);
        let Some(newest) = self.after_the_newest(&query, retention.keep_last)? else { return Ok(0) };
        let idle =
            Place { micros: retention.idle_since.as_micros(), conversation: ConversationId::from_bytes([0; 16]) };
        query.after = Some(ListCursor(newest.map_or(idle, |newest| newest.0.min(idle))));
        query.limit = PAGE;
        let mut unreadable = 0;
        loop {
            let page = self.list(&query)?;
            unreadable += page.unreadable.len() as u64;
            for item in &page.items {
                if visit(item)?.is_break() {
                    return Ok(unreadable);
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(unreadable),
            }
        }
    }

    /// Where the list goes on after so many conversations: from its beginning, or nowhere.
    #[expect(clippy::option_option, reason = "no end, and no beginning")]
    fn after_the_newest(&self, query: &ListQuery, mut count: usize) -> Result<Option<Option<ListCursor>>> {
        let mut query = query.clone();
        while count > 0 {
            query.limit = count.min(PAGE);
            let page = self.list(&query)?;
            let Some(next) = page.next else { return Ok(None) };
            count = count.saturating_sub(page.items.len());
            query.after = Some(next);
        }
        Ok(Some(query.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_weeks_days_hours_and_less() {
        let seconds = |text| Retention::parse_idle(text).map(|idle| idle.as_secs()).ok();
        assert_eq!(seconds("90d"), Some(90 * 86_400));
        assert_eq!(seconds("1w 2h"), Some((7 * 24 + 2) * 3600));
        assert_eq!(seconds("0s"), Some(0));
        assert_eq!(seconds("5min"), Some(300));
        for bad in ["", "90", "-1d", "1m", "2 M", "1h3m", "2 months", "1y", "x", "999999999999999w"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
