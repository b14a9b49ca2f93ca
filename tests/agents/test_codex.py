"""Codex as it is: what it says passes byte for byte, and is stored as one would draw it."""

from conftest import run

CALL = [("assistant", "tool_call"), ("tool", "tool_result"), ("assistant", "text")]


def codex(folder, url, *args):
    settings = folder / "home/.codex"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "config.toml").write_text(f"""
model = "gpt-5"
model_provider = "up"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.up]
name = "up"
base_url = "{url}/v1"
env_key = "UP_KEY"
wire_api = "responses"
supports_websockets = false
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
