"""`SessionStore`: the SDK's conformance suite, random operations beside its own store, and Claude Code resumed from the store alone."""

import asyncio
import json
import os
import random
import shutil

from claude_agent_sdk import (
    ClaudeAgentOptions,
    InMemorySessionStore,
    ResultMessage,
    list_sessions_from_store,
    project_key_for_directory,
    query,
)
from claude_agent_sdk.testing import run_session_store_conformance
from conversation_store import AsyncClient, local
from conversation_store.claude_agent import SessionStore, conversation_key
from upstream import Model

OPERATIONS = int(os.environ.get("OPERATIONS", "400"))


def test_the_conformance_suite_of_the_sdk(tmp_path):
    async def program():
        clients, servers = [], []

        def make():
            servers.append(local())
            clients.append(AsyncClient(servers[-1].start()))
            return SessionStore(clients[-1])

        try:
            await run_session_store_conformance(make)
        finally:
            for client, server in zip(clients, servers, strict=True):
                await client.close()
                server.stop()
        # Without an optional method it would make fewer.
        assert len(servers) == 15

    asyncio.run(program())


LINES = [
    {"type": "summary", "summary": "On rivers", "leafUuid": "x"},
    {
        "type": "user",
        "message": {"role": "user", "content": "look"},
        "timestamp": "2026-11-26T01:00:00.000Z",
        "extra": {"n": 1.5, "none": None},
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {"type": "text", "text": "this"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "document", "title": "d", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
                {"type": "image", "source": {"type": "file", "file_id": "f"}},
                "a text",
                {"no": "type"},
            ],
        },
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": "claude-x",
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 5, "output_tokens": 2},
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "eA=="},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"ä": [1, None]}},
                {"type": "server_tool_use", "id": "s", "name": "w", "input": {}},
            ],
        },
    },
    {
        "type": "user",
        "toolUseResult": {"stdout": "\ud83d"},
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "n\ud83do"}, {"type": "new", "x": 1}],
                }
            ],
        },
    },
    {
        "type": "assistant",
        "isApiErrorMessage": True,
        "message": {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]},
    },
    {"type": "assistant", "message": {"role": "assistant", "content": None}},
    {"type": "user", "message": "no object"},
    {"type": "custom-title", "customTitle": "Rivers of Asia"},
    {"type": "tag", "tag": "wet"},
    {"type": "ai-title", "aiTitle": "half a \ud83d"},
    {"type": "a-kind-yet-to-come", "timestamp": "no time", "deep": json.loads("[" * 140 + "]" * 140)},
]


def test_random_operations_are_the_same_as_in_memory(address):
    """Two stores take turns, as two processes would."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)

    async def program():
        async with AsyncClient(address) as first, AsyncClient(address) as second:
            theirs, ours = InMemorySessionStore(), [SessionStore(first), SessionStore(second)]
            known = set()
            for at in range(OPERATIONS):
                project = f"{seed}-{chance.choice('ab')}"
                key = {"project_key": project, "session_id": chance.choice(["s 1", "s%1", "s1"])}
                if chance.random() < 0.3:
                    key["subpath"] = chance.choice(["subagents/agent-1", "subagents/deep/agent-2"])
                store = chance.choice(ours)
                match chance.choices(["append", "again", "load", "list", "subkeys", "summaries", "delete"], [10, 3, 6, 2, 2, 2, 1])[
                    0
                ]:
                    case "append":
                        lines = [{**chance.choice(LINES), "at": at} for _ in range(chance.randrange(4))]
                        lines = [
                            {**line, "uuid": f"{at}-{n}"} if line["type"] in ("user", "assistant") else line
                            for n, line in enumerate(lines)
                        ]
                        if lines:
                            await theirs.append(key, lines)
                        await store.append(key, lines)
                        known.update((json.dumps(key), json.dumps(line)) for line in lines if "uuid" in line)
                    case "again" if known:
                        # The store in memory does not know repetitions.
                        key, line = map(json.loads, chance.choice(sorted(known)))
                        if await theirs.load(key) is not None:
                            await store.append(key, [line, line])
                    case "load":
                        assert await store.load(key) == await theirs.load(key)
                    case "list":
                        assert ids(await store.list_sessions(project)) == ids(await theirs.list_sessions(project))
                    case "subkeys":
                        key = {"project_key": project, "session_id": "s%1"}
                        assert sorted(await store.list_subkeys(key)) == sorted(await theirs.list_subkeys(key))
                    case "summaries":
                        assert data(await store.list_session_summaries(project)) == data(
                            await theirs.list_session_summaries(project)
                        )
                    case "delete":
                        await theirs.delete(key)
                        await store.delete(key)
                        lost = conversation_key(key)
                        known = {
                            (text, line)
                            for text, line in known
                            if not (conversation_key(json.loads(text)) + "/").startswith(lost + "/")
                        }

    asyncio.run(program())


def ids(listed):
    return sorted(entry["session_id"] for entry in listed)


def data(summaries):
    return sorted((entry["session_id"], json.dumps(entry["data"], sort_keys=True)) for entry in summaries)


def test_appends_at_one_time_lose_and_repeat_nothing(address, name):
    key = {"project_key": name, "session_id": "s"}
    lines = [{"type": "user", "uuid": str(at), "message": {"role": "user", "content": str(at)}} for at in range(40)]

    async def program():
        async with AsyncClient(address) as client:
            stores = [SessionStore(client) for _ in range(4)]
            # Each line goes to two stores, which know nothing of each other.
            await asyncio.gather(
                *(stores[(at + twice) % 4].append(key, [line]) for at, line in enumerate(lines) for twice in (0, 1))
            )
            return await stores[0].load(key)

    loaded = asyncio.run(program())
    assert sorted(int(line["uuid"]) for line in loaded) == list(range(40))


def test_a_session_that_was_made_again_is_another_one(address, name):
    key = {"project_key": name, "session_id": "s"}
    one, two, three = ({"type": "user", "uuid": uuid} for uuid in "123")

    async def program():
        async with AsyncClient(address) as client:
            first, second = SessionStore(client), SessionStore(client)
            await second.append(key, [one])
            await first.delete(key)
            await first.append(key, [two])
            # As long as before, and of the same name: what the second store knew is not of this one.
            await second.append(key, [three])
            await second.append(key, [two])
            assert await first.load(key) == [two, three]
            await first.delete(key)
            await first.append(key, [one])
            await second.append(key, [three])
            assert await first.load(key) == [one, three]

    asyncio.run(program())


def test_a_session_is_a_conversation(address, client, name):
    key = {"project_key": name, "session_id": "s"}

    async def program():
        async with AsyncClient(address) as asynchronous:
            store = SessionStore(asynchronous)
            # A sub-agent's lines may come first.
            await store.append({**key, "subpath": "subagents/agent-1"}, LINES[1:2])
            assert await store.load(key) is None and await store.list_sessions(name) == []
            await SessionStore(asynchronous).append(key, LINES)
            # The tokens of an answer are in each of its lines.
            await SessionStore(asynchronous).append(key, [LINES[3]])
            assert [entry["session_id"] for entry in await store.list_sessions(name)] == ["s"]

    asyncio.run(program())
    main = conversation_key(key)
    kinds = [(message["role"], *[chunk["type"] for chunk in message["chunks"]]) for message in client.messages(main)]
    assert kinds == [
        ("system",),
        ("user", "text"),
        ("user", "text", "image", "file", "opaque"),
        ("assistant", "thinking", "thinking", "tool_call", "opaque"),
        ("user", "tool_result"),
        ("assistant", "error"),
        ("assistant",),
        ("system",),
        ("system",),
        ("system",),
        ("system",),
        ("system",),
        ("assistant", "thinking", "thinking", "tool_call", "opaque"),
    ]
    described = client.describe(main)
    assert described["title"] == "Rivers of Asia"
    started = list(client.conversations(tags=[f"started-by:{described['conversation']}"]))
    assert [item["key"] for item in started] == [f"{main}/subagents/agent-1"]
    rows = [row for row in client.usage(by=["model"], tags=[f"claude-agent:{name}"]) if row["answers"]]
    assert [(row["model"], row["answers"], row["input"], row["output"]) for row in rows] == [("claude-x", 1, 5, 2)]
    for target in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        request = client.prompt(main, target)["request"]
        assert client.check(target, {"model": "m", "max_tokens": 9, **request})["accepted"], request
        text = json.dumps(request)
        assert "look" in text and "leafUuid" not in text and "Rivers" not in text


def test_claude_code_goes_on_from_the_store_alone(address, client, tmp_path):
    model = Model()

    async def turn(prompt, **options):
        home = tmp_path / "home"
        home.mkdir()
        try:
            async with AsyncClient(address) as asynchronous:
                return await claude(SessionStore(asynchronous), tmp_path, model, prompt, home=home, **options)
        finally:
            shutil.rmtree(home)

    async def program():
        first = await turn("ask both: run: echo one & run: echo two")
        second = await turn("and again", resume=first.session_id)
        third = await turn("run: echo from-the-shell", continue_conversation=True)
        fourth = await turn("at last", resume=first.session_id)
        async with AsyncClient(address) as asynchronous:
            sessions = await list_sessions_from_store(SessionStore(asynchronous), directory=str(tmp_path / "work"))
        return [first, second, third, fourth], sessions

    turns, sessions = asyncio.run(program())
    assert {result.session_id for result in turns} == {turns[0].session_id} and not any(result.is_error for result in turns)
    last = json.loads(model.bodies[-1])
    said = json.dumps(last["messages"])
    assert all(text in said for text in ("echo from-the-shell", "and again", "ask both", "at last")), said
    assert [session.session_id for session in sessions] == [turns[0].session_id]
    project = project_key_for_directory(str(tmp_path / "work"))
    main = conversation_key({"project_key": project, "session_id": turns[0].session_id})
    described = client.describe(main)
    agents = list(client.conversations(tags=[f"started-by:{described['conversation']}"]))
    assert len([item for item in agents if item["messages"]]) >= 2, agents
    kinds = [kind for message in client.messages(main) for kind in [chunk["type"] for chunk in message["chunks"]]]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 3
    assert client.check("anthropic", {"model": "m", "max_tokens": 9, **client.prompt(main, "anthropic")["request"]})["accepted"]
    rows = client.usage(tags=[f"session:{turns[0].session_id}"])
    assert [row["answers"] for row in rows] == [len(model.bodies)]
    assert model.unexpected == []


async def claude(store, folder, model, prompt, *, home, **options):
    """A turn of Claude Code."""
    (folder / "work").mkdir(exist_ok=True)
    environment = {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    settings = ClaudeAgentOptions(
        session_store=store, cwd=folder / "work", env=environment, allowed_tools=["Bash", "Agent"], **options
    )
    results = [message async for message in query(prompt=prompt, options=settings) if isinstance(message, ResultMessage)]
    return results[-1]
