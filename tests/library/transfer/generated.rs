//! Exports of each format as nobody should write them: the samples, with values replaced, moved, repeated and left out.

use conversation_store::Store;
use conversation_store::transfer::ImportOptions;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{assert_works, into, run, sample};
use crate::common::config;

/// A generator of numbers: small, and the same for a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

/// Values that stand where others should.
fn strange(chance: &mut Chance) -> Value {
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let values = [
        json!(null),
        json!(""),
        json!("text"),
        json!(0),
        json!(-1.5e300),
        json!(true),
        json!([]),
        json!({}),
        json!([[]]),
        json!(["a", 1, null]),
        json!({"type": "text", "text": "t"}),
        json!({"id": null}),
        json!("2026-01-02T03:04:05Z"),
        json!("assistant"),
        json!("tool"),
        json!("\u{0}\u{202e}<script>"),
        deep,
    ];
    values[chance.below(values.len())].clone()
}

fn mutate(value: &mut Value, chance: &mut Chance) {
    if chance.below(40) == 0 {
        *value = strange(chance);
        return;
    }
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| mutate(item, chance));
            let at = chance.below(items.len());
            match chance.below(30) {
                0 if !items.is_empty() => _ = items.remove(at),
                1 if !items.is_empty() => items.insert(at, items[at].clone()),
                2 => items.push(strange(chance)),
                3 => items.reverse(),
                _ => {}
            }
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| mutate(field, chance));
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = names.get(chance.below(names.len())).cloned();
            match (chance.below(30), name) {
                (0, Some(name)) => _ = fields.remove(&name),
                (1, _) => _ = fields.insert("kind_of_tomorrow".to_owned(), strange(chance)),
                _ => {}
            }
        }
        _ => {}
    }
}

fn mutated(text: &str, is_lines: bool, seed: u64) -> String {
    let mut chance = Chance(seed);
    if is_lines {
        let lines = text.lines().map(|line| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            mutate(&mut value, &mut chance);
            value.to_string()
        });
        return lines.collect::<Vec<_>>().join("\n");
    }
    let mut value: Value = serde_json::from_str(text).unwrap();
    mutate(&mut value, &mut chance);
    value.to_string()
}

fn samples() -> Vec<(String, String)> {
    let files = std::fs::read_dir(sample("")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn whatever_is_taken_renders_for_every_target(seed in any::<u64>()) {
        for (name, text) in samples() {
            let text = mutated(&text, name.ends_with(".jsonl"), seed);
            let store = Store::open("memory:").unwrap();
            if into(&store, &name, &text).summary.is_err() {
                continue;
            }
            assert_works(&store);
            // And once more it is the same.
            let again = into(&store, &name, &text).summary.unwrap();
            assert_eq!(again.added, 0, "{name}: {text}");
        }
    }

    /// Cut off anywhere, a file is an error, or what came before the cut.
    #[test]
    fn a_file_that_is_cut_off_gives_what_came_before(part in 0.0..1.0_f64) {
        for (name, text) in samples() {
            let mut end = (text.len() as f64 * part) as usize;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let store = Store::open("memory:").unwrap();
            into(&store, &name, text.get(..end).unwrap());
            assert_works(&store);
        }
    }
}

#[test]
fn the_format_that_is_named_is_taken() {
    let mut options = ImportOptions::default();
    options.format = Some("chatgpt".to_owned());
    let store = Store::open("memory:").unwrap();
    assert!(run(Some(&store), &sample("chatgpt-conversations.json"), &options).summary.is_ok());
    options.format = Some("nonsense".to_owned());
    let error = run(Some(&store), &sample("chatgpt-conversations.json"), &options).summary.unwrap_err();
    assert!(error.to_string().contains("chatgpt"), "{error}");
}
