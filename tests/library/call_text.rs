//! Calls that a model wrote as text: kept as said, reported when sent, and never sent as calls.

use crate::common::{prompts, stored};
use conversation_store::model::{Chunk, Message, Role};
use conversation_store::provider::{FinishedTools, PromptOptions, Target, Thinking, render};
use conversation_store::{Conversation, NextStep, ReportLine, Rule, Severity, next_step};

/// Calls as the models write them.
const CALLS: &[&str] = &[
    "<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}\n</tool_call>",
    "<tool_call>\n<function=ls>\n<parameter=path>\n.\n</parameter>\n</function>\n</tool_call>",
    "<function=ls>{\"path\": \".\"}</function>",
    "<tool_call>ls\n<arg_key>path</arg_key>\n<arg_value>.</arg_value>\n</tool_call>",
    "<|python_tag|>{\"name\": \"ls\", \"parameters\": {\"path\": \".\"}}",
    "<|python_start|>[ls(path=\".\")]<|python_end|>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n{\"path\":\".\"}\n```<｜tool▁call▁end｜>",
    "<｜tool▁call▁begin｜>ls<｜tool▁sep｜>{\"path\":\".\"}<｜tool▁call▁end｜>",
    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"ls\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "[TOOL_CALLS]ls[ARGS]{\"path\": \".\"}",
    "[TOOL_CALLS][{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}]",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "<|tool_call|>[{\"name\": \"ls\", \"arguments\": {\"path\": \".\"}}]",
    "<invoke name=\"ls\">\n<parameter name=\"path\">.</parameter>\n</invoke>",
    "<minimax:tool_call>\n<invoke name=\"ls\">\n</invoke>\n</minimax:tool_call>",
    "<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{\"path\":\".\"}",
    "<|channel|>commentary to=functions.ls<|constrain|>json<|message|>{\"path\":\".\"}<|call|>",
    "<|channel|>analysis to=browser.open<|message|>{\"id\":1}<|call|>",
    "<|start|>assistant to=functions.ls<|channel|>commentary<|message|>{\"path\":\".\"}<|call|>",
];

/// Texts about calls, and what only looks like one.
const OTHERS: &[&str] = &[
    "Qwen writes `<tool_call>` and Llama `<|python_tag|>`.",
    "The token is '<|python_start|>', or \"[TOOL_CALLS]\".",
    "<tool_call> is a tag, and <tool_call></tool_call> is empty",
    "a <function= b, <function=>, and <invoke name=\"\">",
    "<function",
    "[TOOL_CALLS]",
    "<|tool_call|> comes before a list",
    "<|channel|>commentary to=NAME, and <|start|>assistant to= another",
    "<|channel|>commentary<|message|>I look first.<|end|>",
    "std::function<void()> f; if (a<b) return a[0];",
];

fn lines(target: Target, said: Chunk, options: &PromptOptions) -> (String, Vec<ReportLine>) {
    let messages = [Message::user("look"), Message::assistant([said, Chunk::text("So.")]), Message::user("and?")];
    let prompt = render(target, &Conversation::new(stored::log(messages)), options).unwrap();
    prompts::assert_accepted(target, &prompt);
    let lines = prompt.report.into_iter().filter(|line| line.rule == Rule::CallAsText);
    (prompt.request.get().to_owned(), lines.collect())
}

#[test]
fn a_call_as_text_is_sent_as_text_and_reported() {
    for target in prompts::targets() {
        for call in CALLS {
            let text = format!("I look.\n{call}");
            let (request, lines) = lines(target, Chunk::text(&text), &PromptOptions::new());
            let [line] = &*lines else { panic!("{target} {call}: {lines:?}") };
            assert_eq!((line.message_index, line.chunk_index, line.severity), (Some(1), Some(0), Severity::Note));
            let written = serde_json::to_string(&text).unwrap();
            assert!(request.contains(written.trim_matches('"')), "{target}: {request}");
            assert!(
                !["tool_calls\":", "tool_use", "toolUse", "functionCall\":", "\"function_call\""]
                    .iter()
                    .any(|key| request.contains(key))
            );
        }
        for text in OTHERS {
            assert_eq!(lines(target, Chunk::text(*text), &PromptOptions::new()).1, [], "{target} {text}");
        }
    }
}

/// In thinking, it is reported where the thinking is sent.
#[test]
fn a_call_in_thinking_is_reported_if_the_thinking_is_sent() {
    for call in CALLS {
        let said = || Chunk::thinking(format!("I look. {call}"));
        let tagged = PromptOptions::new().with_thinking(Thinking::Tagged);
        assert_eq!(lines(Target::OPENAI_CHAT, said(), &tagged).1.len(), 1, "{call}");
        let omitted = PromptOptions::new().with_thinking(Thinking::Omit);
        assert_eq!(lines(Target::OPENAI_CHAT, said(), &omitted).1, []);
    }
}

/// Nothing of it is a call for anybody: not for an agent's loop, and not for a round of tools that is written as text.
#[test]
fn a_call_as_text_is_no_call() {
    for call in CALLS {
        let messages = stored::log([Message::user("look"), Message::assistant([Chunk::text(*call)])]);
        let conversation = Conversation::new(messages.clone());
        assert_eq!(conversation.messages(), messages);
        assert_eq!(conversation.report(), []);
        assert!(!matches!(next_step(&conversation), NextStep::RunTools(_)));
        let flat = PromptOptions::new().with_finished_tools(FinishedTools::Flatten);
        let prompt = render(Target::OPENAI_CHAT, &conversation, &flat).unwrap();
        assert_eq!(prompt.report.iter().map(|line| line.rule).collect::<Vec<_>>(), [Rule::CallAsText]);
    }
}

/// What others say is theirs.
#[test]
fn only_what_the_assistant_says_is_looked_at() {
    let others = [Role::User, Role::System].map(|role| Message::new(role, [Chunk::text(CALLS[0])]));
    let results = [
        Message::assistant([Chunk::tool_call("1", "read", "{}")]),
        Message::tool("1", CALLS[0]),
        Message::user("and?"),
    ];
    let conversation = Conversation::new(stored::log(others.into_iter().chain(results)));
    let prompt = render(Target::OPENAI_CHAT, &conversation, &PromptOptions::new()).unwrap();
    assert!(prompt.report.iter().all(|line| line.rule != Rule::CallAsText), "{:?}", prompt.report);
}
