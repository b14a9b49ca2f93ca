"""The official package `openai`, unchanged."""

import json
import socket
import threading

import openai
import pytest

#: One item of every kind that the package knows, as it sends them, and one that nobody knows.
ITEMS = [
    {"type": "message", "role": "user", "content": "plain\u0000 \U0001f600 \u2028"},
    {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_file", "file_data": "data:text/plain;base64,AAAA", "filename": "a.txt"}]},
    {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "s"}]},
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
    {"role": "assistant", "content": "easy"},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary", "content": [
        {"type": "output_text", "text": "one", "annotations": [{"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}], "logprobs": []},
        {"type": "refusal", "refusal": "two"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"b\": 1,\n \"a\": 1.50}", "status": "completed"},
    {"type": "function_call_output", "call_id": "call_1", "output": "42"},
    {"type": "function_call", "call_id": "call_2", "name": "g", "arguments": "not json"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "part"}, {"type": "input_image", "image_url": "https://e.x/a.png", "detail": "auto"}]},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_3", "name": "sh", "input": "ls"},
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": "a\nb"},
    {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": [{"file_id": "f", "score": 0.5}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q", "sources": []}},
    {"type": "computer_call", "id": "cu_1", "call_id": "call_4", "status": "completed", "pending_safety_checks": [], "action": {"type": "screenshot"}},
    {"type": "computer_call_output", "call_id": "call_4", "output": {"type": "computer_screenshot", "image_url": "https://e.x/a.png"}},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"},
    {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "c", "code": "1", "outputs": None},
    {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_5", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "local_shell_call_output", "id": "lsho_1", "output": "{}"},
    {"type": "shell_call", "id": "sh_1", "call_id": "call_6", "action": {"commands": ["ls"]}, "status": "completed"},
    {"type": "shell_call_output", "id": "sho_1", "call_id": "call_6", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
    {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_7", "status": "completed", "operation": {"type": "delete_file", "path": "a"}},
    {"type": "apply_patch_call_output", "id": "apco_1", "call_id": "call_7", "status": "completed", "output": "ok"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [{"name": "t", "input_schema": {"z": 1, "a": [1e5, 0.10]}}]},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "o"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
    {"type": "x_of_next_year", "z": None, "a": {"deep": [[[]]]}, "n": 12345678901234567890123},
]


def test_the_calls(client):
    made = client.conversations.create(metadata={"topic": "a"}, items=[{"role": "user", "content": "hello"}])
    assert client.conversations.retrieve(made.id).metadata == {"topic": "a"}
    assert client.conversations.update(made.id, metadata={"b": "c"}).metadata == {"b": "c"}
    assert client.conversations.update(made.id, metadata=None).metadata == {}
    added = client.conversations.items.create(made.id, items=[{"role": "user", "content": "again"}])
    assert [item.content[0].text for item in added.data] == ["again"]
    item = client.conversations.items.retrieve(added.last_id, conversation_id=made.id, include=["reasoning.encrypted_content"])
    assert item == added.data[0]
    assert client.conversations.items.delete(item.id, conversation_id=made.id).id == made.id
    assert len(client.conversations.items.list(made.id).data) == 1
    assert client.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError) as error:
        client.conversations.retrieve(made.id)
    assert error.value.code is None and error.value.request_id


def is_within(sent, got):
    """All that was sent is there, in its order; only id, type, status and the parts of a text were added."""
    def normal(item):
        item = dict(item)
        item.setdefault("type", "message")
        if item["type"] == "message" and isinstance(item["content"], str):
            text = item["content"]
            item["content"] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if item["role"] == "assistant" else [{"type": "input_text", "text": text}]
        return item
    sent = normal(sent)
    assert {key: got.get(key) for key in sent} == sent
    assert set(got) - set(sent) <= {"id", "status"}
    order = [key for key in got if key in sent and key not in ("id", "type", "status")]
    assert order == [key for key in sent if key not in ("id", "type", "status")]


@pytest.mark.parametrize("size", [1, 3, 20])
def test_every_item_comes_back_whole(server, client, size):
    conversation = client.conversations.create()
    made = []
    for at in range(0, len(ITEMS), size):
        answer = client.conversations.items.with_raw_response.create(conversation.id, items=ITEMS[at:at + size])
        made += json.loads(answer.text)["data"]
    assert len(made) == len(ITEMS)
    for sent, got in zip(ITEMS, made):
        is_within(sent, got)
    listed = client.conversations.items.with_raw_response.list(conversation.id, order="asc", limit=100)
    assert json.loads(listed.text)["data"] == made
    # Key order and the spelling of numbers, too.
    assert '"a":[1e5,0.10]' in listed.text.replace(": ", ":").replace(", ", ",") or '"a": [100000.0, 0.1]' in listed.text or '100000.0,0.1' in listed.text
    assert "12345678901234567890123" in listed.text
    newest = client.conversations.items.with_raw_response.list(conversation.id, limit=100)
    assert json.loads(newest.text)["data"] == made[::-1]
    for item in made:
        one = client.conversations.items.with_raw_response.retrieve(item["id"], conversation_id=conversation.id)
        assert json.loads(one.text) == item


def test_pages_of_both_orders(client):
    conversation = client.conversations.create()
    for start in range(0, 100, 20):
        items = [{"role": "user", "content": str(at)} for at in range(start, start + 20)]
        client.conversations.items.create(conversation.id, items=items)
    for order, expected in (("asc", range(100)), ("desc", range(99, -1, -1))):
        for limit in (100, 20, 7):
            items = client.conversations.items.list(conversation.id, order=order, limit=limit)
            assert [int(item.content[0].text) for item in items] == list(expected)


def test_large_outputs(client):
    conversation = client.conversations.create()
    output = "x" * 10_485_760
    made = client.conversations.items.create(conversation.id, items=[{"type": "function_call_output", "call_id": "c", "output": output}])
    assert client.conversations.items.retrieve(made.first_id, conversation_id=conversation.id).output == output
    with pytest.raises(openai.BadRequestError) as error:
        client.conversations.items.create(conversation.id, items=[{"type": "function_call_output", "call_id": "c", "output": output + "x"}])
    assert error.value.code == "string_above_max_length" and error.value.param == "items[0].output"


def test_errors_reach_the_client(server, client):
    with pytest.raises(openai.AuthenticationError) as error:
        openai.OpenAI(base_url=f"{server.address}/v1", api_key="wrong").conversations.retrieve("conv_x")
    assert error.value.code == "invalid_api_key"
    conversation = client.conversations.create()
    with pytest.raises(openai.BadRequestError) as error:
        client.conversations.items.create(conversation.id, items=[{"role": "user", "content": "x"}] * 21)
    assert (error.value.code, error.value.param, error.value.type) == ("array_above_max_length", "items", "invalid_request_error")
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.list(conversation.id, after="msg_none")


def test_two_owners(server):
    ada, grace = server.client("ada"), server.client("grace")
    mine = ada.conversations.create(items=[{"role": "user", "content": "secret"}])
    item = ada.conversations.items.list(mine.id).data[0]
    for call in (
        lambda: grace.conversations.retrieve(mine.id),
        lambda: grace.conversations.update(mine.id, metadata={}),
        lambda: grace.conversations.delete(mine.id),
        lambda: grace.conversations.items.list(mine.id),
        lambda: grace.conversations.items.create(mine.id, items=[{"role": "user", "content": "x"}]),
        lambda: grace.conversations.items.retrieve(item.id, conversation_id=mine.id),
        lambda: grace.conversations.items.delete(item.id, conversation_id=mine.id),
    ):
        with pytest.raises(openai.NotFoundError) as error:
            call()
        assert error.value.message.count(mine.id) == 1
    assert len(ada.conversations.items.list(mine.id).data) == 1


class Lossy:
    """A proxy that passes every request on, and drops the answer to the first few."""

    def __init__(self, address, drops):
        self.host, self.port = address.removeprefix("http://").split(":")
        self.drops = drops
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        request = b""
        while b"\r\n\r\n" not in request:
            request += client.recv(65536)
        head, body = request.split(b"\r\n\r\n", 1)
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
        while len(body) < length:
            body += client.recv(65536)
        head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection")) + b"\r\nconnection: close"
        with socket.create_connection((self.host, int(self.port))) as server:
            server.sendall(head + b"\r\n\r\n" + body)
            answer = b""
            while piece := server.recv(65536):
                answer += piece
        if self.drops > 0:
            self.drops -= 1
        else:
            client.sendall(answer)
        client.close()


def test_a_lost_answer_doubles_nothing(server, client):
    conversation = client.conversations.create()
    proxy = Lossy(server.address, drops=2)
    lossy = openai.OpenAI(base_url=f"{proxy.address}/v1", api_key=server.secrets["ada"])
    made = lossy.conversations.items.create(conversation.id, items=[{"role": "user", "content": "once"}, {"role": "user", "content": "only"}])
    assert proxy.drops == 0
    listed = client.conversations.items.list(conversation.id, order="asc").data
    assert listed == made.data and len(listed) == 2


def test_many_threads_add(client):
    conversation = client.conversations.create()
    def add(name):
        for at in range(5):
            client.conversations.items.create(conversation.id, items=[{"role": "user", "content": f"{name} {at} {part}"} for part in range(3)])
    threads = [threading.Thread(target=add, args=(name,)) for name in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    texts = [item.content[0].text for item in client.conversations.items.list(conversation.id, order="asc", limit=100)]
    assert len(texts) == len(set(texts)) == 120
    for at in range(0, 120, 3):
        assert [text.rsplit(" ", 1)[1] for text in texts[at:at + 3]] == ["0", "1", "2"]
