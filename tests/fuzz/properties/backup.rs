//! A file that may be a backup: it is read as a store, or the error says why not.

use std::fs;

use conversation_store::Store;

use super::store;

const START: usize = 12;
const HEADER: usize = 12;

/// Takes the bytes as a file. The checksums of its frames are made to fit: what is behind them is of interest here.
pub fn holds(data: &[u8]) {
    let mut bytes = data.to_vec();
    let mut at = START;
    while let Some(length) = stored_length(&bytes, at) {
        let end = at + HEADER + length;
        if end > bytes.len() {
            break;
        }
        let checksum = checksum(&bytes[at..at + 8], &bytes[at + HEADER..end]);
        bytes[at + 8..at + HEADER].copy_from_slice(&checksum);
        at = end;
    }
    open(&bytes);
}

fn stored_length(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes.get(at..at + HEADER)?.get(4..)?.first_chunk()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

fn checksum(lengths: &[u8], stored: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(lengths);
    hasher.update(stored);
    hasher.finalize().to_be_bytes()
}

/// A backup of these pairs, as they stand in a frame.
pub(super) fn file(frame: &[u8], pairs: u64) -> Vec<u8> {
    let mut bytes = b"CONVBKUP".to_vec();
    bytes.extend(1_u32.to_be_bytes());
    let mut add = |raw: usize, stored: &[u8]| {
        let lengths = [(raw as u32).to_be_bytes(), (stored.len() as u32).to_be_bytes()].concat();
        bytes.extend_from_slice(&lengths);
        bytes.extend(checksum(&lengths, stored));
        bytes.extend_from_slice(stored);
    };
    if !frame.is_empty() {
        add(frame.len(), &lz4_flex::block::compress(frame));
    }
    add(0, &pairs.to_be_bytes());
    bytes
}

/// Opens a file as a store, and reads it.
pub(super) fn open(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, bytes).unwrap();
    let path = file.path().to_str().unwrap();
    if let Ok(store) = Store::open(&format!("backup:{path}")) {
        store::read(&store);
    }
}
