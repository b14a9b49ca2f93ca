//! `check` against the oracle's verdicts on its own requests: one file a wire in tests/fixtures/oracle, written by
//! tests/oracle/export.py.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeSet;

use conversation_store::provider::{DIALECTS, Level, Target, WIRES, check};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One request, raw: it may hold lone surrogate escapes.
#[derive(Deserialize)]
struct Line {
    case: String,
    target: String,
    request: Box<RawValue>,
    verdicts: Vec<Verdict>,
}

/// What the oracle finds broken under some profiles: rules and places.
#[derive(Deserialize)]
struct Verdict {
    profiles: Vec<String>,
    hard: BTreeSet<(String, String)>,
    soft: BTreeSet<(String, String)>,
}

/// Rules whose place `check` gives more exactly than the oracle.
const MORE_EXACT: &[&str] = &["OC-14", "OC-17"];

/// Rules that are told for people, and not judged: why.
const NOT_JUDGED: &[(&str, &str)] = &[("OR-31", "encrypted content cannot be read")];

/// Broken by none of the oracle's requests: rule, level, target, messages.
const OTHERS: &[(&str, Level, &str, &str)] = &[
    ("OC-26", Level::Soft, "openai-chat", r#"[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}]"#),
    ("OC-26", Level::Hard, "openai-chat", r#"[{"role":"function","name":"f","content":"42"}]"#),
    (
        "OC-26",
        Level::Soft,
        "openai-chat",
        r#"[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"g"}]"#,
    ),
    (
        "OC-30",
        Level::Soft,
        "openai-chat",
        r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}]}]"#,
    ),
];

#[test]
fn rules_without_an_oracle_request_are_found() {
    for (rule, level, target, messages) in OTHERS {
        let findings = check(target.parse().unwrap(), messages).unwrap();
        assert!(findings.iter().any(|found| found.rule == *rule && found.level == *level), "{rule}: {messages}");
    }
    let many = format!("[{}]", vec![r#"{"role":"user","content":"a"}"#; 2049].join(","));
    let long = format!(r#"[{{"role":"user","content":"{}"}}]"#, "a".repeat(10_485_761));
    for messages in [many, long] {
        let findings = check(Target::OPENAI_CHAT, &messages).unwrap();
        assert!(matches!(&findings[..], [only] if only.rule == "OC-33"), "{findings:?}");
    }
}

#[test]
fn no_rule_goes_untested() {
    let fixtures = std::fs::read_dir("tests/fixtures/oracle").unwrap();
    let fixtures: String = fixtures.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let rules = WIRES.iter().flat_map(|wire| wire.rules).chain(DIALECTS.iter().flat_map(|dialect| dialect.rules));
    for rule in rules.map(|rule| rule.id) {
        let judged = NOT_JUDGED.iter().all(|(id, _)| *id != rule);
        let elsewhere = rule == "OC-33" || OTHERS.iter().any(|(id, ..)| *id == rule);
        assert!(!judged || elsewhere || fixtures.contains(&format!("\"{rule}\"")), "{rule} is broken by no test");
    }
}

#[test]
fn check_agrees_with_the_oracle() {
    let mut differences = Vec::new();
    let mut judged = 0;
    for file in std::fs::read_dir("tests/fixtures/oracle").unwrap() {
        for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let line: Line = serde_json::from_str(line).unwrap();
            for verdict in &line.verdicts {
                judged += 1;
                let findings = check(target(&line.target, &verdict.profiles), line.request.get()).unwrap();
                for (level, wanted) in [(Level::Hard, &verdict.hard), (Level::Soft, &verdict.soft)] {
                    let got = findings.iter().filter(|finding| finding.level == level);
                    let got = got.map(|finding| place(finding.rule, &finding.place)).collect();
                    let wanted: BTreeSet<_> = wanted.iter().map(|(rule, path)| place(rule, path)).collect();
                    if wanted != got {
                        let Line { case, target, .. } = &line;
                        let Verdict { profiles, .. } = verdict;
                        differences.push(format!("{target} {profiles:?} {case:?}: {level} {got:?}, oracle {wanted:?}"));
                    }
                }
            }
        }
    }
    assert!(judged > 0);
    assert!(differences.is_empty(), "{} of {judged} differ:\n{}", differences.len(), differences.join("\n"));
}

/// The oracle writes `openai_chat` and a profile where we write `openai-chat/deepseek`.
fn target(wire: &str, profiles: &[String]) -> Target {
    let target: Target = wire.replace('_', "-").parse().unwrap();
    match profiles {
        [] => target,
        [dialect] => target.with_dialect(dialect).unwrap(),
        more => panic!("no dialect speaks as {more:?}"),
    }
}

fn place<'a>(rule: &'a str, place: &'a str) -> (&'a str, &'a str) {
    (rule, if MORE_EXACT.contains(&rule) { "" } else { place })
}
