//! What right prompts for Gemini show, case by case.

use crate::common::reported;
use conversation_store::model::{Body, Chunk, File, Image, Json, Message, Native, Output, Part, PartBody, Role};
use conversation_store::provider::{PromptOptions, Target, Thinking, render};
use conversation_store::{Error, Rule, Store};
use serde_json::Value;

/// Stands for the signature of a call that has none (ai.google.dev thought-signatures).
const NONE: &str = "skip_thought_signature_validator";

/// The request's contents, a line each: role, then its parts.
fn shape(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    let line = |role: &str, content: &Value| {
        let parts = content["parts"].as_array().unwrap();
        format!("{role}{}", parts.iter().map(|it| format!(" [{}]", part(it))).collect::<String>())
    };
    let system = request.get("systemInstruction").map(|content| line("system", content));
    let contents = request["contents"].as_array().unwrap().iter();
    system.into_iter().chain(contents.map(|content| line(content["role"].as_str().unwrap(), content))).collect()
}

fn part(part: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let fields = part.as_object().unwrap();
    let mut told = match fields.keys().find(|name| !name.starts_with("thought")).unwrap().as_str() {
        "text" => text(&part["text"]),
        "functionCall" => format!("call {} {}", text(&part["functionCall"]["name"]), part["functionCall"]["args"]),
        "functionResponse" => {
            let response = &part["functionResponse"];
            assert!(
                response.as_object().unwrap().keys().all(|name| ["id", "name", "response"].contains(&name.as_str()))
            );
            format!("response {} {}", text(&response["name"]), response["response"])
        }
        "inlineData" => format!("inline {}", text(&part["inlineData"]["mimeType"])),
        "fileData" => format!("file {} {}", text(&part["fileData"]["mimeType"]), text(&part["fileData"]["fileUri"])),
        other => other.to_owned(),
    };
    if part.get("thought").is_some() {
        told = format!("thought: {told}");
    }
    match part.get("thoughtSignature").map(text).as_deref() {
        None => told,
        Some(NONE) => told + " (no signature)",
        Some(signature) => format!("{told} (signature {signature})"),
    }
}

/// The reports whose target is this wire, or any: read beside the `expect` of each case in `corruption.jsonl`. Those that
/// ask for a window or a branch are shown whole.
#[test]
fn reported_failures_are_rendered_as_they_should_be() {
    let mut found = String::new();
    for case in reported::cases().iter().filter(|case| ["gemini", "any"].contains(&case.target.as_str())) {
        let lines = match crate::common::prompts::prompt(Target::GEMINI, &case.messages, &PromptOptions::new()) {
            Some(prompt) => shape(prompt.request.get()),
            None => vec!["(nothing to send)".to_owned()],
        };
        found += &format!("# {}\n{}\n\n", case.id, lines.join("\n"));
    }
    let wanted = include_str!("../fixtures/expected/gemini.txt");
    for (wanted, found) in wanted.split("\n\n").zip(found.split("\n\n")) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
}

fn rendered_for(target: &str, messages: &[Message], options: &PromptOptions) -> (String, Vec<Rule>) {
    let store = Store::open("memory:").unwrap();
    store.append("chat", messages).unwrap();
    let prompt = render(target.parse().unwrap(), &store.load("chat").unwrap(), options).unwrap();
    (prompt.request.get().to_owned(), prompt.report.iter().map(|line| line.rule).collect())
}

fn rendered(messages: &[Message]) -> (Vec<String>, Vec<Rule>) {
    let (request, report) = rendered_for("gemini", messages, &PromptOptions::new());
    (shape(&request), report)
}

fn own(json: &str, body: Body) -> Chunk {
    let json = Json::new(json).unwrap();
    Chunk { native: Some(Native { wire: "gemini".to_owned(), json }), ..Chunk::from(body) }
}

fn thinking(text: &str, signature: &str) -> Chunk {
    Body::Thinking { text: text.to_owned(), signature: Some(signature.to_owned()), redacted: None }.into()
}

fn call(name: &str, arguments: &str, signature: Option<&str>) -> Body {
    let (id, name, arguments) = (name.to_owned(), name.to_owned(), arguments.to_owned());
    Body::ToolCall { id, name, arguments, signature: signature.map(str::to_owned), server: false }
}

fn by(provider: &str, mut message: Message) -> Message {
    message.metadata.provider = Some(provider.to_owned());
    message
}

const THOUGHT: &str = r#"{"thoughtSignature":"c2ln","thought":true,"text":"hm"}"#;
const CODE: &str = r#"{"executableCode":{"language":"PYTHON","code":"print(1)"}}"#;
const RESULT: &str = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}"#;
const CALL: &str = r#"{"functionCall":{"id":"7","args":{"b":1.50,"a":2},"name":"run"},"thoughtSignature":"c2ln"}"#;
const SIGNED: &str = r#"{"text":"ok","thoughtSignature":"c2-_bg"}"#;

#[test]
fn an_answer_of_the_provider_is_given_back_byte_for_byte() {
    let opaque = |json: &str| {
        let json = Json::new(json).unwrap();
        Chunk::from(Body::Opaque { provider: "gemini".to_owned(), kind: "code".to_owned(), json })
    };
    let answer = Message::assistant([
        own(THOUGHT, Body::Thinking { text: "hm".to_owned(), signature: Some("c2ln".to_owned()), redacted: None }),
        opaque(CODE),
        opaque(RESULT),
        own(SIGNED, Chunk::text("ok").body),
        own(CALL, call("run", r#"{"b":1.50,"a":2}"#, Some("c2ln"))),
    ]);
    let messages = [Message::user("go"), by("gemini", answer), Message::tool("run", "done")];
    let (request, report) = rendered_for("gemini", &messages, &PromptOptions::new());
    let response = r#"{"functionResponse":{"id":"7","name":"run","response":{"result":"done"}}}"#;
    let model = format!(r#"{{"role":"model","parts":[{THOUGHT},{CODE},{RESULT},{SIGNED},{CALL}]}}"#);
    let user = r#"{"role":"user","parts":[{"text":"go"}]}"#;
    let tool = format!(r#"{{"role":"user","parts":[{response}]}}"#);
    assert_eq!(request, format!(r#"{{"contents":[{user},{model},{tool}]}}"#));
    assert_eq!(report, []);
    // Vertex signs for itself, and takes none of this.
    let (request, report) = rendered_for("gemini/vertex", &messages, &PromptOptions::new());
    let call = format!(r#"{{"functionCall":{{"name":"run","args":{{"b":1.50,"a":2}}}},"thoughtSignature":"{NONE}"}}"#);
    assert!(request.contains(&format!(r#"{{"role":"model","parts":[{{"text":"ok"}},{call}]}}"#)), "{request}");
    assert_eq!(
        report,
        [
            Rule::LeftOut,
            Rule::LeftOut,
            Rule::Altered,
            Rule::Altered,
            Rule::LeftOut,
            Rule::SignatureMade,
            Rule::ThinkingLeftOut
        ]
    );
}

#[test]
fn the_first_call_of_each_step_is_signed() {
    let step = |signatures: [Option<&str>; 2]| {
        Message::assistant([call("a", "{}", signatures[0]).into(), call("b", "{}", signatures[1]).into()])
    };
    let line = |message: Message| {
        let messages = [Message::user("go"), message, Message::tool("a", "1"), Message::tool("b", "2")];
        let (shape, report) = rendered(&messages);
        assert_eq!(shape[2], r#"user [response a {"result":"1"}] [response b {"result":"2"}]"#);
        (shape[1].clone(), report.len())
    };
    let both = [Some("c2ln"), Some("c2-_bg")];
    let (unsigned, signed) = ("[call a {} (no signature)]", "[call a {} (signature c2ln)]");
    assert_eq!(line(step([None, None])), (format!("model {unsigned} [call b {{}}]"), 1));
    assert_eq!(line(by("gemini", step(both))), (format!("model {signed} [call b {{}} (signature c2-_bg)]"), 0));
    assert_eq!(line(by("openai", step(both))), (format!("model {unsigned} [call b {{}}]"), 3));
    // Nobody states whose signatures they are: the report says so of each.
    assert_eq!(line(step(both)), (format!("model {signed} [call b {{}} (signature c2-_bg)]"), 2));
    assert_eq!(line(by("gemini", step([Some("%%%"), None]))), (format!("model {unsigned} [call b {{}}]"), 2));
    // Bits to spare: some decoders refuse it.
    assert_eq!(line(by("gemini", step([Some("c2-_bh"), None]))), (format!("model {unsigned} [call b {{}}]"), 2));
    let mut other_model = by("gemini", step(both));
    other_model.metadata.model = Some("gemini-2.5-pro".to_owned());
    let signatures = |target: &str, model: &str| {
        let (request, _) = rendered_for(target, &[other_model.clone()], &PromptOptions::new().with_model(model));
        (request.matches(NONE).count(), request.matches("c2").count())
    };
    assert_eq!(signatures("gemini", "gemini-2.5-pro"), (0, 2));
    assert_eq!(signatures("gemini", "gemini-3-pro"), (1, 0));
    // Models before Gemini 3 know no stand-in.
    assert_eq!(signatures("gemini", "gemini-2.5-flash"), (0, 0));
    assert_eq!(signatures("gemini/gemini3", "gemini-2.5-flash"), (1, 0));
}

#[test]
fn thinking_goes_where_it_is_told() {
    let messages = [
        by("gemini", Message::assistant([thinking("hm", "c2ln"), Chunk::text("hello")])),
        by("gemini", Message::assistant([thinking("alone", "c2ln")])),
        by("anthropic", Message::assistant([thinking("foreign", "c2ln"), Chunk::text("bye")])),
    ];
    let model = |thinking| {
        let (request, _) = rendered_for("gemini", &messages, &PromptOptions::new().with_thinking(thinking));
        shape(&request)[1].clone()
    };
    let alone = "[<think>\nalone\n</think>]";
    let native = format!("model [thought: hm (signature c2ln)] [hello] {alone} [bye]");
    let tagged = format!("model [<think>\nhm\n</think>] [hello] {alone} [<think>\nforeign\n</think>] [bye]");
    assert_eq!(model(Thinking::Native), native);
    assert_eq!(model(Thinking::Tagged), tagged);
    assert_eq!(model(Thinking::Omit), "model [hello] [bye]");
}

#[test]
fn roles_alternate_and_the_user_begins_and_ends() {
    let messages = [
        Message::system("be brief"),
        Message::assistant([Chunk::text("hello")]),
        Message::assistant([Chunk::text(" \n"), Chunk::text("again"), call("run", "{}", None).into()]),
        Message::tool("run", "ok"),
        Message::system("be briefer"),
        Message::user("go on"),
        Message::assistant([Chunk::text("bye")]),
    ];
    let (shape, report) = rendered(&messages);
    assert_eq!(
        shape,
        [
            "system [be brief]",
            "user [(The conversation begins with the assistant.)]",
            "model [hello] [again] [call run {} (no signature)]",
            r#"user [response run {"result":"ok"}]"#,
            "user [be briefer] [go on]",
            "model [bye]",
            "user [Continue.]",
        ]
    );
    assert_eq!(report, [Rule::TurnMade, Rule::LeftOut, Rule::SignatureMade, Rule::RoleChanged, Rule::BridgeAdded]);
}

#[test]
fn responses_are_objects() {
    let result = |output, is_error| {
        let body = Body::ToolResult { tool_call_id: "run".to_owned(), name: None, output, is_error };
        let messages = [Message::assistant([call("run", "{}", None).into()]), Message::new(Role::Tool, [body.into()])];
        let (request, _) = rendered_for("gemini", &messages, &PromptOptions::new());
        let (_, response) = request.split_once(r#""response":"#).unwrap();
        response.strip_suffix("}}]}]}").unwrap().to_owned()
    };
    let text = |text: &str| Output::Text(text.to_owned());
    let json = |text: &str| Part::from(PartBody::Json { json: Json::new(text).unwrap() });
    let words = |text: &str| Part::from(PartBody::Text { text: text.to_owned() });
    let table = [
        (text("9 EUR"), r#"{"result":"9 EUR"}"#),
        (text(r#" {"b":1.50,"a":[2]}"#), r#"{"b":1.50,"a":[2]}"#),
        (text(r#"["x","y"]"#), r#"{"result":"[\"x\",\"y\"]"}"#),
        (text("5"), r#"{"result":"5"}"#),
        (text("null"), r#"{"result":"null"}"#),
        (text(""), r#"{"result":""}"#),
        // What the service's parser refuses is told as text.
        (text(r#"{"a":1,"a":2}"#), r#"{"result":"{\"a\":1,\"a\":2}"}"#),
        (text(r#"{"a":"\ud83d"}"#), r#"{"result":"{\"a\":\"\\ud83d\"}"}"#),
        (text(r#"{"a":1e400}"#), r#"{"result":"{\"a\":1e400}"}"#),
        (Output::Parts(vec![json(r#"{"n": 1}"#)]), r#"{"n": 1}"#),
        (Output::Parts(vec![words("a"), json("[1]")]), r#"{"result":["a","[1]"]}"#),
        (Output::Parts(Vec::new()), r#"{"result":""}"#),
    ];
    for (output, wanted) in table {
        assert_eq!(result(output, None), wanted);
    }
    assert_eq!(result(text("boom"), Some(true)), r#"{"error":"boom"}"#);
    assert_eq!(result(text(r#"{"a":1}"#), Some(true)), r#"{"error":"{\"a\":1}"}"#);
    assert_eq!(result(text(""), Some(true)), r#"{"error":"The tool failed and gave no output."}"#);
}

#[test]
fn arguments_are_objects_that_the_service_reads() {
    let deep = format!("{}1{}", "{\"a\":".repeat(95), "}".repeat(95));
    let told = |text: &str| format!(r#"{{"malformed_arguments":{}}}"#, Value::from(text));
    let table = [
        (r#"{"b":1.50,"a":2}"#, r#"{"b":1.50,"a":2}"#.to_owned(), vec![]),
        ("{\"cmd\":\"ls", told("{\"cmd\":\"ls"), vec![Rule::ArgumentsRepaired]),
        (r#"{"n":1,"m":0,"n":2}"#, r#"{"m":0,"n":2}"#.to_owned(), vec![Rule::ArgumentsRepaired]),
        (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#.to_owned(), vec![Rule::SurrogateReplaced]),
        (r#"{"a":1e400}"#, told(r#"{"a":1e400}"#), vec![Rule::ArgumentsRepaired]),
        (&deep, told(&deep), vec![Rule::ArgumentsRepaired]),
    ];
    for (arguments, wanted, rules) in table {
        let messages = [
            Message::user("go"),
            Message::assistant([call("run", arguments, None).into()]),
            Message::tool("run", "ok"),
        ];
        let (request, report) = rendered_for("gemini", &messages, &PromptOptions::new());
        assert!(request.contains(&format!(r#""args":{wanted}}}"#)), "{arguments}: {request}");
        let rules: Vec<Rule> = rules.into_iter().chain([Rule::SignatureMade]).collect();
        assert_eq!(report, rules, "{arguments}");
    }
}

#[test]
fn names_are_what_functions_can_be_called() {
    let messages = [
        Message::user("go"),
        Message::assistant([call("browser.tabs:open", "{}", None).into(), call("9 lives", "{}", None).into()]),
        Message::tool("browser.tabs:open", "1"),
        Message::tool("9 lives", "2"),
    ];
    let (shape, report) = rendered(&messages);
    assert!(shape[1].starts_with("model [call browser.tabs:open {} (no signature)] [call _9_lives_"), "{shape:?}");
    assert!(shape[2].contains("[response _9_lives_"), "{shape:?}");
    assert_eq!(report, [Rule::NameChanged, Rule::SignatureMade]);
}

#[test]
fn attachments_have_types_that_every_model_takes() {
    let image = |url: &str| Chunk::image(url);
    let file = |name: Option<&str>, data: &str, mime_type: &str| {
        let (name, data, mime_type) = (name.map(str::to_owned), Some(data.to_owned()), Some(mime_type.to_owned()));
        Chunk::from(Body::File(File { name, url: None, data, mime_type }))
    };
    let parts = [
        image("https://x.test/a.PNG?x=1"),
        image("https://x.test/a"),
        image("data:image/png;base64,/9j/4AAQ"),
        image("data:image/gif;base64,R0lGODlh"),
        image("https://x.test/a.gif"),
        file(None, "JVBERi0=", "application/pdf"),
        file(Some("a.csv"), "QSxC", "text/csv"),
        file(None, "QSxC", "application/zip"),
    ];
    let (shape, report) = rendered(&[Message::new(Role::User, parts)]);
    assert_eq!(
        shape,
        [[
            "user [file image/png https://x.test/a.PNG?x=1]",
            "[file image/jpeg https://x.test/a]",
            "[inline image/jpeg]",
            "[[image left out: its type \"image/gif\" is not one that every model takes]]",
            "[[image left out: its type \"image/gif\" is not one that every model takes]]",
            "[inline application/pdf]",
            "[inline text/plain]",
            "[[file left out: its type \"application/zip\" is not one that every model takes]]",
        ]
        .join(" ")]
    );
    assert_eq!(report, [Rule::Altered, Rule::LeftOut, Rule::LeftOut, Rule::Altered, Rule::LeftOut]);
}

/// Parallel tool results with images were split by user messages.
#[test]
fn images_of_results_follow_all_responses() {
    let result = |id: &str| {
        let image = Image { url: format!("https://x.test/{id}.png"), mime_type: None };
        let output = Output::Parts(vec![PartBody::Image(image).into()]);
        Message::new(
            Role::Tool,
            [Body::ToolResult { tool_call_id: id.to_owned(), name: None, output, is_error: None }.into()],
        )
    };
    let asked = Message::assistant([call("a", "{}", None).into(), call("b", "{}", None).into()]);
    let (shape, report) = rendered(&[Message::user("go"), asked, result("a"), result("b"), Message::user("and?")]);
    let follows = r#"{"result":"The output follows in the next user message."}"#;
    assert_eq!(shape[2], format!("user [response a {follows}] [response b {follows}]"));
    assert_eq!(
        shape[3],
        "user [Output of a, call 1 of the turn:] [file image/png https://x.test/a.png] \
         [Output of b, call 2 of the turn:] [file image/png https://x.test/b.png] [and?]"
    );
    assert_eq!(report, [Rule::SignatureMade, Rule::MediaMoved, Rule::MediaMoved]);
}

#[test]
fn a_picture_of_the_model_stays_with_its_signature_only() {
    let part = r#"{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="},"thoughtSignature":"c2ln"}"#;
    let picture = Chunk::image("data:image/png;base64,iVBORw0KGgo=");
    let messages =
        |chunk: Chunk| [Message::user("draw"), by("gemini", Message::assistant([Chunk::text("so:"), chunk]))];
    let (shape, report) = rendered(&messages(own(part, picture.body.clone())));
    assert_eq!(shape[1], "model [so:] [inline image/png (signature c2ln)]");
    assert_eq!(report, [Rule::BridgeAdded]);
    let (shape, report) = rendered(&messages(picture));
    assert_eq!(
        shape[1..],
        ["model [so:] [[image: it is in the next user message]]", "user [Image by the assistant:] [inline image/png]"]
    );
    assert_eq!(report, [Rule::MediaMoved]);
}

#[test]
fn nothing_to_send_is_an_error() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::system("be brief"), Message::user(" ")]).unwrap();
    let result = render(Target::GEMINI, &store.load("chat").unwrap(), &PromptOptions::new());
    assert!(matches!(result, Err(Error::NothingToSend(_))), "{result:?}");
}
