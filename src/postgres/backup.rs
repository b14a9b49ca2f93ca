//! A backup: one moment of all conversations, as any log writes it.

use std::path::Path;

use super::Postgres;
use super::database::{Database, Session};
use super::rows::{self, EPOCH, Kept, Stored, conversation_columns, digest, number, record_columns};
use super::statement::Statement;
use crate::backup;
use crate::backup::Out;
use crate::error::Result;
use crate::log::BackupSummary;
use crate::model::ConversationId;
use crate::record::{self, Body, Commit, ForkPoint, Header, Origin, Receipt, Record, StoreInfo, Tombstone, key};

/// Conversations that are read at once.
const ROWS: u64 = 500;
/// Records that are read at once, unless their bytes are enough.
const RECORDS: u64 = 1_000;
const RECORD_BYTES: u64 = 4 * 1024 * 1024;

/// One moment of each of some databases, of which each conversation is in one.
pub(crate) struct Moment<'a> {
    sessions: Vec<Session<'a>>,
    store_id: [u8; 16],
    conversations: u64,
    last_commit: u64,
}

impl<'a> Moment<'a> {
    /// The moment of each database is this one, however long the backup takes.
    pub(crate) fn begin(logs: &[&'a Postgres]) -> Result<Self> {
        Self::of(logs.iter().map(|log| &*log.database))
    }

    pub(super) fn of(databases: impl Iterator<Item = &'a Database>) -> Result<Self> {
        const STORE: &str = "SELECT store_id, (SELECT count(*) FROM cs_conversation) AS rows, \
                             (SELECT max(commit_no) FROM cs_conversation) AS last FROM cs_schema";
        let mut moment = Self { sessions: Vec::new(), store_id: [0; 16], conversations: 0, last_commit: 0 };
        for database in databases {
            let session = database.session_of_steps()?;
            session.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
            let store = session.query(Statement::repeatable(STORE))?;
            let store = store.first().ok_or_else(|| rows::corrupt("it has no marker".to_owned()))?;
            if moment.sessions.is_empty() {
                moment.store_id = digest(store, "store_id")?;
            }
            moment.conversations += number(store, "rows")?;
            moment.last_commit = moment.last_commit.max(rows::some_number(store, "last")?.unwrap_or_default());
            moment.sessions.push(session);
        }
        Ok(moment)
    }

    /// Writes everything to a new file; `progress` is called with conversations done, and of all.
    pub(crate) fn write(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        backup::write(path, |out| self.pairs(out, progress).map(|conversations| (conversations, 0)))
    }

    fn pairs(&self, out: &mut Out, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let info = StoreInfo { store_id: self.store_id, format_version: record::VERSION.into() };
        sealed(out, &key::meta(key::STORE), &info)?;
        sealed(out, &key::meta(key::EPOCH), &EPOCH)?;
        let mut written = Commit { number: self.last_commit, ..Commit::default() };
        let mut done = 0;
        for session in &self.sessions {
            conversations(session, out, &mut |stored| {
                if !stored.deleted {
                    written.count(None, Some(&stored.head));
                }
                done += 1;
                progress(done, self.conversations);
            })?;
        }
        sealed(out, &key::meta(key::COMMIT), &written)?;
        Ok(written.conversations)
    }
}

fn conversations(session: &Session<'_>, out: &mut Out, written: &mut dyn FnMut(&Stored)) -> Result<()> {
    const CONVERSATIONS: &str = concat!(
        "SELECT ",
        conversation_columns!(),
        " FROM cs_conversation t WHERE t.conv_id > $1 ORDER BY t.conv_id LIMIT $2"
    );
    let mut after = Vec::new();
    loop {
        let rows = session.query(Statement::repeatable(CONVERSATIONS).with(after.clone()).with(ROWS))?;
        for row in &rows {
            let stored = rows::conversation(row)?;
            conversation(session, out, &stored)?;
            written(&stored);
            after = stored.id.as_bytes().to_vec();
        }
        if (rows.len() as u64) < ROWS {
            return Ok(());
        }
    }
}

fn conversation(session: &Session<'_>, out: &mut Out, stored: &Stored) -> Result<()> {
    let Stored { id, head, .. } = stored;
    if !stored.deleted {
        sealed(out, &key::head(*id), head)?;
    }
    if let Some(parent) = head.parent.filter(|parent| parent.at_seq > 0) {
        let point = ForkPoint { at_seq: parent.at_seq, parent: parent.incarnation, child: head.incarnation };
        sealed(out, &key::fork(parent.id(), *id), &point)?;
    }
    if !stored.deleted {
        record::index_keys(*id, head).iter().try_for_each(|key| out.pair(key, &[]))?;
    }
    records(session, out, stored)?;
    receipts(session, out, *id)?;
    if stored.deleted {
        sealed(out, &key::tombstone(*id), &Tombstone { parent: head.parent, incarnation: head.incarnation })?;
    }
    items(session, out, *id)
}

fn records(session: &Session<'_>, out: &mut Out, stored: &Stored) -> Result<()> {
    const RECORDS_AFTER: &str = concat!(
        "SELECT * FROM (SELECT ",
        record_columns!(),
        ", sum(octet_length(r.body)) OVER (ORDER BY r.first_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
         FROM cs_record r WHERE r.conv_id = $1 AND r.first_seq > $2 ORDER BY r.first_seq LIMIT $3) p \
         WHERE coalesce(p.before, 0) < $4 ORDER BY p.first_seq"
    );
    let (id, mut after, mut has_any) = (stored.id, 0, false);
    loop {
        let statement = Statement::repeatable(RECORDS_AFTER).with(id.as_bytes()).with(after);
        let rows = session.query(statement.with(RECORDS).with(RECORD_BYTES))?;
        for row in &rows {
            let kept = Kept::of(row)?;
            let record = kept.open(id)?;
            let (key, value) =
                record::seal_record(id, kept.first_seq, &header_of(stored, &record), Body::of(&record)?)?;
            out.pair(&key, &value)?;
            (after, has_any) = (kept.first_seq, true);
        }
        if rows.is_empty() {
            break;
        }
    }
    if has_any || stored.head.parent.is_none() {
        return Ok(());
    }
    let (key, value) =
        backup::fork_record(id, stored.head.first_seq(), origin(stored), stored.origin.commit, stored.deleted)?;
    out.pair(&key, &value)
}

fn receipts(session: &Session<'_>, out: &mut Out, id: ConversationId) -> Result<()> {
    const KEYS: &str = "SELECT k.digest, k.first_seq, k.last_seq, k.first_message, k.messages, k.content FROM cs_key k \
                        WHERE k.conv_id = $1 ORDER BY k.digest";
    for row in &session.query(Statement::repeatable(KEYS).with(id.as_bytes()))? {
        let receipt = Receipt {
            first_seq: number(row, "first_seq")?,
            last_seq: number(row, "last_seq")?,
            first_message_index: number(row, "first_message")?,
            messages: number(row, "messages")?,
            content_digest: digest(row, "content")?,
        };
        sealed(out, &key::receipt(id, &digest(row, "digest")?), &receipt)?;
    }
    Ok(())
}

fn items(session: &Session<'_>, out: &mut Out, id: ConversationId) -> Result<()> {
    const ITEMS: &str = "SELECT i.digest, i.seq FROM cs_item i WHERE i.conv_id = $1 ORDER BY i.digest, i.seq";
    for row in &session.query(Statement::repeatable(ITEMS).with(id.as_bytes()))? {
        out.pair(&key::item(id, &digest(row, "digest")?, number(row, "seq")?), &[])?;
    }
    Ok(())
}

fn sealed(out: &mut Out, key: &[u8], value: &impl bincode::Encode) -> Result<()> {
    out.pair(key, &record::seal(key, value)?)
}

/// The header of a record as a backup has it: the first one has what its conversation was made with.
fn header_of(stored: &Stored, record: &Record<'_>) -> Header {
    let mut header = record.header.clone();
    if record.first_seq == stored.head.first_seq() {
        header.origin = Some(origin(stored));
        header.deleted = stored.deleted;
    }
    header
}

/// What a conversation was made with.
fn origin(stored: &Stored) -> Origin {
    let Stored { head, origin, .. } = stored;
    Origin {
        owner: head.owner.clone(),
        key: head.key.clone(),
        incarnation: head.incarnation,
        created: head.created,
        parent: head.parent,
        last_hide: origin.last_hide,
        last_meta: origin.last_meta,
        first_message_index: origin.next_message,
    }
}
