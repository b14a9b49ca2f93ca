"""A session that one program had, and another one goes on with."""

import json
import os
import subprocess

from conftest import PROGRAM
from test_claude_code import claude
from test_claude_code import through as through_claude
from test_codex import codex
from test_codex import through as through_codex


def handed_over(proxy, to):
    """The session that a program finds in its folder."""
    [item] = [item for item in proxy.conversations() if not {"kind:side", "kind:agent"} & set(item.get("tags", []))]
    home = proxy.folder / "home"
    done = subprocess.run([PROGRAM, "--store", proxy.url, "--json", "export", item["conversation"], "--to", to], cwd=home / "work",
                          env={"PATH": os.environ["PATH"], "HOME": str(home)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["session"]


def test_claude_code_goes_on_with_a_session_of_codex(proxy, model):
    through_codex(proxy, "--skip-git-repo-check", "run: echo hi")
    session = handed_over(proxy, "claude-code")
    model.bodies.clear()
    assert claude(proxy.folder, model.url, "-r", session, "run: echo more").startswith("I see it.")
    request = json.loads(model.bodies[0])
    blocks = [(message["role"], block) for message in request["messages"] if isinstance(message["content"], list) for block in message["content"]]
    said = [block.get("text", "") for role, block in blocks if role == "user" and block["type"] == "text"]
    assert said[-2:] == ["run: echo hi", "run: echo more"] and not any("environment_context" in text for text in said), said
    [call] = [block for _, block in blocks if block["type"] == "tool_use"]
    assert (call["name"], call["input"]) == ("exec_command", {"cmd": "echo hi"})
    [result] = [block for _, block in blocks if block["type"] == "tool_result"]
    assert result["tool_use_id"] == call["id"] and "hi" in json.dumps(result["content"])
    assert [block["text"] for role, block in blocks if role == "assistant" and block["type"] == "text"] == ["I see it. (2)"]


def test_codex_goes_on_with_a_session_of_claude_code(proxy, model):
    through_claude(proxy, "run: echo hi")
    session = handed_over(proxy, "codex")
    model.bodies.clear()
    assert codex(proxy.folder, model.url, "--skip-git-repo-check", "resume", session, "run: echo more").startswith("I see it.")
    items = json.loads(model.bodies[0])["input"]
    said = ["".join(part["text"] for part in item["content"]) for item in items if item["type"] == "message" and item["role"] == "user"]
    assert said[0] == "run: echo hi" and said[-1] == "run: echo more" and not any("system-reminder" in text for text in said), said
    [call] = [item for item in items if item["type"] == "function_call"]
    assert (call["name"], json.loads(call["arguments"])["command"]) == ("Bash", "echo hi")
    [result] = [item for item in items if item["type"] == "function_call_output"]
    assert result["call_id"] == call["call_id"] and "hi" in json.dumps(result["output"])
    answers = [part["text"] for item in items if item["type"] == "message" and item["role"] == "assistant" for part in item["content"]]
    assert answers == ["I see it. (2)"]
