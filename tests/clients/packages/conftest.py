"""The package for Python as it is installed, against real servers."""

import asyncio
import os
import pathlib
import re
import sys
import types

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


@pytest.fixture
def page():
    """The code of a framework in its page, as a module."""

    def load(framework):
        text = (ROOT / "src/docs/python-frameworks.md").read_text()
        [code] = re.findall(rf"```python\n# {framework}\n(.*?)```", text, re.DOTALL)
        module = types.ModuleType(framework.replace("-", "_"))
        exec(compile(code, framework, "exec"), module.__dict__)
        return module

    return load
