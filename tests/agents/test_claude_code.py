"""Claude Code as it is: what it says passes byte for byte, and is stored as one would draw it."""

import pytest
from conftest import run

TURN = [("user", "text", "text"), ("assistant", "tool_call"), ("user", "tool_result"), ("assistant", "text")]
MORE = [("user", "text"), ("assistant", "text")]
#: Events of an answer that calls a tool, and of one that is a text.
EVENTS = 7


def claude(folder, url, *args, may_fail=False):
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    command = ["claude", "-p", *args, "--allowedTools", "Bash"]
    return run(folder, command, may_fail, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="sk-canary-1", **quiet)


def through(proxy, *args, may_fail=False):
    return claude(proxy.folder, f"{proxy.wire.url}/proxy/mine", *args, may_fail=may_fail)


def passed_whole(proxy, model):
    """What the program sent is what the model got."""
    return sorted(proxy.wire.bodies(("/v1/messages",))) == sorted(model.bodies)


def test_output_is_the_same_without_the_proxy(proxy, model, tmp_path):
    said = through(proxy, "run: echo hi")
    assert passed_whole(proxy, model)
    model.bodies.clear()
    assert claude(tmp_path / "direct", model.url, "run: echo hi") == said == "I see it. (2)"


def test_a_turn_and_its_resumptions_are_one_conversation(proxy, model):
    through(proxy, "run: echo hi")
    through(proxy, "-c", "and again")
    through(proxy, "-c", "run: echo more")
    [only] = proxy.conversations()
    more = [("user", "text"), ("assistant", "tool_call"), ("user", "tool_result"), ("assistant", "text")]
    assert proxy.said(only["conversation"]) == TURN + MORE + more
    assert passed_whole(proxy, model)
    assert {row["state"] for row in proxy.recorded()} == {"complete"}


def test_parallel_calls_are_stored_with_both_results(proxy, model):
    assert through(proxy, "run both: echo one & echo two") == "I see it. (2)"
    [only] = proxy.conversations()
    both = [("assistant", "tool_call", "tool_call"), ("user", "tool_result", "tool_result")]
    assert proxy.said(only["conversation"]) == [TURN[0], *both, TURN[3]]


def test_a_forked_session_is_a_fork(proxy):
    through(proxy, "run: echo hi")
    through(proxy, "-c", "--fork-session", "elsewhere")
    through(proxy, "-c", "there again")
    first, fork = proxy.conversations()
    assert fork["parent"]["conversation"] == first["conversation"]
    assert proxy.said(first["conversation"]) == TURN
    assert proxy.said(fork["conversation"]) == TURN + MORE + MORE


def test_another_model_goes_on_with_the_same_conversation(proxy):
    through(proxy, "run: echo hi")
    through(proxy, "-c", "and again", "--model", "claude-haiku-4-5")
    through(proxy, "-c", "and back")
    # This program rewrites its beginning for that model: it is the same conversation all the same.
    assert len([item for item in proxy.conversations() if "parent" not in item]) == 1
    assert {row["state"] for row in proxy.recorded()} == {"complete"}


def test_compaction_leaves_what_was_said(proxy):
    through(proxy, "run: echo hi")
    through(proxy, "-c", "/compact")
    through(proxy, "-c", "and again")
    first = proxy.conversations()[0]
    assert proxy.said(first["conversation"])[:4] == TURN
    assert {row["state"] for row in proxy.recorded()} == {"complete"}


def test_agents_at_one_time_have_their_own_conversations(proxy, model):
    through(proxy, "ask both: run: echo one & run: echo two")
    through(proxy, "-c", "and again")
    main, *agents = proxy.conversations()
    assert len(agents) == 2, proxy.conversations()
    assert "kind:main" in main["tags"] and all("kind:agent" in agent["tags"] for agent in agents)
    assert len({tag for item in [main, *agents] for tag in item["tags"] if tag.startswith("session:")}) == 1
    assert proxy.said(main["conversation"])[1] == ("assistant", "tool_call", "tool_call")
    for agent in agents:
        assert proxy.said(agent["conversation"])[1:4] == TURN[1:]
    assert passed_whole(proxy, model)


@pytest.mark.parametrize("trouble", [(529, "overloaded_error"), (500, "api_error"), *range(EVENTS)], ids=str)
@pytest.mark.parametrize("call", [0, 1])
def test_a_call_that_fails_or_is_cut_is_no_fork(proxy, model, trouble, call):
    model.troubles.extend([None] * call + [trouble])
    # It gives up where a text that it has shown is cut.
    gives_up = call == 1 and trouble in (5, 6)
    said = through(proxy, "run: echo hi", may_fail=gives_up)
    assert said.startswith("API Error: Connection closed" if gives_up else "I see it."), said
    through(proxy, "-c", "and again")
    [only] = proxy.conversations()
    rows = proxy.said(only["conversation"])
    assert rows[0] == TURN[0] and rows[-2:] == MORE, rows
    kinds = [kind for _, *kinds in rows for kind in kinds]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 1, rows
    assert passed_whole(proxy, model)


def test_nothing_keeps_the_key(proxy):
    through(proxy, "run: echo hi")
    files = [path for path in proxy.folder.rglob("*") if path.is_file() and "home" not in path.parts]
    assert files and not [path for path in files if b"sk-canary-1" in path.read_bytes()]
