//! The book: one entry for each call of a model, in the log itself. Nothing of it is anywhere else, so a restart loses nothing, and
//! all servers that share a store share it.
//!
//! An owner's entries are the messages of one conversation of an owner that no key can have. What an entry is found by are the ids
//! of its chunks, which every log has an index of: the digest of what was asked, the exchange, the scope of what it began.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::meaning::{Digest, Key};
use crate::error::{Error, Result};
use crate::history::{EntryKind, StoredMessage};
use crate::log::NewConversation;
use crate::log::reading::PageSize;
use crate::model::{Body, Chunk, ConversationId, Json, Message, Metadata, Name, Role};
use crate::server::app::App;
use crate::server::exchanges::Exchanges;
use crate::server::keys::random;
use crate::store::Store;

/// Whose conversations the books are: no key can have this owner.
const OWNER: &str = "convo:proxy";
/// What the id of a call begins with, and that of its end.
const ASKED: &str = "asked ";
const END: &str = "end ";
/// What the key of a book begins with, before the owner.
const OF: &str = "owner ";

/// A call of a model, when its request was stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) exchange: Uuid,
    pub(super) how: How,
    pub(super) conversation: ConversationId,
    /// The index of the first message after what was asked: where the answer's run begins.
    pub(super) from: u64,
    /// The messages of the run before the answer, by their indexes: what the client gave the model to go on with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) kept: Vec<u64>,
    /// The answer before this one, by its index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer_before: Option<u64>,
    #[serde(with = "hex")]
    pub(super) scope: Digest,
    /// Known if the client named no session.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub(super) surroundings: Option<Digest>,
    /// Of the client's key at the upstream, known if the client named no session.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub(super) account: Option<Digest>,
    /// Of the model, known if the client named no session.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub(super) model: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub(super) user: Option<Digest>,
    /// Of the calls' ids before the answer; absent if the client made some of them up.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub(super) calls: Option<Digest>,
    /// Of the ids that the client gave its messages, if it gave some.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub(super) items: Option<Digest>,
}

/// What a request is to what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// The first of a conversation.
    New,
    /// It goes on with one.
    Continued,
    /// It leaves one at an earlier place.
    Forked,
    /// It repeats a call that got no whole answer.
    Attempt,
}

impl How {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Continued => "continued",
            Self::Forked => "forked",
            Self::Attempt => "attempt",
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// Why nothing is recorded of it. An upstream's words are apart: [`Book::note_words`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The answer's index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<u64>,
}

impl Entry {
    /// Whether the client named its session.
    pub(super) const fn has_session(&self) -> bool {
        self.surroundings.is_none()
    }
}

impl End {
    pub(super) const fn of(state: State) -> Self {
        Self { state, status: None, error: None, message: None }
    }
}

/// What has become of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It is on its way.
    Started,
    /// The answer is stored whole.
    Complete,
    /// The answer ended early.
    Cut,
    /// The provider makes the answer in the background. It is stored when a client gets it.
    Queued,
    /// The answer was stopped by a call of the API, or its client went on without the rest of it.
    Stopped,
    /// The upstream answered with an error, or not at all.
    Failed,
    /// The answer came faster than it could be stored: its beginning is stored.
    TooFast,
    /// The request is larger than what is recorded.
    TooLarge,
    /// The request or the answer could not be read.
    Unreadable,
    /// The client named no session, and the settings want no such calls.
    NoSession,
    /// The store failed.
    StoreFailed,
}

impl State {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Complete => "complete",
            Self::Cut => "cut",
            Self::Queued => "queued",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::TooFast => "too_fast",
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::NoSession => "no_session",
            Self::StoreFailed => "store_failed",
        }
    }
}

/// A conversation that began in a scope, or whose past was rewritten while another one was newer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Beginning {
    pub(super) conversation: ConversationId,
    /// Whether its first call had tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_tools: bool,
}

/// An upstream's words for an error in place of an answer.
#[derive(Serialize, Deserialize)]
struct Words {
    words: String,
}

/// A call that has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ended {
    exchange: Uuid,
}

/// What the end of a call is found by.
#[derive(Clone, Copy, Debug)]
pub(super) enum FoundBy<'a> {
    /// The id of its answer.
    Response(&'a str),
    /// What was asked, and the first call in its answer whose id is no other's.
    Call { asked: &'a Digest, id: &'a str },
    /// The conversation of its request. It has no answer.
    Unanswered(ConversationId),
}

/// The book of an owner.
#[derive(Debug)]
pub(super) struct Book<'a> {
    pub(super) store: &'a Store,
    pub(super) owner: &'a str,
    name: Name,
    pub(super) key: Key,
}

#[derive(Serialize, Deserialize)]
struct Secret {
    #[serde(with = "hex")]
    key: [u8; 32],
}

/// The book of an owner.
pub(crate) fn book(owner: &str) -> Name {
    Name::from(format!("{OF}{owner}")).with_owner(OWNER)
}

/// Whose book a conversation is, if it is one.
pub(crate) fn whose_book(name: &Name) -> Option<&str> {
    name.key().filter(|_| name.owner() == Some(OWNER))?.strip_prefix(OF)
}

/// Whether messages of a book note the end of a call.
pub(crate) fn is_end(messages: &[Message]) -> bool {
    let ids = messages.iter().flat_map(|message| &message.chunks).map(|chunk| chunk.id.as_deref());
    ids.take(1).any(|id| id.is_some_and(|id| id.starts_with(END)))
}

impl Secret {
    fn random() -> Result<Self> {
        Ok(Self { key: random()? })
    }

    fn read(metadata: Option<Json>) -> Option<Self> {
        serde_json::from_str(metadata?.as_str()).ok()
    }
}

/// A key of an owner, the same at all servers of a store.
pub(crate) fn owner_key(app: &App, owner: &str) -> Result<[u8; 32]> {
    Book::open(&app.store, &app.exchanges, owner)?;
    app.exchanges.key_of(owner, || Err(Error::Closed))
}

impl<'a> Book<'a> {
    /// The book of an owner, which is begun if there is none.
    pub(super) fn open(store: &'a Store, exchanges: &Exchanges, owner: &'a str) -> Result<Self> {
        let name = book(owner);
        let key = exchanges.key_of(owner, || {
            let known = match store.metadata(&name) {
                Err(Error::NotFound { .. }) => {
                    let new = Secret::random()?;
                    match store.create(&name, &NewConversation::new().with_metadata(json(&new)?)) {
                        Ok(_) => return Ok(new.key),
                        // Another server was faster.
                        Err(Error::NameTaken { .. }) => store.metadata(&name)?,
                        Err(error) => return Err(error),
                    }
                }
                known => known?,
            };
            if let Some(known) = Secret::read(known) {
                return Ok(known.key);
            }
            // Somebody has deleted the book: what is left of it is known by no key.
            let new = Secret::random()?;
            store.set_metadata(&name, &json(&new)?)?;
            Ok(new.key)
        })?;
        Ok(Self { store, owner, name, key: Key::new(&key) })
    }

    /// The book of an owner, if there is one.
    pub(super) fn known(store: &'a Store, owner: &'a str) -> Result<Option<Self>> {
        let name = book(owner);
        let known = match store.metadata(&name) {
            Err(Error::NotFound { .. }) => None,
            known => Secret::read(known?),
        };
        Ok(known.map(|known| Self { store, owner, name, key: Key::new(&known.key) }))
    }

    /// A conversation of the owner.
    pub(super) fn own(&self, conversation: ConversationId) -> Name {
        Name::from(conversation).with_owner(self.owner)
    }

    /// A message, hidden or not.
    pub(super) fn message(&self, name: &Name, index: u64) -> Result<Option<StoredMessage>> {
        let size = PageSize { limit: 1, bytes: 0, shows_hidden: true };
        let (messages, _) = self.store.page(name, index, size)?;
        Ok(messages.into_iter().find(|stored| stored.index == index))
    }

    /// Writes the entry of a call, under the digest of what was asked; and the conversation that it begins in its scope, if it
    /// begins one there.
    pub(super) fn write(&self, asked: &Digest, entry: &Entry, begins: Option<&Beginning>) -> Result<()> {
        let mut chunks =
            vec![line(asked_id(asked), entry)?, Chunk { id: Some(exchange_id(entry.exchange)), ..Chunk::text("") }];
        if let Some(beginning) = begins {
            chunks.push(line(scope_id(&entry.scope), beginning)?);
        }
        self.append(chunks)
    }

    /// Writes how a call ended.
    ///
    /// `found_by`: what later requests may find it by, beside its exchange.
    pub(super) fn end(&self, exchange: Uuid, end: &End, found_by: &[FoundBy<'_>]) -> Result<()> {
        let mut chunks = vec![line(end_id(exchange), end)?];
        for found_by in found_by {
            let id = match found_by {
                FoundBy::Response(id) => self.response_id(id),
                FoundBy::Call { asked, id } => self.call_id(asked, id),
                FoundBy::Unanswered(conversation) => unanswered_id(*conversation),
            };
            chunks.push(line(id, &Ended { exchange })?);
        }
        self.append(chunks)
    }

    /// Writes an upstream's words for an error. They may quote what was said, and go with it.
    pub(super) fn note_words(&self, exchange: Uuid, conversation: ConversationId, words: String) -> Result<()> {
        let failed = Chunk { id: Some(failed_id(conversation)), ..Chunk::text("") };
        self.append(vec![line(words_id(exchange), &Words { words })?, failed])?;
        // It may have been erased meanwhile.
        match self.store.log().view(&self.own(conversation))? {
            Some(_) => Ok(()),
            None => self.forget(conversation),
        }
    }

    /// An upstream's words for an error of a call, if it had some, and they were not erased.
    pub(super) fn words(&self, exchange: Uuid) -> Result<Option<String>> {
        let found: Option<Words> = self.find(&words_id(exchange), 1)?.pop();
        Ok(found.map(|found| found.words))
    }

    /// Erases the words for errors of all calls of a conversation.
    pub(super) fn forget(&self, conversation: ConversationId) -> Result<()> {
        for seq in self.seqs(&failed_id(conversation), usize::MAX)? {
            // The words themselves are the chunk before.
            let before = seq.saturating_sub(1);
            let found = self.store.entries(&self.name, before..=before, 1)?;
            let words = found.iter().find(|entry| read::<Words>(&entry.kind, None).is_some());
            if let Some(message) = words.and_then(|entry| entry.message_index) {
                self.store.redact(&self.name, message, None)?;
            }
        }
        Ok(())
    }

    fn append(&self, chunks: Vec<Chunk>) -> Result<()> {
        self.store
            .append(&self.name, &[Message { metadata: Metadata::default(), ..Message::new(Role::System, chunks) }])?;
        Ok(())
    }

    /// The calls whose requests had this digest, the newest first.
    pub(super) fn asked(&self, digest: &Digest, most: usize) -> Result<Vec<Entry>> {
        self.find(&asked_id(digest), most)
    }

    /// The conversations that began last in a scope, the newest first. One may be there twice.
    pub(super) fn begun_in(&self, scope: &Digest, most: usize) -> Result<Vec<Beginning>> {
        self.find(&scope_id(scope), most)
    }

    /// The conversation that began last in a scope.
    pub(super) fn newest_in(&self, scope: &Digest) -> Result<Option<ConversationId>> {
        Ok(self.begun_in(scope, 1)?.first().map(|beginning| beginning.conversation))
    }

    /// The call whose answer has this id.
    pub(super) fn response(&self, id: &str) -> Result<Option<Entry>> {
        Ok(self.that_ended(&self.response_id(id))?.map(|(_, entry)| entry))
    }

    /// The newest call of a model that was asked this, and whose answer calls a tool by this id.
    pub(super) fn that_calls(&self, asked: &Digest, id: &str) -> Result<Option<Entry>> {
        Ok(self.that_ended(&self.call_id(asked, id))?.map(|(_, entry)| entry))
    }

    /// The newest call of a conversation that ended without an answer, and the digest of what it asked.
    pub(super) fn unanswered(&self, conversation: ConversationId) -> Result<Option<(Digest, Entry)>> {
        self.that_ended(&unanswered_id(conversation))
    }

    fn that_ended(&self, id: &str) -> Result<Option<(Digest, Entry)>> {
        let found: Option<Ended> = self.find(id, 1)?.pop();
        found.map_or(Ok(None), |ended| self.call(ended.exchange))
    }

    /// How a call ended, if it has.
    pub(super) fn ended(&self, exchange: Uuid) -> Result<Option<End>> {
        Ok(self.find(&end_id(exchange), 1)?.pop())
    }

    /// The entry of a call.
    pub(super) fn exchange(&self, exchange: Uuid) -> Result<Option<Entry>> {
        Ok(self.call(exchange)?.map(|(_, entry)| entry))
    }

    /// The entry of a call, and the digest of what it asked.
    fn call(&self, exchange: Uuid) -> Result<Option<(Digest, Entry)>> {
        let Some(seq) = self.seqs(&exchange_id(exchange), 1)?.pop() else { return Ok(None) };
        // The entry itself is the chunk before.
        let before = seq.saturating_sub(1);
        let found = self.store.entries(&self.name, before..=before, 1)?;
        Ok(found.into_iter().find_map(|entry| Some((asked(&entry.kind)?, read(&entry.kind, None)?))))
    }

    fn response_id(&self, id: &str) -> String {
        format!("response {}", hex::encode(&self.key.digest([id.as_bytes()])))
    }

    fn call_id(&self, asked: &Digest, id: &str) -> String {
        format!("call {}", hex::encode(&self.key.digest([&asked[..], id.as_bytes()])))
    }

    fn seqs(&self, id: &str, most: usize) -> Result<Vec<u64>> {
        match self.store.log().view(&self.name)? {
            Some(view) => self.store.log().item_seqs(&view, id, most),
            None => Ok(Vec::new()),
        }
    }

    fn find<T: DeserializeOwned>(&self, id: &str, most: usize) -> Result<Vec<T>> {
        let mut found = Vec::new();
        for seq in self.seqs(id, most)?.into_iter().rev() {
            let entries = self.store.entries(&self.name, seq..=seq, 1)?;
            found.extend(entries.into_iter().filter_map(|entry| read(&entry.kind, Some(id))));
        }
        Ok(found)
    }
}

fn asked_id(digest: &Digest) -> String {
    format!("{ASKED}{}", hex::encode(digest))
}

/// The digest of what was asked, by the chunk of an entry.
fn asked(kind: &EntryKind) -> Option<Digest> {
    let EntryKind::Chunk { chunk, .. } = kind else { return None };
    hex::decode(chunk.id.as_deref()?.strip_prefix(ASKED)?)
}

fn scope_id(digest: &Digest) -> String {
    format!("scope {}", hex::encode(digest))
}

fn exchange_id(exchange: Uuid) -> String {
    format!("exchange {exchange}")
}

fn words_id(exchange: Uuid) -> String {
    format!("words {exchange}")
}

fn unanswered_id(conversation: ConversationId) -> String {
    format!("unanswered {conversation}")
}

fn failed_id(conversation: ConversationId) -> String {
    format!("failed {conversation}")
}

fn end_id(exchange: Uuid) -> String {
    format!("{END}{exchange}")
}

fn line(id: String, value: &impl Serialize) -> Result<Chunk> {
    Ok(Chunk { id: Some(id), ..Chunk::text(json(value)?.as_str()) })
}

pub(super) fn json(value: &impl Serialize) -> Result<Json> {
    let text = serde_json::to_string(value).map_err(|error| Error::InvalidInput(error.to_string()))?;
    Json::new(text).map_err(|error| Error::InvalidInput(error.to_string()))
}

fn read<T: DeserializeOwned>(kind: &EntryKind, id: Option<&str>) -> Option<T> {
    let EntryKind::Chunk { chunk, .. } = kind else { return None };
    if id.is_some() && chunk.id.as_deref() != id {
        return None;
    }
    let Body::Text { text, .. } = &chunk.body else { return None };
    serde_json::from_str(text).ok()
}

/// Digests as text.
pub(super) mod hex {
    use std::fmt::Write as _;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn encode(bytes: &[u8]) -> String {
        bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        if text.len() != N * 2 {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(bytes)
    }

    pub(crate) fn serialize<S: Serializer, const N: usize>(bytes: &[u8; N], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(from: D) -> Result<[u8; N], D::Error> {
        let text = String::deserialize(from)?;
        decode(&text).ok_or_else(|| serde::de::Error::custom("no digest"))
    }
}

mod hex_option {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::super::meaning::Digest;
    use super::hex;

    #[expect(clippy::ref_option, reason = "serde calls it with this type")]
    pub(crate) fn serialize<S: Serializer>(digest: &Option<Digest>, to: S) -> Result<S::Ok, S::Error> {
        match digest {
            Some(digest) => hex::serialize(digest, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Digest>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        Ok(text.and_then(|text| hex::decode(&text)))
    }
}
