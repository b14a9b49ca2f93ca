//! How a conversation ends: what a target refuses there, and how it goes on with its last answer.

use crate::common::prompts::{assert_accepted, prompt, targets};
use crate::common::stored::log;
use conversation_store::model::{Body, Chunk, Json, Message, Metadata};
use conversation_store::provider::{Level, PromptOptions, Target, check};
use conversation_store::{Rule, StoredMessage};
use serde_json::{Value, json};

/// The user asked, and the answer was cut off.
fn cut() -> Vec<StoredMessage> {
    log([Message::user("Count to five."), Message::assistant([Chunk::text("One, two, ")])])
}

/// The list of what is said, and the rules of the report.
fn said(target: &str, messages: &[StoredMessage], options: &PromptOptions) -> (Vec<Value>, Vec<Rule>) {
    let target: Target = target.parse().unwrap();
    let prompt = prompt(target, messages, options).unwrap();
    assert_accepted(target, &prompt);
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let list = ["messages", "input", "contents"].iter().find_map(|key| request[key].as_array()).unwrap();
    (list.clone(), prompt.report.iter().map(|line| line.rule).collect())
}

fn continuing(model: &str) -> PromptOptions {
    PromptOptions::new().with_model(model).with_continue_last(true)
}

#[test]
fn an_answer_is_continued_in_each_targets_own_way() {
    let prefix = json!({"role": "assistant", "content": "One, two, ", "prefix": true});
    for (target, model) in [
        ("openai-chat/deepseek", "deepseek-reasoner"),
        ("openai-chat/deepseek", "deepseek-chat"),
        ("openai-chat/mistral", "mistral-large-latest"),
    ] {
        let (list, report) = said(target, &cut(), &continuing(model));
        assert_eq!((list.last().unwrap(), &report[..]), (&prefix, &[][..]), "{target} {model}");
    }
    // A prefill: without white space at its end, which Anthropic refuses there.
    let (list, report) = said("anthropic", &cut(), &continuing("claude-sonnet-4-5"));
    assert_eq!(list[1], json!({"role": "assistant", "content": [{"type": "text", "text": "One, two,"}]}));
    assert_eq!(report, [Rule::Altered]);
    let (list, report) = said("gemini", &cut(), &continuing("gemini-2.5-pro"));
    assert_eq!((&list[1]["role"], list.len(), &report[..]), (&json!("model"), 2, &[][..]));
}

#[test]
fn where_an_answer_cannot_be_continued_the_user_asks_and_the_report_says_so() {
    let named = |target: Target| match target.to_string().as_str() {
        "openai-chat/deepseek" | "openai-chat/mistral" => None,
        name if name.starts_with("anthropic") => Some("claude-opus-4-8"),
        name if name.starts_with("gemini") => Some("gemini-3.5-flash"),
        _ => Some("a-model"),
    };
    let mut asked = 0;
    for (target, model) in targets().into_iter().filter_map(|target| Some((target, named(target)?))) {
        let (list, report) = said(&target.to_string(), &cut(), &continuing(model));
        let last = list.last().unwrap();
        assert_eq!(last["role"], "user", "{target}: {last}");
        assert!(last.to_string().contains("Go on exactly where it ends"), "{target}: {last}");
        assert!(report.contains(&Rule::NotContinued) && report.contains(&Rule::BridgeAdded), "{target}: {report:?}");
        // What the user said last is answered as ever.
        let asked_again = log([Message::user("Count to five.")]);
        let plain = said(&target.to_string(), &asked_again, &PromptOptions::new().with_model(model));
        assert_eq!(said(&target.to_string(), &asked_again, &continuing(model)), plain, "{target}");
        asked += 1;
    }
    assert!(asked > 15, "{asked} targets");
    // A model that nobody names may refuse it.
    assert!(said("anthropic", &cut(), &PromptOptions::new().with_continue_last(true)).1.contains(&Rule::NotContinued));
}

#[test]
fn a_paused_turn_goes_back_as_it_is() {
    let call = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}"#;
    let opaque = Body::Opaque {
        provider: "anthropic".to_owned(),
        kind: "server_tool_use".to_owned(),
        json: Json::new(call).unwrap(),
    };
    let mut paused = Message::assistant([Chunk::text("Let me look."), opaque.into()]);
    paused.metadata = Metadata {
        provider: Some("anthropic".to_owned()),
        model: Some("claude-opus-4-8".to_owned()),
        ..Metadata::default()
    };
    let messages = log([Message::user("Look it up."), paused]);
    for options in [continuing("claude-opus-4-8"), PromptOptions::new().with_model("claude-opus-4-8")] {
        let (list, report) = said("anthropic", &messages, &options);
        assert_eq!(list[1]["content"][1], serde_json::from_str::<Value>(call).unwrap());
        assert_eq!((list.len(), &report[..]), (2, &[][..]));
    }
}

/// What `check` finds of DeepSeek's rules on the order of roles: their ids and levels.
fn found(model: Option<&str>, messages: &Value) -> Vec<(&'static str, Level)> {
    let mut request = json!({"messages": messages});
    request.as_object_mut().unwrap().extend(model.map(|model| ("model".to_owned(), json!(model))));
    let target = "openai-chat/deepseek".parse().unwrap();
    let findings = check(target, &request.to_string()).unwrap();
    let of_order = findings.into_iter().filter(|found| ["DS-06", "DS-07", "DS-08", "DS-09"].contains(&found.rule));
    of_order.map(|found| (found.rule, found.level)).collect()
}

#[test]
fn deepseeks_order_of_roles_depends_on_the_model() {
    let (user, said) = (json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "b"}));
    let prefix = json!({"role": "assistant", "content": "b", "prefix": true});
    let thought = json!({"role": "assistant", "content": "b", "reasoning_content": "hm"});
    let system = json!({"role": "system", "content": "s"});
    let (reasoner, chat, v4) = (Some("deepseek-reasoner"), Some("deepseek-chat"), Some("deepseek-v4-flash"));
    let (hard, soft) = (Level::Hard, Level::Soft);
    let table = [
        (reasoner, json!([user, said]), vec![("DS-06", hard)]),
        (None, json!([user, said]), vec![("DS-06", hard)]),
        (chat, json!([user, said]), vec![("DS-06", soft)]),
        (reasoner, json!([user, prefix]), vec![]),
        (reasoner, json!([user, user]), vec![("DS-07", hard)]),
        (Some("DeepSeek-R1"), json!([user, said, said, user]), vec![("DS-07", hard)]),
        (None, json!([user, user]), vec![("DS-07", soft)]),
        (v4, json!([user, user]), vec![]),
        (reasoner, json!([system, said, user]), vec![("DS-08", hard)]),
        (None, json!([said, user]), vec![("DS-08", soft)]),
        (chat, json!([said, user]), vec![]),
        (reasoner, json!([system, system, user]), vec![]),
        (v4, json!([user, thought, user]), vec![("DS-09", soft)]),
    ];
    for (model, messages, wanted) in table {
        assert_eq!(found(model, &messages), wanted, "{model:?} {messages}");
    }
}

/// Prompts for DeepSeek suit its strictest model.
#[test]
fn prompts_for_deepseek_take_turns() {
    let mut thinking = Message::assistant([
        Body::Thinking { text: "hm".to_owned(), signature: None, redacted: None }.into(),
        Chunk::tool_call("c1", "look", "{}"),
    ]);
    thinking.metadata.provider = Some("deepseek".to_owned());
    let messages = log([
        Message::assistant([Chunk::text("Hello.")]),
        Message::user("One."),
        Message::user("Two."),
        Message::assistant([Chunk::text("I look.")]),
        thinking,
        Message::tool("c1", "seen"),
        Message::assistant([Chunk::text("Done.")]),
    ]);
    let (list, report) = said("openai-chat/deepseek", &messages, &PromptOptions::new().with_model("deepseek-reasoner"));
    let roles: Vec<_> = list.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(list[2]["content"], "One.\n\nTwo.");
    // The reasoning that came with the calls goes back with them.
    assert_eq!((&list[3]["content"], &list[3]["reasoning_content"]), (&json!("I look."), &json!("hm")));
    assert_eq!(report, [Rule::TurnMade, Rule::BridgeAdded]);
}
