"""A real server process for the official clients, which are used as they are."""

import json
import os
import pathlib
import subprocess

import openai
import pytest

PROGRAM = os.environ.get("CONVO", str(pathlib.Path(__file__).parents[2] / "target/debug/convo"))


class Server:
    """A server with keys on a store of its own."""

    def __init__(self, folder, settings=""):
        self.folder = folder
        self.config = folder / "convo.toml"
        self.config.write_text(settings)
        self.keys = folder / "keys.json"
        self.secrets = {owner: self.key(owner) for owner in ("ada", "grace")}
        self.start()

    def key(self, owner, *options):
        command = [PROGRAM, "keys", "create", "--keys", str(self.keys), "--owner", owner, *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(self, port=0):
        store = f"sled:{self.folder / 'store'}"
        command = [PROGRAM, "--store", store, "--json", "serve", "--config", str(self.config), "--keys", str(self.keys)]
        log = open(self.folder / "log", "a")
        self.process = subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, stderr=log, text=True)
        self.address = json.loads(self.process.stdout.readline())["listening"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def client(self, owner="ada", **options):
        return openai.OpenAI(base_url=f"{self.address}/v1", api_key=self.secrets[owner], **options)

    def async_client(self, owner="ada", **options):
        return openai.AsyncOpenAI(base_url=f"{self.address}/v1", api_key=self.secrets[owner], **options)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


@pytest.fixture
def server_with(tmp_path):
    """Starts a server with settings of its own."""
    servers = []

    def start(settings):
        servers.append(Server(tmp_path, settings))
        return servers[0]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def client(server):
    return server.client()
