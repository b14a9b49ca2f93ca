//! redb: a value for every append, with the same kind of group commit as the store's.

use std::path::Path;

use ::redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition};
use bincode::config::standard;
use conversation_store::model::{ConversationId, Message};
use conversation_store::{Entry, StoredMessage};

use super::group::{Backend, Group};
use super::rows::{Head, Job, Placed, stream};
use super::{CACHE_BYTES, Listed, Peer, record};

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

const RECORDS: Bytes = TableDefinition::new("records");
const HEADS: Bytes = TableDefinition::new("heads");
const LISTING: Bytes = TableDefinition::new("listing");
const RECEIPTS: Bytes = TableDefinition::new("receipts");

struct Redb {
    db: std::sync::Arc<Database>,
    group: Group<Writer>,
}

struct Writer(std::sync::Arc<Database>);

pub(super) fn open(path: &Path) -> Box<dyn Peer> {
    std::fs::create_dir_all(path).unwrap();
    let db = Database::builder().set_cache_size(CACHE_BYTES).create(path.join("peer.redb")).unwrap();
    let db = std::sync::Arc::new(db);
    // Readers need the tables.
    let transaction = db.begin_write().unwrap();
    for table in [RECORDS, HEADS, LISTING, RECEIPTS] {
        transaction.open_table(table).unwrap();
    }
    transaction.commit().unwrap();
    Box::new(Redb { group: Group::new(Writer(std::sync::Arc::clone(&db))), db })
}

/// The tables, open for one transaction.
struct Tables<'a> {
    records: Table<'a, &'static [u8], &'static [u8]>,
    heads: Table<'a, &'static [u8], &'static [u8]>,
    listing: Table<'a, &'static [u8], &'static [u8]>,
    receipts: Table<'a, &'static [u8], &'static [u8]>,
}

impl Backend for Writer {
    fn commit(&mut self, jobs: &[Job]) -> Vec<Placed> {
        // The default durability is `Immediate`: durable when commit returns.
        let transaction = self.0.begin_write().unwrap();
        let mut tables = Tables {
            records: transaction.open_table(RECORDS).unwrap(),
            heads: transaction.open_table(HEADS).unwrap(),
            listing: transaction.open_table(LISTING).unwrap(),
            receipts: transaction.open_table(RECEIPTS).unwrap(),
        };
        let placed = jobs.iter().map(|job| tables.write(job)).collect();
        drop(tables);
        transaction.commit().unwrap();
        placed
    }
}

/// A value that [`bincode`] has written.
fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> T {
    bincode::decode_from_slice(bytes, standard()).unwrap().0
}

fn encode(value: &impl bincode::Encode) -> Vec<u8> {
    bincode::encode_to_vec(value, standard()).unwrap()
}

impl Tables<'_> {
    fn write(&mut self, job: &Job) -> Placed {
        let id = job.conversation.as_bytes().as_slice();
        let receipt_key = job.receipt.as_ref().map(|(key, _)| [id, key].concat());
        if let Some(key) = &receipt_key
            && let Some(found) = self.receipts.get(key.as_slice()).unwrap()
        {
            let placed: Placed = decode(found.value());
            assert_eq!(Some(placed.digest), job.receipt.map(|(_, content)| content));
            return placed;
        }
        let before: Option<Head> = self.heads.get(id).unwrap().map(|head| decode(head.value()));
        let old_minute = before.as_ref().map(Head::minute);
        let (head, placed) = job.advance(before);
        let (key, value) = record::record(job, &head, placed);
        self.records.insert(key.as_slice(), value.as_slice()).unwrap();
        if old_minute != Some(head.minute()) {
            if let Some(old) = old_minute {
                self.listing.remove(record::listing(old, id).as_slice()).unwrap();
            }
            self.listing.insert(record::listing(head.minute(), id).as_slice(), [].as_slice()).unwrap();
        }
        if let Some(key) = &receipt_key {
            self.receipts.insert(key.as_slice(), encode(&placed).as_slice()).unwrap();
        }
        self.heads.insert(id, encode(&head).as_slice()).unwrap();
        placed
    }
}

impl Peer for Redb {
    fn append(&self, conversation: ConversationId, key: Option<&str>, messages: &[Message]) {
        self.group.write(Job::new(conversation, key, messages));
    }

    fn fill(&self, appends: &mut dyn Iterator<Item = (ConversationId, &[Message])>) {
        self.group.fill(&mut appends.map(|(conversation, messages)| Job::new(conversation, None, messages)));
    }

    fn stream(&self, conversation: ConversationId, deltas: &[String]) {
        stream(conversation, deltas, |job| self.group.write(job));
    }

    fn load(&self, conversation: ConversationId) -> Vec<StoredMessage> {
        let records = self.db.begin_read().unwrap().open_table(RECORDS).unwrap();
        let (start, end) = record::range(conversation);
        let mut messages = Vec::new();
        for pair in records.range(start.as_slice()..end.as_slice()).unwrap() {
            let (key, value) = pair.unwrap();
            record::visit(key.value(), value.value(), |found| found.collect(&mut messages));
        }
        messages
    }

    fn tail(&self, conversation: ConversationId, count: usize) -> Vec<Entry> {
        let records = self.db.begin_read().unwrap().open_table(RECORDS).unwrap();
        let (start, end) = record::range(conversation);
        let mut entries = Vec::new();
        for pair in records.range(start.as_slice()..end.as_slice()).unwrap().rev() {
            let (key, value) = pair.unwrap();
            let mut found = Vec::new();
            record::visit(key.value(), value.value(), |row| found.push(row.entry()));
            entries.extend(found.into_iter().rev().take(count - entries.len()));
            if entries.len() == count {
                break;
            }
        }
        entries.reverse();
        entries
    }

    fn list(&self, count: usize) -> Vec<Listed> {
        let transaction = self.db.begin_read().unwrap();
        let (listing, heads) = (transaction.open_table(LISTING).unwrap(), transaction.open_table(HEADS).unwrap());
        let newest = listing.iter().unwrap().take(count);
        newest
            .map(|pair| {
                let id = record::listed(pair.unwrap().0.value());
                let head: Head = decode(heads.get(id.as_bytes().as_slice()).unwrap().unwrap().value());
                head.into_item(id)
            })
            .collect()
    }

    fn close(self: Box<Self>) {}
}
