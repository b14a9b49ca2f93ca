"""The packages for Python and TypeScript have one form: what one of them writes, the other one reads, and goes on with."""

import asyncio
import json
import os
import pathlib
import subprocess

import pytest
from conftest import ROOT
from conversation_store import AsyncClient, Client, local
from conversation_store.claude_agent import SessionStore, conversation_key
from conversation_store.openai_agents import Session
from test_claude_agent import LINES

#: Where the package for TypeScript is installed.
MODULES = pathlib.Path(os.environ.get("MODULES", str(ROOT / "target/clients/node")))
SCRIPT = (pathlib.Path(__file__).parent / "typescript.mjs").read_text()
pytestmark = pytest.mark.skipif(not (MODULES / "node_modules/conversation-store").exists(), reason="the package for TypeScript is not installed")


@pytest.fixture
def typescript(tmp_path):
    """What calls of the package for TypeScript answer."""

    def run(address, *calls):
        (tmp_path / "calls").write_text(json.dumps(calls))
        command = ["node", "--input-type=module", "-", address, str(tmp_path / "calls")]
        done = subprocess.run(command, cwd=MODULES, input=SCRIPT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def both():
    """Two servers with nothing: what is written to them can be compared."""
    with local() as first, local() as second:
        yield first.url, second.url


def stored(address, key, without=()):
    """The entries and what is known of a conversation, but for its times, and fields."""
    with Client(address) as client:
        described = client.describe(key)
        entries = client.entries(key, limit=1000)["entries"]
    return cleaned([described, entries], {"created_at", "last_activity", *without})


def cleaned(value, without):
    if isinstance(value, dict):
        # What the store's JSON has not is kept as a text of JSON.
        value = {name: json.loads(item) if name.startswith("claude_") and isinstance(item, str) else item for name, item in value.items()}
        return {name: cleaned(item, without) for name, item in value.items() if name not in without}
    return [cleaned(item, without) for item in value] if isinstance(value, list) else value


def program(address, *coroutines):
    async def run():
        async with AsyncClient(address) as client:
            return [await coroutine(client) for coroutine in coroutines]

    return asyncio.run(run())


MESSAGES = [
    {"role": "user", "id": "item-1", "chunks": [{"type": "text", "text": "4\u00df\ud7ff\U0001f600\u0000\u2028", "mine": {"n": 1.5, "none": None}}]},
    {"role": "assistant", "model": "m", "usage": {"input_tokens": 2**53 - 1}, "chunks": [{"type": "tool_call", "id": "c", "name": "f", "arguments": "{"}]},
    {"role": "tool", "chunks": [{"type": "tool_result", "tool_call_id": "c", "content": [{"type": "json", "json": {"\u00e4": [None, 1e300]}}]}]},
]


def test_the_clients_write_and_read_the_same(both, typescript):
    key = "a/b %2F ü?#"
    change = {"title": "T", "metadata": {"a": [1]}}
    with Client(both[0]) as client:
        client.append(key, MESSAGES, add_tags=["x"], **change)
    typescript(both[1], ["append", key, MESSAGES, {"tags": {"add": ["x"]}, **change}])
    assert stored(both[0], key) == stored(both[1], key)
    with Client(both[1]) as client:
        [theirs] = typescript(both[1], ["messages", key])
        ours = list(client.messages(key))
    assert theirs == json.loads(json.dumps(ours)) and len(ours) == 3


def test_a_session_of_the_claude_agent_sdk_is_the_same_of_both(both, typescript):
    key = {"project_key": "-work/a b", "session_id": "s 1"}
    agent = {**key, "subpath": "subagents/agent-1"}
    lines = [{**line, "uuid": str(at)} if line["type"] in ("user", "assistant") else line for at, line in enumerate(LINES)]

    def named(key):
        names = {"project_key": "projectKey", "session_id": "sessionId", "subpath": "subpath"}
        return {names[name]: value for name, value in key.items()}

    async def write(client):
        store = SessionStore(client)
        await store.append(agent, lines[:3])
        for at in range(0, len(lines), 5):
            await store.append(key, lines[at : at + 5])

    program(both[0], write)
    appends = [["write", named(key), lines[at : at + 5]] for at in range(0, len(lines), 5)]
    typescript(both[1], ["write", named(agent), lines[:3]], *appends)
    for each in (key, agent):
        assert stored(both[0], conversation_key(each)) == stored(both[1], conversation_key(each))
    for address in both:
        theirs = typescript(address, ["load", named(key)], ["load", named(agent)], ["summaries", key["project_key"]])
        ours = program(address, lambda client: SessionStore(client).load(key), lambda client: SessionStore(client).load(agent))
        assert theirs[:2] == ours == [lines, lines[:3]]
        [summary] = theirs[2]
        assert (summary["sessionId"], summary["data"]["firstPrompt"], summary["data"]["customTitle"]) == ("s 1", "look", "Rivers of Asia")
        [[summary]] = program(address, lambda client: SessionStore(client).list_session_summaries(key["project_key"]))
        assert (summary["data"]["first_prompt"], summary["data"]["custom_title"]) == ("look", "Rivers of Asia")
    # Each goes on with the session of the other one, and a line that comes again is stored once.
    new = {"type": "user", "uuid": "new", "message": {"role": "user", "content": "and on"}}
    typescript(both[0], ["write", named(key), [lines[1], new]])
    program(both[1], lambda client: SessionStore(client).append(key, [lines[1], new]))
    assert stored(both[0], conversation_key(key)) == stored(both[1], conversation_key(key))


#: A turn in the form of each of the two SDKs.
PYTHON = [
    {"role": "user", "content": "Where is it wet?"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Here?"},
            {"type": "input_image", "image_url": "https://e.x/a.png", "detail": "auto"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "f.pdf"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I look."}], "encrypted_content": "c2ln"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}', "status": "completed"},
    {"type": "function_call", "call_id": "call_2", "name": "weather", "arguments": '{"city":"Rome"}', "status": "completed"},
    {"type": "function_call_output", "call_id": "call_1", "output": "wet"},
    {"type": "function_call_output", "call_id": "call_2", "output": "dry"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "In Oslo.", "annotations": []}],
    },
]
TYPESCRIPT = [
    {"type": "message", "role": "user", "content": "Where is it wet?"},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Here?"},
            {"type": "input_image", "image": "https://e.x/a.png"},
            {"type": "input_file", "file": "data:application/pdf;base64,aGk=", "filename": "f.pdf"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "content": [{"type": "input_text", "text": "I look."}], "providerData": {"encryptedContent": "c2ln"}},
    {"type": "function_call", "id": "fc_1", "callId": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}', "status": "completed"},
    {"type": "function_call", "callId": "call_2", "name": "weather", "arguments": '{"city":"Rome"}', "status": "completed"},
    {"type": "function_call_result", "callId": "call_1", "name": "weather", "status": "completed", "output": {"type": "text", "text": "wet"}},
    {"type": "function_call_result", "callId": "call_2", "name": "weather", "status": "completed", "output": {"type": "text", "text": "dry"}},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "In Oslo."}]},
]


def test_what_is_hidden_of_a_message_of_others_stays_hidden(both, typescript):
    for key in ("ours", "theirs"):
        with Client(both[0]) as client:
            client.append(key, {"role": "assistant", "chunks": [{"type": "text", "text": text} for text in "abccd"]})
            client.remove(key, 0, chunk=0)
            client.remove(key, 0, chunk=3)

    async def pop(client):
        return (await Session("ours", client).pop_item())["content"]

    assert program(both[0], pop, pop, pop) == ["d", "c", "b"]
    texts = [item["content"][0]["text"] for item in typescript(both[0], *[["pop", "theirs"]] * 3)]
    assert texts == ["d", "c", "b"]
    assert program(both[0], lambda client: Session("ours", client).pop_item()) == [None] == typescript(both[0], ["pop", "theirs"])


def test_results_of_others_are_read_by_both(both, typescript):
    content = [{"type": "text", "text": "x"}, {"type": "image", "url": "https://e.x/a.png"}, {"type": "json", "json": {"ä": 1}}]
    results = [{"type": "tool_result", "tool_call_id": "call_1", "content": content}, {"type": "tool_result", "tool_call_id": "call_2", "content": "y"}]
    with Client(both[0]) as client:
        client.append("chat", {"role": "user", "chunks": [*results, {"type": "text", "text": "and on"}]})
    [ours] = program(both[0], lambda client: Session("chat", client).get_items())
    text, other = {"type": "input_text", "text": "x"}, {"type": "input_text", "text": '{"ä":1}'}
    assert [item.get("output", item.get("content")) for item in ours][1:] == ["y", "and on"]
    assert ours[0]["output"][:2] == [text, {"type": "input_image", "image_url": "https://e.x/a.png", "detail": "auto"}]
    assert json.loads(ours[0]["output"][2]["text"]) == {"ä": 1}
    [theirs] = typescript(both[0], ["items", "chat"])
    assert theirs[0]["output"] == [text, {"type": "input_image", "image": "https://e.x/a.png"}, other]
    assert [theirs[1]["output"], theirs[2]["content"]] == [{"type": "text", "text": "y"}, "and on"]


def test_a_session_of_openai_agents_is_read_by_both_in_their_own_form(both, typescript):
    program(both[0], lambda client: Session("chat", client).add_items(PYTHON))
    typescript(both[1], ["add", "chat", TYPESCRIPT])
    # What is kept is the item in the form of its SDK; a result has the name of its tool in one of them only.
    kept = {"openai_agents", "openai_agents_js", "name"}
    assert stored(both[0], "chat", kept) == stored(both[1], "chat", kept)
    for address in both:
        assert program(address, lambda client: Session("chat", client).get_items()) == [PYTHON]
        assert typescript(address, ["items", "chat"]) == [TYPESCRIPT]
    # Each takes items of the other one, and goes on.
    for at in range(len(PYTHON)):
        for address in both:
            if at % 2 == 0:
                assert program(address, lambda client: Session("chat", client).pop_item()) == [PYTHON[-1 - at]]
            else:
                assert typescript(address, ["pop", "chat"]) == [TYPESCRIPT[-1 - at]]
    for address in both:
        program(address, lambda client: Session("chat", client).add_items(PYTHON[:1]))
        typescript(address, ["add", "chat", TYPESCRIPT[1:2]])
        assert program(address, lambda client: Session("chat", client).get_items()) == [PYTHON[:2]]
        assert typescript(address, ["items", "chat"]) == [TYPESCRIPT[:2]]
