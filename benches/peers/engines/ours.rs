//! The whole store.

use std::path::Path;

use conversation_store::model::{Chunk, ConversationId, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Durability, Entry, ListQuery, Store, StoredMessage};

use super::Listed;
use super::Peer;

struct Ours(Store);

#[cfg(feature = "sled")]
pub(super) fn open_sled(path: &Path) -> Box<dyn Peer> {
    open(&format!("sled:{}", path.display()))
}

#[cfg(feature = "fjall")]
pub(super) fn open_fjall(path: &Path) -> Box<dyn Peer> {
    open(&format!("fjall:{}", path.display()))
}

pub(super) fn open_memory(_: &Path) -> Box<dyn Peer> {
    open("memory:")
}

fn open(url: &str) -> Box<dyn Peer> {
    Box::new(Ours(Store::open(url).unwrap()))
}

impl Peer for Ours {
    fn append(&self, conversation: ConversationId, key: Option<&str>, messages: &[Message]) {
        match key {
            None => self.0.append(conversation, messages).unwrap(),
            Some(key) => {
                let options = AppendOptions::new().with_idempotency_key(key);
                self.0.append_with(conversation, messages, &options).unwrap()
            }
        };
    }

    fn fill(&self, appends: &mut dyn Iterator<Item = (ConversationId, &[Message])>) {
        let options = AppendOptions::new().with_durability(Durability::Buffered);
        for (conversation, messages) in appends {
            self.0.append_with(conversation, messages, &options).unwrap();
        }
        self.0.sync().unwrap();
    }

    fn stream(&self, conversation: ConversationId, deltas: &[String]) {
        let mut writer = self.0.begin(conversation, Role::Assistant, Metadata::default()).unwrap();
        for delta in deltas {
            writer.push(0, Chunk::text(delta.as_str())).unwrap();
        }
        writer.finish(Some(FinishReason::Stop), None).unwrap();
    }

    fn load(&self, conversation: ConversationId) -> Vec<StoredMessage> {
        self.0.load(conversation).unwrap().into_messages()
    }

    fn tail(&self, conversation: ConversationId, count: usize) -> Vec<Entry> {
        self.0.newest_entries(conversation, count).unwrap()
    }

    fn list(&self, count: usize) -> Vec<Listed> {
        self.0.list(&ListQuery::new().with_limit(count)).unwrap().items.into_iter().map(Listed::from).collect()
    }

    fn close(self: Box<Self>) {
        self.0.close().unwrap();
    }
}
