//! The disk's own limit: the same bytes at the end of a file, an `fdatasync` for every group. It cannot read.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use bincode::config::standard;
use conversation_store::model::{ConversationId, Message};
use conversation_store::{Entry, StoredMessage};

use super::group::{Backend, Group};
use super::rows::{Head, Job, Placed, stream};
use super::{Listed, Peer, record};

struct Raw(Group<Writer>);

struct Writer {
    file: File,
    heads: HashMap<ConversationId, Head>,
}

pub(super) fn open(path: &Path) -> Box<dyn Peer> {
    fs::create_dir_all(path).unwrap();
    let file = File::options().create(true).append(true).open(path.join("raw")).unwrap();
    Box::new(Raw(Group::new(Writer { file, heads: HashMap::new() })))
}

impl Backend for Writer {
    fn commit(&mut self, jobs: &[Job]) -> Vec<Placed> {
        let mut bytes = Vec::new();
        let mut placed = Vec::new();
        for job in jobs {
            let (head, place) = job.advance(self.heads.remove(&job.conversation));
            let (key, value) = record::record(job, &head, place);
            bytes.extend_from_slice(&key);
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(job.conversation.as_bytes());
            bytes.extend(bincode::encode_to_vec(&head, standard()).unwrap());
            self.heads.insert(job.conversation, head);
            placed.push(place);
        }
        self.file.write_all(&bytes).unwrap();
        self.file.sync_data().unwrap();
        placed
    }
}

impl Peer for Raw {
    fn append(&self, conversation: ConversationId, key: Option<&str>, messages: &[Message]) {
        self.0.write(Job::new(conversation, key, messages));
    }

    fn fill(&self, appends: &mut dyn Iterator<Item = (ConversationId, &[Message])>) {
        self.0.fill(&mut appends.map(|(conversation, messages)| Job::new(conversation, None, messages)));
    }

    fn stream(&self, conversation: ConversationId, deltas: &[String]) {
        stream(conversation, deltas, |job| self.0.write(job));
    }

    fn load(&self, _: ConversationId) -> Vec<StoredMessage> {
        panic!("a raw file is not read")
    }

    fn tail(&self, _: ConversationId, _: usize) -> Vec<Entry> {
        panic!("a raw file is not read")
    }

    fn list(&self, _: usize) -> Vec<Listed> {
        panic!("a raw file is not read")
    }

    fn close(self: Box<Self>) {}
}
