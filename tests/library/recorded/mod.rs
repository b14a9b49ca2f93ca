//! What recordings of real providers taught, in shapes of our own: the facts, not the recordings. Each line has its source.

use conversation_store::provider::{Finding, PromptOptions, Target, check, repair};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Line {
    source: String,
    target: String,
    request: Box<RawValue>,
    /// The rule that it breaks, where it is refused.
    #[serde(default)]
    rule: String,
    /// What stays as it is when it is repaired.
    #[serde(default)]
    kept: Vec<String>,
}

fn lines(text: &str) -> impl Iterator<Item = (Line, Target)> {
    text.lines().map(|line| {
        let line: Line = serde_json::from_str(line).unwrap();
        let target = line.target.parse().unwrap();
        (line, target)
    })
}

fn refused(target: Target, request: &str) -> Vec<Finding> {
    check(target, request).unwrap().into_iter().filter(|finding| finding.level.is_refused()).collect()
}

#[test]
fn what_was_accepted_is_not_called_refused_and_comes_out_as_it_went_in() {
    for (line, target) in lines(include_str!("accepted.jsonl")) {
        let request = line.request.get();
        assert_eq!(refused(target, request), [], "{}", line.source);
        // Also of a person, with white space.
        for request in [request.to_owned(), format!(" {}\n", request.replace("\"role\"", "\n\t\"role\" "))] {
            let repaired = repair(target, target, &request, &PromptOptions::new()).unwrap();
            assert_eq!((repaired.request.get(), repaired.report), (request.trim(), vec![]), "{}", line.source);
        }
    }
}

#[test]
fn of_what_is_refused_only_that_is_changed_and_each_change_is_named() {
    for (line, target) in lines(include_str!("refused.jsonl")) {
        let found = refused(target, line.request.get());
        assert!(found.iter().any(|finding| finding.rule == line.rule), "{}: {found:?}", line.source);
        let repaired = repair(target, target, line.request.get(), &PromptOptions::new()).unwrap();
        let text = repaired.request.get();
        for kept in &line.kept {
            assert!(text.contains(kept), "{}: {kept} is not in {text}", line.source);
        }
        assert!(!repaired.report.is_empty(), "{}", line.source);
        let still = refused(target, text);
        let is_named = |finding: &Finding| repaired.report.iter().any(|of| of.to_string().contains(finding.rule));
        assert!(still.iter().all(is_named), "{}: {still:?}\n{text}", line.source);
        assert!(still.is_empty() || line.rule == "AN-45", "{}: {still:?}\n{text}", line.source);
    }
}

/// The oracle's requests, thousands of them, most of them broken in one place.
#[test]
fn what_is_not_refused_comes_out_equal_and_every_other_difference_is_named() {
    #[derive(Deserialize)]
    struct Judged {
        request: Box<RawValue>,
        verdicts: Vec<Verdict>,
    }
    #[derive(Deserialize)]
    struct Verdict {
        targets: Vec<String>,
    }
    let (mut equal, mut mended, mut left) = (0, 0, 0);
    for file in std::fs::read_dir("tests/fixtures/oracle").unwrap() {
        for line in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let Judged { request, verdicts } = serde_json::from_str(line).unwrap();
            // Half characters are no text: they are replaced, and that is named.
            let request = request.get();
            for target in verdicts.iter().flat_map(|verdict| &verdict.targets) {
                let target: Target = target.parse().unwrap();
                let is_refused = !refused(target, request).is_empty();
                let Ok(repaired) = repair(target, target, request, &PromptOptions::new()) else {
                    assert!(is_refused, "{target}: {request}");
                    continue;
                };
                let (text, report) = (repaired.request.get(), repaired.report);
                if !is_refused {
                    equal += 1;
                    assert_eq!((text, &report), (request, &vec![]), "{target}");
                    continue;
                }
                let still = refused(target, text);
                assert!(!report.is_empty() && (still.is_empty() || text != request || report.len() >= still.len()));
                for finding in &still {
                    let is_named = report.iter().any(|line| line.to_string().contains(finding.rule));
                    assert!(is_named, "{target}: {finding}\n{request}\n{text}");
                }
                *(if still.is_empty() { &mut mended } else { &mut left }) += 1;
            }
        }
    }
    assert!(equal > 1_000 && mended > 1_000 && left * 100 < mended, "{equal} equal, {mended} mended, {left} left");
}
