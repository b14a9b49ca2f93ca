//! Whose conversations are served, and what is done with them.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::log::locked;
use crate::model::{ConversationId, Name};
use crate::search::{SearchPage, SearchQuery};
use crate::store::Store;

/// How the address of a conversation begins, before its id.
pub(super) const SCHEME: &str = "convo://conversations/";

/// Serves one owner's conversations to agents.
///
/// ```no_run
/// use conversation_store::Store;
/// use conversation_store::mcp::{McpServer, Opened};
/// use conversation_store::search::{Language, SearchIndex};
/// use std::sync::Arc;
///
/// let (store, index) = (Store::open("sled:./convo.db")?, Arc::new(SearchIndex::in_memory(Language::default())?));
/// let open = move || {
///     let index = Arc::clone(&index);
///     Ok(Opened::new(store.clone(), move |store, query| store.search(&index, query)))
/// };
/// McpServer::new(open).with_owner("ada").serve_stdio()?;
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone)]
pub struct McpServer {
    pub(super) open: Arc<dyn Fn() -> Result<Opened> + Send + Sync>,
    pub(super) owner: String,
    pub(super) may_write: bool,
    /// What the last call was refused for want of: a repetition may succeed.
    pub(super) busy: Arc<Mutex<Option<Error>>>,
}

type Search = Box<dyn Fn(&Store, &SearchQuery) -> Result<SearchPage> + Send + Sync>;

/// A store, and what searches it, while a call runs.
pub struct Opened {
    pub(super) store: Store,
    pub(super) search: Search,
}

impl Opened {
    /// A store, and what searches it.
    pub fn new(
        store: Store,
        search: impl Fn(&Store, &SearchQuery) -> Result<SearchPage> + Send + Sync + 'static,
    ) -> Self {
        Self { store, search: Box::new(search) }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("store", &self.store).finish_non_exhaustive()
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, may_write, .. } = self;
        f.debug_struct("McpServer").field("owner", owner).field("may_write", may_write).finish_non_exhaustive()
    }
}

impl McpServer {
    /// The conversations without an owner, to be read only. `open` is called for each call of a tool: what it opens is dropped when
    /// the call has ended.
    pub fn new(open: impl Fn() -> Result<Opened> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), owner: String::new(), may_write: false, busy: Arc::default() }
    }

    /// Sets whose conversations are served.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Sets whether agents may append notes, tag, and fork.
    #[must_use]
    pub const fn with_writing(mut self, may_write: bool) -> Self {
        self.may_write = may_write;
        self
    }

    /// What the last call was refused for want of, if it was: a repetition of it may succeed.
    #[cfg(feature = "server")]
    pub(crate) fn take_busy(&self) -> Option<Error> {
        locked(&self.busy).take()
    }

    /// A conversation of the owner's: a UUID, a key, or the address of its resource.
    pub(super) fn name(&self, text: &str) -> Name {
        let text = text.strip_prefix(SCHEME).unwrap_or(text);
        // As the server's API for OpenAI's clients writes it.
        let id = text.strip_prefix("conv_").filter(|digits| digits.len() == 32);
        let name = match id.and_then(|digits| digits.parse::<ConversationId>().ok()) {
            Some(id) => Name::from(id),
            None => Name::from(text),
        };
        name.with_owner(&*self.owner)
    }
}
