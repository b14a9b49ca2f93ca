//! `check` against the oracle's verdicts on its own requests: one file a wire in tests/fixtures/oracle, written by
//! tests/oracle/export.py.

use std::collections::BTreeSet;

use conversation_store::Store;
use conversation_store::model::{Chunk, Message};
use conversation_store::provider::{DIALECTS, Finding, Level, PromptOptions, Target, WIRES, check, render, repair};
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
    unknown: BTreeSet<(String, String)>,
}

/// Rules whose place `check` gives more exactly than the oracle: which of the place's elements are compared, and why.
const MORE_EXACT: &[(&str, usize, &str)] = &[
    ("OC-14", 0, "the oracle names neither function nor custom"),
    ("OC-17", 0, "the oracle names the call or its custom, check always the field"),
    ("MI-08", 1, "behind the message the oracle gives names of the package's own"),
];

/// Differences that stay: the rules, how the target begins, the end of the cases' names, and why.
const DIFFERENCES: &[(&[&str], &str, &str, &str)] = &[
    (&["VL-01"], "openai-chat/vllm", ".role", "the oracle takes what follows a message without a role for the first"),
    (&["AN-23"], "anthropic", "thinking loop: clear messages.1.content.0", NO_OBJECT),
    (&["AN-25"], "anthropic", "clear 1.content.1", NO_OBJECT),
    (&["AN-37"], "anthropic", "server tool: clear 1.content.0", NO_OBJECT),
    (&["GM-28"], "gemini", "surrogate", "the parser of the official types stops there"),
    (&["AN-35"], "anthropic/bedrock", "", "there BR-04 stands in its place"),
    (&["OC-29"], "openai-chat/deepseek", " prefix", "the oracle judges the prefix by OpenAI's type"),
    (&["OC-25", "OC-29"], "openai-chat/mistral", " prefix", "the oracle judges Mistral's own field by OpenAI's type"),
];
const NO_OBJECT: &str = "the oracle does not count blocks that are no objects";

/// Rules that no finding names: why.
const NEVER_NAMED: &[(&str, &str)] = &[
    ("OR-31", "encrypted content cannot be read"),
    ("AN-43", "signatures cannot be read"),
    ("VX-02", "it is told as GM-06"),
    ("G3-01", "it is told as GM-17"),
    ("BR-06", "models of other makers do not speak Anthropic's wire"),
];

/// Rules that only long requests break.
const LIMITS: &[&str] = &["OC-33", "AN-42", "GM-21"];

/// Broken by none of the oracle's requests: rule, level, target, messages or request.
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
    ("OR-32", Level::Hard, "openai-responses", r#"{"input":"q","top_p":1.5}"#),
    ("MI-07", Level::Reported, "openai-chat/mistral", r#"[{"role":"assistant","content":"a"},{"role":"system"}]"#),
];

#[test]
fn rules_without_an_oracle_request_are_found() {
    for (rule, level, target, messages) in OTHERS {
        let findings = check(target.parse().unwrap(), messages).unwrap();
        assert!(findings.iter().any(|found| found.rule == *rule && found.level == *level), "{rule}: {messages}");
    }
}

#[test]
fn limits_are_kept() {
    let text = |length| format!(r#"[{{"role":"user","content":"{}"}}]"#, "a".repeat(length));
    // Of so many characters of base64.
    let image = |characters: usize| {
        let data = format!("iVBORw0KGgo{}", "A".repeat(characters - 11));
        let source = format!(r#"{{"type":"base64","media_type":"image/png","data":"{data}"}}"#);
        format!(r#"[{{"role":"user","content":[{{"type":"image","source":{source}}}]}}]"#)
    };
    assert_eq!(check(Target::ANTHROPIC, &image(5_242_880)).unwrap(), []);
    let inline = format!(r#"{{"mimeType":"image/png","data":"{}"}}"#, "A".repeat(20_971_520));
    let output = format!(r#"{{"type":"function_call_output","call_id":"c","output":"{}"}}"#, "a".repeat(10_485_761));
    let table = [
        (Target::OPENAI_CHAT, "OC-33", format!("[{}]", vec![r#"{"role":"user","content":"a"}"#; 2049].join(","))),
        (Target::OPENAI_CHAT, "OC-33", text(10_485_761)),
        (Target::OPENAI_RESPONSES, "OR-26", format!(r#"{{"previous_response_id":"r","input":[{output}]}}"#)),
        (Target::ANTHROPIC, "AN-30", image(5_242_884)),
        (Target::ANTHROPIC, "AN-42", text(33_554_432)),
        (Target::GEMINI, "GM-21", format!(r#"[{{"role":"user","parts":[{{"inlineData":{inline}}}]}}]"#)),
    ];
    for (target, rule, request) in table {
        let findings = check(target, &request).unwrap();
        assert!(matches!(&findings[..], [only] if only.rule == rule), "{rule}: {findings:?}");
    }
}

#[test]
fn no_rule_goes_untested() {
    let fixtures = std::fs::read_dir("tests/fixtures/oracle").unwrap();
    let fixtures: String = fixtures.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let rules = WIRES.iter().flat_map(|wire| wire.rules).chain(DIALECTS.iter().flat_map(|dialect| dialect.rules));
    for rule in rules.map(|rule| rule.id) {
        let elsewhere = NEVER_NAMED.iter().any(|(id, _)| *id == rule)
            || LIMITS.contains(&rule)
            || OTHERS.iter().any(|(id, ..)| *id == rule);
        assert!(elsewhere || fixtures.contains(&format!("\"{rule}\"")), "{rule} is broken by no test");
    }
}

#[test]
fn check_agrees_with_the_oracle() {
    let mut differences = Vec::new();
    let mut judged = 0;
    let mut unjudged: BTreeSet<_> = WIRES.iter().map(|wire| wire.name.to_owned()).collect();
    unjudged.extend(DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name)));
    for file in std::fs::read_dir("tests/fixtures/oracle").unwrap() {
        for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let Line { case, request, verdicts } = serde_json::from_str(line).unwrap();
            for Verdict { targets, hard, soft, unknown } in verdicts {
                for target in targets {
                    judged += 1;
                    unjudged.remove(&target);
                    let found = check(target.parse().unwrap(), request.get()).unwrap();
                    for (level, wanted) in [(Level::Hard, &hard), (Level::Soft, &soft), (Level::Unknown, &unknown)] {
                        // The oracle counts as hard what is reported.
                        let is_of = |found: Level| found == level || (level == Level::Hard && found.is_refused());
                        let got = found.iter().filter(|finding| is_of(finding.level));
                        let got = got.map(|finding| (finding.rule, finding.place.as_str()));
                        let got = comparable(got, &target, &case);
                        let wanted = wanted.iter().map(|(rule, place)| (rule.as_str(), place.as_str()));
                        let wanted = comparable(wanted, &target, &case);
                        if wanted != got {
                            let (more, less) = (&got - &wanted, &wanted - &got);
                            differences.push(format!("{target} {case:?}: {level} more {more:?}, less {less:?}"));
                        }
                    }
                }
            }
        }
    }
    assert!(unjudged.is_empty(), "no verdict for {unjudged:?}");
    assert!(differences.is_empty(), "{} of {judged} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Without the differences that stay, and of each place only what is compared.
fn comparable<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    target: &str,
    case: &str,
) -> BTreeSet<(&'a str, String)> {
    let here = DIFFERENCES.iter().filter(|(_, of, end, _)| target.starts_with(of) && case.ends_with(end));
    let staying: Vec<_> = here.flat_map(|(rules, ..)| *rules).copied().collect();
    pairs.filter(|(rule, _)| !staying.contains(rule)).map(|(rule, place)| (rule, compared(rule, place))).collect()
}

/// Gemini's fields have two spellings: `check` keeps to the request's, the oracle does not always.
fn compared(rule: &str, place: &str) -> String {
    if rule.starts_with("GM-") {
        return place.replace('_', "").to_lowercase();
    }
    let elements = MORE_EXACT.iter().find(|(id, ..)| *id == rule).map_or(usize::MAX, |(_, elements, _)| *elements);
    place.split('.').take(elements).collect::<Vec<_>>().join(".")
}

/// Arguments are sent as the model wrote them, and whatever JSON takes for a number is read.
#[test]
fn numbers_of_any_size_are_sent_as_they_are_and_read() {
    let numbers = "1e999,-1E+400,0.1234567890123456789,-0,123456789012345678901234567890";
    let arguments = format!(r#"{{"a":[{numbers}],"b":1}}"#);
    let messages = [
        Message::user("go"),
        Message::assistant([Chunk::tool_call("c1", "run", &*arguments)]),
        Message::tool("c1", "ok"),
    ];
    let store = Store::open("memory:").unwrap();
    store.append("chat", &messages).unwrap();
    let conversation = store.load("chat").unwrap();
    // A `Struct` holds doubles only.
    for wire in WIRES.iter().filter(|wire| wire.name != "gemini") {
        let target: Target = wire.name.parse().unwrap();
        let prompt = render(target, &conversation, &PromptOptions::new()).unwrap();
        assert!(prompt.report.is_empty(), "{target}: {:?}", prompt.report);
        let request = prompt.request.get();
        assert!(request.contains(numbers), "{target}: {request}");
        assert!(check(target, request).unwrap().iter().all(|finding| finding.level > Level::Reported), "{target}");
        let again = repair(target, target, request, &PromptOptions::new()).unwrap();
        assert_eq!(again.request.get(), request);
    }
}

/// Three bytes a message may break several rules: what is found is bounded, and says how much more there is.
#[test]
fn findings_are_bounded_whatever_the_size_of_a_request() {
    let request = |message: &str, count: usize| format!("[{}]", vec![message; count].join(","));
    for wire in WIRES {
        let target: Target = wire.name.parse().unwrap();
        let (few, many) = (check(target, &request("{}", 100)).unwrap(), check(target, &request("{}", 20_000)).unwrap());
        let rules =
            |found: &[Finding]| found.iter().map(|finding| (finding.rule, finding.level)).collect::<BTreeSet<_>>();
        // The number of messages may break a rule too.
        assert!(rules(&many).is_superset(&rules(&few)), "{}", wire.name);
        assert!(many.len() <= 1_001 * rules(&many).len(), "{}: {}", wire.name, many.len());
        assert!(many.iter().any(|finding| finding.problem.contains("; 19000 more places")), "{}", wire.name);
        assert!(few.iter().all(|finding| !finding.problem.contains("more places")), "{}", wire.name);
    }
}

/// Groq takes `index` in a message; any other field that OpenAI does not know it refuses, however many `index` come before it.
#[test]
fn what_a_dialect_takes_leaves_room_for_what_it_refuses() {
    let target: Target = "openai-chat/groq".parse().unwrap();
    let taken = r#"{"role":"user","content":"hi","index":0}"#;
    let request = format!("[{},{{\"role\":\"user\",\"content\":\"hi\",\"odd\":0}}]", vec![taken; 3_000].join(","));
    let found = check(target, &request).unwrap();
    assert_eq!((found[0].rule, found[0].level), ("GQ-01", Level::Reported));
}
