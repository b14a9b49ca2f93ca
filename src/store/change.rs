//! What happens to a conversation as a whole, or to messages that are there.

use super::Store;
use crate::error::Result;
use crate::history::Cursor;
use crate::log::{Control, ForkAt, Receipt, Redaction};
use crate::model::{ConversationId, Json, Name, StartedBy};

impl Store {
    /// Sets a conversation's title; `None` gives it back to the first user text. Durable.
    ///
    /// # Errors
    /// `NotFound`; `LimitExceeded` above 1 KiB; `Poisoned`.
    pub fn set_title(&self, name: impl Into<Name>, title: Option<&str>) -> Result<Receipt> {
        self.control(name, &Control::Title(title))
    }

    /// Replaces a conversation's metadata: a JSON object, kept as it is written. Durable. Give `{}` to empty it.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Json, Message};
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// store.set_metadata("chat", &Json::new("{\"project\":7}").unwrap())?;
    /// assert_eq!(store.metadata("chat")?.unwrap().as_str(), "{\"project\":7}");
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` if it is not an object; `LimitExceeded` above 64 KiB; `Poisoned`.
    pub fn set_metadata(&self, name: impl Into<Name>, metadata: &Json) -> Result<Receipt> {
        self.control(name, &Control::Metadata(metadata))
    }

    /// Adds tags to a conversation, and gives all that it has now, in the order in which they were added. Durable. A fork
    /// begins with those of its parent.
    ///
    /// ```
    /// use conversation_store::model::Message;
    /// use conversation_store::{ListQuery, Store};
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// assert_eq!(store.tag("chat", &["work", "later"])?, ["work", "later"]);
    /// assert_eq!(store.list(&ListQuery::new().with_tag("work"))?.items.len(), 1);
    /// assert_eq!(store.untag("chat", &["work"])?, ["later"]);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a blank tag; `LimitExceeded` above 32 tags or 1 KiB for one; `Poisoned`.
    pub fn tag(&self, name: impl Into<Name>, tags: &[&str]) -> Result<Vec<String>> {
        self.change_tags(name, &[], tags)
    }

    /// Links a conversation to what started it, by tags: see [`StartedBy`]. Durable.
    ///
    /// # Errors
    /// As [`Store::tag`].
    pub fn set_started_by(&self, name: impl Into<Name>, link: &StartedBy) -> Result<Vec<String>> {
        let tags = link.tags();
        self.tag(name, &tags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Removes tags from a conversation, and gives those that it still has. Durable.
    ///
    /// # Errors
    /// `NotFound`; `Poisoned`.
    pub fn untag(&self, name: impl Into<Name>, tags: &[&str]) -> Result<Vec<String>> {
        self.change_tags(name, tags, &[])
    }

    /// Hides every message that exists now and has an index of `to` or above, for example to edit or regenerate it.
    /// Durable. The entries stay.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no visible message of that index; `Poisoned`.
    pub fn rewind(&self, name: impl Into<Name>, to: u64) -> Result<Receipt> {
        self.control(name, &Control::Rewind { to })
    }

    /// Hides one message, or one chunk of it, from [`Store::load`], prompts and item look-ups. Durable. The log keeps it until
    /// [`Store::redact`] erases it.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::Message;
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("one"), Message::user("two")])?;
    /// store.remove("chat", 0, None)?;
    /// assert_eq!(store.load("chat")?.messages()[0].index, 1);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: reading the conversation, and one durable append.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no such visible message or chunk; `BeingWritten`; `Poisoned`.
    pub fn remove(&self, name: impl Into<Name>, message_index: u64, chunk_index: Option<u32>) -> Result<Receipt> {
        self.control(name, &Control::Remove { message: message_index, chunk: chunk_index })
    }

    /// Lets prompts use a summary in place of all messages up to `through`; system messages stay beside it. Durable. The
    /// messages stay too: [`Store::load`] gives them, and the summary as [`crate::Conversation::summary`].
    ///
    /// The newest summary counts. A rewind into what it covers undoes it, and the one before counts again. Where the
    /// summary comes from is the caller's matter; this crate calls no model.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::Message;
    /// use conversation_store::provider::{PromptOptions, Target, render};
    ///
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("My name is Ada."), Message::user("What is my name?")])?;
    /// store.summarize("chat", 0, "The user's name is Ada.")?;
    /// let prompt = render(Target::OPENAI_CHAT, &store.load("chat")?, &PromptOptions::new())?;
    /// assert!(prompt.request.get().contains("The user's name is Ada."));
    /// assert!(!prompt.request.get().contains("My name is Ada."));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: reading the conversation.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation, or no visible message `through`; `BeingWritten` while a message that it
    /// would cover is; `InvalidInput` for a blank summary, and if it would part a tool call from its result, or cover one
    /// that is still to be answered; `LimitExceeded`; `Poisoned`.
    pub fn summarize(&self, name: impl Into<Name>, through: u64, summary: &str) -> Result<Receipt> {
        self.control(name, &Control::Summarize { through, text: summary })
    }

    /// Makes a new conversation that shares this one's entries up to `at_seq` (all, if it is `None`), and gives its id.
    /// Durable. Costs the same whatever the length.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation or seq; `Poisoned`.
    pub fn fork(&self, name: impl Into<Name>, at_seq: Option<u64>) -> Result<ConversationId> {
        let id = ConversationId::new();
        self.fork_to(name, at_seq, id)?;
        Ok(id)
    }

    /// As [`Store::fork`], under a name of the caller's.
    ///
    /// # Errors
    /// As [`Store::fork`]; `NameTaken` if there is a conversation of that name; `SharedByForks`.
    pub fn fork_to(&self, name: impl Into<Name>, at_seq: Option<u64>, child: impl Into<Name>) -> Result<()> {
        self.fork_when(name, ForkAt { seq: at_seq, time: None }, child)
    }

    /// As [`Store::fork_to`], of what happened before now.
    pub(crate) fn fork_when(&self, name: impl Into<Name>, at: ForkAt, child: impl Into<Name>) -> Result<()> {
        let child = child.into();
        self.ask(name, |log, name| log.fork(name, at, &child).map_err(|error| error.named(&child)))
    }

    /// Erases a conversation. Durable. Its id may then be used again, from seq 1 on. The engine may keep the freed bytes
    /// until it reuses them.
    ///
    /// If the conversation has forks, what comes after the highest fork point is erased at once. The rest is erased with
    /// the last fork, and until then the id is not free.
    ///
    /// A conversation of which neither the head nor the first record can be read is erased whole. The list still states
    /// its owner. If that is lost too, it is erased by its key, or by its id without an owner.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` if nothing states whether it belongs to the name's owner; `Poisoned`.
    pub fn delete(&self, name: impl Into<Name>) -> Result<()> {
        self.ask(name, |log, name| log.delete(name, None))
    }

    /// As [`Store::delete`], if the conversation ends at this cursor: nothing is erased that the caller has not seen.
    ///
    /// # Errors
    /// As [`Store::delete`]; `StaleHead` if something was appended since; `StaleCursor` if the cursor is of an earlier
    /// conversation of this name.
    pub fn delete_at(&self, name: impl Into<Name>, cursor: impl Into<Cursor>) -> Result<()> {
        let cursor = cursor.into();
        self.ask(name, |log, name| log.delete(name, Some(cursor)))
    }

    /// Erases the content of a message, or of one chunk of it, for good: texts, arguments, results, images, native data,
    /// unknown fields, a title that came from it. Even if one chunk is erased, parts of the message's header are erased with
    /// it, because they may quote it: native data, unknown fields, a finish reason that this crate does not know, a usage
    /// with words. If a whole message is erased, its usage is erased in any case. Role, indices, ids, models, times and the
    /// names of tools stay. Durable.
    ///
    /// All forks that share the message are affected. A conversation that is already loaded changes when it is
    /// [refreshed](Store::refresh). Followers of the forks get no entry. An append with the idempotency key of a redacted one
    /// is answered as before, whatever it holds.
    ///
    /// Summaries, and titles, tags and metadata that a caller set, stay as they are: they are no message's content. The answer
    /// names those of this conversation that may quote what was erased. To be rid of them, fork the conversation at the seq
    /// before the first of them, append to the fork what came after, and delete the conversation. Backups, and bytes that
    /// the engine freed and has not reused, are not affected.
    ///
    /// Cost: reading the conversation, and writing the message's records again.
    ///
    /// # Errors
    /// `NotFound`; `BeingWritten`; `Corrupt` if a part of the message may be where nothing can be read, or
    /// `UnsupportedVersion` if it may be in what a newer version of this crate wrote: the rest is redacted; `Poisoned`.
    pub fn redact(&self, name: impl Into<Name>, message_index: u64, chunk_index: Option<u32>) -> Result<Redaction> {
        self.ask(name, |log, name| log.redact(name, message_index, chunk_index))
    }

    fn control(&self, name: impl Into<Name>, control: &Control<'_>) -> Result<Receipt> {
        self.ask(name, |log, name| Ok(log.control(name, control)?.receipt))
    }

    fn change_tags(&self, name: impl Into<Name>, remove: &[&str], add: &[&str]) -> Result<Vec<String>> {
        self.ask(name, |log, name| Ok(log.control(name, &Control::Tags { remove, add })?.tags))
    }
}
