use super::Place;

#[test]
fn findings_have_place_rule_problem_and_cure() {
    let place = Place::new();
    let orphan = r#"[{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "c1", "content": "42"}]"#;
    let run = place.run_with(&["check", "--for", "openai-chat"], orphan);
    let findings = run.json();
    assert_eq!((run.exit, findings.len()), (1, 1));
    assert_eq!((&findings[0]["rule"], &findings[0]["place"]), (&"OC-08".into(), &"messages[1]".into()));
    assert!(["level", "problem", "cure"].iter().all(|field| findings[0][field].is_string()));
    assert_eq!(run.stderr, "stdin: openai-chat: 1 finding, 1 of them hard: it is refused\n");
}

#[test]
fn a_valid_request_has_none() {
    let place = Place::new();
    place.write("request.json", r#"{"messages": [{"role": "user", "content": "hi"}]}"#);
    let run = place.run(&["check", "--for", "openai-chat/deepseek", "request.json"]);
    let wanted = (0, "", "request.json: openai-chat/deepseek: no findings\n");
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), wanted);
    assert_eq!(place.ok(&["check", "--for", "openai-chat", "--json", "request.json"]).stdout, "");
}
