//! Requests to messages, and back: whole ones, broken ones, hostile ones.

use crate::common::hostile::for_hostile_logs;
use crate::common::parsed::{VALUES, assert_repaired, parsed};
use crate::common::{prompts, stored};
use conversation_store::model::{Body, Chunk, Json, Message, Native, Role};
use conversation_store::provider::{Parsed, PromptOptions, Target, Thinking, parse, repair};
use conversation_store::{Conversation, Rule, StoredMessage};

const CHAT: Target = Target::OPENAI_CHAT;

fn messages(request: &str) -> Vec<Message> {
    parse(CHAT, request).unwrap().messages
}

/// Fails unless what is rendered can be read, and is rendered to the same bytes again.
fn assert_parses_to_itself(log: &[StoredMessage]) {
    let conversation = Conversation::new(log.to_vec());
    for target in prompts::targets() {
        // How a request is read does not depend on the options: the same one is read once.
        let mut read: Option<(String, Conversation)> = None;
        for thinking in [Thinking::Native, Thinking::Tagged, Thinking::Omit] {
            let options = PromptOptions::new().with_thinking(thinking);
            let Some(prompt) = prompts::prompt_of(target, &conversation, &options) else { continue };
            let request = prompt.request.get();
            let said = match read.take() {
                Some((of, said)) if of == request => said,
                _ => {
                    let Parsed { messages, notes, .. } = parse(target, request).unwrap();
                    assert_eq!(notes, [], "{target}\n{request}");
                    Conversation::new(stored::log(messages))
                }
            };
            let again = prompts::prompt_of(target, &said, &options).unwrap();
            assert_eq!(again.request.get(), request, "{target}");
            let repaired = repair(target, target, request, &options).unwrap();
            assert_eq!(repaired.request.get(), request, "{target}");
            read = Some((request.to_owned(), said));
        }
    }
}

#[test]
fn rendered_requests_parse_to_themselves() {
    for_hostile_logs(9, vec![PromptOptions::new()], 1500, |log, _| assert_parses_to_itself(log));
}

/// Two messages of the model are one on Anthropic's wire: what stands behind the results of the provider's tools in it was
/// not the beginning of a message any more.
#[test]
fn thinking_in_a_message_behind_the_providers_tools_parses_to_itself() {
    let own = |json: &str| {
        let (provider, kind) = ("anthropic".to_owned(), "block".to_owned());
        Chunk::from(Body::Opaque { provider, kind, json: Json::new(json).unwrap() })
    };
    let call = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"1"}}"#;
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    let thinking = Body::Thinking { text: "hm".to_owned(), signature: Some("c2ln".to_owned()), redacted: None };
    let log = [
        Message::assistant([own(call), own(result)]),
        Message::assistant([Chunk::from(thinking), Chunk::text("So it is.")]),
    ];
    assert_parses_to_itself(&stored::log(log));
}

/// The second reasoning has the id of the first, so what was said after it lost its id. Read again, both steps are one message,
/// and the first lost its ids too.
#[test]
fn each_step_of_a_message_keeps_its_ids_or_loses_them() {
    let native = |json: &str| Some(Native { wire: "openai-responses".to_owned(), json: Json::new(json).unwrap() });
    let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln","status":null}"#;
    let code = r#"{"type":"code_interpreter_call","id":"ci_1","code":"1","container_id":"c","outputs":null,"status":"completed"}"#;
    let said = r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"So it is.","annotations":[],"logprobs":[]}]}"#;
    let thinking = || {
        let body = Body::Thinking { text: "hm".to_owned(), signature: Some("c2ln".to_owned()), redacted: None };
        Chunk { native: native(reasoning), ..Chunk::from(body) }
    };
    let (provider, kind) = ("openai".to_owned(), "block".to_owned());
    let own = Chunk::from(Body::Opaque { provider, kind, json: Json::new(code).unwrap() });
    let text = Chunk { native: native(said), ..Chunk::text("So it is.") };
    let apart = [Message::assistant([thinking(), own.clone()]), Message::assistant([thinking(), text.clone()])];
    let together = [Message::assistant([thinking(), own, thinking(), text])];
    let prompts = [apart.to_vec(), together.to_vec()].map(|log| {
        let log = stored::log(log);
        assert_parses_to_itself(&log);
        prompts::prompt(Target::OPENAI_RESPONSES, &log, &PromptOptions::new()).unwrap().request.get().to_owned()
    });
    assert_eq!(prompts[0], prompts[1]);
    assert_eq!((prompts[0].matches("rs_1").count(), prompts[0].matches("msg_1").count()), (1, 0), "{}", prompts[0]);
}

/// Behind the caller's result stood a call that the provider runs: that it has no result was forgotten where the caller's
/// was told, and no result was made for it.
#[test]
fn a_call_of_the_providers_behind_the_callers_result_is_ended() {
    let native = |json: &str| Some(Native { wire: "anthropic".to_owned(), json: Json::new(json).unwrap() });
    let own = |json: &str| {
        let (provider, kind) = ("anthropic".to_owned(), "block".to_owned());
        Chunk::from(Body::Opaque { provider, kind, json: Json::new(json).unwrap() })
    };
    let (id, name, arguments) = ("call_0".to_owned(), "web_search".to_owned(), "{}".to_owned());
    let call = Body::ToolCall { id, name, arguments, signature: None, server: true };
    // Its id is none of the provider's: it is told as the caller's.
    let block = r#"{"type":"server_tool_use","id":"call_0","name":"web_search","input":{}}"#;
    let asked = Chunk { native: native(block), ..Chunk::from(call) };
    let found = Chunk { native: native(block), ..Chunk::tool_result("call_0", "found") };
    let open = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}}"#;
    let ended = r#"{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_tool_result_error","error_code":"unavailable"}}"#;
    for chunks in [
        vec![asked.clone(), found.clone(), own(open)],
        vec![own(open), asked.clone(), found.clone(), own(ended)],
        vec![own(open), asked, own(ended), found],
    ] {
        assert_parses_to_itself(&stored::log([Message::assistant(chunks), Message::user("And?")]));
    }
}

/// Reasoning stood before an output of an unknown kind, which is the caller's when it is read: alone in its message, the
/// reasoning was written as text.
#[test]
fn reasoning_before_an_unknown_output_is_followed_by_nothing() {
    let output = r#"{"type":"hologram_output","call_id":"h","beam":1}"#;
    let (provider, kind) = ("openai".to_owned(), "hologram_output".to_owned());
    let output = Chunk::from(Body::Opaque { provider, kind, json: Json::new(output).unwrap() });
    let thinking = Body::Thinking { text: "hm".to_owned(), signature: Some("c2ln".to_owned()), redacted: None };
    let log = |rest: Vec<Chunk>| {
        let said = [Chunk::from(thinking.clone()), output.clone()].into_iter().chain(rest);
        stored::log([Message::assistant(said), Message::user("And?")])
    };
    assert_parses_to_itself(&log(Vec::new()));
    assert_parses_to_itself(&log(vec![Chunk::text("So it is.")]));
    let call = || Chunk::tool_call("call_1", "read_file", "{}");
    assert_parses_to_itself(&log(vec![call()]));
    // DeepSeek has the call last.
    let call_first = Message::assistant([Chunk::from(thinking.clone()), call(), output.clone()]);
    assert_parses_to_itself(&stored::log([call_first]));
    let found = prompts::prompt(Target::OPENAI_RESPONSES, &log(Vec::new()), &PromptOptions::new()).unwrap();
    assert!(!found.request.get().contains("\"reasoning\""), "{}", found.request);
}

/// An output of an unknown kind is the caller's when it is read: it follows the outputs of the calls before it.
#[test]
fn an_unknown_output_follows_those_of_the_calls_before_it() {
    let output = r#"{"type":"hologram_output","call_id":"h","beam":1}"#;
    let (provider, kind) = ("openai".to_owned(), "hologram_output".to_owned());
    let output = Chunk::from(Body::Opaque { provider, kind, json: Json::new(output).unwrap() });
    let call = |id: &str| Chunk::tool_call(id, "read_file", "{}");
    assert_parses_to_itself(&stored::log([Message::assistant([
        call("call_1"),
        Chunk::text("Wait."),
        output,
        call("call_2"),
    ])]));
}

#[test]
fn the_two_refused_requests_of_the_field_are_accepted() {
    let orphan = r#"{"model":"gpt-5","temperature":0.20,"messages":[
        {"role":"user","content":"What time is it?"},
        {"role":"tool","tool_call_id":"call_1","content":"10:34"}]}"#;
    let unanswered = r#"{"model":"gpt-5","messages":[
        {"role":"user","content":"Two files, please."},
        {"role":"assistant","content":null,"tool_calls":[
            {"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},
            {"id":"call_2","type":"function","function":{"name":"read","arguments":"{\"path\":\"b\"}"}}]},
        {"role":"tool","tool_call_id":"call_2","content":"B"},
        {"role":"user","content":"Well?"}],"stream":true}"#;
    let removed = ",\n        {\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"10:34\"}";
    let answer = concat!(
        r#"{"role":"tool","tool_call_id":"call_1","content":"Interrupted: no result was recorded. "#,
        r#"The outcome is unknown; the tool may have taken effect."}"#
    );
    let second = r#"{"role":"tool","tool_call_id":"call_2","#;
    for (request, wanted, rule) in [
        (orphan, orphan.replace(removed, ""), Rule::OrphanResultRemoved),
        (unanswered, unanswered.replace(second, &format!("{answer},\n        {second}")), Rule::OutcomeUnknown),
    ] {
        let repaired = repair(CHAT, CHAT, request, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(CHAT, &repaired);
        assert_eq!(repaired.request.get(), wanted);
        assert_eq!(repaired.report.iter().map(|line| line.rule).collect::<Vec<_>>(), [rule]);
    }
}

/// A request, what is said about it, and the JSON of its last message.
#[test]
fn broken_requests_lose_nothing() {
    use Rule::{Altered, RoleChanged};
    let table: &[(&str, &[Rule], &str)] = &[
        (r#"[{"role":"user","content":"a"}]"#, &[], r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#),
        (
            r#"[{"role":"User","content":"a"}]"#,
            &[RoleChanged],
            r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#,
        ),
        (r#"["a"]"#, &[RoleChanged], r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#),
        (
            r#"[[1]]"#,
            &[Altered],
            r#"{"role":"user","chunks":[{"type":"opaque","provider":"openai","kind":"message","json":[1]}]}"#,
        ),
        (r#"[{"role":"user","content":null}]"#, &[], r#"{"role":"user","chunks":[]}"#),
        (
            r#"[{"role":"user","content":{"a":1}}]"#,
            &[Altered],
            r#"{"role":"user","chunks":[{"type":"text","text":"{\"a\":1}"}]}"#,
        ),
        (
            r#"[{"role":"developer","content":"a","name":"b"}]"#,
            &[],
            r#"{"role":"system","chunks":[{"type":"text","text":"a"}],"name":"b"}"#,
        ),
        (
            r#"[{"role":"wizard","content":[{"type":"text","text":"a"},"b",{"type":"video","url":"c"}]}]"#,
            &[RoleChanged],
            r#"{"role":"user","chunks":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"opaque","provider":"openai-chat","kind":"video","json":{"type":"video","url":"c"}}]}"#,
        ),
        (
            r#"[{"content":null,"tool_calls":[{"id":7,"type":"function","function":{"name":"f","arguments":{"a":1}}}]}]"#,
            &[RoleChanged, Altered],
            r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"7","name":"f","arguments":"{\"a\":1}"}]}"#,
        ),
        (
            r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}],"annotations":[],"audio":null}]"#,
            &[],
            r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"","name":"f","arguments":""}]}"#,
        ),
        (
            r#"[{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}}]"#,
            &[],
            r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"","name":"f","arguments":"{}"}]}"#,
        ),
        (
            r#"[{"role":"function","name":"f","content":"a"}]"#,
            &[],
            r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"","name":"f","content":"a"}]}"#,
        ),
        (
            r#"[{"role":"tool","tool_call_id":"c","content":null}]"#,
            &[],
            r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"c","content":""}]}"#,
        ),
        (
            r#"[{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"json","json":{"b":1.0}}]}]"#,
            &[],
            r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"json","json":{"type":"json","json":{"b":1.0}}}]}]}"#,
        ),
        (
            r#"[{"role":"tool","tool_call_id":"c","content":{"b":1}}]"#,
            &[Altered],
            r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"c","content":"{\"b\":1}"}]}"#,
        ),
        (
            r#"[{"role":"assistant","reasoning":"r","reasoning_content":"r","content":"a","refusal":"no"}]"#,
            &[],
            r#"{"role":"assistant","chunks":[{"type":"thinking","text":"r","native":{"wire":"openai-chat","json":{"reasoning_content":"","reasoning":""}}},{"type":"text","text":"a"},{"type":"refusal","text":"no"}]}"#,
        ),
        (
            r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"low"}}]}]"#,
            &[],
            r#"{"role":"user","chunks":[{"type":"image","url":"https://x.test/a.png","detail":"low"}]}"#,
        ),
        (
            r#"[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ==","format":"mp3"}}]}]"#,
            &[],
            r#"{"role":"user","chunks":[{"type":"audio","data":"QQ==","mime_type":"audio/mpeg"}]}"#,
        ),
        (
            r#"[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]"#,
            &[],
            r#"{"role":"user","chunks":[{"type":"file","native":{"wire":"openai-chat","json":{"type":"file","file":{"file_id":"file-1"}}}}]}"#,
        ),
        (
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"sql","input":"SELECT 1"}}]}]"#,
            &[],
            r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"c","name":"sql","arguments":"SELECT 1","native":{"wire":"openai-chat","json":{"custom":{"input":"SELECT 1","name":"sql"},"id":"c","type":"custom"}}}]}"#,
        ),
        (
            r#"[{"role":"user","content":"a\ud83d"}]"#,
            &[Rule::SurrogateReplaced],
            "{\"role\":\"user\",\"chunks\":[{\"type\":\"text\",\"text\":\"a\u{fffd}\"}]}",
        ),
    ];
    for (request, rules, wanted) in table {
        let (messages, notes) = parsed(CHAT, request);
        assert_eq!(messages.last().unwrap(), wanted, "{request}");
        assert_eq!(notes, *rules, "{request}");
    }
}

#[test]
fn only_what_is_no_request_is_an_error() {
    for text in ["", "hello", "{", "{}", "1", "null", r#"{"messages":{}}"#, r#"{"input":[]}"#, r#""[]""#] {
        let error = parse(CHAT, text).unwrap_err();
        assert!(matches!(error, conversation_store::Error::InvalidInput(_)), "{text}: {error}");
    }
    assert_eq!(messages("\u{feff} [] "), []);
    let deep = format!(r#"[{{"role":"user","content":{}{}}}]"#, "[".repeat(300), "]".repeat(300));
    assert_eq!(messages(&deep)[0].chunks.len(), 1);
}

#[test]
fn any_json_is_parsed_without_panic_and_repaired_to_what_is_accepted() {
    const FIELDS: &[&str] = &[
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "name",
        "refusal",
        "audio",
        "reasoning_content",
        "annotations",
        "id",
        "provider",
        "chunks",
        "images",
    ];
    for field in FIELDS {
        for value in VALUES {
            for role in ["system", "user", "assistant", "tool", "function"] {
                let request = format!(
                    r#"[{{"role":"user","content":"hi"}},{{"content":"a","role":"{role}","{field}":{value}}},{{"role":"user","content":"ho"}}]"#
                );
                assert_repaired(CHAT, &request);
            }
        }
    }
}

#[test]
fn what_a_target_would_refuse_of_the_rest_is_left_out() {
    let request = r#"{"frobnicate": 1, "messages": [{"role":"user","content":"a","name":"b"}], "tools": [
        {"type":"function","function":{"name":"good"}},{"type":"function","function":{"name":null}}], "stop":null}"#;
    let repaired = repair(CHAT, CHAT, request, &PromptOptions::new()).unwrap();
    let wanted = request.replace(r#",{"type":"function","function":{"name":null}}"#, "");
    assert_eq!(repaired.request.get(), wanted);
    let details: Vec<String> = repaired.report.iter().map(ToString::to_string).collect();
    assert_eq!(details.len(), 1, "{details:#?}");
    assert!(details[0].contains("`tools[1]`"));
}

/// Unknown is not wrong: servers have fields of their own. A name may hold what else leads into a field, or stand twice.
#[test]
fn fields_that_are_not_known_stay() {
    let request = concat!(
        r#"{"a":1,"metadata":{"k":"v"},"metadata.k":1,"messages":[{"role":"user","content":"a"}],"#,
        r#""stop[0]":1,"stop":null,"a":2,"extra_body":{}}"#
    );
    let repaired = repair(CHAT, CHAT, request, &PromptOptions::new()).unwrap();
    assert_eq!(repaired.request.get(), request.replace(r#","extra_body":{}"#, ""));
    let names = repaired.report.iter().map(|line| line.detail.split('`').nth(1).unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["extra_body"]);
}

#[test]
fn a_conversation_that_is_in_order_comes_back_as_it_is() {
    let request = concat!(
        r#"{"model":"gpt-5","messages":[{"role":"system","content":"Be brief."},"#,
        r#"{"role":"user","content":[{"type":"text","text":"What is it?"},"#,
        r#"{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]},"#,
        r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","#,
        r#""function":{"name":"look","arguments":"{\"n\" : 1.0}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"a cat"}],"max_tokens":1e3}"#
    );
    let repaired = repair(CHAT, CHAT, request, &PromptOptions::new()).unwrap();
    assert_eq!(repaired.request.get(), request);
    assert_eq!(repaired.report, []);
}

/// Names, details of images and ids of files: OpenAI gets them back, others are not known to take them.
#[test]
fn what_came_from_the_wire_goes_back_to_it() {
    let request = concat!(
        r#"{"messages":[{"role":"system","name":"guide","content":"Be brief."},{"role":"user","name":"ann","content":["#,
        r#"{"type":"text","text":"Look."},"#,
        r#"{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"low"}},"#,
        r#"{"type":"file","file":{"file_id":"file-1"}}]},"#,
        r#"{"role":"assistant","name":"bot","content":"I see."},{"role":"user","name":"bob","content":"And?"}]}"#
    );
    let repaired = repair(CHAT, CHAT, request, &PromptOptions::new()).unwrap();
    assert_eq!((repaired.request.get(), repaired.report), (request, vec![]));
    let other = repair(CHAT, CHAT.with_dialect("mistral").unwrap(), request, &PromptOptions::new()).unwrap();
    let lost = |name: &str| other.report.iter().any(|line| line.detail.contains(&format!("`{name}`")));
    assert!(lost("name") && lost("detail"), "{:#?}", other.report);
    assert!(!other.request.get().contains("file-1"));
    let odd = request.replace("\"ann\"", "\"ann lee\"").replace("\"low\"", "\"blurred\"").replace("file-1", " ");
    let repaired = repair(CHAT, CHAT, &odd, &PromptOptions::new()).unwrap();
    prompts::assert_accepted(CHAT, &repaired);
    assert_eq!(repaired.report.len(), 3, "{:#?}", repaired.report);
}

#[test]
fn messages_are_those_of_a_conversation() {
    let parsed = messages(r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#);
    let conversation = Conversation::new(stored::log(parsed));
    assert_eq!(conversation.report(), []);
    let said: Vec<(Role, &Body)> =
        conversation.messages().iter().map(|stored| (stored.message.role, &stored.message.chunks[0].body)).collect();
    let text = |text: &str| Chunk::text(text).body;
    assert_eq!(said, [(Role::User, &text("a")), (Role::Assistant, &text("b"))]);
}

/// What a repair has to keep: a result without an id, the thinking of messages that become one, a custom call whose id
/// changes, a call as LangChain writes it.
#[test]
fn what_is_not_ambiguous_is_kept() {
    let vllm = CHAT.with_dialect("vllm").unwrap();
    let called = |calls: &str, rest: &str| {
        format!(
            r#"[{{"role":"user","content":"q"}},{{"role":"assistant","content":"","tool_calls":[{calls}]}},{rest}]"#
        )
    };
    let call = |id: &str, name: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#)
    };
    let two = format!("{},{}", call("c1", "f"), call("c2", "g"));
    let table = [
        (
            CHAT,
            called(&call("c1", "f"), r#"{"role":"tool","tool_call_id":null,"content":"R"}"#),
            r#"{"role":"tool","tool_call_id":"c1","content":"R"}"#,
        ),
        (
            CHAT,
            called(&two, r#"{"role":"tool","name":"g","content":"G"},{"role":"tool","content":"F"}"#),
            r#"{"role":"tool","tool_call_id":"c1","content":"F"},{"role":"tool","tool_call_id":"c2","content":"G"}"#,
        ),
        (CHAT, called(&call("", "f"), r#"{"role":"tool","tool_call_id":"c1","content":"R"}"#), r#""content":"R"}]"#),
        (
            CHAT,
            called(
                r#"{"id":"c1","name":"f","args":{"a":1},"type":"tool_call"}"#,
                r#"{"role":"tool","tool_call_id":"c1","content":"R"}"#,
            ),
            r#"{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}"#,
        ),
        (
            CHAT,
            called(
                r#"{"id":"c1","type":"custom","custom":{"name":"g","input":"IN"}},{"id":"c1","type":"custom","custom":{"name":"g","input":"I2"}}"#,
                r#"{"role":"tool","tool_call_id":"c1","content":"R"},{"role":"tool","tool_call_id":"c1","content":"S"}"#,
            ),
            r#"{"custom":{"input":"I2","name":"g"},"id":"call_"#,
        ),
        (
            vllm,
            r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning_content":"FIRST"},
                {"role":"assistant","content":"b","reasoning_content":"second"},{"role":"user","content":"c"}]"#
                .to_owned(),
            r#"{"role":"assistant","content":"a\n\nb","reasoning_content":"FIRST\n\nsecond"}"#,
        ),
    ];
    for (target, request, wanted) in table {
        let repaired = repair(target, target, &request, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(target, &repaired);
        assert!(repaired.request.get().contains(wanted), "{wanted}\n{}", repaired.request);
        let odd =
            |rule: Rule| [Rule::OrphanResultRemoved, Rule::OutcomeUnknown, Rule::ArgumentsRepaired].contains(&rule);
        assert!(!repaired.report.iter().any(|line| odd(line.rule)), "{:#?}", repaired.report);
    }
}

/// With more results than open calls, or another tool's name, nobody knows which call a result answers.
#[test]
fn results_that_may_be_of_other_calls_stay_without_one() {
    for results in [
        r#"{"role":"tool","content":"R"},{"role":"tool","content":"S"}"#,
        r#"{"role":"tool","name":"g","content":"R"}"#,
        r#"{"role":"tool","tool_call_id":"c9","content":"R"}"#,
    ] {
        let call = r#"{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}"#;
        let request =
            format!(r#"[{{"role":"user","content":"q"}},{{"role":"assistant","tool_calls":[{call}]}},{results}]"#);
        let given = messages(&request)
            .iter()
            .flat_map(|message| message.chunks.clone())
            .any(|chunk| matches!(chunk.body, Body::ToolResult { tool_call_id, .. } if tool_call_id == "c1"));
        assert!(!given, "{results}");
    }
}
