//! What was acknowledged, compared with what is there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use conversation_store::model::ConversationId;
use conversation_store::{Error, Problem, Store};

use super::super::failure::Failure;

/// The last acknowledged seq of each conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Acks(BTreeMap<ConversationId, u64>);

impl Acks {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
        Self::parse(BufReader::new(file), &shown.to_string())
    }

    /// A line without an end was being written when the writer stopped: it proves nothing.
    fn parse(mut input: impl BufRead, name: &str) -> Result<Self, Failure> {
        let mut acks = BTreeMap::new();
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let read = input.read_until(b'\n', &mut line);
            read.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let (conversation, seq) = pair(line).ok_or_else(|| {
                Failure::usage(format!("{name}:{number}: expected `conversation last_seq`, a UUID and a number"))
            })?;
            let last = acks.entry(conversation).or_insert(0);
            *last = seq.max(*last);
        }
        Ok(Self(acks))
    }

    /// Entries that were acknowledged and are missing.
    pub(super) fn missing(&self, store: &Store) -> Result<Vec<Problem>, Failure> {
        let mut missing = Vec::new();
        for (conversation, acknowledged) in &self.0 {
            let last = match store.describe(*conversation) {
                Ok(item) => item.last_seq,
                Err(Error::NotFound { .. }) => 0,
                // The verification itself reports it.
                Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            if last < *acknowledged {
                let detail = format!("it was acknowledged up to seq {acknowledged}, and ends before that");
                missing.push(Problem::new(Some(*conversation), Some(last + 1), detail));
            }
        }
        Ok(missing)
    }
}

fn pair(line: &[u8]) -> Option<(ConversationId, u64)> {
    let (conversation, seq) = std::str::from_utf8(line).ok()?.trim_end_matches('\r').split_once(' ')?;
    Some((conversation.parse().ok()?, seq.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use conversation_store::model::Message;

    use super::*;

    const A: &str = "07070707-0707-0707-0707-070707070707";

    fn parse(text: &str) -> Result<Acks, Failure> {
        Acks::parse(text.as_bytes(), "acks")
    }

    #[test]
    fn the_highest_seq_counts_and_a_line_without_end_does_not() {
        let acks = parse(&format!("{A} 2\n{A} 14\n{A} 3\r\n{A} 15")).unwrap();
        assert_eq!(acks, Acks([(A.parse().unwrap(), 14)].into()));
        assert_eq!(parse("").unwrap(), Acks(BTreeMap::new()));
        for bad in ["x 1\n", "\n", &format!("{A}\n"), &format!("{A} x\n")] {
            let error = parse(&format!("{A} 1\n{bad}")).unwrap_err();
            assert_eq!(error.message, "acks:2: expected `conversation last_seq`, a UUID and a number");
        }
    }

    #[test]
    fn what_is_not_there_is_a_problem() {
        let store = Store::open("memory:").unwrap();
        let id: ConversationId = A.parse().unwrap();
        let missing = |seq| parse(&format!("{A} {seq}\n")).unwrap().missing(&store).unwrap();
        assert_eq!(missing(1).len(), 1);
        store.append(id, &[Message::user("a"), Message::user("b")]).unwrap();
        assert_eq!(missing(2), []);
        assert_eq!(missing(7)[0].seq, Some(3));
    }
}
