//! The rules of the wire. None was tried against the live API: they are documentation, the official types, and reports.

use crate::provider::check::rule::rules;

rules! {
    /// When Anthropic refuses a request, or takes it with a loss.
    AN_01 "AN-01" Hard
        "The request is an object whose `messages` is an array of 1 to 100,000 messages."
        "send at least one message"
        "sdk:anthropic MessageCreateParams; read: the tests of a third party's mock of the API"
    AN_02 "AN-02" Hard
        "`tools` is an array. A parameter that the rules do not know is unknown."
        "leave the key out"
        "sdk:anthropic MessageCreateParams; read: the tests of a third party's mock of the API"
    AN_03 "AN-03" Hard
        "A message is an object of the role user or assistant; of the role system where AN-04 allows it."
        "give the message one of these roles; a tool's result is a tool_result block in a user message"
        "sdk:anthropic MessageParam"
    AN_04 "AN-04" Hard
        "A message of the role system holds text only, is not first, follows a user message, and is last or before an \
         assistant message; several in a row count as one. Models from Opus 4.8 on take it; soft when the model is not known."
        "move the text into `system`, or into a user message"
        "platform.claude.com mid-conversation-system-messages; gh:simonw/llm-anthropic#73; recorded: pydantic-ai \
         test_two_mid_conversation_system_prompts_keep_their_order, test_mid_conversation_system_prompt_on_bedrock"
    AN_05 "AN-05" Soft
        "The first message is a user message."
        "begin at a user message"
        "older API text; gh:NousResearch/hermes-agent#63983 (Bedrock); accepted, recorded: pydantic-ai \
         test_anthropic_model_empty_message_on_history"
    AN_06 "AN-06" Hard
        "Content is a string or an array, and not empty except in an assistant message at the end."
        "leave the message out, or give it text"
        "gh:anthropics/claude-code#3196; gh:glowingjade/obsidian-smart-composer#156"
    AN_07 "AN-07" Hard
        "No empty text block, also none in `system` and in tool_result. An empty `system` string is soft."
        "leave the block out"
        "gh:anthropics/claude-code#59812; gh:anthropics/anthropic-sdk-python#461; gh:NousResearch/hermes-agent#55092"
    AN_08 "AN-08" Hard
        "No text of white space only."
        "leave the block out, or say in words that there is nothing"
        "gh:anthropics/claude-code#23440; gh:nick1udwig/kibitz#78"
    AN_09 "AN-09" Hard
        "Where the last message is an assistant message, its text does not end with white space."
        "trim the end of the text"
        "gh:langchain-ai/langchain#35071; gh:langchain-ai/langchain-google#1733"
    AN_10 "AN-10" Hard
        "Each tool_use is answered by a tool_result in the next user turn; the conversation does not end before it."
        "add a tool_result for it at the beginning of the next user message; where the result was lost, add \
         one that states that"
        "gh:anthropics/claude-code#8210; read: the tests of a third party's mock of the API"
    AN_11 "AN-11" Soft
        "All tool_results of a turn are in one user message. User messages in a row are merged, but the model learns \
         not to call in parallel."
        "move the tool_results into one user message"
        "gh:sipeed/picoclaw#1793; gh:Zoo-Code-Org/Zoo-Code#1705"
    AN_12 "AN-12" Hard
        "In the user turn after tool_use, tool_result blocks come before all others."
        "move the other blocks after the tool_results"
        "platform.claude.com handle-tool-calls; gh:Zoo-Code-Org/Zoo-Code#1705; gh:anthropics/anthropic-sdk-typescript#653"
    AN_13 "AN-13" Hard
        "A tool_result answers a tool_use of the assistant turn just before it."
        "move the tool_result directly after its tool_use, or leave it out"
        "gh:anthropics/claude-code#18947; gh:anthropics/claude-code#14075"
    AN_14 "AN-14" Hard
        "One tool_result for each tool_use_id."
        "keep one tool_result for the call and leave the others out"
        "gh:sipeed/picoclaw#1793"
    AN_15 "AN-15" Hard
        "The ids of tool_use blocks are unique within a turn; over the conversation: soft."
        "give each tool_use an id of its own, and the same to its tool_result"
        "gh:anthropics/claude-code#21083; gh:anthropics/claude-code#28515; gh:trycua/cua#524; accepted over turns, recorded: \
         pydantic-ai test_cross_provider_capability_replay"
    AN_16 "AN-16" Hard
        "tool_use.id and tool_use_id are one or more of `a-z A-Z 0-9 _ -`."
        "map the id, in the tool_use and in its tool_result alike"
        "gh:tailcallhq/forgecode#1142"
    AN_17 "AN-17" Hard
        "tool_use.name has 1 to 200 characters; the name of a tool's definition is 1 to 128 of `a-z A-Z 0-9 _ -`, and a \
         tool_use outside of that is soft."
        "rename the tool, in its definition and in its calls alike"
        "gh:anthropics/claude-code#2673; gh:home-assistant/core#147760; gh:anthropics/claude-code#96152"
    AN_18 "AN-18" Hard
        "tool_use.input is an object, never a string, an array or null."
        "parse the arguments; send `{}` if nothing can be saved"
        "sdk:anthropic ToolUseBlockParam; platform.claude.com handle-tool-calls"
    AN_19 "AN-19" Hard
        "tool_use and thinking are in assistant messages only, tool_result in user messages only."
        "move the block into a message of the other role"
        "read: third-party notes on the structure of tool messages"
    AN_20 "AN-20" Soft
        "Images and documents are in user messages or in tool_result."
        "move it into a user message; the types allow more than the documentation shows"
        "sdk:anthropic, where the types allow it"
    AN_21 "AN-21" Hard
        "A thinking block has thinking and a signature that is not empty. Whether it is the original one cannot be seen \
         from the text."
        "send the signature that came with the thinking, or leave the block out"
        "sdk:anthropic ThinkingBlockParam; gh:lbjlaq/Antigravity-Manager#498"
    AN_22 "AN-22" Hard
        "A redacted_thinking block has data that is not empty."
        "send the data that came, or leave the block out"
        "sdk:anthropic RedactedThinkingBlockParam"
    AN_23 "AN-23" Hard
        "With thinking enabled, the first or the last assistant turn of the current tool loop, or a final assistant \
         message, begins with thinking. With adaptive thinking, or none said while other turns have it: soft."
        "put back the thinking that came before the calls, or disable thinking for this request"
        "gh:pydantic/pydantic-ai#2075; gh:n8n-io/n8n#22550"
    AN_24 "AN-24" Soft
        "Thinking comes before the text and the tool_use of its message."
        "keep the blocks in the order in which they came"
        "gh:anthropics/claude-code#63284; platform.claude.com extended-thinking"
    AN_25 "AN-25" Hard
        "The last block of an assistant message is not thinking."
        "leave the thinking out, or put back what came after it"
        "gh:tailcallhq/forgecode#2107; gh:NousResearch/hermes-agent#16921"
    AN_26 "AN-26" Hard
        "With thinking disabled, an assistant message in the final position has no thinking; soft where only tool results \
         follow it."
        "leave the thinking out"
        "gh:tailcallhq/forgecode#1853"
    AN_27 "AN-27" Hard
        "cache_control has the type ephemeral and a ttl of 5m or 1h, at most 4 in a request, 1h not after 5m; none on \
         empty text, thinking, or messages of the role system."
        "keep the last few marks, on text, tool_use or tool_result"
        "read: the tests of a third party's mock of the API; gh:coasys/ad4m#996"
    AN_28 "AN-28" Hard
        "The source of an image is base64 (image/jpeg, image/png, image/gif, image/webp), an http(s) url or a file; that of \
         a base64 document is application/pdf."
        "convert the image, or name its type as it is"
        "gh:anthropics/claude-code#8184; sdk:anthropic"
    AN_29 "AN-29" Hard
        "The bytes of an image are of its media_type."
        "name the type that the bytes show"
        "gh:anthropics/claude-code#15746; gh:BerriAI/litellm#24900"
    AN_30 "AN-30" Hard
        "An image has at most 5,242,880 characters of base64 and 8,000 pixels a side."
        "scale the image down"
        "portkey.ai/error-library 10499; gh:anthropics/claude-code#12351; gh:lobehub/lobehub#14711"
    AN_31 "AN-31" Hard
        "At most 100 images in a request; models with larger windows take more."
        "leave the oldest images out"
        "gh:anthropics/claude-code#19822"
    AN_32 "AN-32" Hard
        "With more than 20 images, none has a side above 2,000 pixels."
        "scale the image down, or leave older ones out"
        "gh:anthropics/claude-code#16173; 20: from memory of the documentation"
    AN_33 "AN-33" Unknown
        "No keys in messages and blocks that the official type does not have. On a message of the role system clear_at is soft: \
         it needs a beta header."
        "leave the key out"
        "read: the tests of a third party's mock of the API"
    AN_34 "AN-34" Hard
        "From Claude 4.6 on (not Haiku 4.5) the last message is not an assistant message; soft when the model is not \
         known."
        "append the user's next message"
        "gh:router-for-me/CLIProxyAPI#5320; gh:anthropics/claude-code#52433; sdk:anthropic, in words"
    AN_35 "AN-35" Soft
        "`tools` is there when tool_use or tool_result occurs."
        "declare the tools again, or stubs of them"
        "portkey.ai/error-library 10488; gh:vxcontrol/pentagi#196"
    AN_36 "AN-36" Hard
        "`system` is a string or an array of text blocks."
        "send the text as a string"
        "sdk:anthropic MessageCreateParams.system"
    AN_37 "AN-37" Hard
        "The result of a server's tool has an earlier server_tool_use with its id in the same turn."
        "put back the server_tool_use, or leave the result out"
        "gh:anthropics/claude-code#64383"
    AN_38 "AN-38" Soft
        "Messages of one role in a row are merged into one turn."
        "merge them before sending, to see what the model sees"
        "sdk:anthropic (will be combined into a single turn)"
    AN_39 "AN-39" Hard
        "No lone surrogates in any string."
        "replace the half character by U+FFFD"
        "gh:anthropics/claude-code#60394; gh:anthropics/claude-code#1939"
    AN_40 "AN-40" Reported
        "With is_error true, the content of a tool_result is text only; without any content it is soft."
        "say in text what went wrong"
        "thin: gh:aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15 (Bedrock, empty); text only: from \
         memory"
    AN_41 "AN-41" Hard
        "The message fits the official type: required keys and types. Other values than its literals, and blocks of other \
         types, are unknown."
        "give the field a value of that type"
        "sdk:anthropic MessageParam"
    AN_42 "AN-42" Hard
        "The request has at most 32 MB."
        "leave the oldest images and documents out, or upload them as files"
        "platform.claude.com/docs/en/api/errors"
    AN_43 "AN-43" Soft
        "Newer models bind thinking to the model and to the exact messages before it; a changed prefix is refused or the \
         block dropped. It cannot be judged from the text."
        "send earlier messages unchanged, or leave the thinking of changed turns out"
        "platform.claude.com preserved-thinking"
    AN_44 "AN-44" Reported
        "base64 data is raw: no line breaks, no data: prefix."
        "encode the bytes again, or leave the block out"
        "thin: sdk:anthropic Base64ImageSourceParam"
    AN_45 "AN-45" Hard
        "A whole request, one with `model` or `anthropic_version`, has `max_tokens`."
        "add max_tokens: how many tokens the answer may have"
        "sdk:anthropic MessageCreateParams"
}
