//! The rules of the wire: documentation, the official types, reports, and requests that were recorded.

use crate::provider::check::rule::rules;

rules! {
    /// When Converse refuses a request, or takes it with a loss.
    BC_01 "BC-01" Hard
        "The request is an object whose `messages` is an array that is not empty."
        "send at least one message"
        "sdk:botocore bedrock-runtime Converse"
    BC_02 "BC-02" Soft
        "Top-level fields are those of the official type. Others are not known here."
        "leave the field out, or put what only the model knows into `additionalModelRequestFields`"
        "sdk:botocore bedrock-runtime Converse"
    BC_03 "BC-03" Hard
        "A message is an object of the role user or assistant. Another role is soft: newer models take system."
        "give the message one of these roles; a tool's result is a toolResult block in a user message"
        "sdk:botocore bedrock-runtime ConversationRole; docs.aws.amazon.com API_runtime_Message"
    BC_04 "BC-04" Hard
        "The content of a message is an array of blocks that is not empty."
        "leave the message out, or give it text"
        "gh:archestra-ai/archestra#4220"
    BC_05 "BC-05" Hard
        "The first message is a user message."
        "begin at a user message"
        "gh:NousResearch/hermes-agent#63983"
    BC_06 "BC-06" Hard
        "User and assistant messages alternate."
        "merge messages of one role in a row into one"
        "gh:ankit373/hydra#964"
    BC_07 "BC-07" Soft
        "The last message is a user message. Some models go on with the assistant's words; others refuse them."
        "append the user's next message"
        "gh:NousResearch/hermes-agent#63983"
    BC_08 "BC-08" Hard
        "Text is not empty. Text of white space only is soft: it was recorded as accepted beside other text, and refused \
         elsewhere."
        "leave the block out"
        "gh:aws-samples/bedrock-engineer#8; gh:langchain-ai/langchainjs#8618; gh:NousResearch/hermes-agent#63983"
    BC_09 "BC-09" Hard
        "Each toolUse is answered by a toolResult of its id in the next message."
        "answer each call in the user message directly after it; where a result was lost, add one that states that"
        "gh:camel-ai/camel#3954; gh:langchain-ai/langchain-aws#451"
    BC_10 "BC-10" Hard
        "Each toolResult answers a toolUse of the message directly before it."
        "move the toolResult directly after its call, or leave it out"
        "gh:strands-agents/harness-sdk#1435"
    BC_11 "BC-11" Hard
        "The ids of the toolUse blocks of a message are unique, and so are those of its toolResult blocks."
        "map repeated ids, in call and result alike; answer each call once"
        "thin: from memory of the error"
    BC_12 "BC-12" Hard
        "A tool id is 1 to 64 of `a-z A-Z 0-9 _ . : -`."
        "map the id to one that fits, in call and result alike"
        "sdk:botocore bedrock-runtime ToolUseId; gh:run-llama/llama_index#22775"
    BC_13 "BC-13" Hard
        "A tool's name is 1 to 64 of `a-z A-Z 0-9 _ -`."
        "rename the tool, in its declaration and in its calls alike"
        "sdk:botocore bedrock-runtime ToolName; gh:anthropics/claude-code#5132"
    BC_14 "BC-14" Hard
        "`toolConfig` with at least one tool is there when toolUse or toolResult occurs."
        "declare the tools again, or stubs of them"
        "gh:vxcontrol/pentagi#196; gh:patriceckhart/zot#18; gh:langgenius/dify#17545"
    BC_15 "BC-15" Hard
        "The input of a toolUse is an object. Another value is soft: its type allows any."
        "wrap the value into an object"
        "sdk:botocore bedrock-runtime ToolUseBlock"
    BC_16 "BC-16" Hard
        "toolUse and reasoningContent are in assistant messages, toolResult, image, document and video in user messages."
        "move the block into a message of the other role"
        "docs.aws.amazon.com API_runtime_Message; gh:run-llama/llama_index#18449"
    BC_17 "BC-17" Hard
        "The content of a toolResult of the status error is not empty."
        "say what failed"
        "gh:aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15"
    BC_18 "BC-18" Hard
        "A message with a document has a text block, too."
        "add a text, for example what is to be done with the document"
        "gh:archestra-ai/archestra#4220; docs.aws.amazon.com API_runtime_Message"
    BC_19 "BC-19" Hard
        "The names of documents are unique in a request, of 1 to 200 letters, digits, single spaces, hyphens, parentheses \
         and brackets."
        "rename the document"
        "gh:aws-samples/generative-ai-use-cases#1685; gh:maximhq/bifrost#7003; docs.aws.amazon.com DocumentBlock"
    BC_20 "BC-20" Hard
        "No lone surrogates in any string."
        "replace the half character by U+FFFD"
        "gh:anthropics/claude-code#60394 (there on another API; the same failure for every JSON API)"
    BC_21 "BC-21" Hard
        "A request has at most 5 documents."
        "leave the oldest documents out, or give their text"
        "gh:aws-samples/generative-ai-use-cases#1685; docs.aws.amazon.com API_runtime_Message"
    BC_22 "BC-22" Soft
        "A message has at most 20 images."
        "leave the oldest images out"
        "docs.aws.amazon.com API_runtime_Message"
    BC_23 "BC-23" Hard
        "Reasoning has the signature that Claude gave it; soft where the model is another, or not known."
        "send the signature as it came, or leave the reasoning out"
        "docs.aws.amazon.com ReasoningTextBlock (include the signature and all previous messages)"
    BC_24 "BC-24" Hard
        "Blocks fit the official type: one kind of content each, required fields, types."
        "give the field a value of that type"
        "sdk:botocore bedrock-runtime ContentBlock"
    BC_25 "BC-25" Soft
        "Kinds of blocks and fields are those of the official type. Others are not known here."
        "leave it out if the model refuses it"
        "sdk:botocore bedrock-runtime ContentBlock"
    BC_26 "BC-26" Hard
        "Bytes are base64; an image is a png, jpeg, gif or webp."
        "send the bytes as base64, without the head of a data URL"
        "sdk:botocore bedrock-runtime ImageBlock"
    BC_27 "BC-27" Soft
        "toolResult blocks come before other blocks of their message."
        "move the toolResult blocks to the front"
        "gh:langchain-ai/langchain-aws#451 (at the beginning of this message)"
}
