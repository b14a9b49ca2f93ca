//! The rules of the wire: documentation, the official types, reports, and recordings of what servers took.

use crate::provider::check::rule::rules;

rules! {
    /// When OpenAI refuses a request, or takes it with a loss.
    OC_01 "OC-01" Hard
        "The request is an object with a non-empty `messages` array."
        "send an object whose `messages` holds at least one message"
        "gh:CopilotKit/CopilotKit#529"
    OC_02 "OC-02" Reported
        "No `extra_body`, and `tools` is an array. Parameters of known servers, such as `thinking`, are soft; others that \
         the rules do not know are unknown."
        "leave the parameter out, or send it only to the server that knows it"
        "gh:spring-projects/spring-ai#5197"
    OC_03 "OC-03" Hard
        "Every message is an object whose role is system, developer, user, assistant, tool or (legacy) function."
        "give the message one of these roles"
        "sdk:openai ChatCompletionMessageParam"
    OC_04 "OC-04" Hard
        "Content of system, developer, user and tool messages is a string or an array of parts; never null, an object \
         or absent."
        "send the text as a string; a tool without output gets an empty one"
        "gh:openai/openai-cookbook#503; gh:microsoft/autogen#5699; gh:coze-dev/coze-studio#2317"
    OC_05 "OC-05" Hard
        "Assistant content may be null or absent only beside tool_calls, function_call, audio or a refusal."
        "leave the message out, or give it text"
        "sdk:openai (Required unless tool_calls or function_call); gh:vercel/ai#13744"
    OC_06 "OC-06" Reported
        "A content array is not empty."
        "leave the message out, or give it a part"
        "thin: by analogy with gh:openai/openai-node#1341"
    OC_07 "OC-07" Hard
        "Each assistant message with tool_calls is followed at once by one tool message for each id: no other message \
         comes before the last of them, and the conversation does not end before it."
        "answer each call with one tool message directly after it, before any other message; where a result was lost, \
         add one that states that"
        "gh:BerriAI/litellm#10083; gh:agno-agi/agno#3105; gh:mozilla-ai/any-llm#1312"
    OC_08 "OC-08" Hard
        "A tool message answers a call of the assistant message that opens its run, and bears its id."
        "move the tool message directly after the assistant message with its call, or leave it out"
        "gh:XSpoonAi/spoon-core#267; gh:earendil-works/pi#5884"
    OC_09 "OC-09" Hard
        "One tool message for each tool_call_id of a run."
        "keep one tool message for the call and leave the others out"
        "gh:agno-agi/agno#5116"
    OC_10 "OC-10" Hard
        "Ids within the tool_calls of one message are distinct."
        "give each call an id of its own, and the same id to its tool message"
        "follows from OC-07 and OC-09; gh:openclaw/openclaw#47136; gh:can1357/oh-my-pi#2055"
    OC_11 "OC-11" Soft
        "Ids are not used again by a later assistant message."
        "give each call of the conversation an id of its own; some servers pair by id alone"
        "gh:NousResearch/hermes-agent#11722; gh:openclaw/openclaw#40996"
    OC_12 "OC-12" Hard
        "`tool_calls`, if present, is an array of 1 to 128 objects; never null or empty."
        "leave `tool_calls` out of a message without calls, and send at most 128 in one"
        "gh:openai/openai-node#1341; gh:openai/openai-python#2061; 128: from memory, gh:home-assistant/core#118577"
    OC_13 "OC-13" Hard
        "The id of a call is a non-empty string of at most 40 characters, and so is tool_call_id. A longer one is `hard?`."
        "map the id to a shorter one, in the call and in its tool message alike"
        "gh:vercel/ai#8132 (by 2026-07 longer ids passed there); gh:microsoft/autogen#6377; gh:BerriAI/litellm#17343"
    OC_14 "OC-14" Hard
        "The name of a function, in calls and in definitions, is 1 to 64 of `a-z A-Z 0-9 _ -`."
        "rename the function, in its definition and in the calls alike"
        "gh:mcp-use/mcp-use#90; sdk:openai FunctionDefinition.name"
    OC_15 "OC-15" Hard
        "`function.arguments` is a string, never an object."
        "send the arguments as JSON text in a string"
        "gh:aaif-goose/goose-mobile#20"
    OC_16 "OC-16" Soft
        "`function.arguments` is the JSON text of an object. OpenAI does not parse it; vLLM, Bedrock, Databricks and \
         Gemini translations do."
        "repair the arguments to the JSON text of an object, `{}` if nothing can be saved"
        "sdk:openai (does not always generate valid JSON); gh:langchain-ai/langchain#35997"
    OC_17 "OC-17" Hard
        "A tool call has the type function, with function{name, arguments}, or custom, with custom{name, input}."
        "give the call its type and the object of that name"
        "sdk:openai ChatCompletionMessageToolCallUnionParam"
    OC_18 "OC-18" Hard
        "A tool message has a non-empty tool_call_id."
        "give the tool message the id of the call it answers"
        "gh:XSpoonAi/spoon-core#267; sdk:openai ChatCompletionToolMessageParam"
    OC_19 "OC-19" Hard
        "Image parts are in user messages only."
        "move the image into a user message after the tool messages of the run"
        "gh:OpenHands/OpenHands#7700; gh:openai/openai-node#1030; gh:openai/openai-openapi#523 (the newest models take \
         them, but cannot see them)"
    OC_20 "OC-20" Hard
        "Types of parts by role: user text, image_url, input_audio, file; assistant text, refusal; others text. Other types \
         are unknown."
        "change the part to one of these types, or leave it out"
        "sdk:openai ChatCompletionContentPartParam; gh:QwenLM/qwen-code#1888"
    OC_21 "OC-21" Hard
        "image_url is an object whose url is http(s), or a base64 data URL of type image/png, image/jpeg, image/gif or \
         image/webp."
        "send {url: http(s) or data:image/png;base64,...}; convert other formats first"
        "gh:langgenius/dify#11527; gh:vercel/ai#1544; gh:openclaw/openclaw#102354"
    OC_22 "OC-22" Reported
        "The base64 of images and audio decodes: standard alphabet, padded, no line breaks."
        "encode the bytes again, or leave the part out"
        "thin: sdk:openai ImageURL.url; not seen in reports"
    OC_23 "OC-23" Hard
        "The `name` of a message has 1 to 64 characters, none of them white space or one of `< \\ / >` or a vertical \
         bar."
        "leave the name out, or replace these characters by `_`"
        "gh:microsoft/autogen#4157; gh:FlowiseAI/Flowise#2948 (the newer, wider pattern: from memory)"
    OC_24 "OC-24" Soft
        "The `name` of a message is 1 to 64 of `a-z A-Z 0-9 _ -`, the older pattern."
        "replace other characters by `_`; some servers still ask for it"
        "gh:yGuy/chatgpt-mattermost-bot#46; gh:microsoft/autogen#4157"
    OC_25 "OC-25" Unknown
        "No message fields that the official type does not have, such as reasoning_content or id."
        "leave the field out, or send it only to the server that knows it"
        "gh:adamrushy/OpenAISwift#99; gh:vllm-project/vllm#10463"
    OC_26 "OC-26" Soft
        "The role function and function_call are deprecated; a function message answers the function_call before it, \
         by name. Without any such call it is refused."
        "use tool_calls and tool messages"
        "sdk:openai (Deprecated)"
    OC_27 "OC-27" Soft
        "Tool messages come in the order of the calls."
        "sort the tool messages of the run; some servers match them by position"
        "prudence; gh:google/adk-python#417"
    OC_28 "OC-28" Soft
        "Text is not empty and not only white space. OpenAI takes it; Anthropic through a proxy, Bedrock and Moonshot do \
         not."
        "leave the text out, or say in words that there is none"
        "gh:NousResearch/hermes-agent#11929; gh:BiFangKNT/mtga#68"
    OC_29 "OC-29" Soft
        "The conversation ends with a user or tool message."
        "append the user's next message; few servers continue an assistant message"
        "gh:aj47/SpeakMCP#1037"
    OC_30 "OC-30" Soft
        "Assistant content holds text parts, or exactly one refusal part."
        "send the refusal in a message of its own"
        "sdk:openai, in words only"
    OC_31 "OC-31" Reported
        "A file part has file_id, or file_data with filename."
        "add the file's id, or its data and its name"
        "thin: sdk:openai FileFile"
    OC_32 "OC-32" Hard
        "No lone surrogates in any string."
        "replace the half character by U+FFFD"
        "gh:anthropics/claude-code#60394 (there on another API; the same failure for every JSON API)"
    OC_33 "OC-33" Soft
        "A string has at most 10,485,760 characters, a request at most 2,048 messages."
        "shorten the text, or begin at a later message"
        "from memory; no report found for 2,048"
    OC_34 "OC-34" Hard
        "The message fits the official type: required keys and types. Other values than its literals are unknown."
        "give the field a value of that type"
        "sdk:openai ChatCompletionMessageParam"
    OC_35 "OC-35" Soft
        "No system or developer message after the first other one."
        "move it to the front, or send it as a user message; chat templates of open models refuse it"
        "gh:suitenumerique/conversations#197"
}
