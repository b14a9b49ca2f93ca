//! A log around the log, for one request: what is read of the store counts as what the request holds, before anything is made of
//! it.

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use super::ledger::Room;
use crate::error::Result;
use crate::log::{Around, Log, Order, Reading, View, Visit};
use crate::store::Store;

/// A byte of a record is held as the record, as a message, and in the answer, which grows by doubling.
const HELD: usize = 4;
/// What a byte takes in addition that JSON or HTML writes as an escape: one of a control character is six bytes long.
const ESCAPED: usize = 4;
const CONTROL: usize = 12;
/// Bytes that are counted at one time; fewer are not.
const STEP: usize = 64 * 1024;

struct Metered {
    log: Arc<dyn Log>,
    room: Arc<Room>,
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

/// The store, for a request that holds what it reads.
pub(crate) fn metered(store: &Store, room: &Arc<Room>) -> Store {
    store.clone().around(|log| Metered { log, room: Arc::clone(room) })
}

/// What is held for the content of a record.
fn weight(content: &[u8]) -> usize {
    let of = |byte: &u8| match byte {
        b'\n' | b'\t' | b'\r' | b'"' | b'\\' | b'<' | b'>' | b'&' | b'\'' => HELD + ESCAPED,
        0..0x20 => HELD + CONTROL,
        _ => HELD,
    };
    content.iter().map(of).sum()
}

impl Around for Metered {
    fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// A request reads several times, and drops most of what it read before: the largest of its reads counts.
    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let (mut held, mut counted, mut fits) = (0_usize, 0, Ok(()));
        self.log.read(view, seqs, order, &mut |reading| {
            if let Reading::Record { record, .. } = &reading {
                held = held.saturating_add(weight(record.content()));
                if held - counted >= STEP {
                    counted = held;
                    fits = self.room.reach(held);
                }
            }
            if fits.is_ok() { visit(reading) } else { ControlFlow::Break(()) }
        })?;
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record, the message, and the answer, which grows by doubling: whatever a text is of.
    #[test]
    fn a_text_weighs_what_its_answer_takes() {
        for byte in 0..0x80 {
            let text = String::from_utf8(vec![byte; 1_000]).unwrap();
            let answer = serde_json::to_string(&text).unwrap().len() - 2;
            assert!(weight(text.as_bytes()) >= 2 * text.len() + 2 * answer, "{byte:#x}");
        }
    }
}
