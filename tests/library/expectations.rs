//! What a right prompt must show for each of the 106 reported failures: their `expect`, one by one, as an assertion or as
//! a line why there is none.

mod table;

use crate::common::{prompts, reported};
use conversation_store::provider::{PromptOptions, Target, Thinking, WIRES};
use serde_json::Value;
use table::{Shown, TABLE};

#[test]
fn every_expectation_is_asserted_or_said_why_not() {
    let texts = include_str!("../fixtures/corruption.jsonl").lines();
    let expected: Vec<Value> = texts.map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut asserted, mut elsewhere, mut not) = (0, 0, 0);
    let (mut cases, mut failures) = (0, Vec::new());
    for (case, of) in reported::cases().iter().zip(&expected) {
        let expect = of["expect"].as_array().unwrap();
        let (id, shown) = TABLE.iter().find(|(id, _)| *id == case.id).unwrap_or_else(|| panic!("no row {}", case.id));
        assert_eq!(shown.len(), expect.len(), "{id}: one entry for each of {expect:#?}");
        let mut is_asserted = false;
        for (shown, expect) in shown.iter().zip(expect) {
            match shown {
                Shown::Elsewhere(place) => {
                    let (file, test) = place.split_once(' ').unwrap();
                    let source = std::fs::read_to_string(format!("tests/{file}")).unwrap();
                    assert!(source.contains(&format!("fn {test}(")), "{id}: {place}");
                    elsewhere += 1;
                }
                Shown::Not(reason) => {
                    assert!(!reason.is_empty());
                    not += 1;
                    continue;
                }
                shown => {
                    let found = targets(&case.target).into_iter().filter_map(|target| wrong(target, case, shown));
                    failures.extend(found.map(|found| format!("{id}: {expect}: {shown:?}: {found}")));
                    asserted += 1;
                }
            }
            is_asserted = true;
        }
        cases += usize::from(is_asserted);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!((TABLE.len(), expected.len()), (106, 106));
    println!("cases: {cases} with an assertion, {} with only a line why not", expected.len() - cases);
    println!("expectations: {asserted} asserted here, {elsewhere} in another test, {not} with a line why not");
}

/// The wires of a case: the one that refused it, or all.
fn targets(wire: &str) -> Vec<Target> {
    let all = WIRES.iter().map(|wire| wire.name.to_owned());
    let named: Vec<String> = if wire == "any" { all.collect() } else { vec![wire.replace('_', "-")] };
    named.iter().map(|name| name.parse().unwrap()).collect()
}

/// What is not as the entry says.
fn wrong(target: Target, case: &reported::Case, shown: &Shown) -> Option<String> {
    let (target, options, shown) = match shown {
        Shown::On(target, shown) => (target.parse().unwrap(), PromptOptions::new(), *shown),
        Shown::For(model, shown) => (target, PromptOptions::new().with_model(*model), *shown),
        Shown::WithoutThinking(shown) => (target, PromptOptions::new().with_thinking(Thinking::Omit), *shown),
        shown => (target, PromptOptions::new(), shown),
    };
    let Some(prompt) = prompts::prompt(target, &case.messages, &options) else {
        return (!matches!(shown, Shown::NothingToSend)).then(|| "there is nothing to send".to_owned());
    };
    prompts::assert_accepted(target, &prompt);
    prompts::assert_conserved(target, &case.messages, &prompt);
    let request = prompt.request.get();
    let count = |text: &&str| request.matches(&escaped(text)).count();
    let wrong = match shown {
        Shown::Accepted => None,
        Shown::InOrder(texts) => {
            let mut rest = request;
            texts.iter().find(|text| match rest.split_once(&escaped(text)) {
                Some((_, behind)) => {
                    rest = behind;
                    false
                }
                None => true,
            })
        }
        Shown::Once(texts) => texts.iter().find(|text| count(text) != 1),
        Shown::Lacks(texts) => texts.iter().find(|text| count(text) != 0),
        other => panic!("{}: {other:?} is no entry for a prompt", case.id),
    };
    wrong.map(|text| format!("{text:?} on {target} in {request}"))
}

/// A text as it stands in JSON; one that begins with `"` or `{` is JSON already.
fn escaped(text: &str) -> String {
    if text.starts_with(['"', '{']) {
        return text.to_owned();
    }
    let json = serde_json::to_string(text).unwrap();
    json.get(1..json.len() - 1).unwrap().to_owned()
}
