"""The recipe of `src/docs/recipes.md` for LangChain, as it is there."""

import pathlib
import re
import types

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

RECIPES = pathlib.Path(__file__).parents[2] / "src/docs/recipes.md"


@pytest.fixture(scope="module")
def recipe():
    module = types.ModuleType("recipe")
    [code] = re.findall(r"```python\n(.*?)```", RECIPES.read_text(), re.DOTALL)
    exec(compile(code, RECIPES, "exec"), module.__dict__)
    return module


def test_messages_come_back(server, recipe):
    history = recipe.ConvoChatMessageHistory("a chat/1", server.address, server.secrets["ada"])
    assert history.messages == []
    sent = [
        SystemMessage("be brief", id="s"),
        HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://e.x/a.png"}}], id="h"),
        AIMessage("", tool_calls=[{"id": "call_1", "name": "f", "args": {"b": 1, "a": [1.5, None]}}], id="a"),
        ToolMessage("42", tool_call_id="call_1", name="f", id="t"),
        AIMessage("so", invalid_tool_calls=[{"id": "call_2", "name": "f", "args": "{", "error": None}], id="b"),
        ToolMessage("failed", tool_call_id="call_2", status="error", id="u"),
    ]
    history.add_messages(sent)
    assert history.messages == sent
    # Another process, another owner, more than a page.
    again = recipe.ConvoChatMessageHistory("a chat/1", server.address, server.secrets["ada"])
    again.add_messages([HumanMessage(str(at), id=str(at)) for at in range(250)])
    assert [message.content for message in history.messages[6:]] == [str(at) for at in range(250)]
    other = recipe.ConvoChatMessageHistory("a chat/1", server.address, server.secrets["grace"])
    assert other.messages == []
    history.clear()
    history.clear()
    assert again.messages == []
    with pytest.raises(RuntimeError):
        recipe.ConvoChatMessageHistory("chat", server.address, "wrong").messages


def test_a_chain_with_history_over_a_kill(server, recipe):
    model = GenericFakeChatModel(messages=iter([AIMessage("one"), AIMessage("two")]))
    prompt = ChatPromptTemplate.from_messages([("system", "be brief"), MessagesPlaceholder("history"), ("human", "{input}")])
    seen = []
    chain = RunnableWithMessageHistory(
        prompt | (lambda value: seen.append(value.to_messages()) or value) | model,
        lambda session: recipe.ConvoChatMessageHistory(session, server.address, server.secrets["ada"]),
        input_messages_key="input", history_messages_key="history",
    )
    config = {"configurable": {"session_id": "chain"}}
    assert chain.invoke({"input": "first"}, config).content == "one"
    server.kill()
    server.start()
    assert chain.invoke({"input": "second"}, config).content == "two"
    assert [message.content for message in seen[1]] == ["be brief", "first", "one", "second"]
    history = recipe.ConvoChatMessageHistory("chain", server.address, server.secrets["ada"])
    assert [message.content for message in history.messages] == ["first", "one", "second", "two"]
