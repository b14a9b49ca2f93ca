//! A backup of any log, put into a database that holds no conversation.

use std::collections::BTreeMap;
use std::path::Path;

use super::database::{Database, Session};
use super::rows::{Beginning, get, with_names};
use super::schema;
use super::statement::{Statement, signed};
use super::url::Url;
use crate::backup::{self, Backup};
use crate::error::{Error, Result};
use crate::log::BackupSummary;
use crate::model::ConversationId;
use crate::record::{self, Body, Head, Receipt, Record, StoreInfo, TitleSource, Tombstone, key};

/// Rows that are inserted at once, unless their bytes are enough.
const ROWS: usize = 500;
const BYTES: usize = 4 * 1024 * 1024;

/// Fills a database. `progress` is called with bytes read, and of the file.
pub(crate) fn restore(file: &Path, url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
    let backup = backup::open(file)?;
    let database = Database::connect(&Url::parse(url)?)?;
    schema::check(&database, true)?;
    schema::refuse_member(&database)?;
    let session = begin(&database)?;
    let summary = fill(backup, std::slice::from_ref(&session), |_| Some(0), progress)?;
    session.end()?;
    Ok(summary)
}

/// Puts a backup into databases: `database_of` has the place of each conversation among them.
pub(super) fn fill(
    backup: Backup,
    sessions: &[Session<'_>],
    database_of: impl Fn(ConversationId) -> Option<usize>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupSummary> {
    let bytes = backup.bytes();
    let mut restoring: Vec<_> = sessions.iter().map(Restoring::new).collect();
    backup.read(&mut |key, value, read| {
        progress(read, bytes);
        match key::parse_id(key).filter(|_| !key.starts_with(&key::meta(""))) {
            Some(id) => database_of(id).and_then(|at| restoring.get_mut(at)).map_or(Ok(()), |it| it.take(key, value)),
            // It is about the store as a whole.
            None => restoring.iter_mut().try_for_each(|it| it.take(key, value)),
        }
    })?;
    let conversations = restoring.into_iter().map(Restoring::finish).sum::<Result<u64>>()?;
    Ok(BackupSummary { conversations, unreadable: 0, bytes })
}

/// A transaction that has a database, which holds no conversation, for itself: all of it, or nothing.
pub(super) fn begin(database: &Database) -> Result<Session<'_>> {
    const ANY: &str = "SELECT EXISTS (SELECT FROM cs_conversation) AS has_any";
    let session = database.session_of_steps()?;
    session.script("BEGIN ISOLATION LEVEL READ COMMITTED; LOCK TABLE cs_conversation IN EXCLUSIVE MODE")?;
    let has_any = session.query(Statement::repeatable(ANY))?.first().map_or(Ok(false), |row| get(row, "has_any"))?;
    if has_any {
        let detail = "a backup is restored into a new store only: name one that has no conversations";
        return Err(Error::InvalidInput(detail.to_owned()));
    }
    Ok(session)
}

/// What is known of a conversation so far.
#[derive(Default)]
struct Known {
    head: Option<Head>,
    tombstone: Option<Tombstone>,
    origin: Option<record::Origin>,
    created: Beginning,
    /// The newest commit of its records.
    commit: u64,
    /// After its last record.
    next_seq: u64,
    next_message: u64,
}

struct Restoring<'a> {
    session: &'a Session<'a>,
    known: BTreeMap<ConversationId, Known>,
    records: Columns,
    receipts: Columns,
    items: Columns,
    has_marker: bool,
}

/// Rows that wait to be inserted, column by column.
#[derive(Default)]
struct Columns {
    bytes: Vec<Vec<Vec<u8>>>,
    numbers: Vec<Vec<i64>>,
    flags: Vec<bool>,
    rows: usize,
    size: usize,
}

impl Columns {
    fn add<const B: usize, const N: usize>(&mut self, bytes: [Vec<u8>; B], numbers: [i64; N], flag: bool) {
        self.bytes.resize_with(B, Vec::new);
        self.numbers.resize_with(N, Vec::new);
        self.size += bytes.iter().map(Vec::len).sum::<usize>();
        self.bytes.iter_mut().zip(bytes).for_each(|(column, value)| column.push(value));
        self.numbers.iter_mut().zip(numbers).for_each(|(column, value)| column.push(value));
        self.flags.push(flag);
        self.rows += 1;
    }

    const fn is_full(&self) -> bool {
        self.rows >= ROWS || self.size >= BYTES
    }

    /// Inserts the rows: the statement takes the columns of bytes, of numbers, and the flags.
    fn insert(&mut self, session: &Session<'_>, sql: &'static str, has_flags: bool) -> Result<()> {
        let Self { bytes, numbers, flags, rows, .. } = std::mem::take(self);
        if rows == 0 {
            return Ok(());
        }
        let statement = bytes.into_iter().fold(Statement::once(sql), Statement::with);
        let statement = numbers.into_iter().fold(statement, Statement::with);
        let statement = if has_flags { statement.with(flags) } else { statement };
        session.query(statement).map(|_| ())
    }
}

impl<'a> Restoring<'a> {
    fn new(session: &'a Session<'a>) -> Self {
        Self {
            session,
            known: BTreeMap::new(),
            records: Columns::default(),
            receipts: Columns::default(),
            items: Columns::default(),
            has_marker: false,
        }
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(kind) = key.first() else { return Ok(()) };
        if key == key::meta(key::STORE).as_slice() {
            let info: StoreInfo = record::open("the store's marker", key, value)?;
            self.has_marker = true;
            let statement = Statement::once("UPDATE cs_schema SET store_id = $1").with(&info.store_id);
            return self.session.query(statement).map(|_| ());
        }
        let Some(id) = key::parse_id(key) else { return Ok(()) };
        match *kind {
            key::HEAD => self.known.entry(id).or_default().head = Some(Head::open(key, value)?),
            key::TOMBSTONE => self.known.entry(id).or_default().tombstone = Some(Tombstone::open(key, value)?),
            key::RECORD => self.record(id, key, value)?,
            key::RECEIPT => self.receipt(id, key, value)?,
            key::ITEM => self.item(id, key)?,
            // What else there is, the database derives.
            _ => {}
        }
        Ok(())
    }

    fn record(&mut self, id: ConversationId, key: &[u8], value: &[u8]) -> Result<()> {
        let Some((_, first_seq)) = key::parse_record(key) else { return Ok(()) };
        let record = Record::open(id, first_seq, value)?;
        let header = &record.header;
        let known = self.known.entry(id).or_default();
        known.commit = known.commit.max(header.commit);
        known.next_seq = first_seq + record.len();
        known.next_message = header.next_message_index;
        if let Some(origin) = &header.origin {
            known.origin = Some(origin.clone());
            let (last_hide, last_meta) = (origin.last_hide, origin.last_meta);
            known.created =
                Beginning { last_hide, last_meta, next_message: origin.first_message_index, commit: header.commit };
        }
        // The record of a fork without entries says only what it was made with.
        if record.len() == 0 {
            return Ok(());
        }
        let body = record::seal_entries(id, &Body::of(&record)?);
        let of_head = known.head.as_ref().map(|head| head.incarnation);
        let of_origin = || known.origin.as_ref().map(|origin| origin.incarnation);
        let numbers = [
            signed(of_head.or_else(of_origin).unwrap_or_default()),
            signed(first_seq),
            signed(header.commit),
            header.time,
            signed(header.base),
            signed(header.next_message_index),
            signed(record.len()),
        ];
        self.records.add([id.as_bytes().to_vec(), body], numbers, header.cut);
        if self.records.is_full() { self.insert_records() } else { Ok(()) }
    }

    fn receipt(&mut self, id: ConversationId, key: &[u8], value: &[u8]) -> Result<()> {
        let receipt: Receipt = record::open("an idempotency record", key, value)?;
        let digest = key.get(key::prefix(key::RECEIPT, id).len()..).unwrap_or_default().to_vec();
        let Receipt { first_seq, last_seq, first_message_index, messages, content_digest } = receipt;
        let bytes = [id.as_bytes().to_vec(), digest, content_digest.to_vec()];
        self.receipts.add(bytes, [first_seq, last_seq, first_message_index, messages].map(signed), false);
        if self.receipts.is_full() { self.insert_receipts() } else { Ok(()) }
    }

    fn item(&mut self, id: ConversationId, key: &[u8]) -> Result<()> {
        let Some(seq) = key::parse_item(key) else { return Ok(()) };
        let start = key::prefix(key::ITEM, id).len();
        let digest = key.get(start..start + id.as_bytes().len()).unwrap_or_default().to_vec();
        self.items.add([id.as_bytes().to_vec(), digest], [signed(seq)], false);
        if self.items.is_full() { self.insert_items() } else { Ok(()) }
    }

    fn insert_records(&mut self) -> Result<()> {
        const SQL: &str = "INSERT INTO cs_record (conv_id, body, incarnation, first_seq, commit_no, written, base, \
            next_message, entries, cut) \
            SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        self.records.insert(self.session, SQL, true)
    }

    fn insert_receipts(&mut self) -> Result<()> {
        const SQL: &str = "INSERT INTO cs_key (conv_id, digest, content, first_seq, last_seq, first_message, messages) \
                           SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)";
        self.receipts.insert(self.session, SQL, false)
    }

    fn insert_items(&mut self) -> Result<()> {
        const SQL: &str = "INSERT INTO cs_item (conv_id, digest, seq) SELECT * FROM unnest($1, $2, $3)";
        self.items.insert(self.session, SQL, false)
    }

    /// Inserts what waits, and the conversations: gives how many are not deleted.
    fn finish(mut self) -> Result<u64> {
        self.insert_records()?;
        self.insert_receipts()?;
        self.insert_items()?;
        if !self.has_marker {
            return Err(backup::without_marker());
        }
        let mut conversations = 0;
        for (id, known) in std::mem::take(&mut self.known) {
            conversations += u64::from(known.head.is_some());
            self.conversation(id, known)?;
        }
        Ok(conversations)
    }

    fn conversation(&self, id: ConversationId, known: Known) -> Result<()> {
        const SQL: &str = "INSERT INTO cs_conversation (conv_id, title, title_kind, title_message, tags, incarnation, \
            commit_no, next_seq, next_message, last_hide, last_meta, created, last_activity, minute, owner, key, parent_id, \
            parent_seq, parent_incarnation, parent_commit, origin_hide, origin_meta, origin_message, origin_commit, \
            open_messages, interrupted, redactions, deleted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
            cs_minute_v1($13), $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, 0, $26)";
        // Nobody holds what was being written.
        const OPEN: &str = "INSERT INTO cs_open (conv_id, message, holder, part, first_seq, last_seq) \
                            SELECT $1, u.message, '', 0, 0, 0 FROM unnest($2) AS u(message)";
        let deleted = known.head.is_none();
        let Some(head) = known.head.clone().or_else(|| shared_head(&known)) else {
            return Err(Error::Corrupt {
                conversation: Some(id.into()),
                seq: None,
                detail: "the backup does not tell what it was: such a backup is read with `backup:FILE`".to_owned(),
            });
        };
        let open = head.open.as_slice();
        if !open.is_empty() {
            self.session.query(Statement::once(OPEN).with(id.as_bytes()).with(open))?;
        }
        let parent = head.parent;
        let statement = with_names(Statement::once(SQL).with(id.as_bytes()), &head)
            .with(head.incarnation)
            .with(known.commit)
            .with(head.next_seq)
            .with(head.next_message_index)
            .with(head.last_hide)
            .with(head.last_meta)
            .with(head.created)
            .with(head.last_activity)
            .with(head.owner.as_bytes())
            .with(head.key.as_deref())
            .with(parent.map(|parent| parent.conversation.to_vec()))
            .with(parent.map(|parent| parent.at_seq))
            .with(parent.map(|parent| parent.incarnation))
            .with(parent.map(|parent| parent.commit))
            .with(known.created.last_hide)
            .with(known.created.last_meta)
            .with(known.created.next_message)
            .with(known.created.commit)
            .with(open)
            .with(head.interrupted.as_slice())
            .with(deleted);
        self.session.query(statement).map(|_| ())
    }
}

/// What is left of the head of a deleted conversation whose entries forks read.
fn shared_head(known: &Known) -> Option<Head> {
    let (tombstone, origin) = (known.tombstone.as_ref()?, known.origin.as_ref()?);
    Some(Head {
        next_seq: known.next_seq,
        next_message_index: known.next_message,
        last_hide: origin.last_hide,
        last_meta: origin.last_meta,
        parent: tombstone.parent,
        title_source: TitleSource::Pending,
        ..Head::new(&origin.owner, origin.key.as_deref(), origin.created, tombstone.incarnation)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_filled_row_by_row() {
        let mut columns = Columns::default();
        columns.add([vec![1], vec![2]], [3], true);
        columns.add([vec![4], vec![5]], [6], false);
        assert_eq!(columns.bytes, [[vec![1], vec![4]], [vec![2], vec![5]]]);
        assert_eq!((columns.numbers, columns.flags, columns.rows), (vec![vec![3, 6]], vec![true, false], 2));
    }
}
