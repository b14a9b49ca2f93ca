"""The code of `src/docs/coming-from.md`, as it is there, with the SDKs and frameworks that people come from."""

import asyncio
import json
import os
import pathlib
import re
import subprocess
import types

import openai
import pytest
from agents import SQLiteSession
from conversation_store import AsyncClient, local
from conversation_store.langchain import ChatMessageHistory
from conversation_store.openai_agents import Session
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from upstream import SENTENCE, Model

PAGE = pathlib.Path(__file__).parents[3] / "src/docs/coming-from.md"


@pytest.fixture
def page(address, monkeypatch):
    """All code of one store, as a module."""
    monkeypatch.setenv("CONVO_URL", address)

    def load(store):
        module = types.ModuleType(store)
        blocks = re.findall(rf"```python\n# {store}\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert blocks, store
        for code in blocks:
            exec(compile(code, store, "exec"), module.__dict__)
        return module

    return load


def imported(client, file):
    """What `convo import` makes of a file: the names, and whether something was left out."""
    command = [os.environ["CONVO_BIN"], "--store", client.url, "--json", "import", str(file)]
    lines = [json.loads(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]
    return [(line["key"], line["messages"]) for line in lines[:-1]], lines[-1]["skipped"]


def test_every_block_of_python_is_run():
    named = re.findall(r"```python\n# (\w+)\n", PAGE.read_text())
    assert len(named) == PAGE.read_text().count("```python\n") and set(named) == {"openai", "agents", "langgraph", "langchain", "langfuse"}


def test_openai(page, client, address, tmp_path):
    code = page("openai")
    sdk = openai.OpenAI(base_url=f"{address}/v1", api_key="convo")
    assert code.talk(sdk) == ["message"]
    items = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}]
    items += [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": str(at)}]} for at in range(44)]
    theirs = sdk.conversations.create(metadata={"user": "ada"}, items=items[:20])
    for first in (20, 40):
        sdk.conversations.items.create(theirs.id, items=items[first : first + 20])
    copied = code.copy(sdk, sdk, theirs.id)
    read = [[item.to_dict() for item in sdk.conversations.items.list(id, order="asc", limit=100)] for id in (theirs.id, copied)]
    assert read[0] == read[1] and len(read[0]) == 45 and read[1][0]["encrypted_content"] == "c2ln"
    assert sdk.conversations.retrieve(copied).metadata == {"user": "ada"} and copied != theirs.id
    with pytest.raises(openai.BadRequestError):
        sdk.conversations.items.create(copied, items=read[0][:1])
    (tmp_path / "items.json").write_text(json.dumps(read[0]))
    [(key, messages)], skipped = imported(client, tmp_path / "items.json")
    assert key == "openai-items:items" and messages == 45 and skipped == {}


def test_agents(page, address, tmp_path):
    items = [
        {"role": "user", "content": "double 4"},
        {"type": "function_call", "call_id": "c1", "name": "double", "arguments": "{}"},
    ]

    async def moved():
        theirs, ours = SQLiteSession("chat", tmp_path / "chats.db"), Session("taken over", AsyncClient(address))
        await theirs.add_items(items)
        await page("agents").take_over(theirs, ours)
        return await ours.get_items()

    assert asyncio.run(moved()) == items


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


class Scripted(GenericFakeChatModel):
    """A model with a script, which keeps what it was sent."""

    seen: list = []

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, *args, **kwargs):
        self.seen.append(messages)
        return super()._generate(messages, *args, **kwargs)


def called(id, content=""):
    return AIMessage(content, tool_calls=[{"id": id, "name": "double", "args": {"number": 4}}])


def test_langgraph(page, client, name, tmp_path):
    code = page("langgraph")
    model = Scripted(messages=iter([called("c1"), AIMessage("8."), AIMessage("Well."), called("c9"), AIMessage("Again 8.")]))
    graph = create_react_agent(model, [double])
    assert code.turn(graph, name, "double 4") == "8."
    kinds = ["human", "ai", "tool", "ai"]
    assert [message.type for message in ChatMessageHistory(name, client).messages] == kinds
    # The application dies in a tool. LangGraph refuses such messages; those of the page's code are repaired.
    ChatMessageHistory(name, client).add_message(called("c2"))
    with pytest.raises(ValueError, match="INVALID_CHAT_HISTORY"):
        graph.invoke({"messages": [*ChatMessageHistory(name, client).messages, HumanMessage("and?")]})
    assert code.turn(graph, name, "and?") == "Well."
    assert [message.tool_call_id for message in model.seen[-1] if message.type == "tool"] == ["c1", "c2"]
    # Threads of a checkpointer.
    kept = create_react_agent(model, [double], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": f"{name}/theirs"}}
    state = kept.invoke({"messages": [HumanMessage("double 4")]}, thread)
    code.take_over(kept, f"{name}/theirs")
    assert ChatMessageHistory(f"{name}/theirs", client).messages == state["messages"]
    code.take_over(kept, f"{name}/theirs")
    assert len(ChatMessageHistory(f"{name}/theirs", client).messages) == 4, "what has an id is stored once"
    (tmp_path / "state.json").write_text(json.dumps({"messages": [message.model_dump() for message in state["messages"]]}))
    [(key, messages)], _ = imported(client, tmp_path / "state.json")
    assert key == "langchain:state" and messages == 4


def test_a_step_of_a_graph_is_stored_before_the_next(page, client, name):
    def fail(number: int) -> int:
        """Fails."""
        raise SystemExit("the application ends")

    fail.__name__ = "double"
    graph = create_react_agent(Scripted(messages=iter([called("c1")])), [fail])
    with pytest.raises(SystemExit):
        page("langgraph").turn(graph, name, "double 4")
    assert [message.type for message in ChatMessageHistory(name, client).messages] == ["human", "ai"]


def test_langchain(page, client, name, tmp_path):
    theirs, ours = InMemoryChatMessageHistory(), ChatMessageHistory(name, client)
    theirs.add_messages([HumanMessage("double 4"), called("c1"), ToolMessage("8", tool_call_id="c1"), AIMessage("8.")])
    page("langchain").take_over(theirs, ours)
    assert ours.messages == theirs.messages
    (tmp_path / "history.json").write_text(json.dumps(messages_to_dict(theirs.messages)))
    [(key, messages)], _ = imported(client, tmp_path / "history.json")
    assert key == "langchain:history" and messages == 4
    for window in ({"window_tokens": 1000}, {"last": 3}, {"last_turns": 1}):
        assert client.prompt(name, "openai-chat", **window)["request"]["messages"]


@pytest.mark.parametrize("has_tools", [False, True])
@pytest.mark.parametrize("as_text", [False, True])
def test_langfuse(page, client, name, has_tools, as_text):
    code = page("langfuse")
    call = {"id": "c1", "type": "function", "function": {"name": "double", "arguments": '{"number": 4}'}}
    asked = [
        {"role": "user", "content": "double 4"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "8"},
    ]
    given = {"tools": [{"type": "function", "function": {"name": "double"}}], "messages": asked} if has_tools else asked
    answer = {"role": "assistant", "content": "8."}
    generation = {"input": given, "output": answer}
    code.take_over(client, name, {half: json.dumps(is_) for half, is_ in generation.items()} if as_text else generation)
    assert client.prompt(name, "openai-chat")["request"]["messages"] == [*asked, answer]


def test_langfuse_beside_the_proxy(page):
    # The conversation is there before the answer is.
    with local(settings=f'[[upstream]]\nname = "openai"\nurl = "{Model().url}"\nrecord = "required"\n') as store:
        sdk = openai.OpenAI(base_url=f"{store.url}/proxy/openai/v1", api_key="none")
        answer = page("langfuse").ask(sdk, "session 7", [{"role": "user", "content": "hello"}])
        with store.follow("session 7") as entries:
            next(entry for entry in entries if entry["kind"] == "finish")
        said = [message["chunks"][0]["text"] for message in store.messages("session 7")]
        assert said == ["hello", answer] and answer.startswith(SENTENCE)
