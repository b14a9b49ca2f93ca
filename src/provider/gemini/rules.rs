//! The rules of the wire. None was tried against the live API: they are documentation, the official types, and reports.

use crate::provider::check::rule::rules;

rules! {
    /// When Gemini refuses a request, or takes it with a loss.
    GM_01 "GM-01" Hard
        "The request is an object with a non-empty `contents` array."
        "send an object whose `contents` holds at least one content"
        "gh:vercel/ai#3775"
    GM_02 "GM-02" Hard
        "`tools` is an array; one tool by itself is soft. A parameter that the rules do not know is unknown."
        "send the tools in an array; leave out parameters of other servers"
        "gh:gera2ld/ai.nvim#13; one by itself is accepted, recorded: pydantic-ai test_multiple_agent_tool_calls"
    GM_03 "GM-03" Hard
        "The role of a content is user or model; function passes for function responses. No role at all is soft."
        "give the content one of these roles; the assistant's is model, and what the system says goes to \
         `systemInstruction`"
        "gh:the-open-agent/openagent#1666; gh:router-for-me/CLIProxyAPI#17"
    GM_04 "GM-04" Hard
        "The parts of a content are an array that is not empty."
        "leave the content out, or give it a part"
        "gh:vercel/ai#3775; gh:langgenius/dify#30566"
    GM_05 "GM-05" Hard
        "A part sets exactly one of text, inlineData, fileData, functionCall, functionResponse, executableCode, \
         codeExecutionResult, toolCall, toolResponse. One that only carries a signature is soft; one that carries none of \
         them, but other fields, is unknown."
        "split the part, or leave an empty one out"
        "gh:router-for-me/CLIProxyAPI#1293; gh:54xzh/FLIT#69; sdk:google-genai Part; videoMetadata alone is accepted, \
         recorded: pydantic-ai test_google_model_video_as_binary_content_input_with_vendor_metadata"
    GM_06 "GM-06" Soft
        "Text is not empty, unless the part carries a thoughtSignature, and not of white space only."
        "leave the part out"
        "gh:PublicAffairs/openai-gemini#37; ai.google.dev thought-signatures (empty text with a signature); accepted, \
         recorded: pydantic-ai test_google_model_empty_user_prompt, test_google_model_empty_assistant_response"
    GM_07 "GM-07" Hard
        "A turn with a functionCall comes right after a user turn or a turn of function responses. Contents of the model in \
         a row are one turn."
        "begin at a user turn"
        "gh:google-gemini/gemini-cli#11814; gh:google-gemini/gemini-cli#26486; recorded: pydantic-ai \
         test_cross_provider_capability_replay (calls in two contents, answered in one)"
    GM_08 "GM-08" Hard
        "The next content has as many functionResponse parts as the turn has functionCall parts. Soft if they are in several \
         contents in a row."
        "answer each call with one functionResponse, all in the content after it; where a result was lost, add one \
         that states that"
        "gh:microsoft/vscode#299295; several contents in a row were accepted in a recording of 2026"
    GM_09 "GM-09" Hard
        "A turn of function responses comes right after the turn with their calls, or after more of their responses."
        "move the functionResponse directly after its call, or leave it out"
        "gh:langchain-ai/langchain#27799; gh:google-gemini/gemini-cli#26956"
    GM_10 "GM-10" Hard
        "The names of functionCall and functionResponse are not empty."
        "give the function's name; a response bears the name of its call"
        "gh:xinnan-tech/xiaozhi-esp32-server#3287"
    GM_11 "GM-11" Soft
        "The names of function responses, and their ids if given, are those of the calls, in their order."
        "sort the responses as the calls; they are matched by name and position"
        "sdk:google-genai FunctionResponse"
    GM_12 "GM-12" Soft
        "The conversation ends with a user turn; hard with a call that is not answered, and after Gemini 3.1."
        "append the results of the calls, or the user's next message"
        "gh:pipecat-ai/pipecat#5821; gh:songquanpeng/one-api#836 (Gemini 1.0)"
    GM_13 "GM-13" Soft
        "The first content is a user turn."
        "begin at a user turn"
        "gh:microsoft/semantic-kernel#13288"
    GM_14 "GM-14" Soft
        "User and model alternate. Two in a row are accepted today; older models refused them."
        "merge the contents of one role in a row into one"
        "gh:google/adk-go#1302 (not a rule of the API); gh:Portkey-AI/gateway#258"
    GM_15 "GM-15" Hard
        "functionCall.args and functionResponse.response are objects, never a list, a string or a number. A response that \
         is missing is soft."
        "wrap the value into an object: {\"result\": ...}"
        "gh:symfony/ai#2040; gh:decolua/9router#3318; gh:microsoft/vscode-copilot-chat#2745"
    GM_16 "GM-16" Hard
        "The name of a declared function begins with a letter or `_`, then letters, digits, `_ . : -`, 64 in all; up to \
         128 is soft. Other names in calls and responses are soft."
        "rename the function, in its declaration and in the calls alike"
        "gh:google-gemini/gemini-cli#2966; gh:kaitranntt/ccs#25; sdk:google-genai FunctionDeclaration.name (128)"
    GM_17 "GM-17" Hard
        "From Gemini 3 on, the first functionCall of each step of the current turn has a thoughtSignature; soft when the \
         model is not known. The turn begins at the last user content that is not function responses."
        "send back the signature that came with the call; for calls of other models the documented dummy \
         skip_thought_signature_validator"
        "ai.google.dev thought-signatures; gh:lbjlaq/Antigravity-Manager#139"
    GM_18 "GM-18" Hard
        "A thoughtSignature is base64. Whether it is a genuine one cannot be seen in the text."
        "send the signature as it came, or leave it out"
        "gh:earendil-works/pi#471; sdk:google-genai Part.thought_signature"
    GM_19 "GM-19" Hard
        "inlineData has a supported mimeType, and base64 data without a data: prefix; image/jpg and image/svg+xml are \
         refused. A type that only some models take is soft."
        "convert the data, or name its type as the documentation does (image/jpeg)"
        "gh:google/adk-python#5693; gh:brianpetro/obsidian-smart-connections#1238; gh:charmbracelet/crush#995"
    GM_20 "GM-20" Hard
        "fileData has a fileUri."
        "add the file's URI, or send the data inline"
        "sdk:google-genai FileData"
    GM_21 "GM-21" Soft
        "A request with inline data stays below 20 MB."
        "leave the oldest images out, or upload them as files"
        "from memory of the documentation; raised for some models in 2026"
    GM_22 "GM-22" Unknown
        "No fields in contents and parts that the official type does not have; camelCase and snake_case both pass."
        "leave the field out"
        "gh:gera2ld/ai.nvim#13"
    GM_23 "GM-23" Reported
        "functionCall is in model turns, functionResponse in user turns."
        "move the part into a content of the other role"
        "thin: follows from GM-07 and GM-09"
    GM_24 "GM-24" Soft
        "A turn of function responses has no other parts."
        "move the other parts into a user content after it"
        "gh:54xzh/FLIT#69"
    GM_25 "GM-25" Hard
        "systemInstruction is a content with parts of text, none of them empty; not a string."
        "send {\"parts\": [{\"text\": ...}]}"
        "sdk:google-genai Content"
    GM_26 "GM-26" Soft
        "A part that is a thought bears its signature; without it the thought is ignored."
        "leave the thought out"
        "ai.google.dev thought-signatures"
    GM_27 "GM-27" Hard
        "No lone surrogates in any string."
        "replace the half character by U+FFFD"
        "gh:anthropics/claude-code#60394 (there on another API; the same failure for every JSON API)"
    GM_28 "GM-28" Hard
        "The content fits the official type."
        "give the field a value of that type"
        "sdk:google-genai Content"
    GM_29 "GM-29" Soft
        "Only parts of the model bear a thoughtSignature."
        "leave the signature out"
        "ai.google.dev thought-signatures"
}
