//! Whether a request's run of the model's messages is the echo of a recorded answer, and what of that the client kept.

use std::borrow::Cow;
use std::collections::HashMap;

use super::meaning::{self, Meaning};
use crate::model::{Body, Chunk, Message, Role};

/// What a client made of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Echo {
    /// All of it came back.
    Whole,
    /// A part of it came back: the answer did not end as answers do.
    Part(Kept),
}

/// What a client kept of an answer that was cut off.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    /// Which chunks of the answer came back whole, by their positions.
    pub(super) chunks: Vec<bool>,
    /// What came back beside them: the beginning of a text, or what the client had and the store lost.
    pub(super) rest: Vec<Chunk>,
}

/// Chunks of the model that are compared.
pub(super) type Said<'a> = Vec<&'a Chunk>;

/// How a run compares with an answer: `before` is what was said in the same run ahead of it.
///
/// `is_cut`: the answer did not end normally, as far as the client knows. `is_lost`: its end was lost with the program that wrote
/// it, so that the client may have more of it than the store.
pub(super) fn compare(
    before: &[&Chunk],
    answer: &[&Chunk],
    echoed: &[&Chunk],
    skips: fn(Role, &Chunk) -> bool,
    is_cut: bool,
    is_lost: bool,
) -> Option<Echo> {
    let recorded: Said<'_> = before.iter().chain(answer).copied().collect();
    let expanded = expand(echoed, &recorded);
    let found = compare_as_it_is(before, answer, &expanded, skips, is_cut, is_lost);
    if found.is_some() || !is_cut {
        return found;
    }
    let (text, note) = noted(&expanded)?;
    let said = expanded.split_last().map_or(&[][..], |(_, said)| said);
    let said: Said<'_> = said.iter().copied().chain([&text]).collect();
    compare_as_it_is(before, answer, &said, skips, is_cut, is_lost).map(|echo| with_note(echo, answer.len(), &note))
}

/// As [`compare`], where the client has added nothing.
fn compare_as_it_is(
    before: &[&Chunk],
    answer: &[&Chunk],
    echoed: &[&Chunk],
    skips: fn(Role, &Chunk) -> bool,
    is_cut: bool,
    is_lost: bool,
) -> Option<Echo> {
    let recorded: Said<'_> = before.iter().chain(answer).copied().collect();
    let (was, is) = (joined(&recorded, skips), joined(echoed, skips));
    if was.len() == is.len() && was.iter().zip(&is).all(|(was, is)| is_same(was, is)) {
        return Some(Echo::Whole);
    }
    if lacks_only_what_clients_leave_out(&recorded, &is, skips) {
        return Some(Echo::Whole);
    }
    if is_cut && begins(&was, &is) || lacks_calls(&was, &is) {
        return kept(before, answer, echoed, skips).map(Echo::Part);
    }
    if is_lost && !was.is_empty() && begins(&is, &was) {
        return kept(before, answer, echoed, skips).map(Echo::Part);
    }
    None
}

/// Whether an echo lacks what the provider's own tools did or drew, and has the words; or lacks the words before the calls, and
/// has the calls. Clients keep the text of an answer alone, or its calls.
fn lacks_only_what_clients_leave_out(recorded: &[&Chunk], is: &[Meaning<'_>], skips: fn(Role, &Chunk) -> bool) -> bool {
    let own: Said<'_> = recorded.iter().filter(|chunk| !is_of_provider(chunk)).copied().collect();
    let mut was = joined(&own, skips);
    let is_named = |meaning: &Meaning<'_>| matches!(meaning, Meaning::Call { id, .. } if !id.is_empty());
    if is.iter().all(is_named) {
        // Only ids say whose calls they are.
        let words = was.iter().take_while(|meaning| matches!(meaning, Meaning::Text(_))).count();
        was.drain(..words);
        if !was.iter().all(is_named) {
            return false;
        }
    }
    !is.is_empty() && was.len() == is.len() && was.iter().zip(is).all(|(was, is)| is_same(was, is))
}

/// Whether a chunk is what a tool of the provider's did in an answer, or a picture.
fn is_of_provider(chunk: &Chunk) -> bool {
    let is_call = matches!(chunk.body, Body::ToolCall { server: true, .. });
    is_call || matches!(chunk.body, Body::Opaque { .. } | Body::ToolResult { .. } | Body::Image(_))
}

/// Whether a run says what is recorded, and nothing else.
pub(super) fn same(was: &[&Chunk], is: &[&Chunk], skips: fn(Role, &Chunk) -> bool) -> bool {
    compare(&[], was, is, skips, false, false) == Some(Echo::Whole)
}

/// As [`same`], of calls whose ids are no others', whatever their arguments: clients clear those of old calls.
pub(super) fn same_calls(was: &[&Chunk], is: &[&Chunk], skips: fn(Role, &Chunk) -> bool) -> bool {
    let (was, is) = (joined(was, skips), joined(is, skips));
    let is_same_call = |was: &Meaning<'_>, is: &Meaning<'_>| match (was, is) {
        (Meaning::Call { id, name, .. }, Meaning::Call { id: other_id, name: other_name, .. }) => {
            id == other_id && name == other_name && meaning::is_random(id, name)
        }
        _ => is_same(was, is),
    };
    was.len() == is.len() && was.iter().zip(&is).all(|(was, is)| is_same_call(was, is))
}

pub(super) fn chunks(messages: &[Message]) -> impl Iterator<Item = &Chunk> {
    messages.iter().flat_map(|message| &message.chunks)
}

pub(super) fn is_text(chunk: &&Chunk) -> bool {
    matches!(chunk.body, Body::Text { .. } | Body::Thinking { .. })
}

/// Whether what is recorded of a run, whose answer is not all stored yet, may become what this one is the echo of.
pub(super) fn may_become(recorded: &[&Chunk], echoed: &[&Chunk], skips: fn(Role, &Chunk) -> bool) -> bool {
    let (was, is) = (joined(recorded, skips), joined(&expand(echoed, recorded), skips));
    begins(&is, &was) || begins(&was, &is)
}

/// A run's chunks, with those that it names by their ids in the place of their ids.
///
/// A recorded chunk comes once: who names one again names nothing.
fn expand<'a>(echoed: &[&'a Chunk], recorded: &[&'a Chunk]) -> Said<'a> {
    let mut known: HashMap<&str, Said<'a>> = HashMap::new();
    for chunk in recorded {
        if let Some(id) = chunk.id.as_deref() {
            known.entry(id).or_default().push(chunk);
        }
    }
    let mut expanded = Vec::with_capacity(echoed.len());
    for chunk in echoed {
        match meaning::reference(chunk).and_then(|id| known.remove(id.as_str())) {
            Some(chunks) => expanded.extend(chunks),
            None => expanded.push(*chunk),
        }
    }
    expanded
}

/// What chunks mean, adjacent texts as one, without white space at the ends of a text.
fn joined<'a>(chunks: &[&'a Chunk], skips: fn(Role, &Chunk) -> bool) -> Vec<Meaning<'a>> {
    let mut all: Vec<Meaning<'a>> = Vec::new();
    let said = chunks.iter().filter(|chunk| !skips(Role::Assistant, chunk));
    for meaning in said.filter_map(|chunk| meaning::of_model(chunk)) {
        match (all.last_mut(), meaning) {
            (Some(Meaning::Text(before)), Meaning::Text(more)) => before.to_mut().push_str(&more),
            (_, meaning) => all.push(meaning),
        }
    }
    for meaning in &mut all {
        if let Meaning::Text(text) = meaning {
            *text = match std::mem::take(text) {
                Cow::Borrowed(text) => text.trim_ascii().into(),
                Cow::Owned(text) => text.trim_ascii().to_owned().into(),
            };
        }
    }
    all.retain(|meaning| !matches!(meaning, Meaning::Text(text) if text.is_empty()));
    all
}

/// Whether a recorded part came back as this one. An id of a call counts if the provider gave it; where it gave none, the client
/// made one up. That of another item counts if the client sends one.
fn is_same(was: &Meaning<'_>, is: &Meaning<'_>) -> bool {
    match (was, is) {
        (
            Meaning::Call { id, name, arguments },
            Meaning::Call { id: other_id, name: other_name, arguments: other_arguments },
        ) => {
            // What was cut off within its arguments comes back as the client could read it.
            let is_broken = meaning::is_broken(arguments) && !id.is_empty() && id == other_id;
            name == other_name && (is_broken || arguments == other_arguments && (id.is_empty() || id == other_id))
        }
        (Meaning::Item { id: Some(id), kind, .. }, Meaning::Item { id: Some(other_id), kind: other_kind, .. }) => {
            kind == other_kind && id == other_id
        }
        (Meaning::Item { content, kind, .. }, Meaning::Item { content: other, kind: other_kind, .. }) => {
            kind == other_kind && content == other
        }
        _ => was == is,
    }
}

/// Whether `whole` begins with `part`: block by block, the last text by its bytes.
fn begins(whole: &[Meaning<'_>], part: &[Meaning<'_>]) -> bool {
    let Some((last, blocks)) = part.split_last() else { return true };
    let same = whole.iter().zip(blocks).filter(|(was, is)| is_same(was, is)).count();
    if same < blocks.len() {
        return false;
    }
    match (whole.get(blocks.len()), last) {
        (Some(Meaning::Text(was)), Meaning::Text(is)) => was.starts_with(&**is),
        (Some(was), is) => is_same(was, is),
        (None, _) => false,
    }
}

/// Whether an echo lacks calls at the end of an answer, and nothing else: a client that runs one call at a time leaves out the
/// others. The id of the last call that it has says whose echo it is.
fn lacks_calls(was: &[Meaning<'_>], is: &[Meaning<'_>]) -> bool {
    let is_call = |meaning: &Meaning<'_>| matches!(meaning, Meaning::Call { id, .. } if !id.is_empty());
    let left = was.get(is.len()..).unwrap_or_default();
    is.last().is_some_and(is_call)
        && !left.is_empty()
        && left.iter().all(is_call)
        && was.iter().zip(is).all(|(was, is)| is_same(was, is))
}

/// What Cline and Roo Code put at the end of a text that they stopped.
const NOTE: &str = "\n\n[Response interrupted";

/// The last text of an echo without a client's note at its end, and the note.
fn noted(echoed: &[&Chunk]) -> Option<(Chunk, String)> {
    let mut chunk = (*echoed.last()?).clone();
    let Body::Text { text, .. } = &mut chunk.body else { return None };
    let at = text.rfind(NOTE).filter(|_| text.ends_with(']'))?;
    let note = text.split_off(at);
    Some((chunk, note))
}

/// An echo with the note that the client put at its end.
fn with_note(echo: Echo, chunks: usize, note: &str) -> Echo {
    let whole = || Kept { chunks: vec![true; chunks], rest: Vec::new() };
    let mut kept = if let Echo::Part(kept) = echo { kept } else { whole() };
    match kept.rest.last_mut() {
        Some(Chunk { body: Body::Text { text, .. }, .. }) => text.push_str(note),
        _ => kept.rest.push(Chunk::text(note)),
    }
    Echo::Part(kept)
}

/// Which chunks of an answer an echo has that begins as the answer does, or as which the answer begins.
fn kept(before: &[&Chunk], answer: &[&Chunk], echoed: &[&Chunk], skips: fn(Role, &Chunk) -> bool) -> Option<Kept> {
    let mut echo = Reader::of(echoed, skips);
    // What was said ahead of the answer is all in the echo, or the echo is of something else.
    for chunk in before {
        if echo.take(chunk, skips) != Taken::Whole {
            return None;
        }
    }
    let mut kept = Kept::default();
    let mut is_over = false;
    for chunk in answer {
        let is_thought = matches!(chunk.body, Body::Thinking { .. });
        let taken = if is_over && !is_thought { Taken::Nothing } else { echo.take(chunk, skips) };
        is_over |= taken != Taken::Whole && !is_thought;
        kept.chunks.push(taken == Taken::Whole);
    }
    kept.rest = echo.rest();
    Some(kept)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Whole,
    Nothing,
}

/// An echo as it is compared with chunks, one after the other.
struct Reader<'a> {
    thoughts: Vec<&'a Chunk>,
    said: Vec<&'a Chunk>,
    at: usize,
    /// Bytes of the text at `at` that were taken.
    taken: usize,
}

impl<'a> Reader<'a> {
    fn of(echoed: &[&'a Chunk], skips: fn(Role, &Chunk) -> bool) -> Self {
        let is_thought = |chunk: &&&Chunk| matches!(chunk.body, Body::Thinking { .. });
        let thoughts = echoed.iter().filter(is_thought).copied().collect();
        let is_said = |chunk: &&&Chunk| meaning::of_model(chunk).is_some() && !skips(Role::Assistant, chunk);
        Self { thoughts, said: echoed.iter().filter(is_said).copied().collect(), at: 0, taken: 0 }
    }

    /// Takes a chunk off the echo, if it is there whole.
    fn take(&mut self, chunk: &Chunk, skips: fn(Role, &Chunk) -> bool) -> Taken {
        if matches!(chunk.body, Body::Thinking { .. }) {
            let is_there = self.thoughts.iter().any(|thought| is_same_thought(chunk, thought));
            return if is_there { Taken::Whole } else { Taken::Nothing };
        }
        let Some(was) = meaning::of_model(chunk).filter(|_| !skips(Role::Assistant, chunk)) else {
            return Taken::Whole;
        };
        let Meaning::Text(was) = was else {
            let next = self.said.get(self.at).and_then(|next| meaning::of_model(next));
            if self.taken == 0 && next.is_some_and(|next| is_same(&was, &next)) {
                self.at += 1;
                return Taken::Whole;
            }
            return Taken::Nothing;
        };
        let (at, taken) = (self.at, self.taken);
        let mut left = &*was;
        while !left.trim_end_matches(|c: char| c.is_ascii_whitespace()).is_empty() {
            let text = self.said.get(self.at).and_then(|next| text(next)).and_then(|text| text.get(self.taken..));
            let Some(text) = text else { break };
            if self.taken == 0 && !text.starts_with(|c: char| c.is_ascii_whitespace()) {
                left = left.trim_ascii_start();
            }
            if let Some(rest) = left.strip_prefix(text) {
                left = rest;
                (self.at, self.taken) = (self.at + 1, 0);
            } else if text.starts_with(left) {
                self.taken += left.len();
                left = "";
            } else if text.starts_with(left.trim_end_matches(|c: char| c.is_ascii_whitespace())) {
                self.taken += left.trim_end_matches(|c: char| c.is_ascii_whitespace()).len();
                left = "";
            } else {
                let stripped = text.trim_end_matches(|c: char| c.is_ascii_whitespace());
                match left.strip_prefix(stripped) {
                    Some(rest) if !stripped.is_empty() => {
                        left = rest;
                        (self.at, self.taken) = (self.at + 1, 0);
                    }
                    _ => break,
                }
            }
            // A text that is taken to its end is over, whatever white space it ends with.
            let rest = self.said.get(self.at).and_then(|next| text_from(next, self.taken));
            if self.taken > 0
                && rest.is_some_and(|rest| rest.trim_end_matches(|c: char| c.is_ascii_whitespace()).is_empty())
            {
                (self.at, self.taken) = (self.at + 1, 0);
            }
        }
        if left.trim_end_matches(|c: char| c.is_ascii_whitespace()).is_empty() {
            return Taken::Whole;
        }
        // A part of it: what came back of it is in the rest.
        (self.at, self.taken) = (at, taken);
        Taken::Nothing
    }

    fn rest(self) -> Vec<Chunk> {
        let mut rest: Vec<Chunk> = Vec::new();
        for (number, chunk) in self.said.into_iter().skip(self.at).enumerate() {
            match text(chunk).and_then(|text| text.get(self.taken..)).filter(|_| number == 0) {
                Some(text) => rest.push(Chunk::text(text)),
                None => rest.push(chunk.clone()),
            }
        }
        rest
    }
}

/// The words of a text.
fn text(chunk: &Chunk) -> Option<&str> {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => Some(meaning::words(text)),
        _ => None,
    }
}

fn text_from(chunk: &Chunk, from: usize) -> Option<&str> {
    text(chunk)?.get(from..)
}

/// Whether two chunks are the same thinking: its proof or its id says so, and without either its words.
fn is_same_thought(was: &Chunk, is: &Chunk) -> bool {
    let Body::Thinking { text, signature, redacted } = &was.body else { return false };
    let Body::Thinking { text: other_text, signature: other_signature, redacted: other_redacted } = &is.body else {
        return false;
    };
    if signature.is_some() || redacted.is_some() {
        return signature == other_signature && redacted == other_redacted;
    }
    match (&was.id, &is.id) {
        (Some(was), Some(is)) => was == is,
        _ => text == other_text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: fn(Role, &Chunk) -> bool = |_, _| false;

    fn text(said: &str) -> Chunk {
        Chunk::text(said)
    }

    fn call(id: &str) -> Chunk {
        Chunk::tool_call(id, "f", r#"{"a":1}"#)
    }

    fn of(answer: &[Chunk], echoed: &[Chunk], is_cut: bool, is_lost: bool) -> Option<Echo> {
        let (answer, echoed): (Said<'_>, Said<'_>) = (answer.iter().collect(), echoed.iter().collect());
        compare(&[], &answer, &echoed, ALL, is_cut, is_lost)
    }

    #[test]
    fn an_answer_comes_back_whole() {
        let thought = Chunk::thinking("hm");
        let item = |id: &str, chunk| Chunk { id: Some(id.to_owned()), ..chunk };
        let json = r#"{"type":"item_reference","id":"msg_1"}"#;
        let json = crate::model::Json::new(json).unwrap();
        let reference = Chunk::from(Body::Opaque { provider: "p".into(), kind: "item_reference".into(), json });
        let search = |json: &str| {
            let json = crate::model::Json::new(json).unwrap();
            Chunk::from(Body::Opaque { provider: "p".into(), kind: "web_search_call".into(), json })
        };
        let (recorded, bare) = (search(r#"{"id":"ws_1","status":"completed","q":"x"}"#), search(r#"{"q":"x"}"#));
        let hosted = Chunk::from(Body::ToolCall {
            id: "srv_1".into(),
            name: "web_search".into(),
            arguments: "{}".into(),
            server: true,
            signature: None,
        });
        let whole: [(&[Chunk], &[Chunk]); 17] = [
            (&[text("\n\n a")], &[text("a")]),
            (&[text("<think>hm</think>\n\na")], &[text("a")]),
            (&[text("<think>hm</think>a")], &[text("<think>hm</think>a")]),
            (&[text("a"), recorded.clone(), text("b")], &[text("ab")]),
            (&[hosted, text("a"), call("1")], &[text("a"), call("1")]),
            (&[text("I run it."), call("1"), call("2")], &[call("1"), call("2")]),
            (&[Chunk::tool_call("1", "f", r#"{"a": "cut"#)], &[Chunk::tool_call("1", "f", r#"{"a":"cut"}"#)]),
            (std::slice::from_ref(&recorded), std::slice::from_ref(&bare)),
            (std::slice::from_ref(&recorded), &[search(r#"{"id":"ws_1","status":"in_progress"}"#)]),
            (&[text("a"), text("b")], &[text("ab")]),
            (&[thought.clone(), text("a")], &[text("a")]),
            (&[text("I run it. "), call("1")], &[text("I run it."), call("1")]),
            (&[call("")], &[call("made up")]),
            (&[call("1")], &[Chunk::tool_call("1", "f", r#"{ "a" : 1.0 }"#)]),
            (&[item("msg_1", text("hello")), call("1")], &[reference, call("1")]),
            (&[text("")], &[]),
            (&[text("a"), Chunk::error("e")], &[text("a")]),
        ];
        for (answer, echoed) in whole {
            assert_eq!(of(answer, echoed, false, false), Some(Echo::Whole), "{answer:?} {echoed:?}");
        }
        let other: [(&[Chunk], &[Chunk]); 12] = [
            (&[text("a"), recorded.clone()], &[text("b")]),
            (&[text("a"), recorded.clone()], std::slice::from_ref(&bare)),
            (&[text("a"), call(""), call("")], &[call("made up"), call("too")]),
            (&[Chunk::tool_call("1", "f", r#"{"a": "cut"#)], &[Chunk::tool_call("2", "f", r#"{"a":"cut"}"#)]),
            (std::slice::from_ref(&recorded), &[search(r#"{"q":"y"}"#)]),
            (std::slice::from_ref(&recorded), &[search(r#"{"id":"ws_2","q":"x"}"#)]),
            (&[call("1")], &[call("2")]),
            (&[text("ab")], &[text("a")]),
            (&[text("a b")], &[text("ab")]),
            (&[text("a"), call("1")], &[text("a")]),
            (&[call("1"), text("a")], &[call("1")]),
            (&[text("a")], &[]),
        ];
        for (answer, echoed) in other {
            assert_eq!(of(answer, echoed, false, false), None, "{answer:?} {echoed:?}");
        }
    }

    /// A request of many references is not as much as all that they name.
    #[test]
    fn what_is_named_again_and_again_comes_once() {
        let item = |id: &str| Chunk { id: Some(id.to_owned()), ..text("x") };
        let json = crate::model::Json::new(r#"{"type":"item_reference","id":"msg_1"}"#).unwrap();
        let reference = Chunk::from(Body::Opaque { provider: "p".into(), kind: "item_reference".into(), json });
        let recorded = [item("msg_1"), item("msg_1"), item("msg_2")];
        let recorded: Said<'_> = recorded.iter().collect();
        assert_eq!(expand(&[&reference, &reference], &recorded), [recorded[0], recorded[1], &reference]);
    }

    #[test]
    fn a_client_may_run_the_first_calls_alone() {
        let kept = Kept { chunks: vec![true, true, false], rest: Vec::new() };
        let answer = [text("a"), call("1"), call("2")];
        assert_eq!(of(&answer, &[text("a"), call("1")], false, false), Some(Echo::Part(kept)));
    }

    #[test]
    fn a_note_of_the_client_is_no_text_of_the_answer() {
        let note = "\n\n[Response interrupted by user]";
        let table: [(&[Chunk], &str, &[bool], &str); 3] = [
            (&[text("one two")], "one", &[false], "one\n\n[Response interrupted by user]"),
            (&[text("one")], "one", &[true], note),
            (&[text("one "), text("two")], "one ", &[true, false], note),
        ];
        for (answer, said, chunks, rest) in table {
            let echoed = [text(&format!("{said}{note}"))];
            let kept = Kept { chunks: chunks.to_vec(), rest: vec![text(rest)] };
            assert_eq!(of(answer, &echoed, true, false), Some(Echo::Part(kept)), "{answer:?}");
            assert_eq!(of(answer, &echoed, false, false), None);
        }
    }

    #[test]
    fn of_a_cut_answer_a_part_comes_back() {
        let signed = |sign: &str| -> Chunk {
            Body::Thinking { text: "t".into(), signature: Some(sign.into()), redacted: None }.into()
        };
        type Row<'a> = (&'a [Chunk], &'a [Chunk], &'a [bool], &'a [Chunk]);
        let table: [Row<'_>; 7] = [
            (&[signed("s"), text("one "), text("two")], &[signed("s"), text("one ")], &[true, true, false], &[]),
            // The block that was being written is a message of its own.
            (
                &[signed("s"), text("one"), text("two and")],
                &[signed("s"), text("one"), text("two")],
                &[true, true, false],
                &[text("two")],
            ),
            (&[signed("s"), text("one")], &[], &[false, false], &[]),
            (&[signed("s"), text("one")], &[signed("s")], &[true, false], &[]),
            (&[text("one"), call("1"), text("x")], &[text("one"), call("1")], &[true, true, false], &[]),
            (&[text("one two")], &[text("one")], &[false], &[text("one")]),
            (&[text("one"), call("1"), call("2")], &[text("one"), call("1")], &[true, true, false], &[]),
        ];
        for (answer, echoed, chunks, rest) in table {
            let kept = Kept { chunks: chunks.to_vec(), rest: rest.to_vec() };
            assert_eq!(of(answer, echoed, true, false), Some(Echo::Part(kept)), "{answer:?} {echoed:?}");
        }
        for (answer, echoed) in [(&[text("one")], [text("two")]), (&[text("one")], [text("one two")])] {
            assert_eq!(of(answer, &echoed, true, false), None);
        }
        // Its end was lost with the server: the client has more of it.
        let lost = Kept { chunks: vec![true], rest: vec![text(" two"), call("1")] };
        assert_eq!(of(&[text("one")], &[text("one two"), call("1")], true, true), Some(Echo::Part(lost)));
        assert_eq!(of(&[text("one")], &[text("other")], true, true), None);
    }
}
