//! One row for each report, in it one entry for each of its expectations.

/// What a prompt shows, for the wire that refused the conversation, with default options.
#[derive(Debug)]
pub(crate) enum Shown {
    /// It is accepted and everything is conserved: all that the expectation asks is one of the wire's rules.
    Accepted,
    /// And it holds these texts, in this order. What begins with `"` or `{` is JSON.
    InOrder(&'static [&'static str]),
    /// And it holds each of these texts once.
    Once(&'static [&'static str]),
    /// And it holds none of these texts.
    Lacks(&'static [&'static str]),
    /// The target is this one.
    On(&'static str, &'static Shown),
    /// The prompt is for this model.
    For(&'static str, &'static Shown),
    /// Thinking is left out.
    WithoutThinking(&'static Shown),
    /// There is nothing to send.
    NothingToSend,
    /// A test asserts it: its file and its name.
    Elsewhere(&'static str),
    /// It is not asserted, and why.
    Not(&'static str),
}

use Shown::{Accepted, Elsewhere, For, InOrder, Lacks, Not, NothingToSend, On, Once, WithoutThinking};

const UNKNOWN: &str = "outcome is unknown";
const WINDOW: &str = "prompts are not cut to windows";

pub(crate) const TABLE: &[(&str, &[Shown])] = &[
    (
        "agents-js-963-audio-history",
        &[
            InOrder(&["Thanks for calling. How can I help?", "I need help"]),
            Elsewhere("library/prompts.rs hostile_logs_are_accepted_and_conserved"),
        ],
    ),
    ("dify-18827-regenerate-uses-latest-branch", &[Elsewhere("conformance/control.rs a_rewind_hides_and_keeps")]),
    (
        "dario-1066-cache-on-empty-tail",
        &[Lacks(&["\"text\":\"\""]), Lacks(&["cache_control"]), Lacks(&["cache_control"])],
    ),
    (
        "vercel-17379-citations-lost",
        &[Once(&["X rose 3%."]), Elsewhere("library/ingest/recorded.rs answers_go_back_to_the_provider")],
    ),
    (
        "opengeni-61-non-monotonic-log",
        &[Lacks(&["\"k2\""]), InOrder(&["\"call_id\":\"k1\"", "\"call_id\":\"k1\"", "paused"])],
    ),
    (
        "effect-gates-64-last-writer-wins",
        &[InOrder(&["base", "from tab 1", "from tab 2", "answer 1", "answer 2"]), On("openai-chat/vllm", &Accepted)],
    ),
    (
        "agentscope-runtime-402-two-queries-one-session",
        &[
            InOrder(&["\"cA\"", "\"cA\"", "sun", "\"cB\"", "\"cB\"", "12:00"]),
            InOrder(&["It is 12:00.", "It is sunny."]),
            Once(&["A: weather?", "B: time?"]),
        ],
    ),
    (
        "agents-py-4615-session-write-failed",
        &[
            InOrder(&["\"call_pay\"", "\"call_pay\"", UNKNOWN]),
            InOrder(&[UNKNOWN, "The card was charged."]),
            Once(&["charge the card", "please charge it"]),
        ],
    ),
    (
        "blade-7-message-id-reuse",
        &[
            InOrder(&["\"call_00\"", "\"call_00\"", "\"one\"", "\"call_01\"", "\"call_01\"", "\"two\""]),
            Elsewhere("conformance/threads.rs with_writers_side_by_side"),
            InOrder(&["do two steps", "\"one\"", "\"two\"", "both done"]),
        ],
    ),
    (
        "agents-py-2426-calls-not-saved",
        &[InOrder(&["X", "9 EUR"]), InOrder(&["price of X?", "9 EUR", "X costs 9 EUR.", "and with VAT?"])],
    ),
    ("oh-my-pi-2258-prior-thinking-lost-same-provider", &[Lacks(&["\"text\":\"secret plan\"", "<think>"])]),
    ("llxprt-2335-model-switch-signature", &[For("another", &Lacks(&["sig-opus"])), Once(&["\"A1\"", "\"B1\""])]),
    (
        "claude-code-63410-resume-other-model",
        &[For("model-b", &Lacks(&["\"signature\""])), For("model-b", &Once(&["Here is the plan."]))],
    ),
    ("signature-on-string-thinking-foreign", &[Lacks(&["\"signature\"", "\"thinking\""]), Once(&["9.9"])]),
    (
        "crush-3121-same-id-twice-in-one-turn",
        &[Accepted, InOrder(&["{\"p\":\"a\"}", "{\"p\":\"b\"}", "\"A\"", "\"B\""])],
    ),
    ("qwen-5099-id-reused-across-turns", &[InOrder(&["\"r1\"", "\"r2\"", "\"r3\""]), Accepted]),
    (
        "hindsight-4250-blank-and-equal-ids",
        &[
            Accepted,
            InOrder(&["\"ra\"", "\"rb\"", "\"rc\""]),
            InOrder(&["\"toolu_q\"", "{\"q\":\"a\"}", "\"toolu_q\""]),
        ],
    ),
    (
        "retry-duplicate-user-message",
        &[Elsewhere("program/append.rs a_key_makes_it_safe_to_repeat"), InOrder(&["my_query", "my_query", "answer"])],
    ),
    (
        "eve-1246-two-results-one-call",
        &[
            Once(&["\"tool_use_id\":\"toolu_ws\""]),
            Once(&["JSON parse error: invalid_input"]),
            InOrder(&["\"assistant\"", "\"user\"", "\"tool_use_id\":\"toolu_ws\""]),
        ],
    ),
    (
        "qwen-8163-dup-result-over-two-messages",
        &[
            Once(&["\"tool_use_id\":\"toolu_b\""]),
            InOrder(&["The build was interrupted.", "status?"]),
            Once(&["Interrupted: no result was recorded"]),
        ],
    ),
    (
        "langmem-98-tool-messages-duplicated",
        &[Once(&["\"tool_call_id\":\"call_1\"", "\"tool_call_id\":\"call_2\""]), Once(&["err 3", "lat 20ms"])],
    ),
    (
        "gemini-cli-11814-starts-with-call",
        &[InOrder(&["\"role\":\"user\"", "\"role\":\"model\"", "\"functionCall\""]), Once(&["two files", "thanks"])],
    ),
    ("hermes-57942-only-system", &[NothingToSend, Not("there is no prompt")]),
    (
        "sk-10281-two-assistants",
        &[InOrder(&["\"assistant\"", "Drive the future.", "I approve this slogan.", "\"user\"", "shorter"])],
    ),
    ("claude-code-55302-empty-tool-output", &[Once(&["\"tool_use_id\":\"toolu_t\""]), Lacks(&["\"text\":\"\""])]),
    ("buzz-559-empty-end-turn", &[Lacks(&["\"assistant\""]), Accepted, Once(&["ping", "are you there?"])]),
    (
        "experiential-804-user-whitespace",
        &[
            Lacks(&["\"system\""]),
            InOrder(&["(The conversation begins with the assistant.)", "You sent an empty line."]),
            Accepted,
        ],
    ),
    ("vercel-5783-empty-parts", &[Lacks(&["\"assistant\""]), Once(&["\"hi\"", "again"])]),
    (
        "hermes-41985-space-placeholder-refused",
        &[Lacks(&["\"text\":\" \"", "\"text\":\"\""]), InOrder(&["(The conversation begins"])],
    ),
    (
        "claude-code-54013-image-paste-empty-caption",
        &[Once(&["image/png"]), Lacks(&["\"text\":\"\""]), Lacks(&["cache_control"])],
    ),
    ("docker-agent-63-tool-null-content", &[InOrder(&["\"tool_call_id\":\"c1\",\"content\":\"\""])]),
    ("zypher-122-empty-content-array", &[Lacks(&["\"content\":[]"]), Accepted, Once(&["\"hi\"", "hello?"])]),
    (
        "coai-209-error-stored-as-assistant",
        &[Lacks(&["\"assistant\""]), Accepted, InOrder(&["recommend a way", "recommend a way"])],
    ),
    (
        "vscode-299295-gemini-orphan-calls",
        &[
            InOrder(&[UNKNOWN, "g1", "partial"]),
            InOrder(&["\"2\"", UNKNOWN, "\"3\""]),
            Once(&["partial", "\"2\"", "\"3\""]),
        ],
    ),
    (
        "adk-js-347-array-response",
        &[InOrder(&["\"response\":{", "\"response\":{", "\"response\":{"]), InOrder(&["[\"x\",\"y\"]", "5", "null"])],
    ),
    ("astrbot-9876-id-as-name", &[InOrder(&["\"name\":\"steal_meme_to_smile\"", "\"name\":\"steal_meme_to_smile\""])]),
    (
        "cliproxy-5933-name-map-across-turns",
        &[InOrder(&[
            "\"functionResponse\":{\"name\":\"glob\"",
            "\"x\"",
            "\"functionResponse\":{\"name\":\"read\"",
            "\"y\"",
        ])],
    ),
    (
        "gemini-cli-16984-next-prompt-after-error",
        &[Once(&["\"functionCall\"", "\"functionResponse\""]), InOrder(&["whats the problem?", "hello?"])],
    ),
    ("tidebreak-1535-foreign-ids-in-gemini", &[Accepted, InOrder(&["\"functionResponse\"", "{\"error\":\"boom\"}"])]),
    (
        "gemini3-missing-thought-signature",
        &[
            On("gemini/gemini3", &InOrder(&["\"terminal\"", "skip_thought_signature_validator", "\"todo\""])),
            On("gemini/gemini3", &Once(&["thoughtSignature"])),
        ],
    ),
    (
        "dial-306-image-in-assistant-anthropic",
        &[
            InOrder(&["\"assistant\"", "Here you are:", "\"user\"", "image/png"]),
            InOrder(&["image/png", "Make it blue"]),
            Once(&["Here you are:"]),
        ],
    ),
    ("jcode-465-mime-mismatch", &[InOrder(&["\"media_type\":\"image/jpeg\""])]),
    (
        "openhands-7700-image-in-tool-role",
        &[
            InOrder(&["\"tool_call_id\":\"b1\",\"content\":\"title: X\""]),
            InOrder(&["\"role\":\"tool\"", "\"role\":\"user\"", "image_url"]),
            Elsewhere("library/prompts.rs hostile_logs_are_accepted_and_conserved"),
        ],
    ),
    (
        "vercel-10638-partial-messages",
        &[
            Once(&["Let me look th"]),
            InOrder(&["malformed_arguments", "Not run"]),
            On("anthropic", &Lacks(&["\"thinking\""])),
            Once(&["stop, do Y instead"]),
        ],
    ),
    (
        "two-cut-messages-merge-boundary",
        &[InOrder(&["count to 6", "1, 2, 3,", "continue", "4, 5, 6", "double them"]), InOrder(&["\" 4, 5, 6\""])],
    ),
    (
        "retry-error-chunk-mid-stream",
        &[
            InOrder(&["{\"malformed_arguments\":"]),
            Accepted,
            InOrder(&["\"The ownership mod\"", "The ownership model says each value has one owner."]),
        ],
    ),
    (
        "vllm-684-args-cut-with-result",
        &[InOrder(&["malformed_arguments"]), Once(&["The tool was not executed because its arguments were invalid."])],
    ),
    ("prism-659-args-array", &[InOrder(&["toolu_2", "\"input\":{}"])]),
    (
        "autolith-56-two-objects-spliced",
        &[InOrder(&["malformed_arguments"]), InOrder(&["\"call_581\"", "\"call_581\"", "unknown tool"])],
    ),
    ("javascriptmusic-208-empty-string-args", &[Once(&["\"arguments\":\"{}\""])]),
    (
        "goose-2951-resume-orphan-call",
        &[
            Once(&["\"tool_use_id\":\"toolu_01\"", UNKNOWN]),
            InOrder(&["\"id\":\"toolu_01\"", "\"tool_use_id\":\"toolu_01\"", "continue please"]),
            Once(&["continue please"]),
            Once(&["I'll look at the worker log."]),
        ],
    ),
    (
        "copilot-cli-3183-hard-kill-mid",
        &[
            InOrder(&["\"id\":\"toolu_a\"", "\"tool_use_id\":\"toolu_a\"", UNKNOWN, "are you there?"]),
            InOrder(&["\"tool_use_id\":\"toolu_b\"", "ok, 12 passed"]),
            InOrder(&["run the tests", "are you there?", "then run them again", "thanks, next task"]),
            Once(&["\"tool_use_id\":\"toolu_a\"", "\"tool_use_id\":\"toolu_b\""]),
        ],
    ),
    (
        "adk-1484-tool-error-or-stop",
        &[
            InOrder(&["\"functionCall\"", "\"functionResponse\":{\"name\":\"compute\""]),
            InOrder(&["\"functionResponse\"", "again?"]),
        ],
    ),
    (
        "langgraph-swarm-105-handoff-two-questions",
        &[InOrder(&["\"tool_call_id\":\"call_6V\"", "\"tool_call_id\":\"call_7W\"", "Gretel here."])],
    ),
    (
        "codex-394-esc-interrupt",
        &[InOrder(&["\"function_call_output\"", "\"call_F8\"", "No, I switched"]), InOrder(&["Interrupted: "])],
    ),
    ("user-quits-at-approval", &[InOrder(&["\"c1\"", "\"c1\"", "Interrupted: "]), Once(&["denied: do not delete"])]),
    (
        "agentscope-1905-orphan-then-user",
        &[
            InOrder(&["\"id\":\"call_book\"", "\"tool_call_id\":\"call_book\""]),
            InOrder(&["\"tool_call_id\":\"call_book\"", UNKNOWN]),
            InOrder(&[UNKNOWN, "hello? did it work?"]),
        ],
    ),
    ("langflow-9186-same-timestamp", &[InOrder(&["u1", "\"v\"", "a1", "u2"])]),
    (
        "claude-sdk-631-result-without-call",
        &[
            Lacks(&["tool_result"]),
            Lacks(&["tool_use_id"]),
            InOrder(&["\"messages\":[{\"role\":\"user\""]),
            Once(&["ok, try again"]),
        ],
    ),
    (
        "agents-py-4827-output-without-call",
        &[Lacks(&["function_call_output"]), InOrder(&["delete the temp dir", "Done.", "thanks, what else?"])],
    ),
    (
        "openclaw-109375-steer-mid-call",
        &[
            InOrder(&[
                "\"tool_use_id\":\"w1\"",
                "\"ok\"",
                "\"tool_use_id\":\"w2\"",
                UNKNOWN,
                "\"tool_use_id\":\"w3\"",
                UNKNOWN,
                "wait, use another name",
            ]),
            Once(&["wait, use another name"]),
        ],
    ),
    (
        "pydantic-741-parallel-results-split-messages",
        &[InOrder(&["\"assistant\"", "\"user\"", "12C", "18C"]), Accepted],
    ),
    (
        "system-after-tool-call",
        &[
            InOrder(&["\"id\":\"c1\"", "\"role\":\"tool\"", "\"v\""]),
            InOrder(&["\"role\":\"tool\"", "remember to cite numbers"]),
        ],
    ),
    (
        "gajae-4807-parallel-image-results",
        &[
            InOrder(&[
                "\"function_call\"",
                "\"function_call\"",
                "\"function_call_output\"",
                "\"function_call_output\"",
            ]),
            Once(&["https://x.test/a.png", "https://x.test/b.png"]),
            InOrder(&["https://x.test/a.png", "https://x.test/b.png"]),
        ],
    ),
    (
        "user-message-between-parallel-results",
        &[
            InOrder(&["\"tool_call_id\":\"j1\"", "\"tool_call_id\":\"j2\"", "also write a log"]),
            Once(&["also write a log"]),
        ],
    ),
    (
        "copilot-api-261-prefill-with-tool-tail",
        &[InOrder(&["\"id\":\"t9\"", "\"user\"", "\"tool_use_id\":\"t9\"", UNKNOWN]), Once(&["\"Looking\""])],
    ),
    ("llxprt-3695-no-prefill-support", &[InOrder(&["\"assistant\"", "Working on it", "\"user\"", "Continue."])]),
    (
        "groq-reasoning-content-rejected",
        &[On("openai-chat/groq", &Lacks(&["reasoning", "metadata", "created_at", "provider"])), Once(&["\"answer\""])],
    ),
    (
        "zoo-201-mixed-history-without-reasoning",
        &[On("openai-chat/deepseek", &InOrder(&["\"reasoning_content\"", "\"tool_calls\""]))],
    ),
    (
        "agent-afk-288-redacted-lost",
        &[
            Once(&["{\"type\":\"redacted_thinking\",\"data\":\"ENCBLOB==\"}"]),
            InOrder(&["redacted_thinking", "\"tool_use\""]),
        ],
    ),
    (
        "pi-1532-redacted-dropped-latest",
        &[InOrder(&["\"signature\":\"s1\"", "\"data\":\"BLOB\"", "\"signature\":\"s2\""])],
    ),
    ("hermes-43108-content-filter-empty", &[Lacks(&["\"assistant\"", "\"model\""]), InOrder(&["\"x\"", "\"y\""])]),
    (
        "rust-genai-119-input-text-for-assistant",
        &[InOrder(&[
            "input_text",
            "Check the startup flow.",
            "output_text",
            "OK, I will inspect it.",
            "input_text",
            "and?",
        ])],
    ),
    (
        "cline-12242-call-without-reasoning",
        &[Lacks(&["\"fc_"]), InOrder(&["\"call_id\":\"call_1\"", "\"call_id\":\"call_1\""])],
    ),
    (
        "qbit-180-both-rules",
        &[Accepted, InOrder(&["plain answer", "\"call_id\":\"c1\"", "\"call_id\":\"c1\"", "done"])],
    ),
    (
        "opencode-7724-store-false-rs-not-found",
        &[Lacks(&["\"reasoning\""]), Lacks(&["\"msg_", "\"rs_", "\"fc_"]), Once(&["hello"])],
    ),
    ("vercel-7099-reasoning-without-following", &[Accepted, Once(&["make a page", "again"])]),
    ("result-before-call", &[InOrder(&["\"id\":\"c1\"", "\"tool_call_id\":\"c1\"", "\"42\"", "It is 42."])]),
    (
        "qwen-8161-text-before-tool-result",
        &[
            InOrder(&["\"user\",\"content\":[{\"type\":\"tool_result\""]),
            InOrder(&["tool_result", "<note>context was compressed</note>"]),
        ],
    ),
    (
        "ai-agent-book-1027-tool-before-assistant",
        &[Lacks(&["\"role\":\"tool\""]), InOrder(&["Let me look.", "It is 18C."]), Lacks(&["\"role\":\"tool\""])],
    ),
    ("thinking-between-server-tools", &[InOrder(&["srvtoolu_7", "toolu_8"])]),
    (
        "librechat-216-server-and-client-tools",
        &[
            InOrder(&["\"id\":\"toolu_2\"", "\"user\"", "\"tool_use_id\":\"toolu_2\""]),
            InOrder(&["\"id\":\"srvtoolu_1\"", "\"tool_use_id\":\"srvtoolu_1\""]),
            InOrder(&["\"id\":\"srvtoolu_1\"", "Found it.", "\"id\":\"toolu_2\""]),
        ],
    ),
    (
        "aider-5591-system-between-users",
        &[
            On("openai-chat/vllm", &InOrder(&["one", "note", "two", "\"assistant\""])),
            On("openai-chat/vllm", &InOrder(&["\"system\"", "\"s\"", "note"])),
        ],
    ),
    (
        "kubently-49-system-each-turn",
        &[Lacks(&["\"role\":\"system\""]), Once(&["cluster A", "cluster B"]), InOrder(&["q1", "a1", "q2"])],
    ),
    (
        "opencode-48637-signature-bound-to-prefix",
        &[WithoutThinking(&Lacks(&["\"type\":\"thinking\""])), Once(&["\"A1\""])],
    ),
    (
        "claude-code-63277-thinking-emptied",
        &[
            InOrder(&["\"signature\":\"sA\"", "\"signature\":\"sB\""]),
            InOrder(&["\"sA\"", "\"id\":\"t1\"", "\"sB\"", "\"id\":\"t2\""]),
            InOrder(&["\"thinking\":\"\",\"signature\":\"sB\""]),
        ],
    ),
    ("thinking-only-final", &[InOrder(&["hard question", "please answer"])]),
    (
        "forge-1853-thinking-disabled-final",
        &[WithoutThinking(&Lacks(&["\"type\":\"thinking\""])), InOrder(&["partial answ"])],
    ),
    ("openai-compat-thinking-after-text", &[Accepted, Lacks(&["\"type\":\"thinking\""])]),
    ("vercel-5171-id-over-40", &[Accepted]),
    (
        "dsh-1-empty-call-id",
        &[
            Accepted,
            InOrder(&["write_file", "written"]),
            Elsewhere("library/prompts.rs reported_failures_keep_the_prefix"),
        ],
    ),
    ("roo-10763-call-id-over-64", &[Accepted, InOrder(&["\"1\"", "\"2\""])]),
    ("anthropic-id-charset", &[Accepted, InOrder(&["{\"c\":\"ls\"}", "{\"c\":\"pwd\"}", "\"a\"", "\"/\""])]),
    ("long-mcp-tool-name-64", &[Accepted]),
    (
        "pydantic-4585-dotted-tool-name",
        &[
            Accepted,
            InOrder(&["\"id\":\"t1\"", "\"tool_use_id\":\"t1\""]),
            Elsewhere("library/prompts.rs reported_failures_are_accepted_and_conserved"),
        ],
    ),
    ("tool-removed-from-set", &[InOrder(&["\"id\":\"c1\"", "\"tool_call_id\":\"c1\""])]),
    ("forge-1872-trailing-space-final-assistant", &[Accepted, InOrder(&["Roses are red"])]),
    (
        "letta-935-system-user-tool",
        &[
            Lacks(&["\"role\":\"tool\""]),
            InOrder(&["\"system\"", "You are Sam.", "hi again"]),
            On("openai-chat/vllm", &Accepted),
        ],
    ),
    ("letta-2605-summary-keeps-result", &[Lacks(&["\"role\":\"tool\""]), Once(&["There are 10 rows.", "export it"])]),
    (
        "spring-5940-window-slides-into-pair",
        &[
            InOrder(&["(The conversation begins with the assistant.)", "Here are the rows."]),
            Lacks(&["tool_result"]),
            Once(&["next question"]),
        ],
    ),
    ("sk-12612-system-lost-by-truncation", &[Once(&["Only answer in French."]), InOrder(&["deux", "\"3\""])]),
    ("litellm-4931-trim-removes-call", &[Not(WINDOW), InOrder(&["\"id\":\"call_t\"", "\"tool_call_id\":\"call_t\""])]),
    (
        "agents-py-4322-session-limit-cuts-pair",
        &[InOrder(&["\"call_id\":\"call_1\"", "\"call_id\":\"call_1\""]), Not(WINDOW), Once(&["It rains."])],
    ),
    (
        "agno-9372-history-limit-system-first",
        &[Lacks(&["function_call_output"]), InOrder(&["be brief", "42."]), Once(&["42.", "and twice that?"])],
    ),
    ("coder-22637-nul-in-tool-output", &[InOrder(&["W"]), Accepted]),
    ("claude-code-69927-truncated-pair", &[InOrder(&["done \u{fffd}"])]),
];
