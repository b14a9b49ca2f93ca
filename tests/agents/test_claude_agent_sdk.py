"""The Claude Agent SDK for TypeScript, with Claude Code, and `conversation-store/claude-agent` as its store: each turn begins with an empty
home, and has what was said of the store alone."""

import json
import os
import pathlib
import shutil
import subprocess
import urllib.request

import pytest
from conftest import PROGRAM, PROGRAMS, ROOT

#: Where the package for TypeScript is installed, and the SDK.
MODULES = pathlib.Path(os.environ.get("MODULES", str(ROOT / "target/clients/node")))


@pytest.fixture
def server(tmp_path):
    command = [PROGRAM, "--store", f"sled:{tmp_path / 'store'}", "--json", "serve", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield json.loads(process.stdout.readline())["listening"]
    process.terminate()
    assert process.wait(60) == 0


def turn(server, folder, model, prompt, **options):
    home = folder / "home"
    for made in (home, folder / "work"):
        made.mkdir(exist_ok=True)
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-canary-1", **quiet}
    program = {"pathToClaudeCodeExecutable": str(PROGRAMS / "claude"), "cwd": str(folder / "work"), "allowedTools": ["Bash", "Agent"]}
    asked = json.dumps({"url": server, "options": {**program, **options}})
    code = (ROOT / "tests/agents/claude-agent.mjs").read_text()
    command = ["node", "--input-type=module", "-", asked, prompt]
    done = subprocess.run(command, cwd=MODULES, env=environment, input=code, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    transcripts = {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in home.rglob("projects/**/*.jsonl")}
    shutil.rmtree(home)
    assert not said["result"]["is_error"], said
    return said, transcripts


def test_claude_code_goes_on_from_the_store_alone(server, model, tmp_path):
    given = {}

    def load(said):
        """What the store gives back, which is what it was given, a line with a `uuid` once."""
        for key, lines in said["given"]:
            before = given.setdefault(json.dumps(key), [])
            uuids = {line.get("uuid") for line in before} - {None}
            before += [line for line in lines if line.get("uuid") not in uuids]
        loaded = {json.dumps(key): lines for key, lines in said["loaded"]}
        assert loaded == {key: given[key] for key in loaded}
        return {json.loads(key).get("subpath", "main").rpartition("/")[2]: lines for key, lines in loaded.items()}

    first, transcripts = turn(server, tmp_path, model, "ask both: run: echo one & run: echo two")
    session = first["result"]["session_id"]
    loaded = load(first)
    assert len(loaded) == len(transcripts) == 3
    # What Claude Code wrote to its home is what the store has. Of an agent, that has a line more, which is no line of its file.
    assert loaded.pop("main") == transcripts.pop(session)
    for agent, lines in loaded.items():
        assert [line for line in lines if line["type"] != "agent_metadata"] == transcripts[agent]
    second, _ = turn(server, tmp_path, model, "run: echo from-the-shell", resume=session)
    third, _ = turn(server, tmp_path, model, "at last", **{"continue": True})
    assert {said["result"]["session_id"] for said in (second, third)} == {session}
    [main] = [load(said)["main"] for said in (second, third)][1:]
    blocks = [block for line in main if isinstance(line.get("message"), dict) and isinstance(line["message"]["content"], list)
              for block in line["message"]["content"]]
    calls, results = ([block for block in blocks if block["type"] == kind] for kind in ("tool_use", "tool_result"))
    made = {call["id"] for call in calls}
    assert made == {result["tool_use_id"] for result in results} and len(calls) == len(results) == 3
    assert "from-the-shell" in results[-1]["content"]
    # The model has it from the store.
    said = json.loads(model.bodies[-1])["messages"]
    assert all(text in json.dumps(said) for text in ("ask both", "run: echo from-the-shell", "at last")), said
    blocks = [block for message in said if isinstance(message["content"], list) for block in message["content"]]
    assert made == {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert made == {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
    assert model.unexpected == []
