"""The code of the pages about the package, as it is there. LangChain's is in its own test."""

import asyncio
import pathlib
import re
import shutil

import pytest
from agents import Agent, RunConfig
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.test import TestModel
from test_openai_agents import Scripted as AgentsModel
from upstream import Model

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def environment(address, monkeypatch):
    monkeypatch.setenv("CONVO_URL", address)


def test_the_page_of_the_client_runs(monkeypatch, capsys, client):
    model = Model()
    monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "src/docs/python.md").read_text(), re.DOTALL)
    assert len(blocks) == 5
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out
    assert "finish" in printed and "stale_head" in printed
    assert client.message("chat-42", 1)["chunks"][0]["text"] == "I see it. (1)"


def test_the_page_of_the_claude_agent_sdk(page, tmp_path):
    model, home = Model(), tmp_path / "home"
    environment = {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }

    async def program():
        turn = page("claude-agent").turn
        session = None
        for text in ("run: echo hi", "and again"):
            home.mkdir()
            result = await turn(text, session, cwd=tmp_path, env=environment, allowed_tools=["Bash"])
            session = result.session_id
            shutil.rmtree(home)

    asyncio.run(program())
    assert b"echo hi" in model.bodies[-1]


def test_the_page_of_the_openai_agents_sdk(page, name):
    model = AgentsModel()
    agent = Agent(name="a", model=model)

    async def program():
        turn = page("openai-agents").turn
        for text in ("one", "two"):
            # Without tools, it is a model that says nothing of use.
            with pytest.raises(Exception, match="weather"):
                await turn(agent, name, text, run_config=RunConfig(tracing_disabled=True))

    asyncio.run(program())
    assert [item.get("content") for item in model.inputs[-1] if item.get("role") == "user"] == ["one", "two"]


class Says(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=f"{len(llm_request.contents)} messages")]))


def test_the_page_of_adk(page, name):
    async def program():
        runner = page("adk").runner(name, LlmAgent(name="a", model=Says(model="m")))
        await runner.session_service.create_session(app_name=name, user_id="u", session_id="s")
        said = []
        for text in ("one", "two"):
            message = types.Content(role="user", parts=[types.Part(text=text)])
            async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
                said.append(event.content.parts[0].text)
        return said

    assert asyncio.run(program()) == ["1 messages", "3 messages"]


def test_the_page_of_pydantic_ai(page, name, client):
    agent = PydanticAgent(TestModel(custom_output_text="so"))

    async def program():
        turn = page("pydantic-ai").turn
        return [await turn(agent, name, text) for text in ("one", "two")]

    assert asyncio.run(program()) == ["so", "so"]
    assert [message["role"] for message in client.messages(name)] == ["user", "assistant"] * 2
