"""Programs as their makers publish them, a model with a script, and convo between the two."""

import json
import os
import pathlib
import subprocess
import time
import urllib.request

import pytest
from upstream import Model, Wire

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("CONVO", str(ROOT / "target/debug/convo"))
PROGRAMS = pathlib.Path(os.environ.get("AGENTS", str(ROOT / "target/agents/node_modules/.bin")))


class Proxy:
    """`convo proxy` before the model, and what it recorded."""

    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        command = [PROGRAM, "--store", f"sled:{folder / 'store'}", "--json", "proxy", "mine", "--url", model.url]
        log = open(folder / "log", "a")
        self.process = subprocess.Popen([*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = json.loads(self.process.stdout.readline())["listening"]
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        self.wire = Wire((host, int(port)))

    def get(self, path):
        with urllib.request.urlopen(f"{self.url}/api/v1{path}") as answer:
            return json.load(answer)

    def conversations(self):
        """All conversations, the first one first, once all calls are recorded."""
        self.recorded()
        return sorted(self.get("/conversations?limit=100")["items"], key=lambda item: item["created_at"])

    def said(self, conversation):
        """What a conversation holds: a role and kinds for each message, without the system's."""
        messages = self.get(f"/conversations/{conversation}/messages?limit=1000")["messages"]
        rows = [(message["role"], *[kind(chunk) for chunk in message["chunks"]]) for message in messages]
        return [row for row in rows if row[0] != "system"]

    def recorded(self):
        """What its log says of each recorded call. A call is recorded when its answer has ended, which its program does not wait for."""
        until = time.monotonic() + 30
        while True:
            rows = [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]
            calls = [row for row in rows if row.get("message") == "exchange" and "wire" in row]
            recorded = [row for row in rows if row.get("message") == "recorded"]
            if len(recorded) >= len(calls):
                return recorded
            assert time.monotonic() < until, (calls, recorded)
            time.sleep(0.01)

    def end(self):
        self.process.terminate()
        assert self.process.wait(60) == 0


def kind(chunk):
    return chunk["type"]


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def proxy(tmp_path, model):
    proxy = Proxy(tmp_path, model)
    yield proxy
    proxy.end()
    assert model.unexpected == []


def run(folder, command, may_fail=False, **environment):
    """Runs a program with nothing of this machine's settings and keys."""
    home = folder / "home"
    (home / "work").mkdir(parents=True, exist_ok=True)
    kept = {"PATH": os.environ["PATH"], "HOME": str(home), **environment}
    done = subprocess.run([str(PROGRAMS / command[0]), *command[1:]], cwd=home / "work", env=kept, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    assert may_fail or done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.strip()
