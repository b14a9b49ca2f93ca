"""Codex as it is: what it says passes byte for byte, and is stored as one would draw it. Over the Responses API of convo it talks to a
model that knows Chat Completions only."""

import json
import subprocess

import pytest
from conftest import PROGRAM, run

CALL = [("assistant", "tool_call"), ("tool", "tool_result"), ("assistant", "text")]


def codex(folder, url, *args, model="gpt-5", websockets="false"):
    settings = folder / "home/.codex"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "config.toml").write_text(f"""
model = "{model}"
model_provider = "up"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.up]
name = "up"
base_url = "{url}/v1"
env_key = "UP_KEY"
wire_api = "responses"
supports_websockets = {websockets}
http_headers = {{ "x-convo-hosted-tools" = "drop" }}
""")
    return run(folder, ["codex", "exec", *args], UP_KEY="sk-canary-2")


def through(proxy, *args):
    return codex(proxy.folder, f"{proxy.wire.url}/proxy/mine", *args)


def test_a_turn_and_its_resumption_are_one_conversation(proxy, model, tmp_path):
    said = through(proxy, "--skip-git-repo-check", "run: echo hi")
    through(proxy, "--skip-git-repo-check", "resume", "--last", "and again")
    assert sorted(proxy.wire.bodies(("/v1/responses",))) == sorted(model.bodies)
    [only] = proxy.conversations()
    rows = [row for row in proxy.said(only["conversation"]) if row[0] != "user"]
    assert rows == [*CALL, ("assistant", "text")]
    assert {row["state"] for row in proxy.recorded()} == {"complete"}
    model.bodies.clear()
    assert codex(tmp_path / "direct", model.url, "--skip-git-repo-check", "run: echo hi") == said == "I see it. (2)"


def test_retries_are_attempts(proxy, model):
    for trouble in [(500, "server_error"), 0, 3, 6]:
        model.troubles.append(trouble)
        through(proxy, "--skip-git-repo-check", "run: echo hi")
    through(proxy, "--skip-git-repo-check", "run: echo hi")
    roots = [item for item in proxy.conversations() if "parent" not in item]
    # Each run of the program is a conversation of its own, though all begin in the same way.
    assert len(roots) == 5 and len(proxy.conversations()) == 5
    for item in roots:
        rows = [row for row in proxy.said(item["conversation"]) if row[0] != "user"]
        assert rows[-3:] == CALL, rows


def test_nothing_keeps_the_key(proxy):
    through(proxy, "--skip-git-repo-check", "run: echo hi")
    files = [path for path in proxy.folder.rglob("*") if path.is_file() and "home" not in path.parts]
    assert files and not [path for path in files if b"sk-canary-2" in path.read_bytes()]


@pytest.fixture
def responses(tmp_path, model):
    """The address of `convo serve` before the model's Chat Completions."""
    (tmp_path / "convo.toml").write_text(f'[[upstream]]\nname = "up"\nurl = "{model.url}"\nwire = "openai-chat"\n')
    command = [PROGRAM, "--store", f"sled:{tmp_path / 'store'}", "--json", "serve", "--config", str(tmp_path / "convo.toml")]
    process = subprocess.Popen([*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    yield json.loads(process.stdout.readline())["listening"]
    process.terminate()
    assert process.wait(60) == 0
    assert model.unexpected == []


@pytest.mark.parametrize("websockets", ["false", "true"])
def test_a_model_of_chat_completions_answers_as_directly(responses, model, tmp_path, websockets):
    def over_convo(*args):
        return codex(tmp_path / "over", responses, "--skip-git-repo-check", *args, model="up/gpt-5", websockets=websockets)

    said = [over_convo("run: echo hi"), over_convo("resume", "--last", "and again")]
    over = [json.loads(body) for body in model.bodies]
    assert all("messages" in body for body in over) and len(over) == 3
    [result] = [message for message in over[-1]["messages"] if message["role"] == "tool"]
    assert "hi" in result["content"]
    model.bodies.clear()
    directly = [codex(tmp_path / "direct", model.url, "--skip-git-repo-check", *args)
                for args in [["run: echo hi"], ["resume", "--last", "and again"]]]
    assert said == directly == ["I see it. (2)", "I see it. (3)"]
