//! What answers took, and what it cost.

use super::Place;

const ANSWER: &str = r#"{"role": "assistant", "model": "claude-opus-4-8", "chunks": [{"type": "text", "text": "Hi!"}], "created_at": "2026-11-25T10:00:00Z", "usage": {"input_tokens": 1000, "cache_read_input_tokens": 500000, "cache_creation_input_tokens": 2000, "output_tokens": 30000}}"#;

const FAILED: &str =
    r#"{"role": "assistant", "chunks": [{"type": "error", "message": "try later", "code": "overloaded_error"}]}"#;

#[test]
fn tokens_are_counted_and_priced_by_the_longest_name() {
    let place = Place::new();
    place.append("chat-42", &[super::HELLO, ANSWER, ANSWER, &ANSWER.replace("claude-opus-4-8", "m-1")]);
    place.write(
        "prices.json",
        r#"{"claude": {"input": 1, "output": 1}, "claude-opus-4": {"input": 15, "cached": 1.5, "cache_written": 18.75, "output": 75}}"#,
    );
    let run = place.run(&["usage", "--by", "day,model", "--prices", "prices.json"]);
    assert_eq!((run.exit, run.stderr.trim()), (0, "no price for: m-1"));
    let rows = run.json();
    let names: Vec<_> = rows.iter().map(|row| (row["day"].as_str().unwrap(), row["model"].as_str().unwrap())).collect();
    assert_eq!(names, [("2026-11-25", "claude-opus-4-8"), ("2026-11-25", "m-1")]);
    assert_eq!(
        (&rows[0]["answers"], &rows[0]["input"], &rows[0]["cached"]),
        (&2.into(), &1_006_000.into(), &1_000_000.into())
    );
    // 2,000 at 15, 1,000,000 at 1.5, 4,000 at 18.75, 60,000 at 75, for a million each.
    assert!((rows[0]["cost"].as_f64().unwrap() - 6.105).abs() < 1e-9 && rows[1].get("cost").is_none(), "{rows:?}");
    let shown = place.ok(&["--text", "usage"]).stdout;
    assert!(shown.contains("REASONING") && shown.contains("claude-opus-4-8") && shown.contains("1006000"), "{shown}");
    assert!(place.ok(&["--text", "usage", "--since", "2026-11-26"]).stdout.contains("no answers and no errors"));
    place.append("chat-43", &[FAILED]);
    let shown = place.ok(&["--text", "usage", "--by", "error"]).stdout;
    assert!(shown.contains("no error") && shown.contains("overloaded_error") && shown.contains("ERRORS"), "{shown}");
    for (args, problem) in [
        (["--by", "week"], "expected day, model, conversation or error"),
        (["--since", "monday"], "expected a date such as"),
        (["--prices", "none.json"], "none.json"),
    ] {
        let run = place.run(&[&["usage"], &args[..]].concat());
        assert!(run.exit == 2 && run.stderr.contains(problem), "{args:?}: {}", run.stderr);
    }
}
