//! Calls that wait for a result, or results that wait for a call: in order, and by the tool that they name.

use std::collections::{HashMap, VecDeque};

use super::super::group::StoredMessage;
use super::site::Site;
use crate::model::Body;

/// Places in the order of the log. What was paired is skipped when it is met, so that each place is looked at a few times
/// only, however many wait.
#[derive(Debug, Default)]
pub(super) struct Waiting<'a> {
    sites: Vec<Site>,
    /// Before this one, all are gone.
    first: usize,
    /// Before this one, no call of the provider's own waits.
    server: usize,
    /// By the tool that they name, from the first time on that the order does not decide.
    named: Option<HashMap<&'a str, VecDeque<Site>>>,
}

impl<'a> Waiting<'a> {
    /// Adds a place after all others.
    pub(super) fn push(&mut self, site: Site, messages: &'a [StoredMessage]) {
        self.sites.push(site);
        if let Some(named) = &mut self.named {
            add(named, site, messages);
        }
    }

    /// The position of the last one's message.
    pub(super) fn message(&self) -> Option<usize> {
        self.sites.last().map(|site| site.message)
    }

    /// The first that is not gone.
    pub(super) fn first(&mut self, is_gone: impl Fn(Site) -> bool) -> Option<Site> {
        while let Some(site) = self.sites.get(self.first) {
            if !is_gone(*site) {
                return Some(*site);
            }
            self.first += 1;
        }
        None
    }

    /// The first that is not gone and names the tool; if none does, the first.
    pub(super) fn find(
        &mut self,
        name: Option<&str>,
        messages: &'a [StoredMessage],
        is_gone: impl Fn(Site) -> bool,
    ) -> Option<Site> {
        let first = self.first(&is_gone)?;
        let Some(name) = name.filter(|name| name_at(messages, first) != Some(name)) else { return Some(first) };
        let waiting = self.sites.get(self.first..).unwrap_or_default();
        let named = self.named.get_or_insert_with(|| {
            let mut named = HashMap::new();
            waiting.iter().for_each(|site| add(&mut named, *site, messages));
            named
        });
        let Some(queue) = named.get_mut(name) else { return Some(first) };
        while queue.front().is_some_and(|site| is_gone(*site)) {
            queue.pop_front();
        }
        Some(queue.front().copied().unwrap_or(first))
    }

    /// The first call that is not gone and that the provider runs itself.
    pub(super) fn server(&mut self, messages: &[StoredMessage], is_gone: impl Fn(Site) -> bool) -> Option<Site> {
        while let Some(site) = self.sites.get(self.server) {
            if is_servers(messages, *site) && !is_gone(*site) {
                return Some(*site);
            }
            self.server += 1;
        }
        None
    }

    pub(super) fn into_sites(self) -> Vec<Site> {
        self.sites
    }
}

fn add<'a>(named: &mut HashMap<&'a str, VecDeque<Site>>, site: Site, messages: &'a [StoredMessage]) {
    if let Some(name) = name_at(messages, site) {
        named.entry(name).or_default().push_back(site);
    }
}

fn body(messages: &[StoredMessage], site: Site) -> Option<&Body> {
    messages.get(site.message)?.message.chunks.get(site.chunk).map(|chunk| &chunk.body)
}

/// The tool that a call or a result names.
fn name_at(messages: &[StoredMessage], site: Site) -> Option<&str> {
    match body(messages, site)? {
        Body::ToolCall { name, .. } => Some(name),
        Body::ToolResult { name, .. } => name.as_deref(),
        _ => None,
    }
}

fn is_servers(messages: &[StoredMessage], site: Site) -> bool {
    matches!(body(messages, site), Some(Body::ToolCall { server: true, .. }))
}
