"""Streams that providers sent, byte by byte, encoded as streams of Responses and read by the official package `openai`: equal to what the
vendors' own packages read in the same bytes.

A folder of more recordings is no part of the project: `RECORDED` names it.
"""

import base64
import collections
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import re
import threading
from dataclasses import dataclass, field
from urllib.parse import urlparse

import anthropic
import boto3
import botocore.config
import botocore.exceptions
import botocore.parsers
import google.genai
import google.genai.errors
import openai
import pytest
from conftest import Server
from wires import frame

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/providers"
RECORDED = os.environ.get("RECORDED")
# No piece of a body ends where an event does.
PIECE = 777


@dataclass
class Case:
    name: str
    target: str
    body: bytes
    tools: list = field(default_factory=list)

    @property
    def wire(self):
        return self.target.partition("/")[0]


@dataclass
class Reading:
    """What an answer says."""

    # `("text" | "refusal" | "thought", TEXT)`, `("call", NAME, ARGUMENTS, ID)`; pieces of one kind in a row are one.
    said: list = field(default_factory=list)
    status: object = "failed"
    usage: object = None

    def add(self, kind, *what):
        if kind != "call" and not what[0]:
            return
        if kind != "call" and self.said and self.said[-1][0] == kind:
            what = (self.said.pop()[1] + what[0],)
        self.said.append((kind, *what))

    def call(self, name, arguments, id):
        try:
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError:
            pass
        self.add("call", name, arguments, id)


class Replay:
    """An upstream that sends what was recorded: the model's name says which."""

    def __init__(self, cases):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self):
                # A client may go before the end.
                with contextlib.suppress(OSError):
                    super().handle()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                model = json.loads(body).get("model") or self.path
                case = cases[int(re.search(r"case-(\d+)", model)[1])]
                self.send_response(200)
                is_binary = case.wire == "bedrock-converse"
                self.send_header("content-type", "application/vnd.amazon.eventstream" if is_binary else "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for at in range(0, len(case.body), PIECE):
                    piece = case.body[at:at + PIECE]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


# --- what the vendors' packages read

ENDS = ["response.completed", "response.incomplete", "response.failed"]

INCOMPLETE = {"length": "max_output_tokens", "max_tokens": "max_output_tokens", "MAX_TOKENS": "max_output_tokens",
              "content_filter": "content_filter", "content_filtered": "content_filter", "guardrail_intervened": "content_filter",
              "SAFETY": "content_filter", "PROHIBITED_CONTENT": "content_filter"}
COMPLETE = {"stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "refusal", "STOP"}


def status_of(reason):
    """What a finish reason of a provider is to a client of Responses."""
    if reason is None:
        return "failed"
    return "completed" if reason in COMPLETE else ("incomplete", INCOMPLETE.get(reason, reason))


def read_chat(url, model):
    reading = Reading()
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    reason, calls = None, []
    try:
        for chunk in client.chat.completions.create(model=model, messages=[{"role": "user", "content": "go"}], stream=True):
            usage = chunk.usage or (chunk.model_extra or {}).get("x_groq", {}).get("usage")
            for choice in [choice for choice in chunk.choices or [] if not choice.index]:
                usage = usage or (choice.model_extra or {}).get("usage")
                reason = choice.finish_reason or reason
                take_delta(reading, calls, choice.delta)
            if usage:
                usage = usage if isinstance(usage, dict) else usage.to_dict()
                # Not all servers count thoughts among what was completed.
                thought = usage.get("total_tokens", 0) - usage["prompt_tokens"]
                reading.usage = (usage["prompt_tokens"], max(usage["completion_tokens"], thought))
    except openai.APIError:
        reason = None
    for call in calls:
        reading.call(call["name"], call["arguments"], call["id"] or None)
    reading.status = status_of(reason)
    # What a message consists of has no order on this wire.
    reading.said.sort(key=lambda part: ["thought", "text", "refusal", "picture", "call"].index(part[0]))
    return reading


def take_delta(reading, calls, delta):
    extra = delta.model_extra or {}
    reading.add("thought", extra.get("reasoning_content") or extra.get("reasoning") or "")
    for part in delta.content if isinstance(delta.content, list) else [{"type": "text", "text": delta.content or ""}]:
        if part["type"] == "thinking":
            reading.add("thought", "".join(piece["text"] for piece in part["thinking"]))
        elif part["type"] == "text":
            reading.add("text", part["text"])
    sound = delta.audio.model_dump() if getattr(delta, "audio", None) else extra.get("audio") or {}
    reading.add("text", sound.get("transcript") or "")
    for image in extra.get("images") or []:
        reading.add("picture", image["image_url"]["url"].partition(";base64,")[2])
    reading.add("refusal", delta.refusal or "")
    pieces = [(piece.id, piece.index, piece.function or piece.model_extra["custom"]) for piece in delta.tool_calls or []]
    if delta.function_call:
        pieces.append((None, 0, delta.function_call))
    for id, index, of in pieces:
        of = of if isinstance(of, dict) else of.to_dict()
        # A name begins a call: not all servers count them.
        if of.get("name") and not any(call["id"] == id and call["index"] == index and id for call in calls):
            calls.append({"id": id, "index": index, "name": of["name"], "arguments": ""})
        call = next(call for call in reversed(calls) if call["index"] == index)
        arguments = of.get("arguments") or of.get("input") or ""
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)


def take_responses(reading, response):
    for item in response.output:
        if item.type == "message":
            for part in item.content:
                if part.type == "output_text":
                    reading.add("text", part.text)
                elif part.type == "refusal":
                    reading.add("refusal", part.refusal)
        elif item.type == "reasoning":
            # Open models say what they thought, and give no summary of it.
            reading.add("thought", "\n\n".join(part.text for part in item.summary or item.content or []))
        elif item.type == "function_call":
            reading.call(item.name, item.arguments, item.call_id)
        elif item.type == "custom_tool_call":
            reading.call(item.name, item.input, item.call_id)
        elif item.type == "image_generation_call":
            reading.add("picture", item.result)
        else:
            reading.add("call", item.type, None, None)
    details = response.incomplete_details
    reading.status = (response.status, details.reason) if details else response.status
    if usage := response.usage:
        reading.usage = (usage.input_tokens, usage.output_tokens)


def read_responses(url, model):
    reading = Reading()
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    try:
        for event in client.responses.create(model=model, input="go", stream=True):
            if event.type in ENDS:
                reading = Reading()
                take_responses(reading, event.response)
            elif event.type == "response.output_text.delta":
                reading.add("text", event.delta)
    except openai.APIError:
        pass
    return reading


def read_anthropic(url, model):
    reading = Reading()
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    with client.beta.messages.stream(model=model, max_tokens=100, messages=[{"role": "user", "content": "go"}]) as stream:
        written, has_failed = collections.defaultdict(str), False
        try:
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    written[event.index] += event.delta.partial_json
        except anthropic.APIError:
            has_failed = True
        whole = stream.current_message_snapshot
    for index, block in enumerate(whole.content):
        if block.type == "text":
            reading.add("text", block.text)
        elif block.type == "thinking":
            reading.add("thought", block.thinking)
        elif block.type == "tool_use":
            reading.call(block.name, written[index] or block.input, block.id)
    reading.status = "failed" if has_failed else status_of(whole.stop_reason)
    usage = whole.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    reading.usage = (usage.input_tokens + cached, usage.output_tokens)
    return reading


def read_gemini(url, model):
    reading = Reading()
    client = google.genai.Client(api_key="x", http_options={"base_url": url})
    reason = None
    try:
        for chunk in client.models.generate_content_stream(model=model, contents="go"):
            if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
                reason = chunk.prompt_feedback.block_reason.value
            for candidate in [one for one in chunk.candidates or [] if not one.index]:
                for part in (candidate.content and candidate.content.parts) or []:
                    if part.function_call:
                        take_call(reading, part.function_call)
                    elif part.text:
                        reading.add("thought" if part.thought else "text", part.text)
                    elif part.inline_data and part.inline_data.mime_type.startswith("image/"):
                        reading.add("picture", base64.b64encode(part.inline_data.data).decode())
                reason = candidate.finish_reason.value if candidate.finish_reason else reason
            if usage := chunk.usage_metadata:
                reading.usage = ((usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
                                 (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0))
    except google.genai.errors.APIError:
        reason = None
    reading.status = status_of(reason)
    return reading


def take_call(reading, call):
    """A call, or what comes of one by and by: each piece says where in the arguments it is."""
    if call.name:
        reading.call(call.name, call.args or {}, call.id)
    for piece in call.partial_args or []:
        at, steps = reading.said[-1][2], [key or int(index) for key, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", piece.json_path)]
        for step, after in zip(steps, steps[1:], strict=False):
            empty = [] if isinstance(after, int) else {}
            if isinstance(at, list) and step == len(at):
                at.append(empty)
            at = at[step] if isinstance(at, list) else at.setdefault(step, empty)
        values = (piece.string_value, piece.number_value, piece.bool_value)
        value = next((value for value in values if value is not None), None)
        if isinstance(at, list):
            at.append(value)
        else:
            at[steps[-1]] = at[steps[-1]] + value if isinstance(at.get(steps[-1]), str) else value


def read_converse(url, model):
    reading = Reading()
    client = boto3.client("bedrock-runtime", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x",
                          config=botocore.config.Config(retries={"max_attempts": 0}))
    reason, calls = None, {}
    try:
        for event in client.converse_stream(modelId=model, messages=[{"role": "user", "content": [{"text": "go"}]}])["stream"]:
            if start := event.get("contentBlockStart"):
                calls[start["contentBlockIndex"]] = [start["start"]["toolUse"], ""]
            elif of := event.get("contentBlockDelta"):
                delta = of["delta"]
                if "text" in delta:
                    reading.add("text", delta["text"])
                elif "toolUse" in delta:
                    calls[of["contentBlockIndex"]][1] += delta["toolUse"]["input"]
                else:
                    reading.add("thought", delta.get("reasoningContent", {}).get("text", ""))
            elif stop := event.get("contentBlockStop"):
                if call := calls.pop(stop["contentBlockIndex"], None):
                    reading.call(call[0]["name"], call[1] or {}, call[0]["toolUseId"])
            elif stop := event.get("messageStop"):
                reason = stop["stopReason"]
            elif said := event.get("metadata"):
                usage = said["usage"]
                reading.usage = (usage["inputTokens"] + usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0),
                                 usage["outputTokens"])
    except botocore.exceptions.EventStreamError:
        reason = None
    reading.status = status_of(reason)
    return reading


READERS = {"openai-chat": read_chat, "openai-responses": read_responses, "anthropic": read_anthropic, "gemini": read_gemini,
           "bedrock-converse": read_converse}


# --- what a client of the server reads


def read_encoded(client, model, tools):
    """The reading of the last event, after all others have been seen to lead to it."""
    with client.responses.stream(model=model, input="go", tools=tools) as stream:
        events = list(stream)
        last = events[-1]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert [event.type for event in events if event.type in ENDS] == [last.type]
        final = stream.get_final_response() if last.type == "response.completed" else last.response
    assert {event.response.id for event in events if hasattr(event, "response")} == {final.id}
    # A citation has what the package's type has.
    citations = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    # What has another shape comes as a dict.
    citations = [one if isinstance(one, dict) else one.model_dump() for one in citations]
    citations = [one for one in citations if one.get("type") == "url_citation"]
    assert all(one["url"] for one in citations)
    # A server of the same wire may leave out where the text cites it: then so does the answer.
    assert all((one["start_index"] is None) == (one["end_index"] is None) for one in citations)
    # Pieces: the package puts them together, or leaves it to its users.
    pieces, ids, names = collections.defaultdict(str), {}, []
    for event in events:
        at = getattr(event, "output_index", None)
        if at is None:
            continue
        id = event.item.id if hasattr(event, "item") else event.item_id
        assert ids.setdefault(at, id) == id
        if event.type.endswith(".delta"):
            part = getattr(event, "content_index", getattr(event, "summary_index", None))
            pieces[at, part] += event.delta
            if snapshot := getattr(event, "snapshot", None):
                assert snapshot == pieces[at, part]
        elif event.type == "response.output_item.done":
            names.append(at)
    assert sorted(names) == list(range(len(final.output)))
    assert [item.id for item in final.output] == [ids[at] for at in sorted(names)] and len(set(ids.values())) == len(ids)
    whole = {}
    for at, item in enumerate(final.output):
        if item.type == "message":
            texts = enumerate({"output_text": "text", "refusal": "refusal"}.get(content.type) for content in item.content)
            whole |= {(at, part): getattr(item.content[part], name) for part, name in texts if name}
        elif item.type == "reasoning":
            whole |= {(at, part): summary.text for part, summary in enumerate(item.summary)}
        elif item.type in ("function_call", "custom_tool_call"):
            whole[at, None] = item.arguments if item.type == "function_call" else item.input
    assert dict(pieces) == {place: text for place, text in whole.items() if text}
    again = list(client.responses.retrieve(final.id, stream=True))
    assert [(event.type, event.sequence_number) for event in again] == [(event.type, event.sequence_number) for event in events]
    assert again[-1].response == client.responses.retrieve(final.id)
    reading = Reading()
    take_responses(reading, final)
    return reading


# --- the recordings


def framed(text):
    """Events of Converse, of which a recording has the JSON alone, as Amazon sends them."""
    events = [json.loads(line.removeprefix("data:")) for line in text.splitlines() if line.strip()]
    return b"".join(frame(kind, payload) for event in events for kind, payload in event.items())


def case(name, target, body, request):
    """As it came over the wire: of some recordings the events alone are left."""
    if target == "bedrock-converse" and b":event-type" not in body:
        body = framed(body.decode())
    elif target.startswith("gemini") and body.startswith(b"["):
        body = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in json.loads(body))
    tools = request.get("tools") if isinstance(request, dict) else None
    tools = [tool for tool in tools or [] if tool.get("type") == "custom" and "name" in tool]
    return Case(name, target, body, tools)


def own_cases():
    for path in sorted(FIXTURES.glob("*/*/stream.txt")):
        request = json.loads((path.parent / "request.json").read_text())
        yield case(path.parent.name, path.parent.parent.name.replace("_", "-"), path.read_bytes(), request)


DIALECTS = {"api.groq.com": "groq", "api.mistral.ai": "mistral", "api.deepseek.com": "deepseek", "api.cerebras.ai": "cerebras",
            "openrouter.ai": "openrouter", "api.openai.com": None}


def target_of(exchange):
    """The wire of a recorded exchange, by its address."""
    if wire := exchange.get("wire"):
        return "openai-chat" if "chat.completion.chunk" in exchange["response"][:500] else wire
    address = urlparse(exchange["uri"] or "")
    if address.path.endswith("/chat/completions"):
        dialect = DIALECTS.get(address.netloc, "compatible")
        return f"openai-chat/{dialect}" if dialect else "openai-chat"
    ends = {"/responses": "openai-responses", "/v1/messages": "anthropic", ":streamGenerateContent": "gemini"}
    return next((wire for end, wire in ends.items() if address.path.endswith(end)), None)


# What an answer's first event says, with the line of its name.
BEGINS = re.compile(r'(?m)^(?:event:[^\n]*\n)?data: ?[^\n]{0,60}"type": ?"(?:message_start|response\.created)"')


def answers(body):
    """A recording may hold the answers of several turns."""
    begins = [0, *[found.start() for found in BEGINS.finditer(body)][1:], len(body)]
    return [body[begin:end] for begin, end in zip(begins, begins[1:], strict=False)]


def more_cases():
    for path in sorted(pathlib.Path(RECORDED).glob("*.jsonl.gz")):
        for line in gzip.open(path, "rt"):
            exchange = json.loads(line)
            body, target = exchange["response"], target_of(exchange) if isinstance(exchange["response"], str) else None
            is_stream = isinstance(body, str) and re.match("(data|event|:)", body)
            if is_stream and target and target.partition("/")[0] in READERS and exchange.get("status", 200) == 200:
                name = f"{pathlib.Path(exchange['file']).name} {exchange.get('i', '')}".strip()
                for at, answer in enumerate(answers(body)):
                    yield case(f"{name}, {at}" if at else name, target, answer.encode(), exchange.get("request"))


def differs(wanted, got):
    """What is not as it was said. An id that a provider did not give is the server's to make."""
    problems = []
    if wanted.status != got.status:
        problems.append(f"status: {wanted.status}, got {got.status}")
    # A package that raises an error shows no usage that comes with it.
    if wanted.usage != got.usage and not (wanted.status == "failed" and wanted.usage is None):
        problems.append(f"usage: {wanted.usage}, got {got.usage}")
    said = [(*part[:3], None) if part[0] == "call" and of[0] == "call" and of[3] is None else part
            for part, of in zip(got.said, wanted.said, strict=False)] + got.said[len(wanted.said):]
    if said != wanted.said:
        problems.append(f"said: {wanted.said}, got {said}")
    ids = [part[3] for part in got.said if part[0] == "call" and part[3] is not None]
    if len(set(ids)) != len(ids) or "" in ids:
        problems.append(f"ids of calls: {ids}")
    return problems


def judge(folder, cases):
    """How many of each wire are equal, and what is not so."""
    replay = Replay(cases)
    names = {target: target.replace("/", "-") for target in {case.target for case in cases}}
    row = '[[upstream]]\nname = "{}"\nurl = "{}"\nwire = "{}"\nkey_env = "UPSTREAM_KEY"\n\n'
    server = Server(folder, "".join(row.format(name, replay.url, target) for target, name in names.items()))
    figures, misses = collections.Counter(), {}
    try:
        client = server.client(max_retries=0, timeout=60)
        for number, case in enumerate(cases):
            try:
                wanted = READERS[case.wire](replay.url, f"case-{number}")
            except UNREAD as problem:
                misses[case.wire, case.name] = f"its package does not read it: {problem}"
                continue
            try:
                problems = differs(wanted, read_encoded(client, f"{names[case.target]}/case-{number}", case.tools))
            except (AssertionError, RuntimeError) as problem:
                problems = [repr(problem)]
            figures[case.wire, bool(problems)] += 1
            if problems:
                misses[case.wire, case.name] = "; ".join(problems)
    finally:
        server.kill()
        replay.server.shutdown()
    return figures, misses


UNREAD = (botocore.parsers.ResponseParserError, json.JSONDecodeError)
# Streams that are not read equal, and why.
KNOWN = {}
KNOWN_OF_MORE = {
    ("bedrock-converse", "amazon-bedrock-tool-no-args.chunks.txt"): "Amazon's package refuses a block that begins as nothing",
    ("openai-responses", "parallel-tool-call-wrapper.1.chunks.txt"): "an event is no JSON: it was changed after it was recorded",
    ("openai-responses", "test_openai_responses_model_mcp_list_tools_stream_backfills_missing_results.yaml 0"):
        "items of which the stream has no end come after the others",
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("cases", "known"), [
    pytest.param(own_cases, KNOWN, id="own"),
    pytest.param(more_cases, KNOWN_OF_MORE, id="more", marks=pytest.mark.skipif(not RECORDED, reason="RECORDED names no folder")),
])
def test_recorded_streams(tmp_path, monkeypatch, capsys, cases, known):
    monkeypatch.setenv("UPSTREAM_KEY", "x")
    found = list(cases())
    assert len(found) >= 64
    figures, misses = judge(tmp_path, found)
    with capsys.disabled():
        of = [f"{wire} {figures[wire, False]} of {figures[wire, False] + figures[wire, True]}" for wire in READERS]
        print(f"\nrecorded streams that are read equal: {', '.join(of)}")
        for place, problem in misses.items():
            print(f"  {': '.join(place)}: {known.get(place) or problem}")
    assert misses.keys() == known.keys()
