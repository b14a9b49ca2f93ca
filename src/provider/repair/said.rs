//! What items say, unit by unit: how often each of them says it, wherever in them it is. What one loses and another gains
//! was moved between them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::model::{Audio, Body, Chunk, File, Output, PartBody};
use crate::provider::prompt::media::attachment::why_left_out;
use crate::provider::prompt::media::bytes::{is_web_address, normalize_base64};

/// A unit of what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    /// A line of text, a call, a result.
    Said(u64),
    /// An image, sound or document.
    Attachment(u64),
    /// The text in the place of an attachment which it does not name.
    LeftOut(u64),
}

pub(super) type Units = Vec<Unit>;

/// The units of a chunk.
pub(super) fn units(chunk: &Chunk) -> Units {
    let mut units = Collected::default();
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => units.lines(text),
        Body::Thinking { text, signature, redacted } => {
            units.lines(text);
            signature.iter().chain(redacted).for_each(|opaque| units.add("opaque", opaque));
        }
        Body::ToolCall { id, name, arguments, .. } => {
            units.add("call", id);
            units.add(name, compact(arguments));
        }
        Body::ToolResult { tool_call_id, output, .. } => {
            units.add(RESULT, tool_call_id);
            match output {
                Output::Text(text) => units.lines(text),
                Output::Parts(parts) => parts.iter().for_each(|part| units.part(&part.body)),
            }
        }
        Body::Image(image) => units.media(&image.url),
        Body::Audio(audio) => units.audio(audio),
        Body::File(file) => units.file(file),
        Body::Opaque { json, .. } => units.lines(&compact(json.as_str())),
        Body::Error { .. } | Body::Unknown { .. } => {}
    }
    units.0
}

/// The kind of the units that results have beside what is in them.
const RESULT: &str = "result";

fn hash(kind: &str, value: impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    (kind, value).hash(&mut hash);
    hash.finish()
}

#[derive(Debug, Default)]
struct Collected(Units);

impl Collected {
    fn add(&mut self, kind: &str, value: impl Hash) {
        self.0.push(Unit::Said(hash(kind, value)));
    }

    /// Texts that are joined, or put in tags, keep their lines; what is JSON on one wire is its text on another.
    fn lines(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(why) = why_left_out(line) {
                match why.split(' ').find(|word| is_web_address(word)) {
                    Some(address) => self.media(address),
                    None => self.0.push(Unit::LeftOut(hash("line", line))),
                }
                continue;
            }
            let is_json = line.starts_with(['{', '[']);
            self.add("line", if is_json { Cow::Owned(compact(line)) } else { Cow::Borrowed(line) });
        }
    }

    fn part(&mut self, part: &PartBody) {
        match part {
            PartBody::Text { text } => self.lines(text),
            PartBody::Image(image) => self.media(&image.url),
            PartBody::Audio(audio) => self.audio(audio),
            PartBody::File(file) => self.file(file),
            PartBody::Json { json } => self.lines(&compact(json.as_str())),
            PartBody::Unknown { .. } => {}
        }
    }

    fn audio(&mut self, audio: &Audio) {
        audio.url.iter().chain(&audio.data).for_each(|data| self.media(data));
        audio.transcript.iter().for_each(|text| self.lines(text));
    }

    fn file(&mut self, file: &File) {
        file.url.iter().chain(&file.data).for_each(|data| self.media(data));
    }

    /// Some wires have data with its type before it, others without; a target may get it in canonical form.
    fn media(&mut self, data: &str) {
        let data = data.split_once(";base64,").map_or(data, |(_, data)| data);
        let canonical = normalize_base64(data);
        self.0.push(Unit::Attachment(hash("media", canonical.as_deref().unwrap_or(data))));
    }
}

/// JSON whatever its white space and escapes; other text as it is.
fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}

/// Who loses a unit, and who gains it: each as often as it does.
#[derive(Debug, Default)]
pub(super) struct Moves(HashMap<Unit, (Vec<usize>, Vec<usize>)>);

/// What changes between units as they were, and as they are then.
pub(super) fn moves(sides: impl Iterator<Item = (Units, Units)>) -> Moves {
    let mut moves: HashMap<Unit, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, (before, after)) in sides.enumerate() {
        let mut counts: HashMap<Unit, (usize, usize)> = HashMap::new();
        before.into_iter().for_each(|unit| counts.entry(unit).or_default().0 += 1);
        after.into_iter().for_each(|unit| counts.entry(unit).or_default().1 += 1);
        for (unit, (before, after)) in counts {
            if before != after {
                let (losers, gainers) = moves.entry(unit).or_default();
                losers.extend((after..before).map(|_| at));
                gainers.extend((before..after).map(|_| at));
            }
        }
    }
    Moves(moves)
}

impl Moves {
    /// For each that loses a unit, one that gains it. A caller that makes the changes of both of a pair, or of none, loses nothing
    /// that is there in the end, and says nothing twice. So with an attachment, and the text in its place. Where more lose a unit
    /// than gain it, or fewer, nobody can tell whose unit moved: each of them has a partner.
    pub(super) fn pairs(&self) -> HashSet<(usize, usize)> {
        let moved = self.0.values().flat_map(|(losers, gainers)| {
            let each = losers.len().max(gainers.len());
            losers.iter().copied().cycle().zip(gainers.iter().copied().cycle()).take(each)
        });
        let replaced = self.replaced();
        moved.chain(replaced.iter().copied().zip(replaced.iter().copied().skip(1))).collect()
    }

    /// Those that lose an attachment which nobody gains and have no text for it, and those that gain such a text for an
    /// attachment of others. Nobody can tell which text is for which attachment. None if no such text is gained.
    fn replaced(&self) -> Vec<usize> {
        let mut lost: BTreeMap<usize, isize> = BTreeMap::new();
        for (unit, (losers, gainers)) in &self.0 {
            match unit {
                Unit::Attachment(_) => {
                    losers.iter().skip(gainers.len()).for_each(|at| *lost.entry(*at).or_default() += 1);
                }
                Unit::LeftOut(_) => {
                    gainers.iter().skip(losers.len()).for_each(|at| *lost.entry(*at).or_default() -= 1);
                }
                Unit::Said(_) => {}
            }
        }
        lost.retain(|_, count| *count != 0);
        let has_both = lost.values().any(|count| *count > 0) && lost.values().any(|count| *count < 0);
        if has_both { lost.into_keys().collect() } else { Vec::new() }
    }

    /// Who gains a result of this call.
    pub(super) fn gain_result(&self, tool_call_id: &str) -> &[usize] {
        self.0.get(&Unit::Said(hash(RESULT, tool_call_id))).map(|(_, gainers)| gainers.as_slice()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(sides: impl Iterator<Item = (Units, Units)>) -> Vec<(usize, usize)> {
        let mut pairs: Vec<_> = moves(sides).pairs().into_iter().collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn what_moves_is_told_from_what_stays() {
        let moved = |sides: &[(&[u64], &[u64])]| {
            let said = |units: &[u64]| units.iter().copied().map(Unit::Said).collect();
            pairs(sides.iter().map(|(before, after)| (said(before), said(after))))
        };
        assert_eq!(moved(&[(&[1, 2], &[2, 1]), (&[1], &[])]), []);
        assert_eq!(moved(&[(&[1, 2], &[2]), (&[3], &[3, 1])]), [(0, 1)]);
        // As often as it moves, and in order.
        assert_eq!(moved(&[(&[], &[1, 1]), (&[1], &[]), (&[1, 1], &[])]), [(1, 0), (2, 0)]);
        // Whose unit moved is not known.
        assert_eq!(moved(&[(&[1], &[]), (&[1], &[]), (&[], &[1])]), [(0, 2), (1, 2)]);
        assert_eq!(moved(&[(&[1], &[]), (&[], &[1]), (&[], &[1])]), [(0, 1), (0, 2)]);
        // What nobody had, and what nobody has.
        assert_eq!(moved(&[(&[1], &[]), (&[], &[2])]), []);
    }

    #[test]
    fn the_text_in_the_place_of_an_attachment_is_told_from_others() {
        const A: Unit = Unit::Attachment(1);
        const B: Unit = Unit::Attachment(2);
        const TEXT: Unit = Unit::LeftOut(3);
        let moved =
            |sides: &[(&[Unit], &[Unit])]| pairs(sides.iter().map(|(before, after)| (before.to_vec(), after.to_vec())));
        assert_eq!(moved(&[(&[A], &[]), (&[], &[TEXT])]), [(0, 1)]);
        // Another attachment moves, or is replaced in its place.
        assert_eq!(moved(&[(&[A], &[]), (&[B], &[]), (&[], &[B]), (&[], &[TEXT])]), [(0, 3), (1, 2)]);
        assert_eq!(moved(&[(&[A], &[]), (&[B], &[TEXT]), (&[], &[TEXT])]), [(0, 2)]);
        // It may stand for either of them.
        assert_eq!(moved(&[(&[A], &[]), (&[B], &[]), (&[], &[TEXT])]), [(0, 1), (1, 2)]);
        // It was there before; nothing is in the place of the attachment.
        assert_eq!(moved(&[(&[TEXT], &[]), (&[], &[TEXT]), (&[B], &[])]), [(0, 1)]);
    }
}
