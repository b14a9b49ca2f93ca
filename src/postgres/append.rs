//! Appends: a function locks the head and gives the numbers. Those that wait at one time share a call of it: [`gathering`].
//!
//! [`gathering`]: super::gathering

use tokio_postgres::Row;

use super::Postgres;
use super::change::Attempts;
use super::gate::Gate;
use super::rows::{self, EPOCH, Outcome, digest, items, number, random, refused};
use super::statement::{Statement, Value};
use super::streams::Open;
use super::writers::Writer;
use crate::error::{Error, Result};
use crate::log::append::{self, Terms};
use crate::log::decision::{self, Decision};
use crate::log::replay::title;
use crate::log::segments::Segmented as _;
use crate::log::{AppendOptions, Changes, ExpectedHead, NewConversation, Receipt};
use crate::model::{ConversationId, Message, Metadata, Name, Role, Timestamp};
use crate::record::{self, Body, Head, TitleSource};

/// What is appended, beside its entries.
#[derive(Default)]
struct Extra<'a> {
    messages: u64,
    said: &'a [Message],
    /// What a conversation is made with.
    made: Option<Head>,
    time: Option<Timestamp>,
}

/// The title that an append gives: from one of its messages (1), or from the caller (2); and the message's place in it.
fn said(extra: &Extra<'_>) -> Option<(String, i16, u64)> {
    let said = title(extra.said).map(|(at, title)| (title, 1_i16, at));
    said.or_else(|| {
        let head = extra.made.as_ref().filter(|head| head.title_source == TitleSource::Caller)?;
        Some((head.title.clone()?, 2, 0))
    })
}

/// What a record is appended with, whichever function appends it.
pub(super) struct Given {
    pub(super) id: ConversationId,
    pub(super) owner: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
    pub(super) time: i64,
    pub(super) body: Vec<u8>,
    pub(super) entries: u64,
    pub(super) messages: u64,
    pub(super) title: Option<(String, i16, u64)>,
    tags: Option<Vec<Vec<u8>>>,
    /// The digests of an idempotency key, and of the content that it was given with.
    pub(super) idempotency: Option<([u8; 16], [u8; 16])>,
    /// The digests of item ids, and the places of their entries.
    pub(super) items: (Vec<Vec<u8>>, Vec<i64>),
}

impl Given {
    fn new(gate: &Gate, name: &Name, body: &Body, extra: &Extra<'_>, terms: Option<&Terms<'_>>) -> Self {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        let key = terms.and_then(|terms| terms.key.as_ref());
        Self {
            id: name.id(),
            owner: bytes(name.owner()),
            key: bytes(name.key()),
            time: gate.past(extra.time),
            body: record::seal_entries(name.id(), body),
            entries: body.entries(),
            messages: extra.messages,
            title: said(extra),
            tags: extra.made.as_ref().map(|head| rows::tags(&head.tags)),
            idempotency: key.map(|key| (key.digest, key.content_digest)),
            items: items(body),
        }
    }

    /// A call of a function that is given all of it. `between`: what it is given before the key.
    fn statement(self, sql: &'static str, between: impl FnOnce(Statement) -> Statement) -> Statement {
        let (title, kind, at) = self.title.map_or((None, 0, 0), |(title, kind, at)| (Some(title), kind, at));
        let (digests, places) = self.items;
        let first = Statement::once(sql)
            .with(self.id.as_bytes())
            .with(self.owner)
            .with(self.key)
            .with(self.time)
            .with(Value::Number(Some(random())))
            .with(self.body)
            .with(self.entries)
            .with(self.messages)
            .with(title.as_deref())
            .with(kind)
            .with(at)
            .with(self.tags);
        between(first)
            .with(self.idempotency.map(|(key, _)| key.to_vec()))
            .with(self.idempotency.map(|(_, content)| content.to_vec()))
            .with(digests)
            .with(places)
    }
}

/// An append by itself, which waits where somebody has locked its conversation. `makes`: tags and title are those that a
/// conversation is made with.
pub(super) fn by_itself(given: Given, makes: bool, expected: ExpectedHead, holder: Option<[u8; 16]>) -> Statement {
    const SQL: &str = "SELECT * FROM cs_append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
                       $16, $17, $18, $19)";
    // The row is locked before the function looks at it. No conversation ends at the greatest seq.
    const AT_CURSOR: &str = "SELECT same.is_same, appended.* FROM (SELECT (SELECT t.incarnation FROM cs_conversation t \
        WHERE t.conv_id = $1 FOR UPDATE) = $20 AS is_same) same, LATERAL cs_append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, \
        $10, $11, $12, $13, CASE WHEN same.is_same THEN $14 ELSE 9223372036854775807 END, $15, $16, $17, $18, $19) appended";
    let incarnation = incarnation(expected);
    let sql = if incarnation.is_some() { AT_CURSOR } else { SQL };
    let statement = given.statement(sql, |statement| statement.with(makes).with(rows::expected(expected)));
    let statement = statement.with(holder.map(|holder| holder.to_vec()));
    match incarnation {
        Some(incarnation) => statement.with(incarnation),
        None => statement,
    }
}

/// Which conversation it has to be.
pub(super) fn incarnation(expected: ExpectedHead) -> Option<u64> {
    match expected {
        ExpectedHead::AtCursor(at) => at.incarnation,
        _ => None,
    }
}

/// What is stored under a key, or was stored now.
fn stored_receipt(row: &Row, outcome: Outcome) -> Result<record::Receipt> {
    Ok(record::Receipt {
        first_seq: number(row, "o_first")?,
        last_seq: number(row, "o_last")?,
        first_message_index: number(row, "o_message")?,
        messages: number(row, "o_messages")?,
        content_digest: if outcome == Outcome::KeyUsed { digest(row, "o_content")? } else { [0; 16] },
    })
}

impl Postgres {
    pub(super) fn append_messages(
        &self,
        name: &Name,
        messages: &[Message],
        options: &AppendOptions,
    ) -> Result<Receipt> {
        let (body, terms) = append::append(name, messages, &Changes::new(), options)?;
        self.gate.check_writable()?;
        let extra = Extra { messages: messages.len() as u64, said: messages, time: options.time, ..Extra::default() };
        let given = Given::new(&self.gate, name, &body, &extra, Some(&terms));
        let row = match options.expected {
            expected @ ExpectedHead::NewConversation => self.database.row(by_itself(given, false, expected, None)),
            expected => self.gathering.append(given, expected),
        };
        self.receipt(name, &row?, Some(&terms), options.expected).map(|(receipt, _)| receipt)
    }

    /// Appends messages with an entry of what changes, again until nobody was faster.
    pub(super) fn append_changing(
        &self,
        name: &Name,
        messages: &[Message],
        changes: &Changes,
        options: &AppendOptions,
    ) -> Result<Receipt> {
        const CHANGING: &str = "SELECT * FROM cs_append_changing_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
                                $14, $15, $16, $17, $18)";
        self.gate.check_writable()?;
        let attempts = Attempts::new(self.patience);
        loop {
            let (mut body, mut terms) = append::append(name, messages, changes, options)?;
            let view = self.reader.view(name)?;
            let before = view.as_ref().map(|view| &*view.head);
            let change = decision::append(&mut body, before, changes)?;
            terms.complete(&body);
            let refused = terms.check_expected(name, before);
            let mut head = before.cloned().unwrap_or_else(|| Head::new("", None, 0, 0));
            change.apply(&mut head);
            let extra = Extra {
                messages: messages.len() as u64,
                said: if changes.title.is_some() { &[] } else { messages },
                made: Some(head),
                time: options.time,
            };
            let seen = view.as_ref().map(|view| view.through);
            let given = Given::new(&self.gate, name, &body, &extra, Some(&terms));
            let changing = given.statement(CHANGING, |statement| statement).with(refused.is_ok()).with(seen);
            let row = self.database.row(changing)?;
            match Outcome::of(&row)? {
                Outcome::Moved => attempts.again(name)?,
                Outcome::NotAsExpected => return refused.and(Err(Outcome::NotAsExpected.unexpected())),
                outcome => {
                    if let (Outcome::KeyUsed, Some(key)) = (outcome, &terms.key) {
                        let stored = stored_receipt(&row, outcome)?;
                        key.check_changed(name, &stored, || self.is_stored_by(name, &stored, messages, changes))?;
                    }
                    return self.receipt(name, &row, None, options.expected).map(|(receipt, _)| receipt);
                }
            }
        }
    }

    /// Whether what was stored under a key is of an append with these messages and changes.
    fn is_stored_by(
        &self,
        name: &Name,
        stored: &record::Receipt,
        messages: &[Message],
        changes: &Changes,
    ) -> Result<bool> {
        let Some(view) = self.reader.view(name)? else { return Ok(true) };
        let segments = self.reader.segments(&view)?;
        self.reader
            .records(&segments)
            .record(stored.first_seq, "a record", |record| append::is_stored_by(record, messages, changes).map(Some))
    }

    /// Begins a message, if its conversation is as expected and its key is new.
    pub(super) fn begin_message(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Open>, Receipt)> {
        let (body, terms) = append::begin(name, role, metadata, EPOCH, options)?;
        loop {
            self.gate.check_writable()?;
            let beginning = self.leases.begin()?;
            let holder = beginning.holder;
            let extra = Extra { messages: 1, ..Extra::default() };
            let given = Given::new(&self.gate, name, &body, &extra, Some(&terms));
            let row = self.database.row(by_itself(given, false, options.expected, Some(holder)));
            let row = row.inspect_err(|error| {
                if matches!(error, Error::OutcomeUnknown { .. }) {
                    // It may have begun, with nobody to write it: it is interrupted once the lease runs out.
                    self.leases.retire(holder);
                }
            })?;
            if Outcome::of(&row)? == Outcome::HolderExpired {
                self.leases.forget(holder);
                continue;
            }
            let (receipt, incarnation) = self.receipt(name, &row, Some(&terms), options.expected)?;
            let begun = incarnation.zip(receipt.message_indexes.first().copied());
            let writer = |(incarnation, index)| Writer::new(name.clone(), incarnation, index, role, holder);
            return Ok((begun.map(|begun| self.streams.open(writer(begun))), receipt));
        }
    }

    /// Makes a conversation without messages.
    pub(super) fn create_empty(&self, name: &Name, new: &NewConversation) -> Result<Receipt> {
        let Decision { body, change, .. } = decision::create(name, new)?;
        self.gate.check_writable()?;
        let mut made = Head::new("", None, 0, 0);
        change.apply(&mut made);
        let extra = Extra { made: Some(made), time: new.time, ..Extra::default() };
        let given = Given::new(&self.gate, name, &body, &extra, None);
        let row = self.database.row(by_itself(given, true, ExpectedHead::NewConversation, None))?;
        self.receipt(name, &row, None, ExpectedHead::NewConversation).map(|(receipt, _)| receipt)
    }

    /// What an append was answered, and the incarnation of its conversation, if it was taken now.
    fn receipt(
        &self,
        name: &Name,
        row: &Row,
        terms: Option<&Terms<'_>>,
        expected: ExpectedHead,
    ) -> Result<(Receipt, Option<u64>)> {
        let outcome = Outcome::of(row)?;
        if !matches!(outcome, Outcome::Done | Outcome::KeyUsed) {
            return Err(refused(outcome, row, name, expected));
        }
        let receipt = stored_receipt(row, outcome)?;
        let is_new = outcome == Outcome::Done;
        let mut incarnation = None;
        if is_new {
            let made = number(row, "o_incarnation")?;
            incarnation = Some(made);
            self.followed.moved(name.id(), made, receipt.last_seq + 1);
        } else if let Some(key) = terms.and_then(|terms| terms.key.as_ref()) {
            key.check_content(name, &receipt)?;
        }
        let message_indexes = receipt.message_indexes();
        let record::Receipt { first_seq, last_seq, .. } = receipt;
        let conversation = name.id();
        let receipt = Receipt { conversation, first_seq, last_seq, message_indexes, durable: true, duplicate: !is_new };
        Ok((receipt, incarnation))
    }
}
