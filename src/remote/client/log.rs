//! The log of a server as a store sees it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::http::{ANSWER, Again, LONG};
use super::{Client, writer};
use crate::backup;
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::{
    AppendOptions, BackupSummary, Changes, Control, Controlled, ForkAt, Health, ListPage, ListQuery, Log,
    NewConversation, OpenMessage, Order, Reading, Receipt, Redaction, Size, Verification, View, Visit, Wait,
};
use crate::model::{ConversationId, Json, Message, Metadata, Name, Role};
use crate::record::{Head, Record, key};
use crate::remote::body;
use crate::remote::call::{
    Append, AppendChanging, Change, Changed, Create, Delete, Fork, Item, List, Listed, Look, Nothing, Read, Readings,
    Redact, Shown, Since, SinceThen, To, Viewed, Which,
};

/// Bytes of records of the first answer: many readers want only a few. Each further one has four times as many.
const FIRST_BYTES: usize = 64 * 1024;
/// The most that is asked for at once.
const MOST_BYTES: usize = 4 * 1024 * 1024;

impl Log for Client {
    fn owner(&self) -> &str {
        &self.shared.welcome.owner
    }

    fn append(&self, name: &Name, messages: &[Message], changes: &Changes, options: &AppendOptions) -> Result<Receipt> {
        let again = if options.idempotency_key.is_some() { Again::Repeat } else { Again::Ask };
        let append = Append::new(name, options);
        if changes.is_empty() {
            return self.shared.write("append", &append, &body::seal(messages)?, again);
        }
        // A server that does not know changes must not take the messages alone.
        let messages = if messages.is_empty() { Vec::new() } else { body::seal(messages)? };
        self.shared.write("append_changing", &AppendChanging::new(append, changes), &messages, again)
    }

    fn begin(
        &self,
        name: &Name,
        role: Role,
        metadata: Metadata,
        options: &AppendOptions,
    ) -> Result<(Option<Box<dyn OpenMessage>>, Receipt)> {
        writer::begin(&self.shared, name, role, metadata, options)
    }

    fn create(&self, name: &Name, conversation: &NewConversation) -> Result<Receipt> {
        let NewConversation { title, tags, metadata, time } = conversation.clone();
        let metadata = metadata.map(|metadata| metadata.as_str().to_owned());
        self.shared.write("create", &Create { name: name.into(), title, tags, metadata, time }, &[], Again::Ask)
    }

    fn control(&self, name: &Name, control: &Control<'_>) -> Result<Controlled> {
        control.check()?;
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let to = match *control {
            Control::Title(title) => To::Title(title.map(str::to_owned)),
            Control::Tags { remove, add } => To::Tags { remove: texts(remove), add: texts(add) },
            Control::Metadata(metadata) => To::Metadata(Json::as_str(metadata).to_owned()),
            Control::Rewind { to } => To::Rewind { to },
            Control::Remove { message, chunk } => To::Remove { message, chunk },
            Control::Summarize { through, text } => To::Summarize { through, text: text.to_owned() },
        };
        let Changed { receipt, tags } =
            self.shared.write("change", &Change { name: name.into(), to }, &[], Again::Ask)?;
        Ok(Controlled { receipt, tags })
    }

    fn fork(&self, parent: &Name, at: ForkAt, child: &Name) -> Result<()> {
        let fork = Fork { parent: parent.into(), at_seq: at.seq, child: child.into(), time: at.time };
        let Nothing {} = self.shared.write("fork", &fork, &[], Again::Ask)?;
        Ok(())
    }

    fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        let delete = Delete { name: name.into(), at: at.map(|at| at.to_string()) };
        let Nothing {} = self.shared.write("delete", &delete, &[], Again::Ask)?;
        Ok(())
    }

    fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.shared.write("redact", &Redact { name: name.into(), message, chunk }, &[], Again::Ask)
    }

    fn view(&self, name: &Name) -> Result<Option<View>> {
        let (Viewed { id, live, epoch, commit, through }, head) =
            match self.shared.read("view", &Look { name: name.into() }) {
                Err(Error::NotFound { .. }) => return Ok(None),
                viewed => viewed?,
            };
        let head = Arc::new(Head::open(&key::head(id), &head)?);
        Ok(Some(View { id, head, live, epoch, commit, through }))
    }

    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let (mut first, mut last) = (*seqs.start(), (*seqs.end()).min(view.last_seq()));
        let mut bytes = FIRST_BYTES;
        while first <= last {
            let read = Read { of: which(view), first, last, descending: order == Order::Descending, bytes };
            let (Readings { readings, has_more }, records) = self.shared.read("read", &read)?;
            if readings.is_empty() {
                // It was deleted meanwhile, or nothing of it is where it should be.
                let detail = "the record that should be here is missing".to_owned();
                let _ = visit(Reading::Damaged(Error::Corrupt {
                    conversation: Some(view.id.into()),
                    seq: Some(first),
                    detail,
                }));
                return Ok(());
            }
            let mut records = records.as_slice();
            let before = (first, last);
            for shown in readings {
                let reading = match shown {
                    Shown::Damaged(failure) => visit(Reading::Damaged(failure.into_error())),
                    Shown::Stray(failure) => visit(Reading::Stray(failure.into_error())),
                    Shown::Record { first_seq, last: through, own, bytes } => {
                        let (sealed, rest) = records.split_at_checked(bytes).unwrap_or((&[], &[]));
                        records = rest;
                        let record = &Record::open(view.id, first_seq, sealed)?;
                        match order {
                            Order::Ascending => {
                                let end = first_seq.saturating_add(record.len());
                                first = end.min(through.saturating_add(1)).max(first + 1);
                            }
                            Order::Descending => last = last.min(first_seq).saturating_sub(1),
                        }
                        visit(Reading::Record { record, last: through, own })
                    }
                };
                if reading.is_break() {
                    return Ok(());
                }
            }
            if !has_more {
                return Ok(());
            }
            if before == (first, last) {
                return Err(self.shared.server.unreadable(&"more is said to follow, and nothing came"));
            }
            bytes = (bytes * 4).min(MOST_BYTES);
        }
        Ok(())
    }

    fn is_there(&self, view: &View) -> Result<bool> {
        let (SinceThen { is_there, .. }, _) =
            self.shared.read("since", &Since { of: which(view), commit: view.commit })?;
        Ok(is_there)
    }

    fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        let (SinceThen { is_redacted, .. }, _) = self.shared.read("since", &Since { of: which(view), commit })?;
        Ok(is_redacted)
    }

    fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>> {
        let (mut seqs, _): (Vec<u64>, _) =
            self.shared.read("item", &Item { of: which(view), item: item.to_owned() })?;
        // Those that came later are not of this view.
        seqs.retain(|seq| *seq <= view.last_seq());
        seqs.drain(..seqs.len().saturating_sub(most));
        Ok(seqs)
    }

    fn conversations(&self) -> Result<Vec<ConversationId>> {
        Ok(self.shared.read("conversations", &Nothing {})?.0)
    }

    fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let (Listed { mut page, incarnations }, _) = self.shared.read("list", &List::from(query))?;
        for (item, incarnation) in page.items.iter_mut().zip(incarnations) {
            item.incarnation = incarnation;
        }
        Ok(page)
    }

    fn unfinished(&self) -> Result<Vec<ConversationId>> {
        Ok(self.shared.read("unfinished", &Nothing {})?.0)
    }

    fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        self.shared.followed.wait_for(wait)
    }

    fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        self.shared.followed.poll_for(wait, follower, waker)
    }

    fn wake(&self, name: &Name, follower: u64) {
        self.shared.followed.wake(name, follower);
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    fn close(&self) -> Result<()> {
        self.shared.close()
    }

    /// The server's, as far as the key sees it.
    fn health(&self) -> Health {
        let seen = || self.shared.server.json::<Health>("GET", "/api/v1/admin/health", ANSWER);
        let health = if self.shared.welcome.is_admin { seen() } else { Ok(Health::default()) };
        let health = health.unwrap_or_else(|error| Health { warnings: vec![error.to_string()], ..Health::default() });
        Health { closed: health.closed || self.shared.is_closed(), ..health }
    }

    fn size(&self) -> Result<Size> {
        Ok(self.shared.read("size", &Nothing {})?.0)
    }

    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        let found: Verification = self.shared.server.json("POST", "/api/v1/admin/verify", LONG)?;
        progress(found.conversations, found.conversations);
        Ok(found)
    }

    fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        let counts = ["x-backup-conversations", "x-backup-unreadable"];
        backup::receive(path, |file| {
            let (mut bytes, [conversations, unreadable]) = self.shared.server.file("/api/v1/admin/backup", counts)?;
            std::io::copy(&mut bytes, file).map_err(Error::io(format!("receive the backup {}", path.display())))?;
            progress(conversations, conversations);
            Ok((conversations, unreadable))
        })
    }
}

fn which(view: &View) -> Which {
    Which { id: view.id, incarnation: view.head.incarnation }
}
