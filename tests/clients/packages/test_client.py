"""`Client` and `AsyncClient`: what is stored once, what is repeated, what is followed."""

import asyncio
import inspect
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

import conversation_store
import httpx
import pytest
from conversation_store import AsyncClient, Client, _calls, _errors, local

ROOT = pathlib.Path(__file__).parents[3]
ANSWER = b"".join(
    b"data: " + json.dumps({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).encode() + b"\n\n"
    for delta, reason in [({"role": "assistant", "content": "I "}, None), ({"content": "see."}, None), ({}, "stop")]
)


def said(text, role="user"):
    return {"role": role, "chunks": [{"type": "text", "text": text}]}


def texts(messages):
    return [message["chunks"][0]["text"] for message in messages]


def program_of(readme):
    return re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)[0]


def test_the_program_of_the_readme_runs():
    program = program_of(ROOT / "src/packages/python/README.md")
    assert len([line for line in program.splitlines() if line]) <= 10
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "assistant Ten past nine." in done.stdout and "await_user" in done.stdout


def test_it_imports_no_framework():
    program = "import sys, conversation_store; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "httpx" in imported
    assert not {"agents", "claude_agent_sdk", "google", "langchain_core", "pydantic", "pydantic_ai"} & set(imported)


def test_what_was_used_is_added_up_over_all_pages(address):
    pages = [
        {"rows": [{"model": "a", "answers": 1, "input": 10}, {"model": "b", "answers": 2, "input": 5}], "next": "1_x"},
        {"rows": [], "next": "2_x"},
        {"rows": [{"model": "", "answers": 4, "input": 1}, {"model": "b", "answers": 8, "input": 5}]},
    ]
    asked = []

    def answer(request):
        asked.append(request.url.params.get("after"))
        return httpx.Response(200, json=pages[len(asked) - 1])

    with Client(address, transport=httpx.MockTransport(answer)) as client:
        rows = client.usage(by=["model"])
    assert asked == [None, "1_x", "2_x"]
    assert rows == [
        {"model": "", "answers": 4, "input": 1},
        {"model": "a", "answers": 1, "input": 10},
        {"model": "b", "answers": 10, "input": 10},
    ]


def test_lists_and_messages_come_page_by_page(client, name):
    assert list(client.conversations(tags=[name])) == []
    for at in range(5):
        client.create(key=f"{name}/{at}?", tags=[name], title=f"number {at}", metadata={"at": at})
    assert [item["key"] for item in client.conversations(tags=[name], page_size=2)] == [f"{name}/{at}?" for at in (4, 3, 2, 1, 0)]
    client.append(f"{name}/0?", [said(str(at)) for at in range(7)])
    assert texts(client.messages(f"{name}/0?", page_size=3)) == [str(at) for at in range(7)]
    assert texts(client.messages(f"{name}/0?", start=5)) == ["5", "6"]
    assert texts(client.newest(f"{name}/0?", 2)) == ["5", "6"]
    assert client.describe(f"{name}/0?")["metadata"] == {"at": 0}


def test_what_the_server_documents_is_there():
    """All calls and parameters of the native API but those of operators, and of whole files."""
    described = json.loads(subprocess.run([os.environ["CONVO_BIN"], "openapi"], capture_output=True, text=True, check=True).stdout)
    documented = {}
    for path, methods in described["paths"].items():
        if path.startswith("/api/v1/") and not path.startswith("/api/v1/admin/") and not path.endswith(("/request", "/export", "/import")):
            for method, call in methods.items():
                names = [parameter["name"] for parameter in call["parameters"] if parameter["in"] == "query"]
                documented[method.upper(), re.sub(r"{\w+}", "7", path)] = names
    # A prompt may be had by POST, with tools, and events are followed.
    del documented["GET", "/api/v1/conversations/7/prompt"], documented["GET", "/api/v1/conversations/7/events"]
    given = {"index": 7, "messages": [], "tags": ["t"], "page_size": 7, "by": ["day"], "stream": b"", "metadata": {"NAME": 1}, "within": ["texts"]}
    ours = {}
    for name, describe in inspect.getmembers(_calls, inspect.isfunction):
        if name.startswith("_") or describe.__module__ != _calls.__name__ or name == "quote":
            continue
        parameters = inspect.signature(describe).parameters
        call = describe(**{name: given.get(name, "7") for name, kind in parameters.items() if kind.kind is not kind.VAR_KEYWORD})
        call = call.page("7") if isinstance(call, _calls.Pages) else call
        ours.setdefault((call.method, call.path), set()).update(query.partition("[")[0] for query in call.query)
    assert set(ours) == set(documented)
    for call, names in documented.items():
        missing = set(names) - ours[call]
        # Its options are the caller's words.
        assert not missing or call[1].endswith("/prompt"), (call, missing)


def test_a_list_is_filtered_and_an_append_changes_more(client, name):
    for at in range(3):
        client.append(f"{name}/{at}", said(str(at)), title=f"t{at}", add_tags=[name], metadata={"n": at, "text": "x"})
    described = client.describe(f"{name}/1")
    assert (described["title"], described["tags"], described["metadata"]) == ("t1", [name], {"n": 1, "text": "x"})
    client.append(f"{name}/1", [], remove_tags=[name], add_tags=["other"])
    assert client.describe(f"{name}/1")["tags"] == ["other"]

    def keys(**filters):
        return [item["key"].removeprefix(f"{name}/") for item in client.conversations(key_prefix=f"{name}/", **filters)]

    assert keys(sort="oldest") == ["0", "2", "1"] and keys(sort="created") == ["2", "1", "0"] and keys(title="T2") == ["2"]
    assert keys(metadata={"n": 2, "text": "x"}) == ["2"] and keys(tags=[name]) == ["2", "0"]
    last = client.describe(f"{name}/2")["last_activity"]
    assert keys(since=last) == ["1", "2"] and keys(until=last) == ["0"]
    assert name not in str(client.unfinished())
    with pytest.raises(conversation_store.NotFound):
        client.exchange("0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b")


def test_the_asynchronous_client_has_every_method(client, name, asynchronous):
    methods = [method for method, _ in inspect.getmembers(Client) if not method.startswith("_")]
    assert methods == [method for method, _ in inspect.getmembers(AsyncClient) if not method.startswith("_")]

    async def program(client):
        await client.append(name, [said(str(at)) for at in range(4)])
        found = [message async for message in client.messages(name, page_size=3)]

        async def answer():
            for at in range(0, len(ANSWER), 10):
                yield ANSWER[at : at + 10]

        ingested = await client.ingest(name, "openai-chat", answer())
        async with client.follow(name) as follower:
            kinds = [(await anext(follower))["kind"] for _ in range(5)]
        return texts(found), ingested["finish_reason"], kinds

    assert asynchronous(program) == ([str(at) for at in range(4)], "stop", ["chunk"] * 4 + ["begin"])


def test_a_conversation_changes(client, name):
    receipt = client.append(name, [said("one"), said("two", "assistant"), said("three")], expect="new")
    assert client.fork(name, at_seq=receipt["first_seq"], key=f"{name}-fork")["parent"]["conversation"] == receipt["conversation"]
    assert texts(client.messages(f"{name}-fork")) == ["one"]
    assert [item["key"] for item in client.conversations(forked_from=receipt["conversation"])] == [f"{name}-fork"]
    client.remove(name, 1)
    client.rewind(name, 2)
    assert texts(client.messages(name)) == ["one"]
    client.set_title(name, "a title")
    client.set_metadata(name, {"a": 1})
    assert client.change_tags(name, add=["x", "y"]) == ["x", "y"]
    assert client.change_tags(name, remove=["x"]) == ["y"]
    described = client.describe(name)
    assert (described["title"], described["metadata"], described["tags"]) == ("a title", {"a": 1}, ["y"])
    client.summarize(name, 0, "They counted.")
    assert "They counted." in json.dumps(client.prompt(name, "openai-chat")["request"])
    assert client.redact(name, 0)["summaries"]
    assert client.stop(name)["ingests"] == 0
    client.delete(name)
    with pytest.raises(conversation_store.NotFound):
        client.describe(name)


def test_what_a_provider_says_is_read_checked_and_repaired(client, name):
    client.append(name, {**said("look"), "id": "item-of-mine"})
    pieces = (ANSWER[at : at + 7] for at in range(0, len(ANSWER), 7))
    assert client.ingest(name, "openai-chat", pieces, model="m-1")["finish_reason"] == "stop"
    assert texts(client.messages(name)) == ["look", "I see."]
    assert client.next_step(name)["step"] == "await_user"
    assert client.message(name, 1)["model"] == "m-1"
    assert [place["conversation"] for place in client.find("item-of-mine")] == [client.describe(name)["conversation"]]
    assert [(row["model"], row["uncounted"]) for row in client.usage(by=["model"], tags=[name])] == []
    client.change_tags(name, add=[name])
    assert [(row["model"], row["uncounted"]) for row in client.usage(by=["model"], tags=[name])] == [("m-1", 1)]
    request = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}
    assert not client.check("openai-chat", request)["accepted"]
    repaired = client.repair("openai-chat", {**request, "messages": [*request["messages"], {"role": "user", "content": "hi"}]})
    assert client.check("openai-chat", repaired["request"])["accepted"] and repaired["report"]
    assert "anthropic" in client.targets()
    tool = {"name": "f", "parameters": {"type": "object"}}
    assert client.prompt(name, "anthropic", tools=[tool], model="m")["request"]["tools"]


class Loses(httpx.BaseTransport):
    """The network of a client, which loses the answers of the first requests to a path."""

    def __init__(self, path, count):
        self.path, self.count, self.sent = path, count, 0
        self.network = httpx.HTTPTransport()

    def handle_request(self, request):
        response = self.network.handle_request(request)
        if self.path not in request.url.path:
            return response
        self.sent += 1
        if self.sent <= self.count:
            response.read()
            raise httpx.ReadError("lost", request=request)
        return response


def test_an_append_whose_answer_is_lost_is_stored_once(address, name):
    network = Loses("/messages", 2)
    with Client(address, transport=network) as client:
        assert client.append(name, said("once"))["duplicate"]
        assert network.sent == 3
        assert texts(client.messages(name)) == ["once"]
        client.append(name, said("mine"), idempotency_key="k")
        assert client.append(name, said("mine"), idempotency_key="k")["duplicate"]
        with pytest.raises(conversation_store.KeyReused):
            client.append(name, said("other"), idempotency_key="k")


def test_a_write_that_may_be_stored_is_not_repeated(address, name):
    network = Loses("/fork", 1)
    with Client(address, transport=network) as client:
        client.append(name, said("x"))
        with pytest.raises(conversation_store.OutcomeUnknown):
            client.fork(name)
    assert network.sent == 1
    with Client("http://127.0.0.1:9", retries=1) as client, pytest.raises(conversation_store.Unreachable):
        client.fork(name)


def test_what_is_before_the_server_may_answer(name):
    answers = []

    def answered(request):
        status, text = answers.pop(0)
        return httpx.Response(status, text=text)

    with Client("http://127.0.0.1:9", transport=httpx.MockTransport(answered)) as client:
        for status in (502, 503, 504):
            answers[:] = [(status, "<html>"), (200, '{"last_seq": 1}')]
            assert client.describe(name) == {"last_seq": 1}
            answers[:] = [(status, "<html>"), (200, '{"last_seq": 1}')]
            assert client.append(name, said("x")) == {"last_seq": 1}
            answers[:] = [(status, "<html>")]
            with pytest.raises(conversation_store.ServerFailed):
                client.set_title(name, "x")
        answers[:] = [(200, "<html>")]
        with pytest.raises(conversation_store.ServerFailed, match="no JSON"):
            client.describe(name)


def test_an_answer_that_asks_to_wait_is_obeyed(server_with):
    server = server_with("limits.requests_per_second = 4")
    with Client(server.address, server.secrets["ada"]) as client:
        for at in range(8):
            client.append("chat", said(str(at)))
        assert texts(client.messages("chat")) == [str(at) for at in range(8)]
    with Client(server.address, server.secrets["ada"], retries=0) as client:
        with pytest.raises(conversation_store.Busy) as refused:
            for _ in range(8):
                client.describe("chat")
    assert (refused.value.status, refused.value.code) == (429, "rate_limit_exceeded") and refused.value.retry_after


def test_errors_are_classes_by_their_code(client, name):
    client.append(name, said("x"))
    with pytest.raises(conversation_store.StaleHead) as stale:
        client.append(name, said("y"), expect=7)
    assert stale.value.details["actual"] == 1 and stale.value.status == 412
    with pytest.raises(conversation_store.NameTaken):
        client.create(key=name)
    with pytest.raises(conversation_store.InvalidRequest) as invalid:
        client.append(name, {"role": "nobody", "chunks": []})
    assert invalid.value.param is not None or invalid.value.message
    table = (ROOT / "src/docs/http-api.md").read_text().partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| ([0-9, a-z]+) \|", table, re.MULTILINE)
    codes = {code: int(status[:3]) for codes, status in rows for code in re.findall(r"`(\w+)`", codes)}
    assert len(codes) > 30
    kinds = {code: type(refusal(code, status)) for code, status in codes.items()}
    assert {code for code, kind in kinds.items() if kind is _errors.ServerFailed} == {
        "read_only",
        "closed",
        "poisoned",
        "went_back",
        "io",
        "corrupt",
        "unsupported_version",
        "internal",
    }


def refusal(code, status):
    return _errors.refusal(httpx.Response(status, json={"error": {"code": code, "message": "m"}}))


def test_a_follower_goes_on_over_kills(server, name):
    with Client(server.address, server.secrets["ada"]) as client:
        client.append(name, said("0"))
        client.append(name, said("1"))
        with client.follow(name, since=client.entries(name, limit=1)["cursor"]) as follower:
            assert next(follower)["seq"] == 2
            address = server.address
            server.kill()
            server.start(address.rpartition(":")[2])
            client.append(name, said("2"))
            assert next(follower)["seq"] == 3
            later = follower.cursor
        assert next(client.follow(name, since=0))["seq"] == 1
        client.append(name, said("3"))
        assert next(client.follow(name, since=later))["seq"] == 4
        client.delete(name)
        client.append(name, said("another"))
        with pytest.raises(conversation_store.StaleCursor):
            next(client.follow(name, since=later))


def test_a_follower_has_every_entry_whatever_characters_are_in_it(client, name, asynchronous):
    odd = ["one", "two\u2028lines\u2029and\x85more\x0b\x1c\r", "three"]
    client.append(name, [said(text) for text in odd])
    with client.follow(name) as follower:
        assert [next(follower)["chunk"]["text"] for _ in odd] == odd

    async def program(client):
        async with client.follow(name) as follower:
            return [(await anext(follower))["chunk"]["text"] for _ in odd]

    assert asynchronous(program) == odd


def test_a_follower_is_closed_by_another_thread(server, name):
    """While it waits for an entry, while it has one, and while it waits for a server."""

    def followed(follower, seen):
        for entry in follower:
            seen.put(entry["seq"])
        seen.put("ended")

    def begin(client):
        follower, seen = client.follow(name), queue.Queue()
        threading.Thread(target=followed, args=(follower, seen), daemon=True).start()
        assert seen.get(timeout=30) == 1
        return follower, seen

    with Client(server.address, server.secrets["ada"]) as client:
        client.append(name, said("0"))
        for at in range(20):
            follower, seen = begin(client)
            if at % 2:
                # It has begun to wait.
                while not follower._asking.locked():
                    time.sleep(0.001)
            follower.close()
            assert seen.get(timeout=30) == "ended"
            assert list(follower) == []
            follower.close()
        follower, seen = begin(client)
        port = server.address.rpartition(":")[2]
        server.kill()
        while not follower._following._failed_since:
            time.sleep(0.001)
        follower.close()
        assert seen.get(timeout=30) == "ended"
        server.start(port)


def test_a_follower_that_comes_back_after_a_deletion_has_ended(server, name):
    with Client(server.address, server.secrets["ada"]) as client:
        client.append(name, said("0"))
        with client.follow(name) as follower:
            assert next(follower)["seq"] == 1
            port = server.address.rpartition(":")[2]
            server.kill()
            server.start(port)
            client.delete(name)
            assert list(follower) == []


def test_a_follower_may_be_waited_for_with_a_time_limit(address, name):
    async def program():
        async with AsyncClient(address) as client:
            await client.append(name, said("0"))
            async with client.follow(name) as follower:
                seen = [(await anext(follower))["seq"]]
                for at in range(3):
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(anext(follower), 0.05)
                    await client.append(name, said("1"))
                    seen.append((await asyncio.wait_for(anext(follower), 20))["seq"])
                await client.delete(name)
                return seen, [entry async for entry in follower]

    assert asyncio.run(program()) == ([1, 2, 3, 4], [])


def test_followers_keep_no_call_waiting(address, name):
    async def program():
        async with AsyncClient(address) as client:
            await client.append(name, said("0"))

            async def follow():
                async with client.follow(name) as follower:
                    first = await anext(follower)
                    connected.release()
                    return first["seq"], (await anext(follower))["seq"]

            # More than the connections that `httpx` has by default.
            connected = asyncio.Semaphore(0)
            following = [asyncio.create_task(follow()) for _ in range(120)]
            for _ in following:
                await asyncio.wait_for(connected.acquire(), 20)
            await asyncio.wait_for(client.append(name, said("1")), 20)
            return await asyncio.gather(*following)

    assert asyncio.run(program()) == [(1, 2)] * 120


@pytest.mark.parametrize("key", ["", ".", "..", "a\ud800"])
def test_what_an_address_takes_for_a_step_is_no_name(client, key):
    for call in (client.describe, client.delete, client.entries, lambda key: list(client.messages(key)), lambda key: next(client.follow(key))):
        with pytest.raises(ValueError, match="no conversation can be named"):
            call(key)


@pytest.mark.parametrize("key", ["a/../b", "%2F", "/", "a\nb", "?x#y;z", "\U0001f600\0", "a\\b", "+ "])
def test_a_key_may_have_any_characters(client, name, key):
    key = f"{key}{name}{key}"
    client.append(key, said(key))
    assert client.describe(key)["key"] == key and texts(client.messages(key)) == [key]


def test_a_follower_ends_with_its_conversation(client, name):
    client.append(name, said("0"))
    seen = []
    with client.follow(name) as follower:
        seen.append(next(follower))
        deleting = threading.Thread(target=client.delete, args=(name,))
        deleting.start()
        seen.extend(follower)
    deleting.join()
    assert [entry["seq"] for entry in seen] == [1]
    with pytest.raises(conversation_store.NotFound):
        next(client.follow(name))


def test_an_asynchronous_follower_sees_what_comes(address, name):
    async def program():
        async with AsyncClient(address) as client:
            await client.append(name, said("0"))

            async def follow():
                async with client.follow(name) as follower:
                    return [(await anext(follower))["seq"] for _ in range(3)]

            following = asyncio.create_task(follow())
            await client.append(name, said("1"))
            await client.append(name, said("2"))
            return await asyncio.wait_for(following, 20)

    assert asyncio.run(program()) == [1, 2, 3]


def test_a_local_server_keeps_a_folder_and_names_what_is_wrong(tmp_path):
    async def program():
        server = local()
        async with server as client:
            await client.append("chat", said("x"))
            folder = server._folder
            assert folder.exists()
        assert not folder.exists()

    asyncio.run(program())
    with local(folder=tmp_path / "here") as client:
        client.append("kept", said("x"))
    with local(folder=tmp_path / "here") as client:
        assert texts(client.messages("kept")) == ["x"]
    with pytest.raises(conversation_store.ConversationStoreError, match="nonsense"):
        local(settings="nonsense = 1").__enter__()
    with pytest.raises(FileNotFoundError, match="CONVO_BIN"):
        local(program="no-such-program").__enter__()
