"""The example of a chat server, as a process: pages come late, are cut and come back, stop, and send at one time."""

import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from upstream import Model

EXAMPLES = pathlib.Path(__file__).parents[3] / "src/packages/python/examples"


class Slow:
    """A model that says a word each time it is let."""

    def __init__(self):
        self.may = may = threading.Semaphore(0)
        self.gone = gone = threading.Event()
        self.asked = asked = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                asked.set()
                try:
                    for number in range(1000):
                        may.acquire()
                        delta = {"role": "assistant", "content": f"word{number} "}
                        piece = (
                            b"data: "
                            + json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}).encode()
                            + b"\n\n"
                        )
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                except OSError:
                    gone.set()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def chat_server(address):
    started = []

    def start(model):
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        environment = {
            **os.environ,
            "CONVO_URL": address,
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_API_KEY": "sk-1",
            "MODEL": "m-1",
        }
        command = [sys.executable, "-m", "uvicorn", "chat_server:app", "--fd", str(listening.fileno()), "--log-level", "warning"]
        started.append(subprocess.Popen(command, cwd=EXAMPLES, env=environment, pass_fds=[listening.fileno()]))
        # A connection waits until the program accepts it.
        return httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=30)

    yield start
    for process in started:
        process.kill()
        process.wait()


def events(page, chat, since, until):
    """The entries after a seq, up to the first that is wanted."""
    found = []
    with page.stream("GET", f"/chats/{chat}/events", params={"since": since}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
                if until(found[-1]):
                    return found
    raise AssertionError(found)


def words(entries):
    return "".join(entry["chunk"]["text"] for entry in entries if entry["kind"] == "chunk" and entry["role"] == "assistant")


def test_a_chat_is_stored_and_said_once(chat_server, name):
    page = chat_server(Model())
    assert page.get(f"/chats/{name}").json() == []
    seq = page.post(f"/chats/{name}", json={"id": "1", "text": "hello"}).json()["seq"]
    assert words(events(page, name, seq, lambda entry: entry["kind"] == "finish")) == "I see it. (1)"
    # The page repeats what it has no answer for.
    assert page.post(f"/chats/{name}", json={"id": "1", "text": "hello"}).json()["seq"] == seq
    # Another page has seen less.
    assert page.post(f"/chats/{name}", json={"id": "2", "text": "at one time", "seen": seq}).status_code == 409
    messages = page.get(f"/chats/{name}").json()
    assert [(message["role"], message["chunks"][0]["text"]) for message in messages] == [
        ("user", "hello"),
        ("assistant", "I see it. (1)"),
    ]
    seen = messages[-1]["last_seq"]
    seq = page.post(f"/chats/{name}", json={"id": "3", "text": "again", "seen": seen}).json()["seq"]
    assert words(events(page, name, seq, lambda entry: entry["kind"] == "finish")) == "I see it. (2)"


def test_a_message_that_was_stored_and_not_answered_is_answered_when_it_comes_again(chat_server, client, name):
    client.append(name, {"role": "user", "id": "1", "chunks": [{"type": "text", "text": "hello"}]}, idempotency_key="1")
    page = chat_server(Model())
    seq = page.post(f"/chats/{name}", json={"id": "1", "text": "hello"}).json()["seq"]
    assert words(events(page, name, seq, lambda entry: entry["kind"] == "finish")) == "I see it. (1)"


def test_pages_resume_each_word_once_and_stop_it(chat_server, client, name):
    model = Slow()
    page = chat_server(model)
    seq = page.post(f"/chats/{name}", json={"id": "1", "text": "hello"}).json()["seq"]
    assert model.asked.wait(20)
    for _ in range(3):
        model.may.release()
    first = events(page, name, seq, lambda entry: "word1" in str(entry))
    for _ in range(2):
        model.may.release()
    # The page was cut, and another one comes late.
    rest = events(page, name, first[-1]["seq"], lambda entry: "word4" in str(entry))
    whole = events(page, name, seq, lambda entry: "word4" in str(entry))
    assert words(first) + words(rest) == words(whole) == "word0 word1 word2 word3 word4 "
    assert page.post(f"/chats/{name}/stop").json() == {"stopped": 1}
    ended = events(page, name, whole[-1]["seq"], lambda entry: entry["kind"] in ("interrupt", "finish"))
    assert ended[-1]["kind"] == "interrupt" or ended[-1]["finish_reason"] == "interrupted", ended
    # The model is not read any more.
    for _ in range(990):
        model.may.release()
    assert model.gone.wait(20)
    [_, answer] = page.get(f"/chats/{name}").json()
    assert (answer["state"], answer["chunks"][0]["text"]) == ("interrupted", words(whole))


def test_an_error_of_the_model_is_shown(chat_server, name):
    model = Model()
    model.troubles.extend([(400, "invalid_request_error")])
    page = chat_server(model)
    seq = page.post(f"/chats/{name}", json={"id": "1", "text": "hello"}).json()["seq"]
    events(page, name, seq, lambda entry: entry.get("chunk", {}).get("type") == "error")
    # The next turn goes on.
    seen = page.get(f"/chats/{name}").json()[-1]["last_seq"]
    seq = page.post(f"/chats/{name}", json={"id": "2", "text": "again", "seen": seen}).json()["seq"]
    assert words(events(page, name, seq, lambda entry: entry["kind"] == "finish")).startswith("I see it.")
