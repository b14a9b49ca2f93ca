//! Rows of the database as values of the log, and what its functions answer.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::statement::{Statement, Value, signed};
use crate::error::{Error, Result};
use crate::log::ExpectedHead;
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Header, Lag, Parent, Record, TitleSource};

/// The opening in which all messages of this log are begun: whether one is still written, its lease says.
pub(super) const EPOCH: u64 = 1;

/// The columns of a conversation, for [`conversation`].
macro_rules! conversation_columns {
    () => {
        "t.conv_id, t.incarnation, t.commit_no, t.next_seq, t.next_message, t.last_hide, t.last_meta, t.created, \
         t.last_activity, t.owner, t.key, t.parent_id, t.parent_seq, t.parent_incarnation, t.parent_commit, \
         t.origin_hide, t.origin_meta, t.origin_message, t.origin_commit, t.title, t.title_kind, t.title_message, t.tags, t.minute, \
         t.open_messages, t.interrupted, t.redactions, t.deleted"
    };
}
/// The columns of a record, for [`Kept`].
macro_rules! record_columns {
    () => {
        "r.first_seq, r.commit_no, r.written, r.base, r.next_message, r.entries, r.cut, r.body"
    };
}
pub(super) use {conversation_columns, record_columns};

/// A conversation as the database has it.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) id: ConversationId,
    pub(super) head: Head,
    /// Grows with each change of the row.
    pub(super) commit: u64,
    /// How often something in its own log was redacted.
    pub(super) redactions: u64,
    pub(super) deleted: bool,
    pub(super) origin: Beginning,
}

/// What was so when a conversation was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginning {
    pub(super) last_hide: u64,
    pub(super) last_meta: u64,
    pub(super) next_message: u64,
    pub(super) commit: u64,
}

/// A column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|error| corrupt(format!("the column {column}: {error}")))
}

/// A column that holds a number from 0.
pub(super) fn number(row: &Row, column: &str) -> Result<u64> {
    unsigned(get(row, column)?)
}

/// A column that may hold a number from 0.
pub(super) fn some_number(row: &Row, column: &str) -> Result<Option<u64>> {
    get::<Option<i64>>(row, column)?.map(unsigned).transpose()
}

fn unsigned(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| corrupt(format!("the number {number} is below 0")))
}

fn numbers(row: &Row, column: &str) -> Result<Vec<u64>> {
    get::<Vec<i64>>(row, column)?.into_iter().map(unsigned).collect()
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| corrupt(format!("a text: {error}")))
}

/// A column that holds an id or a digest.
pub(super) fn id(row: &Row, column: &str) -> Result<ConversationId> {
    Ok(ConversationId::from_bytes(digest(row, column)?))
}

/// A column that holds 16 bytes.
pub(super) fn digest(row: &Row, column: &str) -> Result<[u8; 16]> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| corrupt(format!("the column {column} has {} bytes in place of 16", bytes.len())))
}

/// The conversation of a row with its columns.
pub(super) fn conversation(row: &Row) -> Result<Stored> {
    let parent = match get::<Option<&[u8]>>(row, "parent_id")? {
        Some(_) => Some(Parent {
            conversation: digest(row, "parent_id")?,
            at_seq: number(row, "parent_seq")?,
            incarnation: number(row, "parent_incarnation")?,
            commit: number(row, "parent_commit")?,
        }),
        None => None,
    };
    let title_source = match get::<i16>(row, "title_kind")? {
        0 => TitleSource::Pending,
        1 => TitleSource::Message(number(row, "title_message")?),
        _ => TitleSource::Caller,
    };
    let head = Head {
        next_seq: number(row, "next_seq")?,
        next_message_index: number(row, "next_message")?,
        last_hide: number(row, "last_hide")?,
        last_meta: number(row, "last_meta")?,
        created: get(row, "created")?,
        last_activity: get(row, "last_activity")?,
        incarnation: number(row, "incarnation")?,
        owner: text(get(row, "owner")?)?,
        key: get::<Option<Vec<u8>>>(row, "key")?.map(text).transpose()?,
        parent,
        title: get::<Option<Vec<u8>>>(row, "title")?.map(text).transpose()?,
        title_source,
        tags: get::<Vec<Vec<u8>>>(row, "tags")?.into_iter().map(text).collect::<Result<_>>()?,
        open: numbers(row, "open_messages")?,
        interrupted: numbers(row, "interrupted")?,
        lag: Lag::default(),
    };
    if head.next_seq < head.first_seq() {
        return Err(corrupt(format!("its next seq {} is before its first {}", head.next_seq, head.first_seq())));
    }
    Ok(Stored {
        id: id(row, "conv_id")?,
        head,
        commit: number(row, "commit_no")?,
        redactions: number(row, "redactions")?,
        deleted: get(row, "deleted")?,
        origin: Beginning {
            last_hide: number(row, "origin_hide")?,
            last_meta: number(row, "origin_meta")?,
            next_message: number(row, "origin_message")?,
            commit: number(row, "origin_commit")?,
        },
    })
}

/// What of a head says where its title comes from: two columns.
const fn title_columns(source: TitleSource) -> (i16, u64) {
    match source {
        TitleSource::Pending => (0, 0),
        TitleSource::Message(index) => (1, index),
        TitleSource::Caller => (2, 0),
    }
}

/// Title and tags of a head, as a statement takes them.
pub(super) fn with_names(statement: Statement, head: &Head) -> Statement {
    let (kind, message) = title_columns(head.title_source);
    statement.with(head.title.as_deref()).with(kind).with(Value::Number(Some(signed(message)))).with(tags(&head.tags))
}

/// Tags as a statement takes them.
pub(super) fn tags(tags: &[String]) -> Vec<Vec<u8>> {
    tags.iter().map(|tag| tag.as_bytes().to_vec()).collect()
}

/// A record as the database has it.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    pub(super) first_seq: u64,
    pub(super) entries: u64,
    header: Header,
    body: &'a [u8],
}

impl<'a> Kept<'a> {
    /// The record of a row with its columns. `origin`: what a first record says.
    pub(super) fn of(row: &'a Row) -> Result<Self> {
        let header = Header {
            time: get(row, "written")?,
            base: number(row, "base")?,
            next_message_index: number(row, "next_message")?,
            commit: number(row, "commit_no")?,
            cut: get(row, "cut")?,
            deleted: false,
            origin: None,
        };
        Ok(Self {
            first_seq: number(row, "first_seq")?,
            entries: number(row, "entries")?,
            header,
            body: get(row, "body")?,
        })
    }

    /// The record, checked.
    pub(super) fn open(&self, conversation: ConversationId) -> Result<Record<'a>> {
        let record = Record::beside(conversation, self.first_seq, self.header.clone(), self.body)?;
        if record.len() != self.entries {
            let (conversation, seq) = (Some(conversation.into()), Some(self.first_seq));
            let detail = format!("it has {} entries, and should have {}", record.len(), self.entries);
            return Err(Error::Corrupt { conversation, seq, detail });
        }
        Ok(record)
    }
}

/// That something in the database is not what the log writes there.
pub(super) fn corrupt(detail: String) -> Error {
    Error::Corrupt { conversation: None, seq: None, detail: format!("the database: {detail}") }
}

/// What a function of the database answers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    KeyUsed,
    NotAsExpected,
    AnotherOwners,
    SharedByForks,
    Closed,
    HolderExpired,
    LeaseExpired,
    Moved,
    Held,
    Gone,
}

impl Outcome {
    pub(super) fn of(row: &Row) -> Result<Self> {
        Ok(match get::<i32>(row, "o_outcome")? {
            0 => Self::Done,
            1 => Self::KeyUsed,
            2 => Self::NotAsExpected,
            3 => Self::AnotherOwners,
            4 => Self::SharedByForks,
            5 => Self::Closed,
            6 => Self::HolderExpired,
            7 => Self::LeaseExpired,
            8 => Self::Moved,
            9 => Self::Held,
            10 => Self::Gone,
            other => return Err(unexpected(&format!("the outcome {other}"))),
        })
    }

    /// That a function gave an outcome that it never gives.
    pub(super) fn unexpected(self) -> Error {
        unexpected(&format!("the outcome {self:?}"))
    }
}

fn unexpected(what: &str) -> Error {
    corrupt(format!("a function gave {what}, which is not expected: is its schema of another program?"))
}

/// The error of an append or a begin that was not taken.
pub(super) fn refused(outcome: Outcome, row: &Row, name: &Name, expected: ExpectedHead) -> Error {
    let conversation = name.clone();
    let actual = some_number(row, "o_last").ok().flatten().unwrap_or_default();
    match (outcome, expected) {
        (Outcome::NotAsExpected, ExpectedHead::NewConversation) => Error::NameTaken { conversation, actual },
        (Outcome::NotAsExpected, ExpectedHead::At(expected)) => Error::StaleHead { conversation, expected, actual },
        (Outcome::NotAsExpected, ExpectedHead::AtCursor(at))
            if at.incarnation.is_some() && !matches!(get::<Option<bool>>(row, "is_same"), Ok(Some(true))) =>
        {
            Error::StaleCursor { conversation }
        }
        (Outcome::NotAsExpected, ExpectedHead::AtCursor(at)) => {
            Error::StaleHead { conversation, expected: at.seq, actual }
        }
        (Outcome::AnotherOwners | Outcome::Gone, _) => Error::no_conversation(name),
        (Outcome::SharedByForks, _) => Error::SharedByForks { conversation },
        (other, _) => other.unexpected(),
    }
}

/// What a conversation has to be for a record to be taken, as a statement takes it: a cursor's incarnation is checked beside.
pub(super) fn expected(head: ExpectedHead) -> i64 {
    match head {
        ExpectedHead::AtCursor(at) => signed(at.seq),
        ExpectedHead::Any => -1,
        ExpectedHead::NewConversation => -2,
        ExpectedHead::At(seq) => signed(seq),
    }
}

/// The digests of a body's item ids, and the places of their entries.
pub(super) fn items(body: &Body) -> (Vec<Vec<u8>>, Vec<i64>) {
    let items = body.items().iter();
    items.map(|(at, item)| (record::digest(item.as_bytes()).to_vec(), signed(*at))).unzip()
}

/// 20 bits that no two conversations are likely to share.
pub(super) fn random() -> i64 {
    let [.., a, b, c] = *ConversationId::new().as_bytes();
    i64::from(u32::from_be_bytes([0, a, b, c]) & 0xF_FFFF)
}
