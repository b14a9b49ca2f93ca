//! Appends: each is one call of one function, which locks the head and gives the numbers.

use tokio_postgres::Row;

use super::Postgres;
use super::rows::{self, EPOCH, Outcome, digest, items, number, random, refused};
use super::statement::{Statement, Value};
use super::streams::Open;
use super::writers::Writer;
use crate::error::{Error, Result};
use crate::log::append::{self, Terms};
use crate::log::decision::{self, Decision};
use crate::log::replay::title;
use crate::log::{AppendOptions, ExpectedHead, NewConversation, Receipt};
use crate::model::{Message, Metadata, Name, Role};
use crate::record::{self, Body, Head, TitleSource};

/// What is appended, beside its entries.
#[derive(Default)]
struct Extra<'a> {
    messages: u64,
    said: &'a [Message],
    /// What a conversation is made with.
    made: Option<Head>,
    holder: Option<[u8; 16]>,
}

impl Postgres {
    pub(super) fn append_messages(
        &self,
        name: &Name,
        messages: &[Message],
        options: &AppendOptions,
    ) -> Result<Receipt> {
        let (body, terms) = append::append(name, messages, options)?;
        self.gate.check_writable()?;
        let extra = Extra { messages: messages.len() as u64, said: messages, ..Extra::default() };
        let row = self.database.row(self.statement(name, &body, &extra, Some(&terms), options.expected))?;
        self.receipt(name, &row, Some(&terms), options.expected).map(|(receipt, _)| receipt)
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
            let extra = Extra { messages: 1, holder: Some(holder), ..Extra::default() };
            let row = self.database.row(self.statement(name, &body, &extra, Some(&terms), options.expected));
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
        let extra = Extra { made: Some(made), ..Extra::default() };
        let row = self.database.row(self.statement(name, &body, &extra, None, ExpectedHead::NewConversation))?;
        self.receipt(name, &row, None, ExpectedHead::NewConversation).map(|(receipt, _)| receipt)
    }

    fn statement(
        &self,
        name: &Name,
        body: &Body,
        extra: &Extra<'_>,
        terms: Option<&Terms<'_>>,
        expected: ExpectedHead,
    ) -> Statement {
        const SQL: &str = "SELECT * FROM cs_append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
                           $16, $17, $18, $19)";
        // The row is locked before the function looks at it. No conversation ends at the greatest seq.
        const AT_CURSOR: &str = "SELECT same.is_same, appended.* FROM (SELECT (SELECT t.incarnation FROM cs_conversation t \
            WHERE t.conv_id = $1 FOR UPDATE) = $20 AS is_same) same, LATERAL cs_append_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, \
            $10, $11, $12, $13, CASE WHEN same.is_same THEN $14 ELSE 9223372036854775807 END, $15, $16, $17, $18, $19) appended";
        let id = name.id();
        let said = title(extra.said).map(|(at, title)| (title, 1_i16, at));
        let made = extra.made.as_ref().and_then(|head| {
            let title = head.title.clone().filter(|_| head.title_source == TitleSource::Caller);
            title.map(|title| (title, 2_i16, 0))
        });
        let title = said.or(made);
        let (kind, at) = title.as_ref().map_or((0, 0), |(_, kind, at)| (*kind, *at));
        let key = terms.and_then(|terms| terms.key.as_ref());
        let (digests, places) = items(body);
        let incarnation = match expected {
            ExpectedHead::AtCursor(at) => at.incarnation,
            _ => None,
        };
        let statement = Statement::once(if incarnation.is_some() { AT_CURSOR } else { SQL })
            .with(id.as_bytes())
            .with(name.owner())
            .with(name.key())
            .with(self.gate.now())
            .with(Value::Number(Some(random())))
            .with(record::seal_entries(id, body))
            .with(body.entries())
            .with(extra.messages)
            .with(title.as_ref().map(|(title, ..)| title.as_str()))
            .with(kind)
            .with(at)
            .with(extra.made.as_ref().map(|head| rows::tags(&head.tags)))
            .with(extra.made.is_some())
            .with(rows::expected(expected))
            .with(key.map(|key| key.digest.to_vec()))
            .with(key.map(|key| key.content_digest.to_vec()))
            .with(digests)
            .with(places)
            .with(extra.holder.map(|holder| holder.to_vec()));
        match incarnation {
            Some(incarnation) => statement.with(incarnation),
            None => statement,
        }
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
        let receipt = record::Receipt {
            first_seq: number(row, "o_first")?,
            last_seq: number(row, "o_last")?,
            first_message_index: number(row, "o_message")?,
            messages: number(row, "o_messages")?,
            content_digest: if outcome == Outcome::KeyUsed { digest(row, "o_content")? } else { [0; 16] },
        };
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
