"""`Session` of the OpenAI Agents SDK: random operations beside `SQLiteSession`, and a run with tools over three turns."""

import asyncio
import json
import os
import random

from agents import Agent, Model, ModelResponse, RunConfig, Runner, SessionSettings, SQLiteSession, Usage, function_tool
from conversation_store import AsyncClient
from conversation_store.openai_agents import Session
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText, ResponseReasoningItem

OPERATIONS = int(os.environ.get("OPERATIONS", "500"))

ITEMS = [
    {"role": "user", "content": "hello"},
    {"role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "https://e.x/a.png", "detail": "low"},
            {"type": "input_file", "filename": "f.pdf", "file_data": "data:application/pdf;base64,aGk="},
            {"type": "new", "x": None},
        ],
    },
    {"role": "user", "content": None},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "c2ln",
        "status": None,
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I look", "annotations": [], "logprobs": []}],
    },
    {
        "type": "message",
        "id": "msg_2",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "no"}],
    },
    {"role": "assistant", "content": "easy"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "f",
        "arguments": '{"a": 1e400, "b',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "4\ud83d2"},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "x"}, {"type": "new"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "type": "computer_call_output",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
    },
    {"type": "item_reference", "id": "msg_9"},
    {"type": "deep", "in": json.loads("[" * 140 + "]" * 140), "infinite": float("inf")},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "zz"},
]


def test_random_operations_are_the_same_as_in_sqlite(address):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)

    async def program():
        async with AsyncClient(address) as client:
            theirs = {name: SQLiteSession(name) for name in "ab"}
            for at in range(OPERATIONS):
                name = chance.choice("ab")
                # Another process each time.
                session = Session(f"{seed}/{name}", client)
                match chance.choices(
                    ["add", "pop", "all", "newest", "settings", "clear"], [10, 8, 3, 5, 2, 1 if at % 7 == 0 else 0]
                )[0]:
                    case "add":
                        items = [{**chance.choice(ITEMS), "at": at} for _ in range(chance.randrange(6))]
                        await session.add_items(items)
                        await theirs[name].add_items(items)
                    case "pop":
                        assert await session.pop_item() == await theirs[name].pop_item()
                    case "all":
                        assert await session.get_items() == await theirs[name].get_items()
                    case "newest":
                        limit = chance.choice([-1, 0, 1, 2, 5, 40, 150])
                        assert await session.get_items(limit) == await theirs[name].get_items(limit)
                    case "settings":
                        session = Session(f"{seed}/{name}", client, session_settings=SessionSettings(limit=3))
                        assert await session.get_items() == await theirs[name].get_items(3)
                    case "clear":
                        await session.clear_session()
                        await theirs[name].clear_session()

    asyncio.run(program())


def test_a_long_session_is_read_from_its_end(address, client, name):
    async def program():
        async with AsyncClient(address) as asynchronous:
            session = Session(name, asynchronous)
            items = [{"role": "user", "content": str(at)} for at in range(450)]
            await session.add_items(items)
            for index in range(120, 360):
                client.remove(name, index)
            left = items[:120] + items[360:]
            assert await session.get_items(95) == left[-95:]
            assert await session.get_items(150) == left[-150:]
            assert await session.get_items() == left
            taken = await asyncio.gather(*(session.pop_item() for _ in range(10)))
            assert sorted(item["content"] for item in taken) == [str(at) for at in range(440, 450)]

    asyncio.run(program())


class Scripted(Model):
    """A model that calls two tools in each turn, then says what came."""

    def __init__(self):
        self.inputs = []

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self.inputs.append(input)
        number = len(self.inputs)
        if input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(type="output_text", text=f"It is {input[-1]['output']}.", annotations=[])
            output = [
                ResponseOutputMessage(id=f"msg_{number}", type="message", role="assistant", status="completed", content=[text])
            ]
        else:
            output = [ResponseReasoningItem(id=f"rs_{number}", type="reasoning", summary=[])]
            output += [
                ResponseFunctionToolCall(
                    type="function_call",
                    id=f"fc_{number}_{at}",
                    call_id=f"call_{number}_{at}",
                    name="weather",
                    arguments=json.dumps({"city": city}),
                )
                for at, city in enumerate(["Oslo", "Rome"])
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def test_a_run_with_tools_over_three_turns(address, client, name):
    @function_tool
    def weather(city: str) -> str:
        return f"wet in {city}"

    def turns(session_of):
        model = Scripted()
        agent = Agent(name="a", instructions="be brief", model=model, tools=[weather])

        async def program():
            said = []
            for text in ("one", "two", "three"):
                result = await Runner.run(agent, text, session=session_of(), run_config=RunConfig(tracing_disabled=True))
                said.append(result.final_output)
            return said, model.inputs

        return program

    async def ours():
        async with AsyncClient(address) as asynchronous:
            return await turns(lambda: Session(name, asynchronous))()

    sqlite = SQLiteSession(name)
    expected = asyncio.run(turns(lambda: sqlite)())
    assert asyncio.run(ours()) == expected
    assert expected[0] == ["It is wet in Rome."] * 3
    kinds = [(message["role"], *[chunk["type"] for chunk in message["chunks"]]) for message in client.messages(name)]
    turn = [
        ("user", "text"),
        ("assistant", "thinking", "tool_call", "tool_call"),
        ("tool", "tool_result"),
        ("tool", "tool_result"),
        ("assistant", "text"),
    ]
    assert kinds == turn * 3
    for target in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        request = client.prompt(name, target)["request"]
        assert client.check(target, {"model": "m", "max_tokens": 9, **request} if target == "anthropic" else request), request
    assert client.next_step(name)["step"] == "await_user"
