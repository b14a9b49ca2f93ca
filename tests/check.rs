//! `check` against the oracle's verdicts on its own requests: one file a wire in tests/fixtures/oracle, written by
//! tests/oracle/export.py.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use conversation_store::provider::{DIALECTS, Level, Target, WIRES, check};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One request, raw: it may hold lone surrogate escapes.
#[derive(Deserialize)]
struct Line {
    case: String,
    request: Box<RawValue>,
    verdicts: Vec<Verdict>,
}

/// What the oracle finds broken, for some targets: rules and places.
#[derive(Deserialize)]
struct Verdict {
    targets: Vec<String>,
    hard: BTreeSet<(String, String)>,
    soft: BTreeSet<(String, String)>,
}

/// Rules whose place `check` gives more exactly than the oracle: which of the place's elements are compared, and why.
const MORE_EXACT: &[(&str, usize, &str)] = &[
    ("OC-14", 0, "the oracle names neither function nor custom"),
    ("OC-17", 0, "the oracle names the call or its custom, check always the field"),
    ("MI-08", 1, "behind the message the oracle gives names of the package's own"),
];

/// Differences that stay: the rules, the end of the cases' names, and why.
const DIFFERENCES: &[(&[&str], &str, &str)] = &[
    (&["VL-01"], ".role", "the oracle takes an assistant message behind one without a role for the first of all"),
    (&["OR-25", "OR-27"], "additional_tools: remove 0.type", WITHOUT_TYPE),
    (&["OR-25"], "additional_tools: clear 0.type", WITHOUT_TYPE),
];
const WITHOUT_TYPE: &str =
    "check takes what has a role and no type for a message, the oracle compares its other fields too";

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
    ("MI-07", Level::Hard, "openai-chat/mistral", r#"[{"role":"assistant","content":"a"},{"role":"system"}]"#),
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
            let Line { case, request, verdicts } = serde_json::from_str(line).unwrap();
            for Verdict { targets, hard, soft } in verdicts {
                for target in targets {
                    judged += 1;
                    let found = check(target.parse().unwrap(), request.get()).unwrap();
                    for (level, wanted) in [(Level::Hard, &hard), (Level::Soft, &soft)] {
                        let got = found.iter().filter(|finding| finding.level == level);
                        let got = comparable(got.map(|finding| (finding.rule, finding.place.as_str())), &case);
                        let wanted =
                            comparable(wanted.iter().map(|(rule, place)| (rule.as_str(), place.as_str())), &case);
                        if wanted != got {
                            let (more, less) = (&got - &wanted, &wanted - &got);
                            differences.push(format!("{target} {case:?}: {level} more {more:?}, less {less:?}"));
                        }
                    }
                }
            }
        }
    }
    assert!(judged > 0);
    assert!(differences.is_empty(), "{} of {judged} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Without the differences that stay, and of each place only what is compared.
fn comparable<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>, case: &str) -> BTreeSet<(&'a str, String)> {
    let stays = |rule: &str| DIFFERENCES.iter().any(|(rules, end, _)| rules.contains(&rule) && case.ends_with(end));
    pairs.filter(|(rule, _)| !stays(rule)).map(|(rule, place)| (rule, compared(rule, place))).collect()
}

fn compared(rule: &str, place: &str) -> String {
    let elements = MORE_EXACT.iter().find(|(id, ..)| *id == rule).map_or(usize::MAX, |(_, elements, _)| *elements);
    place.split('.').take(elements).collect::<Vec<_>>().join(".")
}
