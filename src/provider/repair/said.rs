//! What items say, unit by unit: how often each of them says it, wherever in them it is. What one loses and another gains
//! was moved between them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::model::{Audio, Body, Chunk, File, Image, Output, PartBody};
use crate::provider::prompt::media::attachment::why_left_out;
use crate::provider::prompt::media::bytes::is_web_address;

/// The units of what is said: a line of text, an attachment, a call, a result.
pub(super) type Units = Vec<u64>;

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
        Body::Image(image) => units.image(image),
        Body::Audio(audio) => units.audio(audio),
        Body::File(file) => units.file(file),
        Body::Opaque { json, .. } => units.lines(&compact(json.as_str())),
        Body::Error { .. } | Body::Unknown { .. } => {}
    }
    units.0
}

/// The kind of the units that results have beside what is in them.
const RESULT: &str = "result";

/// The kind of a unit that an attachment has, and the text in its place.
const ATTACHMENT: &str = "attachment";

fn unit(kind: &str, value: impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    (kind, value).hash(&mut hash);
    hash.finish()
}

#[derive(Debug, Default)]
struct Collected(Units);

impl Collected {
    fn add(&mut self, kind: &str, value: impl Hash) {
        self.0.push(unit(kind, value));
    }

    /// Texts that are joined, or put in tags, keep their lines; what is JSON on one wire is its text on another.
    fn lines(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(why) = why_left_out(line) {
                self.add(ATTACHMENT, ());
                why.split(' ').filter(|word| is_web_address(word)).for_each(|address| self.media(address));
            }
            let is_json = line.starts_with(['{', '[']);
            self.add("line", if is_json { Cow::Owned(compact(line)) } else { Cow::Borrowed(line) });
        }
    }

    fn image(&mut self, image: &Image) {
        self.add(ATTACHMENT, ());
        self.media(&image.url);
    }

    fn part(&mut self, part: &PartBody) {
        match part {
            PartBody::Text { text } => self.lines(text),
            PartBody::Image(image) => self.image(image),
            PartBody::Audio(audio) => self.audio(audio),
            PartBody::File(file) => self.file(file),
            PartBody::Json { json } => self.lines(&compact(json.as_str())),
            PartBody::Unknown { .. } => {}
        }
    }

    fn audio(&mut self, audio: &Audio) {
        self.add(ATTACHMENT, ());
        audio.url.iter().chain(&audio.data).for_each(|data| self.media(data));
        audio.transcript.iter().for_each(|text| self.lines(text));
    }

    fn file(&mut self, file: &File) {
        self.add(ATTACHMENT, ());
        file.url.iter().chain(&file.data).for_each(|data| self.media(data));
    }

    /// Some wires have data with its type before it, others without.
    fn media(&mut self, data: &str) {
        self.add("media", data.split_once(";base64,").map_or(data, |(_, data)| data));
    }
}

/// JSON whatever its white space and escapes; other text as it is.
fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}

/// Who loses a unit, and who gains it: each as often as it does.
#[derive(Debug, Default)]
pub(super) struct Moves(HashMap<u64, (Vec<usize>, Vec<usize>)>);

/// What changes between units as they were, and as they are then.
pub(super) fn moves(sides: impl Iterator<Item = (Units, Units)>) -> Moves {
    let mut moves: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, (before, after)) in sides.enumerate() {
        let mut counts: HashMap<u64, (usize, usize)> = HashMap::new();
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
    /// that is there in the end, and says nothing twice.
    pub(super) fn pairs(&self) -> HashSet<(usize, usize)> {
        let moves = self.0.values();
        moves.flat_map(|(losers, gainers)| losers.iter().copied().zip(gainers.iter().copied())).collect()
    }

    /// Who gains a result of this call.
    pub(super) fn gain_result(&self, tool_call_id: &str) -> &[usize] {
        self.0.get(&unit(RESULT, tool_call_id)).map(|(_, gainers)| gainers.as_slice()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_told_from_what_stays() {
        let moved = |sides: &[(&[u64], &[u64])]| {
            let sides = sides.iter().map(|(before, after)| (before.to_vec(), after.to_vec()));
            let mut moved: Vec<_> = moves(sides).pairs().into_iter().collect();
            moved.sort_unstable();
            moved
        };
        assert_eq!(moved(&[(&[1, 2], &[2, 1]), (&[1], &[])]), []);
        assert_eq!(moved(&[(&[1, 2], &[2]), (&[3], &[3, 1])]), [(0, 1)]);
        // As often as it moves, and in order.
        assert_eq!(moved(&[(&[], &[1, 1]), (&[1], &[]), (&[1, 1], &[])]), [(1, 0), (2, 0)]);
        // What nobody had, and what nobody has.
        assert_eq!(moved(&[(&[1], &[]), (&[], &[2])]), []);
    }
}
