//! A request that somebody has: it is judged, read and repaired, and what comes of that is accepted.

use conversation_store::model::Message;
use conversation_store::provider::{Prompt, PromptOptions, Target, WIRES, check, parse, render, repair};
use conversation_store::{Conversation, Error, ReportLine, Rule};

use crate::common::{prompts, stored};

/// Fails if the target refuses the request, unless the report states that: only the caller can say what is missing.
fn assert_repaired(target: Target, repaired: &Prompt) {
    let findings = check(target, repaired.request.get()).unwrap();
    for finding in findings.iter().filter(|finding| finding.level.is_refused()) {
        let states = |line: &ReportLine| {
            let why = line.why.as_deref().unwrap_or_default();
            line.rule == Rule::StillRefused && why.starts_with(finding.rule)
        };
        assert!(repaired.report.iter().any(states), "{target}: {finding}\n{}", repaired.request);
    }
}

/// Takes the bytes as a request of each wire.
pub fn holds(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let options = PromptOptions::new();
    for target in prompts::targets() {
        let _ = check(target, &text);
    }
    for wire in WIRES {
        let from: Target = wire.name.parse().unwrap();
        let parsed = match parse(from, &text) {
            Ok(parsed) => parsed,
            Err(Error::InvalidInput(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        for message in &parsed.messages {
            assert_eq!(Message::from_json(&message.to_json()).unwrap(), *message);
        }
        let log = stored::log(parsed.messages);
        for target in prompts::targets() {
            match repair(from, target, &text, &options) {
                Ok(repaired) => assert_repaired(target, &repaired),
                Err(Error::NothingToSend(_) | Error::TooLarge { .. }) => {}
                // It is of another wire, which the error names: that one takes it.
                Err(Error::InvalidInput(problem)) => {
                    let named = WIRES
                        .iter()
                        .find(|wire| problem.ends_with(&format!("request of {}: say so with --from", wire.name)));
                    let named: Target =
                        named.unwrap_or_else(|| panic!("{from} to {target}: {problem}")).name.parse().unwrap();
                    let taken = repair(named, target, &text, &options);
                    assert!(
                        named.wire().name != from.wire().name && !matches!(taken, Err(Error::InvalidInput(_))),
                        "{from} to {target}: {problem}"
                    );
                }
                Err(error) => panic!("{from} to {target}: {error}"),
            }
            let Some(prompt) = prompts::prompt(target, &log, &options) else { continue };
            prompts::assert_accepted(target, &prompt);
            if from.wire().name == target.wire().name && target.dialect().is_none() {
                let again = stored::log(parse(from, prompt.request.get()).unwrap().messages);
                let again = render(target, &Conversation::new(again), &options).unwrap();
                assert_eq!(again.request.get(), prompt.request.get(), "{target}");
            }
        }
    }
}
