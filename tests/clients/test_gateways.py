"""The recipe of `src/docs/recipes.md` for gateways, as it is there.

LiteLLM is the package itself: it translates a prompt of ours to Anthropic's wire, and a stand-in for the provider after it judges what
arrives, by `convo check`. Its proxy is not run, and neither is Ollama: a stand-in of Chat Completions is in their place.
"""

import http.server
import json
import pathlib
import re
import subprocess
import threading
import types

import pytest
from conftest import PROGRAM

RECIPES = pathlib.Path(__file__).parents[2] / "src/docs/recipes.md"
TOOL = {"name": "ls", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}


def findings(target, request):
    """What a target refuses of a request."""
    run = subprocess.run([PROGRAM, "check", "--for", target, "--json"], input=request, capture_output=True, text=True)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    return [finding for finding in found if finding["level"].startswith("hard")]


class Upstream:
    """A server that keeps the requests, and answers each with the same body."""

    def __init__(self, body, kind):
        self.requests = requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                requests.append((self.path, self.rfile.read(int(self.headers["content-length"])).decode()))
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def chunk(delta, reason=None):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    made = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(made)}\n\n"


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{\"path\": \".\"}"}}
STREAM = (chunk({"role": "assistant", "tool_calls": [CALL]}) + chunk({}, "tool_calls") + "data: [DONE]\n\n").encode()


@pytest.fixture
def recipe(server):
    module = types.ModuleType("gateway")
    [code] = re.findall(r"```py\n(.*?)```", RECIPES.read_text(), re.DOTALL)
    exec(compile(code, RECIPES, "exec"), module.__dict__)
    module.SERVER = server.address
    return module


@pytest.mark.parametrize("target", ["openai-chat/compatible", "openai-chat/ollama", "openai-chat/databricks"])
def test_a_turn_through_a_gateway(server, recipe, target):
    gateway = Upstream(STREAM, "text/event-stream")
    key, chat = server.secrets["ada"], f"gateway {target}"
    report, stored = recipe.turn(chat, "look", gateway.url, "m", target, tools=[TOOL], key=key)
    assert report == [] and stored["message_indexes"] == [1], stored
    # The call got no result: the next prompt is repaired, and says so.
    report, _ = recipe.turn(chat, "and?", gateway.url, "m", target, tools=[TOOL], key=key)
    assert {line["rule"] for line in report} == {"outcome_unknown"}, report
    assert [path for path, _ in gateway.requests] == ["/v1/chat/completions"] * 2
    for _, request in gateway.requests:
        assert findings(target, request) == []
        assert json.loads(request)["stream"] is True


def test_litellm_translates_what_we_send(server, recipe):
    litellm = pytest.importorskip("litellm")
    gateway = Upstream(STREAM, "text/event-stream")
    key = server.secrets["ada"]
    for text in ["look", "and?", "well?"]:
        recipe.turn("litellm", text, gateway.url, "m", "openai-chat/databricks", tools=[TOOL], key=key)
    said = {"type": "message", "role": "assistant", "id": "msg_1", "model": "claude-haiku-4-5", "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}, "content": [{"type": "text", "text": "Yes."}]}
    claude = Upstream(json.dumps(said).encode(), "application/json")
    request = json.loads(gateway.requests[-1][1])
    answer = litellm.completion(
        model="anthropic/claude-haiku-4-5", api_base=claude.url, api_key="none", messages=request["messages"],
        tools=request["tools"], max_tokens=16,
    )
    assert answer.choices[0].message.content == "Yes."
    [(path, translated)] = claude.requests
    assert path == "/v1/messages" and findings("anthropic", translated) == [], translated
