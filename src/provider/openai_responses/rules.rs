//! The rules of the wire. None was tried against the live API: they are documentation, the official types, and reports.

use crate::provider::check::rule::rules;

rules! {
    /// When OpenAI refuses a request for a response, or takes it with a loss.
    OR_01 "OR-01" Hard
        "The request is an object whose `input` is a string or an array, not empty unless previous_response_id, \
         conversation or prompt is given. An empty string is soft."
        "send at least one item, or name the response that is continued"
        "sdk:openai ResponseCreateParams"
    OR_02 "OR-02" Hard
        "`tools` is an array. A parameter that the rules do not know is unknown."
        "leave the parameter out"
        "gh:spring-projects/spring-ai#5197"
    OR_03 "OR-03" Hard
        "An item is an object with a type, or a message of the role user, assistant, system or developer; a message may \
         leave its type out. There is no role `tool`. A type that the rules do not know is unknown."
        "send a tool's result as function_call_output, other things as one of the known items"
        "gh:Chevey339/kelivo#281"
    OR_04 "OR-04" Hard
        "Every call that the caller answers (of a function, custom tool, shell, patch or computer) has, later in the \
         input, an output item with its call_id."
        "add the output after the call; where it was lost, add an output that states that"
        "gh:lace-ai/gai#49"
    OR_05 "OR-05" Hard
        "Every output item has an earlier call item of its kind with that call_id, unless previous_response_id, \
         conversation or prompt is given."
        "move the output after its call, or leave it out"
        "gh:james-6-23/codex2api#414; gh:continuedev/continue#11785; a function_call_output may answer a tool_search_call, \
         recorded: pydantic-ai test_tool_availability_portability_matrix"
    OR_06 "OR-06" Hard
        "The ids of items are unique."
        "leave the id out of all but one of them, or send the item once"
        "gh:vercel/ai#13307"
    OR_07 "OR-07" Soft
        "A call_id is used by one call and one output only."
        "give each call of the conversation a call_id of its own, and the same to its output"
        "thin: gh:vercel/ai#13307; gh:openclaw/openclaw#40996; seen refused for item ids only"
    OR_08 "OR-08" Hard
        "A reasoning item with the server's id is directly followed by the item it belongs to: a message of the model with \
         its id, a call of the model, or more reasoning. Without an id it is soft, and so is a message without one where \
         store is false."
        "leave the reasoning item out, or put back what the model said after it"
        "gh:openai/openai-node#1567; gh:continuedev/continue#8933; gh:mastra-ai/mastra#14048; \
         recorded: pydantic-ai test_openai_responses_thinking_with_modified_history"
    OR_09 "OR-09" Soft
        "An item of the model that bears its server's id (fc_, msg_) keeps the reasoning item before it. Reported where other \
         turns of the input have reasoning."
        "send the reasoning item before it, or leave the item's id out"
        "gh:mastra-ai/mastra#8738; gh:VRSEN/agency-swarm#367; gh:continuedev/continue#10018"
    OR_10 "OR-10" Hard
        "Ids begin with the prefix of their type: msg for messages, fc for function calls, rs for reasoning."
        "leave the id out: only ids from this provider are valid"
        "gh:jlcodes99/cockpit-tools#2090; gh:openai/codex#33176; gh:continuedev/continue#11785"
    OR_11 "OR-11" Soft
        "Ids of other items begin with the prefix of their type: ctc, ws, fs, cu, ci, ig, lsh, mcp, cmp."
        "leave the id out: only ids from this provider are valid"
        "by analogy with OR-10"
    OR_12 "OR-12" Hard
        "The id of an item is 1 to 64 of `a-z A-Z 0-9 _ -`."
        "leave the id out"
        "gh:langchain-ai/langchainjs#11044; 64: by analogy with OR-13"
    OR_13 "OR-13" Hard
        "A call_id has 1 to 64 characters, of any kind."
        "map the call_id to a shorter one, in the call and in its output alike"
        "gh:AnswerDotAI/fastllm#45; gh:orchidfiles/ungate#41"
    OR_14 "OR-14" Hard
        "The arguments of a function call and the input of a custom tool's call are strings."
        "send them as JSON text in a string"
        "sdk:openai ResponseFunctionToolCallParam"
    OR_15 "OR-15" Soft
        "The arguments of a function call are the JSON text of an object."
        "repair the arguments to the JSON text of an object, `{}` if nothing can be saved"
        "gh:langchain-ai/langchain#35997"
    OR_16 "OR-16" Hard
        "The name of a function, in calls and in definitions, is 1 to 128 of `a-z A-Z 0-9 _ -`; of 65 or more in a \
         definition: soft."
        "rename the function, in its definition and in the calls alike"
        "gh:mcp-use/mcp-use#90; gh:diegosouzapw/OmniRoute#4317 (128)"
    OR_17 "OR-17" Hard
        "Parts of user, system and developer messages, and of outputs, are input_text, input_image or input_file; those \
         of assistant messages output_text or refusal. Other types are unknown."
        "give the part the type of its side: input_ for what is sent, output_ for what the model said"
        "gh:jeremychone/rust-genai#119; gh:tinyhumansai/openhuman#3624; gh:MervinPraison/PraisonAI#3934"
    OR_18 "OR-18" Hard
        "A message has content: a string or an array of parts, not null."
        "give the message text, or leave it out"
        "sdk:openai EasyInputMessageParam"
    OR_19 "OR-19" Hard
        "A reasoning item has a summary array, which may be empty."
        "add an empty summary array"
        "sdk:openai ResponseReasoningItemParam; gh:openclaw/openclaw#84904"
    OR_20 "OR-20" Hard
        "A reasoning item has no `content`, or an empty one; soft when the model is not known, or another maker's."
        "leave the content out; other servers' reasoning cannot be sent here"
        "gh:musistudio/claude-code-router#1783; gh:querymt/querymt#976; recorded: pydantic-ai test_deepseek_responses"
    OR_21 "OR-21" Hard
        "With store false, a reasoning item has encrypted_content; soft when store is not false."
        "ask for reasoning.encrypted_content when responses are made, or leave the reasoning item out"
        "gh:vercel/ai#7543; gh:langchain-ai/langchain#38372"
    OR_22 "OR-22" Hard
        "With store false there is no item_reference. Else it is soft: whether its id exists cannot be seen in the text."
        "send the item itself"
        "gh:smixs/iva-agent#19; gh:Kilo-Org/kilocode#10197"
    OR_23 "OR-23" Hard
        "input_image has file_id or image_url: a string, http(s) or a base64 data URL of type image/png, image/jpeg, \
         image/gif or image/webp."
        "send image_url as a string: https://... or data:image/png;base64,...; convert other formats first"
        "sdk:openai ResponseInputImageParam; gh:openclaw/openclaw#102354"
    OR_24 "OR-24" Hard
        "input_file has file_id, file_url or file_data."
        "add the file's id, its URL, or its data"
        "sdk:openai ResponseInputFileParam"
    OR_25 "OR-25" Unknown
        "No keys in an item that the official type does not have."
        "leave the key out"
        "gh:microsoft/agent-framework#2203"
    OR_26 "OR-26" Hard
        "The output of an output item is a string of at most 10,485,760 characters, or an array of input_ parts; not null."
        "send the result as a string, an empty one if there is none"
        "sdk:openai FunctionCallOutput"
    OR_27 "OR-27" Soft
        "annotations, detail, status, id, type and logprobs are there where the official type requires them. The API does \
         without."
        "nothing need be done; a strict client may want the field"
        "gh:NousResearch/hermes-agent#10217; gh:Arize-ai/openinference#1698"
    OR_28 "OR-28" Hard
        "No lone surrogates in any string."
        "replace the half character by U+FFFD"
        "gh:anthropics/claude-code#60394 (there on another API; the same failure for every JSON API)"
    OR_29 "OR-29" Hard
        "The item fits the official type: required keys and types. Other values than its literals are unknown."
        "give the field a value of that type"
        "sdk:openai ResponseInputItemParam"
    OR_30 "OR-30" Soft
        "A content array is not empty."
        "leave the message out, or give it a part"
        "prudence"
    OR_31 "OR-31" Soft
        "encrypted_content is opaque, and bound to the organisation and the model that made it. It cannot be judged from \
         the text."
        "leave the reasoning of other organisations and models out"
        "gh:epam/ai-dial-core#1997"
    OR_32 "OR-32" Hard
        "temperature is 0 to 2, top_p 0 to 1."
        "set the parameter within the range"
        "API reference, \"Create a model response\"; recorded: pydantic-ai test_openai_responses_model_http_error"
}
