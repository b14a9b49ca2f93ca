//! A store that holds anything: it opens or says why not, and everything that reads it comes to an end.

use std::collections::BTreeMap;

use conversation_store::model::{ConversationId, Message};
use conversation_store::provider::PromptOptions;
use conversation_store::{ListQuery, Store, next_step};

use super::backup;
use crate::common::prompts;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Takes the bytes as pairs, as they stand in a frame of a backup. Their checksums are made to fit: what is behind them is
/// of interest here.
pub fn holds(data: &[u8]) {
    let mut pairs = Pairs::new();
    let mut rest = data;
    while let Some((key, value, behind)) = pair(rest) {
        pairs.insert(key.to_vec(), value.to_vec());
        rest = behind;
    }
    let keys: Vec<Vec<u8>> = pairs.keys().cloned().collect();
    for key in keys {
        seal(&key, &mut pairs);
    }
    let mut frame = Vec::new();
    for (key, value) in &pairs {
        frame.extend((key.len() as u32).to_be_bytes());
        frame.extend((value.len() as u32).to_be_bytes());
        frame.extend_from_slice(key);
        frame.extend_from_slice(value);
    }
    backup::open(&backup::file(&frame, pairs.len() as u64));
}

fn pair(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (value, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*key) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*value) as usize)?;
    Some((key, value, rest))
}

/// Sets a value's checksum, as `docs/format.md` says.
fn seal(key: &[u8], pairs: &mut Pairs) {
    let value = &pairs[key];
    let at = match key.first() {
        Some(b'c') => 2..6,
        Some(b'h' | b'k' | b'f' | b'd' | b'm') => 1..5,
        _ => return,
    };
    if value.len() < at.end {
        return;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    if at.start == 2 {
        hasher.update(&value[..2]);
    }
    hasher.update(&value[at.end..]);
    if at.start == 2 {
        let first = [b"p", &key[1..]].concat();
        let last = [&first[..], &[u8::MAX; 5]].concat();
        pairs.range(first..last).for_each(|(_, part)| hasher.update(part));
    }
    let checksum = hasher.finalize();
    pairs.get_mut(key).unwrap()[at].copy_from_slice(&checksum.to_be_bytes());
}

/// Reads a store in every way that there is.
pub(super) fn read(store: &Store) {
    let verified = store.verify(|_, _| ()).unwrap();
    let is_sound = verified.problems.is_empty();
    let mut query = ListQuery::new().with_limit(10);
    let mut listed = 0;
    loop {
        let Ok(page) = store.list(&query) else { return assert!(!is_sound) };
        listed += page.items.len() as u64;
        page.items.iter().for_each(|item| read_conversation(store, item.id, is_sound));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert!(!is_sound || listed == verified.conversations);
}

fn read_conversation(store: &Store, id: ConversationId, is_sound: bool) {
    let strict = store.load_strict(id);
    let entries = store.entries(id, .., usize::MAX);
    if is_sound {
        strict.unwrap();
        entries.as_ref().unwrap();
    }
    if let Ok(entries) = entries {
        assert!(entries.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        let newest = store.newest_entries(id, 3).unwrap();
        assert_eq!(newest[..], entries[entries.len().saturating_sub(3)..]);
    }
    let Ok(conversation) = store.load(id) else { return };
    let _ = next_step(&conversation);
    for stored in conversation.messages() {
        let line = stored.message.to_json();
        assert_eq!(Message::from_json(&line).unwrap().to_json(), line);
    }
    for target in prompts::targets() {
        if let Some(prompt) = prompts::prompt(target, conversation.messages(), &PromptOptions::new()) {
            prompts::assert_accepted(target, &prompt);
        }
    }
}
