"""`History` of pydantic-ai: what is saved comes back equal, is read by people, and goes on in the next turn."""

import asyncio
import os
import random
from datetime import datetime, timezone

from conversation_store import AsyncClient
from conversation_store.pydantic_ai import AsyncHistory, History
from pydantic_ai import Agent, BinaryContent, DocumentUrl, ImageUrl, ModelRetry
from pydantic_ai.messages import (
    FilePart,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

OPERATIONS = int(os.environ.get("OPERATIONS", "300"))
NOW = datetime(2026, 11, 26, 1, 2, 3, 456789, tzinfo=timezone.utc)
IMAGE = BinaryContent(bytes(range(256)), media_type="image/png")

ASKED = [
    SystemPromptPart("be brief", timestamp=NOW, dynamic_ref="r"),
    UserPromptPart("4\ud7ff2", timestamp=NOW),
    UserPromptPart(
        ["see", IMAGE, ImageUrl("https://e.x/a.png"), DocumentUrl("https://e.x/a.pdf"), BinaryContent(b"x", media_type="audio/wav")]
    ),
    ToolReturnPart("f", {"a": [1, None]}, "call_1", metadata={"m": 1}, timestamp=NOW),
    ToolReturnPart("f", ["x", IMAGE], "call_2", timestamp=NOW, outcome="failed"),
    RetryFeedbackPart("again", retry=RetryInfo("no_output"), timestamp=NOW),
]
ANSWERED = [
    TextPart("I look", id="msg_1", provider_name="openai", provider_details={"x": 1}),
    ThinkingPart("hm", id="rs_1", signature="c2ln", provider_name="openai"),
    ToolCallPart("f", {"ä": [1.5, None]}, "call_1"),
    ToolCallPart("f", "{not json", "call_2"),
    NativeToolCallPart("web_search", {"q": 1}, "call_3", provider_name="openai"),
    NativeToolReturnPart("web_search", {"hits": []}, "call_3", provider_name="openai"),
    FilePart(IMAGE),
]


def message(chance):
    if chance.random() < 0.5:
        return ModelRequest(
            [chance.choice(ASKED) for _ in range(chance.randrange(5))],
            timestamp=NOW,
            instructions="x",
            run_id="r",
            metadata={"a": 1},
        )
    return ModelResponse(
        [chance.choice(ANSWERED) for _ in range(chance.randrange(5))],
        model_name="m-1",
        provider_name="openai",
        timestamp=NOW,
        usage=RequestUsage(input_tokens=9, cache_read_tokens=4, output_tokens=3, details={"reasoning_tokens": 2}),
        finish_reason="tool_call",
        provider_response_id="resp_1",
    )


def test_random_histories_come_back(client):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    expected = []
    for _ in range(OPERATIONS):
        history = History(f"pydantic-ai/{seed}", client)
        if chance.random() < 0.7:
            new = [message(chance) for _ in range(chance.randrange(4))]
            history.save(new)
            # As pydantic-ai's own JSON would come back.
            expected += ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(new))
        else:
            assert history.load() == expected
    assert history.load() == expected


SCHEMA = ModelMessagesTypeAdapter.json_schema()
TEXTS = ["", "x", "4\ud7ff2 ä\U0001f600\0\u2028", '{"a": 1', "2026-11-26T01:02:03.456789Z", "https://e.x/a.png", "a" * 3000]


def made(schema, chance, depth=0):
    """A value that pydantic-ai's own schema allows, or almost."""
    if "$ref" in schema:
        return made(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], chance, depth)
    if "const" in schema:
        return schema["const"]
    choices = schema.get("enum") or schema.get("oneOf") or schema.get("anyOf")
    if choices:
        one = chance.choice(choices)
        return made(one, chance, depth) if isinstance(one, dict) else one
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            required = schema.get("required", [])
            # What names a kind is always there.
            names = [name for name in fields if name in required or "const" in fields[name] or chance.random() < 0.5]
            more = {chance.choice(["a", "ä b", "$ref"]): anything(chance, depth)} if schema.get("additionalProperties") is True else {}
            return {**more, **{name: made(fields[name], chance, depth + 1) for name in names}}
        case "array":
            return [made(schema.get("items", {}), chance, depth + 1) for _ in range(chance.randrange(4 if depth < 5 else 1))]
        case "string":
            formats = {"date-time": "2026-11-26T01:02:03.456789Z", "duration": "PT1.5S", "base64url": "-_8=", "binary": "eA=="}
            return formats.get(schema.get("format")) or chance.choice(TEXTS)
        case "integer":
            return chance.choice([0, 1, 7, 2**60])
        case "number":
            return chance.choice([0.0, 1.5, 3])
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
    return anything(chance, depth)


def anything(chance, depth):
    leaf = chance.choice([None, True, -3, 1.5, 10**30, chance.choice(TEXTS)])
    return leaf if depth > 5 else chance.choice([leaf, [anything(chance, depth + 1)], {"x": anything(chance, depth + 1), "kind": leaf}])


def test_histories_of_all_kinds_that_its_schema_has_come_back(client, name):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    parts = [part["$ref"] for kind in ("ModelRequest", "ModelResponse") for part in SCHEMA["$defs"][kind]["properties"]["parts"]["items"]["oneOf"]]
    kinds = {SCHEMA["$defs"][part.rpartition("/")[2]]["properties"]["part_kind"]["const"] for part in parts}
    # It reads this one as another kind.
    kinds.remove("retry-prompt")
    assert len(kinds) > 15
    history, expected, seen, wrong = History(name, client), [], set(), 0
    for _ in range(OPERATIONS * 2):
        try:
            [message] = ModelMessagesTypeAdapter.validate_python([made(SCHEMA["items"], chance)])
            again = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json([message]))
        except ValueError:
            wrong += 1
            continue
        history.save([message])
        expected += again
        seen |= {part.part_kind for part in message.parts}
    assert history.load() == expected
    assert seen >= kinds and wrong < len(expected)


def test_turns_go_on_and_are_read_by_people(address, client, name):
    def answer(messages, info):
        last = messages[-1].parts[-1]
        if last.part_kind == "user-prompt":
            return ModelResponse(
                [TextPart("I look"), ToolCallPart("weather", {"city": last.content}), ToolCallPart("weather", {"city": "nowhere"})]
            )
        return ModelResponse([TextPart(f"Heard {sum(len(message.parts) for message in messages)} parts")])

    agent = Agent(FunctionModel(answer), instructions="be brief", system_prompt="a system")

    @agent.tool_plain
    def weather(city: str) -> str:
        if city == "nowhere":
            raise ModelRetry("no such city")
        return f"wet in {city}"

    async def program():
        said, whole = [], []
        async with AsyncClient(address) as asynchronous:
            for city in ("Oslo", "Rome", "Bern"):
                history = AsyncHistory(name, asynchronous)
                loaded = await history.load()
                assert loaded == whole
                result = await agent.run(city, message_history=loaded)
                await history.save(result.new_messages())
                whole = result.all_messages()
                said.append(result.output)
        return said

    async def without():
        said, whole = [], []
        for city in ("Oslo", "Rome", "Bern"):
            result = await agent.run(city, message_history=whole)
            whole = result.all_messages()
            said.append(result.output)
        return said

    assert asyncio.run(program()) == asyncio.run(without())
    kinds = [(message["role"], *[chunk["type"] for chunk in message["chunks"]]) for message in client.messages(name)]
    turn = [
        ("user", "text"),
        ("assistant", "text", "tool_call", "tool_call"),
        ("tool", "tool_result", "tool_result"),
        ("assistant", "text"),
    ]
    assert kinds == [("system", "text"), *turn * 3]
    for target in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        request = client.prompt(name, target, model="m")["request"]
        assert client.check(target, {"max_tokens": 9, **request} if target == "anthropic" else request)["accepted"], request


def test_a_synchronous_turn_and_what_others_wrote(client, name):
    agent = Agent(TestModel(custom_output_text="so"))
    client.append(
        name,
        [
            {"role": "system", "chunks": [{"type": "text", "text": "be brief"}]},
            {"role": "user", "chunks": [{"type": "text", "text": "look"}]},
            {
                "role": "assistant",
                "model": "m",
                "chunks": [
                    {"type": "thinking", "text": "hm"},
                    {"type": "tool_call", "id": "call_1", "name": "f", "arguments": "{}"},
                ],
            },
            {"role": "tool", "chunks": [{"type": "tool_result", "tool_call_id": "call_1", "name": "f", "content": "42"}]},
        ],
    )
    history = History(name, client)
    loaded = history.load()
    assert [[part.part_kind for part in message.parts] for message in loaded] == [
        ["system-prompt"],
        ["user-prompt"],
        ["thinking", "tool-call"],
        ["tool-return"],
    ]
    result = agent.run_sync("and now", message_history=loaded)
    history.save(result.new_messages())
    assert result.output == "so" and history.load()[4:] == result.new_messages()
