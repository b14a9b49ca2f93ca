"""The package for Python as it is installed, against real servers."""

import asyncio
import os
import pathlib
import sys

import pytest
from conversation_store import AsyncClient, Client, local

#: The program of the tests is that of `local()`, too.
ROOT = pathlib.Path(__file__).parents[3]
os.environ.setdefault("CONVO_BIN", os.environ.get("CONVO", str(ROOT / "target/debug/convo")))
#: The model with a script, of the tests of agents.
sys.path.append(str(ROOT / "tests/agents"))


@pytest.fixture(scope="session")
def address():
    """A server without keys, of all tests that have conversations of their own."""
    with local() as client:
        yield client.url


@pytest.fixture
def client(address):
    with Client(address) as client:
        yield client


@pytest.fixture
def name(request):
    """A key that no other test has."""
    return request.node.name


@pytest.fixture
def asynchronous(address):
    """Runs a coroutine of a client."""
    def run(program):
        async def with_client():
            async with AsyncClient(address) as client:
                return await program(client)

        return asyncio.run(with_client())

    return run

