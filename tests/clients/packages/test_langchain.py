"""`ChatMessageHistory`: random operations beside LangChain's own, and chains, streamed or not, over a kill of the server."""

import asyncio
import os
import random
import warnings

import pytest
from conversation_store import Client, NotPermitted
from conversation_store.langchain import ChatMessageHistory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

OPERATIONS = int(os.environ.get("OPERATIONS", "300"))
USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "input_token_details": {"cache_read": 4},
    "output_token_details": {"reasoning": 2},
}

MESSAGES = [
    lambda: SystemMessage("be brief"),
    lambda: HumanMessage("hello", name="ada"),
    lambda: HumanMessage(["a", {"type": "text", "text": "b"}]),
    lambda: HumanMessage(
        [
            {"type": "image_url", "image_url": {"url": "https://e.x/a.png"}},
            {"type": "image", "url": "https://e.x/b.png"},
            {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
            {"type": "file", "base64": "aGk=", "mime_type": "application/pdf"},
            {"type": "audio", "base64": "aGk=", "mime_type": "audio/wav"},
            {"type": "file", "file_id": "f"},
            {"type": "new", "x": None},
        ]
    ),
    lambda: AIMessage(
        "4\ud83d2", usage_metadata=USAGE, response_metadata={"model_name": "m-1", "finish_reason": "stop", "logprobs": None}
    ),
    lambda: AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "I look"},
            {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}},
        ],
        tool_calls=[{"id": "call_1", "name": "f", "args": {"a": 1}}],
        response_metadata={"model_provider": "anthropic"},
    ),
    lambda: AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]),
    lambda: AIMessage(
        "",
        tool_calls=[{"id": "call_1", "name": "f", "args": {"b": 1, "a": [1.5, None]}}, {"id": None, "name": "g", "args": {}}],
        invalid_tool_calls=[{"id": "call_2", "name": "f", "args": "{", "error": None}],
    ),
    lambda: ToolMessage("42", tool_call_id="call_1", name="f", artifact={"rows": [1, 2]}),
    lambda: ToolMessage([{"type": "text", "text": "x"}, {"type": "new", "y": 1}, "z"], tool_call_id="call_1", status="error"),
    lambda: FunctionMessage("42", name="f"),
    lambda: ChatMessage("as another", role="critic"),
    lambda: RemoveMessage(id="r"),
]


def test_random_operations_are_the_same_as_in_memory(client):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = InMemoryChatMessageHistory()
    for at in range(OPERATIONS):
        # Another process each time.
        ours = ChatMessageHistory(f"langchain/{seed}", client)
        match chance.choices(["add", "add later", "read", "read later", "clear"], [6, 3, 4, 2, 1 if at % 9 == 0 else 0])[0]:
            case "add" | "add later" as how:
                messages = [chance.choice(MESSAGES)() for _ in range(chance.randrange(4))]
                for number, message in enumerate(messages):
                    if message.id or chance.random() < 0.5:
                        message.id = f"{at}-{number}"
                theirs.add_messages(messages)
                if how == "add":
                    ours.add_messages(messages)
                else:
                    asyncio.run(ours.aadd_messages(messages))
            case "read":
                assert ours.messages == theirs.messages
            case "read later":
                assert asyncio.run(ours.aget_messages()) == theirs.messages
            case "clear":
                theirs.clear()
                ours.clear()


def test_a_message_with_an_id_is_stored_once(client, name):
    history = ChatMessageHistory(name, client)
    answer = AIMessage("so", id="run-1")
    history.add_messages([HumanMessage("x"), answer])
    history.add_messages([answer, HumanMessage("x"), AIMessage("other", id="run-1")])
    assert [message.content for message in history.messages] == ["x", "so", "x", "other"]


def test_messages_are_read_by_people_and_rendered(client, name):
    history = ChatMessageHistory(name, client)
    history.add_messages([make() for make in MESSAGES])
    kinds = [(message["role"], *[chunk["type"] for chunk in message["chunks"]]) for message in client.messages(name)]
    assert kinds[3:9] == [
        ("user", "image", "image", "image", "file", "audio", "opaque", "opaque"),
        ("assistant", "text"),
        ("assistant", "thinking", "text", "tool_call"),
        ("assistant", "thinking", "tool_call"),
        ("assistant", "tool_call", "tool_call", "tool_call"),
        ("tool", "tool_result"),
    ]
    conversation = client.describe(name)["conversation"]
    rows = [row for row in client.usage(by=["model", "conversation"]) if row["conversation"] == conversation and row["answers"]]
    found = [(row["model"], row["answers"], row["input"], row["cached"], row["output"], row["reasoning"]) for row in rows]
    assert found == [("m-1", 1, 10, 4, 5, 2)]
    for target in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        request = client.prompt(name, target, model="m")["request"]
        assert client.check(target, {"max_tokens": 9, **request} if target == "anthropic" else request)["accepted"], request


def test_what_others_wrote_is_read_from_its_chunks(client, name):
    image = {"type": "image", "url": "https://e.x/a.png"}
    call = {"type": "tool_call", "id": "call_1", "name": "f", "arguments": '{"a": 1}'}
    client.append(
        name,
        [
            {"role": "system", "chunks": [{"type": "text", "text": "be brief"}]},
            {"role": "user", "id": "u", "chunks": [{"type": "text", "text": "look"}, image]},
            {"role": "assistant", "chunks": [{"type": "thinking", "text": "hm"}, call, {**call, "id": "call_2", "arguments": "{"}]},
            {
                "role": "tool",
                "chunks": [
                    {"type": "tool_result", "tool_call_id": "call_1", "content": "42"},
                    {
                        "type": "tool_result",
                        "tool_call_id": "call_2",
                        "content": [{"type": "json", "json": {"b": 1}}],
                        "is_error": True,
                    },
                ],
            },
            {"role": "assistant", "chunks": [{"type": "text", "text": "so"}]},
        ],
    )
    assert ChatMessageHistory(name, client).messages == [
        SystemMessage("be brief"),
        HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://e.x/a.png"}}], id="u"),
        AIMessage(
            [{"type": "reasoning", "reasoning": "hm"}],
            tool_calls=[{"id": "call_1", "name": "f", "args": {"a": 1}}],
            invalid_tool_calls=[{"id": "call_2", "name": "f", "args": "{", "error": None}],
        ),
        ToolMessage("42", tool_call_id="call_1"),
        ToolMessage([{"type": "text", "text": '{"b": 1}'}], tool_call_id="call_2", status="error"),
        AIMessage("so"),
    ]


@pytest.fixture
def with_history(server, page, monkeypatch):
    monkeypatch.setenv("CONVO_URL", server.address)
    monkeypatch.setenv("CONVO_KEY", server.secrets["ada"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield page("langchain").with_history


def test_a_chain_is_stored_however_it_is_called_and_over_a_kill(server, with_history, name):
    model = GenericFakeChatModel(
        messages=iter([AIMessage("one two"), AIMessage("three four"), AIMessage("five six"), AIMessage("seven")])
    )
    prompt = ChatPromptTemplate.from_messages([("system", "be brief"), MessagesPlaceholder("history"), ("human", "{input}")])
    seen = []
    chain = with_history(prompt | (lambda value: seen.append(value.to_messages()) or value) | model)
    config = {"configurable": {"session_id": name}}
    assert chain.invoke({"input": "a"}, config).content == "one two"
    assert len(list(chain.stream({"input": "b"}, config))) > 1
    address = server.address
    server.kill()
    server.start(address.rpartition(":")[2])

    async def streamed():
        return [piece async for piece in chain.astream({"input": "c"}, config)]

    assert all(isinstance(piece, AIMessageChunk) for piece in asyncio.run(streamed()))
    asyncio.run(chain.ainvoke({"input": "d"}, config))
    assert [message.content for message in seen[3]] == ["be brief", "a", "one two", "b", "three four", "c", "five six", "d"]
    with Client(server.address, server.secrets["ada"]) as client:
        history = ChatMessageHistory(name, client)
        assert [type(message) for message in history.messages] == [HumanMessage, AIMessage] * 4
        assert history.messages[-1].content == "seven"
    with Client(server.address, server.secrets["grace"]) as client:
        assert ChatMessageHistory(name, client).messages == []
    with Client(server.address, "wrong") as client, pytest.raises(NotPermitted):
        ChatMessageHistory(name, client).messages
