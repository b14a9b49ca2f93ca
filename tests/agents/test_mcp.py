"""Claude Code and Codex with `convo mcp`: their models call a tool, and get what was said."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from conftest import PROGRAM, ROOT, run
from test_codex import codex


def asked(folder, model, question, *args):
    """What Claude Code's model gets of a tool that it calls."""
    store = f"sled:{folder / 'store'}"
    servers = {"mcpServers": {"chats": {"command": PROGRAM, "args": ["--store", store, "mcp", *args]}}}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    command = ["claude", "-p", question, "--mcp-config", json.dumps(servers), "--strict-mcp-config", "--allowedTools", "mcp__chats"]
    run(folder, command, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="sk-canary-1", **quiet)
    messages = json.loads(model.bodies[-1])["messages"]
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    [result] = [block for block in blocks if block["type"] == "tool_result"]
    text = result["content"] if isinstance(result["content"], str) else result["content"][0]["text"]
    return text, result.get("is_error", False)


def append(folder, text):
    line = json.dumps({"role": "user", "chunks": [{"type": "text", "text": text}]})
    subprocess.run([PROGRAM, "--store", f"sled:{folder / 'store'}", "append", "chat"], input=line, text=True, check=True, capture_output=True)


def test_the_model_searches_what_was_said(tmp_path, model):
    append(tmp_path, "Who drinks tea?")
    text, is_error = asked(tmp_path, model, 'tool: mcp__chats__search_conversations {"query": "drink"}')
    found = json.loads(text)
    assert not is_error and "untrusted" in found["notice"]
    assert {hit["excerpt"] for hit in found["hits"]} == {"Who drinks tea?"}


def test_the_model_writes_if_it_may(tmp_path, model):
    append(tmp_path, "Who drinks tea?")
    note = 'tool: mcp__chats__append_note {"conversation": "chat", "text": "Ada does."}'
    assert asked(tmp_path, model, note)[1]
    text, is_error = asked(tmp_path, model, note, "--write")
    assert not is_error and json.loads(text)["message"] == 1


def test_the_model_of_codex_searches_and_writes_if_it_may(tmp_path, model):
    append(tmp_path, "Who drinks tea?")

    def asked(question, *args):
        arguments = json.dumps(["--store", f"sled:{tmp_path / 'store'}", "mcp", *args])
        servers = ["-c", f"mcp_servers.chats={{command={json.dumps(PROGRAM)},args={arguments}}}"]
        model.bodies.clear()
        codex(tmp_path, model.url, "--skip-git-repo-check", *servers, question)
        items = json.loads(model.bodies[-1])["input"]
        [output] = [item["output"] for item in items if item["type"] == "function_call_output"]
        # Before what the tool says, it says how long that took.
        return output if isinstance(output, str) else json.loads(output[-1]["text"])

    found = asked('tool: mcp__chats__search_conversations {"query": "drink"}')
    assert "untrusted" in found["notice"] and {hit["excerpt"] for hit in found["hits"]} == {"Who drinks tea?"}
    note = 'tool: mcp__chats__append_note {"conversation": "chat", "text": "Ada does."}'
    assert "unsupported" in asked(note)
    assert asked(note, "--write")["message"] == 1


@pytest.mark.parametrize("program, listed", [("claude", "Connected"), ("codex", "enabled")])
def test_the_command_of_the_documentation_adds_it(tmp_path, program, listed):
    append(tmp_path, "Who drinks tea?")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/convo").symlink_to(pathlib.Path(PROGRAM).absolute())
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CONVO_STORE": f"sled:{tmp_path / 'store'}"}
    page = (ROOT / "src/docs/mcp.md").read_text()
    command = re.search(rf"^({program} mcp add chats -- convo mcp) ", page, re.M)[1]
    run(tmp_path, command.split(" "), **environment)
    assert re.search(rf"chats.*{listed}", run(tmp_path, [program, "mcp", "list"], **environment))
