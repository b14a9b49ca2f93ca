use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The namespace of conversation keys: a key's id is the UUID v5 of the key in it. Frozen with format version 1.
const KEY_NAMESPACE: Uuid = Uuid::from_u128(0x2f6d_3c0e_9b0a_5c51_8e1d_6b1f_0c3a_77d4);

/// The namespace of owners: the keys of an owner have the UUID v5 of the owner in it as their namespace. Frozen with format
/// version 1.
const OWNER_NAMESPACE: Uuid = Uuid::from_u128(0x5b1c_9a52_7d0e_5f43_a2c4_08f9_6c1e_3b90);

/// The identity of a conversation: a UUID. New ones are version 7, so they sort by time of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(Uuid);

impl ConversationId {
    /// A new id, from the clock and randomness.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two calls give two ids: no value is the default one")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id of the conversation with these 16 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The id as 16 bytes, in the order in which ids are sorted.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl From<Uuid> for ConversationId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl From<ConversationId> for Uuid {
    fn from(id: ConversationId) -> Self {
        id.0
    }
}

super::as_text!(ConversationId);

impl FromStr for ConversationId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How a caller names a conversation: by its id, or by a key of its own, such as `"chat-42"`; and by its owner, if it has
/// one.
///
/// A string of the form `8-4-4-4-12` hexadecimal digits is an id; any other string is a key. The id of a key is a UUID
/// v5 of it and of the owner, so one key of one owner always means one conversation; key and owner are stored with the
/// conversation.
///
/// A name with an owner means only what belongs to that owner: a conversation of another is not found. A key without an
/// owner means a conversation that was made without one; an id without an owner means that conversation, of any owner.
///
/// ```
/// use conversation_store::model::Name;
///
/// assert_eq!(Name::from("chat-42").id(), Name::from("chat-42").id());
/// assert_eq!(Name::from("chat-42").key(), Some("chat-42"));
/// assert_eq!(Name::from("1a997b08-09c2-412c-b296-48703c8aaf58").key(), None);
///
/// let ada = Name::from("chat-42").with_owner("ada");
/// assert_eq!((ada.owner(), ada.key()), (Some("ada"), Some("chat-42")));
/// assert_ne!(ada.id(), Name::from("chat-42").with_owner("grace").id());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    id: ConversationId,
    key: Option<String>,
    owner: Option<String>,
}

impl Name {
    /// The conversation's id.
    #[must_use]
    pub const fn id(&self) -> ConversationId {
        self.id
    }

    /// The caller's key, if the conversation was named by one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The owner, if one was given.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The same key, or the same id, as a conversation of this owner. The empty owner is the one of conversations that were
    /// made without an owner.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        let owner = owner.into();
        if let Some(key) = &self.key {
            self.id = id_of(&owner, key);
        }
        self.owner = Some(owner);
        self
    }

    /// Whether a conversation of this owner is meant.
    pub(crate) fn allows(&self, owner: &str) -> bool {
        match (&self.owner, &self.key) {
            (Some(wanted), _) => wanted == owner,
            (None, Some(_)) => owner.is_empty(),
            (None, None) => true,
        }
    }
}

/// The id of an owner's key.
fn id_of(owner: &str, key: &str) -> ConversationId {
    let namespace = if owner.is_empty() { KEY_NAMESPACE } else { Uuid::new_v5(&OWNER_NAMESPACE, owner.as_bytes()) };
    ConversationId(Uuid::new_v5(&namespace, key.as_bytes()))
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        const HYPHENATED: usize = 36;
        match Uuid::try_parse(text) {
            Ok(uuid) if text.len() == HYPHENATED => Self::from(ConversationId(uuid)),
            _ => Self { id: id_of("", text), key: Some(text.to_owned()), owner: None },
        }
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<ConversationId> for Name {
    fn from(id: ConversationId) -> Self {
        Self { id, key: None, owner: None }
    }
}

impl From<&ConversationId> for Name {
    fn from(id: &ConversationId) -> Self {
        Self::from(*id)
    }
}

impl From<Uuid> for Name {
    fn from(uuid: Uuid) -> Self {
        Self::from(ConversationId(uuid))
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => key.fmt(f),
            None => self.id.fmt(f),
        }
    }
}
