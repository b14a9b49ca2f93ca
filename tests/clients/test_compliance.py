"""The Open Responses compliance suite, for a model behind each of the five wires. It is no part of the project: `COMPLIANCE` names the
program that runs it, which takes an address, a key and a model."""

import os
import subprocess

import pytest
from conftest import Server
from wires import KEY, MODEL, WIRES, Model, anything

SUITE = os.environ.get("COMPLIANCE")


@pytest.mark.skipif(not SUITE, reason="COMPLIANCE names no suite")
@pytest.mark.parametrize("wire", WIRES)
def test_open_responses(tmp_path, monkeypatch, wire):
    monkeypatch.setenv("UPSTREAM_KEY", KEY)
    model = Model(wire, anything)
    server = Server(tmp_path, f'[[upstream]]\nname = "{wire}"\nurl = "{model.url}"\nwire = "{wire}"\nkey_env = "UPSTREAM_KEY"\n')
    try:
        command = [SUITE, f"{server.address}/v1", server.secrets["ada"], f"{wire}/{MODEL}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    finally:
        server.kill()
    assert done.returncode == 0 and "All tests passed" in done.stdout, done.stdout + done.stderr
    model.check()
