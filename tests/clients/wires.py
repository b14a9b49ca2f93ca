"""A model behind one of the five wires. It takes only requests that its wire takes, and reads each into one form:

    ("system" | "user" | "assistant", TEXT)   ("thought", TEXT)   ("call", NAME, ARGUMENTS)   ("result", TEXT)

What it says is a list of `Think`, `Say` and `Call`. A request that it does not expect is kept in `wrong`, and refused.

`python wires.py WIRE` serves one for any client: it calls the first tool, and says a sentence to its result.
"""

import binascii
import http.server
import json
import queue
import socket
import struct
import sys
import threading
from dataclasses import dataclass, field

WIRES = ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"]
MODEL = "m-1"
SENTENCE = "I see it."


@dataclass
class Say:
    text: str


@dataclass
class Think:
    text: str
    signature: str = "c2lnbmVk"


@dataclass
class Call:
    name: str
    arguments: dict
    id: str = "call_1"


@dataclass
class Patch:
    """A call of a custom tool, of the only wire that has them in namespaces."""

    name: str
    input: str
    namespace: str
    id: str = "call_1"


@dataclass
class Refuse:
    """An answer that is an error."""

    status: int
    message: str = "not now"


@dataclass
class Cut:
    """An answer whose connection ends after so many events."""

    says: list
    events: int


@dataclass
class Request:
    """What a request says."""

    history: list
    tools: dict = field(default_factory=dict)
    choice: object = None
    fields: dict = field(default_factory=dict)


class Unexpected(Exception):
    pass


# The server's own key of the upstream: no client's key comes here.
KEY = "sk-upstream"
KEY_HEADERS = {"anthropic": ("x-api-key", KEY), "gemini": ("x-goog-api-key", KEY)}


def want(condition, problem):
    if not condition:
        raise Unexpected(problem)


def known(fields, names, place):
    """No field has a name that the wire does not know."""
    want(isinstance(fields, dict), f"{place}: {fields!r} is no object")
    for name in fields:
        want(name in names, f"{place}: {name} is not known")


def text_of(content, kinds):
    """A content that is a text, or parts with one each."""
    if isinstance(content, str):
        return content
    for part in content:
        want(part.get("type") in kinds, f"a part of type {part.get('type')}")
    return "".join(part["text"] for part in content)


def joined(history):
    """Texts of one role in a row are one: wires part them differently."""
    out = []
    for entry in history:
        if out and entry[0] in ("system", "user", "assistant") and out[-1][0] == entry[0]:
            out[-1] = (entry[0], out[-1][1] + "\n\n" + entry[1])
        else:
            out.append(entry)
    return out


# --- what is asked


def asked_chat(path, query, body):
    want((path, query) == ("/v1/chat/completions", ""), f"{path}?{query}")
    known(body, {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens",
                 "temperature", "top_p", "presence_penalty", "frequency_penalty", "response_format", "reasoning_effort", "verbosity",
                 "service_tier", "user", "safety_identifier", "prompt_cache_key"}, "the request")
    want(body["model"] == MODEL and body["stream"] is True, "model or stream")
    want(body["stream_options"] == {"include_usage": True}, "stream_options")
    history, open_calls = [], []
    for message in body["messages"]:
        role = message["role"]
        known(message, {"role", "content", "tool_calls", "tool_call_id", "name", "refusal"}, f"a message of {role}")
        if role == "tool":
            want(message["tool_call_id"] in open_calls, f"a result without a call: {message}")
            open_calls.remove(message["tool_call_id"])
            history.append(("result", text_of(message["content"], {"text"})))
            continue
        want(not open_calls, f"calls without results: {open_calls}")
        kinds = {"text"} if role != "user" else {"text", "image_url", "file"}
        if isinstance(message.get("content"), list):
            texts = [part["text"] for part in message["content"] if part["type"] == "text"]
            want(all(part["type"] in kinds for part in message["content"]), f"parts of {role}")
            content = "".join(texts)
        else:
            content = message.get("content")
        if content:
            history.append(({"developer": "system"}.get(role, role), content))
        for call in message.get("tool_calls") or []:
            want(call["type"] == "function" and call["id"], f"a call: {call}")
            open_calls.append(call["id"])
            history.append(("call", call["function"]["name"], json.loads(call["function"]["arguments"])))
    want(not open_calls, f"calls without results: {open_calls}")
    tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in body.get("tools", [])}
    return Request(history, tools, body.get("tool_choice"), body)


def asked_responses(path, query, body):
    want((path, query) == ("/v1/responses", ""), f"{path}?{query}")
    for name in ("previous_response_id", "conversation", "background", "metadata"):
        want(name not in body, f"{name} is not for the upstream")
    want(body["model"] == MODEL and body["stream"] is True and body["store"] is False, "model, stream or store")
    want("reasoning.encrypted_content" in body["include"], "include")
    history, open_calls = [], []
    if body.get("instructions"):
        history.append(("system", body["instructions"]))
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            role = {"developer": "system"}.get(item["role"], item["role"])
            texts = item["content"] if isinstance(item["content"], list) else [{"type": "input_text", "text": item["content"]}]
            history.append((role, "".join(part.get("text", "") for part in texts)))
        elif kind == "reasoning":
            want(item["encrypted_content"], "reasoning without its content")
            history.append(("thought", "".join(part["text"] for part in item["summary"])))
        elif kind == "function_call":
            open_calls.append(item["call_id"])
            history.append(("call", item["name"], json.loads(item["arguments"])))
        elif kind == "custom_tool_call":
            open_calls.append(item["call_id"])
            history.append(("call", item["name"], {"input": item["input"]}))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            want(item["call_id"] in open_calls, f"a result without a call: {item}")
            open_calls.remove(item["call_id"])
            history.append(("result", text_of(item["output"], {"input_text", "output_text"})))
        else:
            raise Unexpected(f"an item of type {kind}")
    want(not open_calls, f"calls without results: {open_calls}")
    tools = {tool["name"]: tool.get("parameters") for tool in body.get("tools", []) if "name" in tool}
    return Request(history, tools, body.get("tool_choice"), body)


def asked_anthropic(path, query, body):
    want((path, query) == ("/v1/messages", ""), f"{path}?{query}")
    known(body, {"model", "max_tokens", "messages", "system", "stream", "tools", "tool_choice", "temperature", "top_p", "thinking",
                 "output_config", "metadata", "service_tier"}, "the request")
    want(body["model"] == MODEL and body["stream"] is True and body["max_tokens"] > 0, "model, stream or max_tokens")
    history, last, open_calls = [], None, []
    if system := body.get("system"):
        history.append(("system", text_of(system, {"text"})))
    for message in body["messages"]:
        role = message["role"]
        want(role in ("user", "assistant") and role != last, f"{role} follows {last}")
        last = role
        blocks = message["content"]
        for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
            kind = block["type"]
            if kind == "text":
                want(block["text"].strip(), "a text without words")
                history.append((role, block["text"]))
            elif kind == "thinking":
                want(role == "assistant" and block["signature"], "thinking without its signature")
                history.append(("thought", block["thinking"]))
            elif kind == "tool_use":
                want(role == "assistant", "a call of the user")
                open_calls.append(block["id"])
                history.append(("call", block["name"], block["input"]))
            elif kind == "tool_result":
                want(role == "user" and block["tool_use_id"] in open_calls, f"a result without a call: {block}")
                open_calls.remove(block["tool_use_id"])
                history.append(("result", text_of(block.get("content", ""), {"text"})))
            else:
                want(kind in ("image", "document") and role == "user", f"a block of type {kind}")
        want(role == "assistant" or not open_calls, f"calls without results: {open_calls}")
    want(last == "user", "the assistant's message is the last")
    return Request(history, {tool["name"]: tool["input_schema"] for tool in body.get("tools", [])}, body.get("tool_choice"), body)


def asked_gemini(path, query, body):
    want((path, query) == (f"/v1beta/models/{MODEL}:streamGenerateContent", "alt=sse"), f"{path}?{query}")
    known(body, {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "serviceTier"}, "the request")
    history, last = [], None
    if system := body.get("systemInstruction"):
        history.append(("system", "".join(part["text"] for part in system["parts"])))
    for content in body["contents"]:
        role = {"user": "user", "model": "assistant"}[content["role"]]
        want(role != last, f"{role} follows {last}")
        last = role
        for part in content["parts"]:
            if "functionCall" in part:
                history.append(("call", part["functionCall"]["name"], part["functionCall"].get("args", {})))
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                result = response.get("result", response)
                history.append(("result", result if isinstance(result, str) else json.dumps(result)))
            elif part.get("thought"):
                history.append(("thought", part["text"]))
            elif "inlineData" not in part:
                history.append((role, part["text"]))
    tools = [tool for tools in body.get("tools", []) for tool in tools["functionDeclarations"]]
    return Request(history, {tool["name"]: tool["parametersJsonSchema"] for tool in tools}, body.get("toolConfig"), body)


def asked_converse(path, query, body):
    want((path, query) == (f"/model/{MODEL}/converse-stream", ""), f"{path}?{query}")
    known(body, {"messages", "system", "toolConfig", "inferenceConfig", "outputConfig", "additionalModelRequestFields", "serviceTier"},
          "the request")
    history, last, open_calls = [], None, []
    if system := body.get("system"):
        history.append(("system", "".join(block["text"] for block in system)))
    for message in body["messages"]:
        role = message["role"]
        want(role in ("user", "assistant") and role != last, f"{role} follows {last}")
        last = role
        for block in message["content"]:
            want(len(block) == 1, f"a block of several kinds: {block}")
            if "text" in block:
                want(block["text"].strip(), "a text without words")
                history.append((role, block["text"]))
            elif "reasoningContent" in block:
                thought = block["reasoningContent"]["reasoningText"]
                want(thought["signature"], "reasoning without its signature")
                history.append(("thought", thought["text"]))
            elif "toolUse" in block:
                open_calls.append(block["toolUse"]["toolUseId"])
                history.append(("call", block["toolUse"]["name"], block["toolUse"]["input"]))
            elif "toolResult" in block:
                result = block["toolResult"]
                want(result["toolUseId"] in open_calls, f"a result without a call: {block}")
                open_calls.remove(result["toolUseId"])
                history.append(("result", "".join(part.get("text", json.dumps(part.get("json"))) for part in result["content"])))
            else:
                want("image" in block or "document" in block, f"a block: {block}")
        want(role == "assistant" or not open_calls, f"calls without results: {open_calls}")
    config = body.get("toolConfig", {})
    tools = {tool["toolSpec"]["name"]: tool["toolSpec"]["inputSchema"]["json"] for tool in config.get("tools", [])}
    want(tools or not any(entry[0] in ("call", "result") for entry in history), "calls, but no tools")
    return Request(history, tools, config.get("toolChoice"), body)


# --- what is said


def halves(text):
    return [half for half in (text[:len(text) // 2], text[len(text) // 2:]) if half]


def data(event, name=None):
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


def said_chat(says, number):
    made = {"id": f"chatcmpl_{number}", "object": "chat.completion.chunk", "created": 1, "model": MODEL}

    def chunk(delta, reason=None):
        return data({**made, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    events, calls = [chunk({"role": "assistant", "content": ""})], 0
    for part in says:
        if isinstance(part, Say):
            events += [chunk({"content": half}) for half in halves(part.text)]
        elif isinstance(part, Call):
            first = {"index": calls, "id": part.id, "type": "function", "function": {"name": part.name, "arguments": ""}}
            events.append(chunk({"tool_calls": [first]}))
            for half in halves(json.dumps(part.arguments)):
                events.append(chunk({"tool_calls": [{"index": calls, "function": {"arguments": half}}]}))
            calls += 1
    usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
    return [*events, chunk({}, "tool_calls" if calls else "stop"), data({**made, "choices": [], "usage": usage}), b"data: [DONE]\n\n"]


def said_responses(says, number):
    events, output = [], []
    response = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": MODEL, "status": "in_progress", "output": [],
                "store": False}

    def add(kind, **fields):
        events.append({"type": kind, "sequence_number": len(events), **fields})

    add("response.created", response=response)
    for at, part in enumerate(says):
        if isinstance(part, Say):
            content = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
            item = {"type": "message", "id": f"msg_{number}_{at}", "role": "assistant", "status": "completed", "content": [content]}
            where = {"item_id": item["id"], "output_index": at, "content_index": 0}
            add("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "content": []})
            add("response.content_part.added", **where, part={**content, "text": ""})
            for half in halves(part.text):
                add("response.output_text.delta", **where, delta=half, logprobs=[])
            add("response.output_text.done", **where, text=part.text, logprobs=[])
            add("response.content_part.done", **where, part=content)
        elif isinstance(part, Think):
            summary = {"type": "summary_text", "text": part.text}
            item = {"type": "reasoning", "id": f"rs_{number}_{at}", "summary": [summary], "encrypted_content": part.signature}
            where = {"item_id": item["id"], "output_index": at, "summary_index": 0}
            add("response.output_item.added", output_index=at, item={**item, "summary": []})
            add("response.reasoning_summary_part.added", **where, part={**summary, "text": ""})
            for half in halves(part.text):
                add("response.reasoning_summary_text.delta", **where, delta=half)
            add("response.reasoning_summary_text.done", **where, text=part.text)
            add("response.reasoning_summary_part.done", **where, part=summary)
        elif isinstance(part, Patch):
            item = {"type": "custom_tool_call", "id": f"ctc_{number}_{at}", "call_id": part.id, "name": part.name, "input": part.input,
                    "namespace": part.namespace, "status": "completed"}
            where = {"item_id": item["id"], "output_index": at}
            add("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "input": ""})
            for half in halves(part.input):
                add("response.custom_tool_call_input.delta", **where, delta=half)
            add("response.custom_tool_call_input.done", **where, input=part.input)
        else:
            text = json.dumps(part.arguments)
            item = {"type": "function_call", "id": f"fc_{number}_{at}", "call_id": part.id, "name": part.name, "arguments": text,
                    "status": "completed"}
            where = {"item_id": item["id"], "output_index": at}
            add("response.output_item.added", output_index=at, item={**item, "status": "in_progress", "arguments": ""})
            for half in halves(text):
                add("response.function_call_arguments.delta", **where, delta=half)
            add("response.function_call_arguments.done", **where, arguments=text, name=part.name)
        add("response.output_item.done", output_index=at, item=item)
        output.append(item)
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 109}
    add("response.completed", response={**response, "status": "completed", "output": output, "usage": usage})
    return [data(event, event["type"]) for event in events]


def said_anthropic(says, number):
    usage = {"input_tokens": 100, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL, "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": usage}
    events = [{"type": "message_start", "message": message}]
    for index, part in enumerate(says):
        if isinstance(part, Say):
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": half} for half in halves(part.text)]
        elif isinstance(part, Think):
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": half} for half in halves(part.text)]
            deltas.append({"type": "signature_delta", "signature": part.signature})
        else:
            start = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves(json.dumps(part.arguments))]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if any(isinstance(part, Call) for part in says) else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return [data(event, event["type"]) for event in events]


def said_gemini(says, number):
    parts = []
    for part in says:
        if isinstance(part, Say):
            parts += [{"text": half} for half in halves(part.text)]
        elif isinstance(part, Think):
            parts += [{"text": part.text, "thought": True}]
        else:
            parts.append({"functionCall": {"name": part.name, "args": part.arguments}, "thoughtSignature": "c2lnbmVk"})
    made = {"modelVersion": MODEL, "responseId": f"r_{number}"}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 9, "totalTokenCount": 109}
    chunks = [{"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}], "usageMetadata": usage, **made} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return [data(chunk) for chunk in chunks]


def frame(kind, payload):
    """A message of AWS's event stream."""
    headers = b""
    for name, value in ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event")):
        headers += struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    prelude += struct.pack(">I", binascii.crc32(prelude))
    whole = prelude + headers + body
    return whole + struct.pack(">I", binascii.crc32(whole))


def said_converse(says, number):
    events = [("messageStart", {"role": "assistant"})]
    for index, part in enumerate(says):
        where = {"contentBlockIndex": index}
        if isinstance(part, Say):
            deltas = [{"text": half} for half in halves(part.text)]
        elif isinstance(part, Think):
            deltas = [{"reasoningContent": {"text": half}} for half in halves(part.text)]
            deltas.append({"reasoningContent": {"signature": part.signature}})
        else:
            events.append(("contentBlockStart", {**where, "start": {"toolUse": {"toolUseId": part.id, "name": part.name}}}))
            deltas = [{"toolUse": {"input": half}} for half in halves(json.dumps(part.arguments))]
        events += [("contentBlockDelta", {**where, "delta": delta}) for delta in deltas]
        events.append(("contentBlockStop", where))
    reason = "tool_use" if any(isinstance(part, Call) for part in says) else "end_turn"
    events.append(("messageStop", {"stopReason": reason}))
    usage = {"inputTokens": 100, "outputTokens": 9, "totalTokens": 109}
    events.append(("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    return [frame(*event) for event in events]


ASKED = {"openai-chat": asked_chat, "openai-responses": asked_responses, "anthropic": asked_anthropic, "gemini": asked_gemini,
         "bedrock-converse": asked_converse}
SAID = {"openai-chat": said_chat, "openai-responses": said_responses, "anthropic": said_anthropic, "gemini": said_gemini,
        "bedrock-converse": said_converse}


def error_of(wire, status, message):
    if wire == "anthropic":
        return {"type": "error", "error": {"type": "api_error", "message": message}}
    if wire == "gemini":
        return {"error": {"code": status, "message": message, "status": "UNAVAILABLE"}}
    if wire == "bedrock-converse":
        return {"message": message}
    return {"error": {"message": message, "type": "server_error", "param": None, "code": None}}


class Model:
    """`answers`: what it says, for a request; without it, what `expects` was given, in that order."""

    def __init__(self, wire, answers=None):
        self.wire, self.wrong, self.requests, self.expected = wire, [], [], []
        self.answers = answers or self.next
        # How many events may be sent: all, unless it is held.
        self.held, self.may = False, queue.Queue()
        # Set when a client went before the end of an answer.
        self.left = threading.Event()
        self.lock = threading.Lock()
        self.arrived = threading.Condition(self.lock)
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                path, _, query = self.path.partition("?")
                try:
                    model.check_key(self.headers)
                    request = ASKED[wire](path, query, json.loads(body))
                    request.history = joined(request.history)
                    with model.lock:
                        model.requests.append(request)
                        model.arrived.notify_all()
                        number = len(model.requests)
                        says = model.answers(request)
                except Exception as problem:  # Whatever is wrong with a request: the test says so.
                    model.wrong.append(f"{self.path}: {problem!r}\n{body.decode()}")
                    return self.refuse(400, f"unexpected: {problem!r}")
                if isinstance(says, Refuse):
                    return self.refuse(says.status, says.message)
                cut = says.events if isinstance(says, Cut) else None
                events = SAID[wire](says.says if isinstance(says, Cut) else says, number)
                self.send_response(200)
                kind = "application/vnd.amazon.eventstream" if wire == "bedrock-converse" else "text/event-stream"
                self.send_header("content-type", kind)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                self.wfile.flush()
                try:
                    for at, event in enumerate(events):
                        if at == cut:
                            self.connection.shutdown(socket.SHUT_RDWR)
                            self.close_connection = True
                            return None
                        if model.held:
                            model.wait(self.connection)
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    model.left.set()
                    self.close_connection = True
                return None

            def refuse(self, status, message):
                body = json.dumps(error_of(wire, status, message)).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def check_key(self, headers):
        name, value = KEY_HEADERS.get(self.wire, ("authorization", f"Bearer {KEY}"))
        want(headers.get(name) == value, f"the key is {headers.get(name)!r}")
        want(self.wire != "anthropic" or headers.get("anthropic-version"), "anthropic-version is missing")
        want(not any("convo_" in value for value in headers.values()), "a key of the server itself came here")

    def wait(self, connection):
        """Until the next event may be sent, or the client has gone."""
        while True:
            try:
                return self.may.get(timeout=0.02)
            except queue.Empty:
                connection.setblocking(False)
                try:
                    if connection.recv(1, socket.MSG_PEEK) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                finally:
                    connection.setblocking(True)
                if not self.held:
                    return None

    def hold(self, events=0):
        """From now on only so many events are sent."""
        self.may = queue.Queue()
        for _ in range(events):
            self.may.put(True)
        self.held = True

    def came(self, requests):
        """Waits for so many requests."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= requests, 30)

    def release(self):
        self.held = False

    def expect(self, history, *says, **fields):
        """The next request has this history, and is answered so. `fields`: what else of it has to be."""
        self.expected.append((history, list(says), fields))

    def next(self, request):
        want(self.expected, "no request is expected")
        history, says, fields = self.expected.pop(0)
        want(request.history == history, f"expected {history}, got {request.history}")
        for name, value in fields.items():
            want(getattr(request, name) == value, f"{name}: expected {value!r}, got {getattr(request, name)!r}")
        return says[0] if len(says) == 1 and isinstance(says[0], (Refuse, Cut)) else says

    def check(self):
        """Nothing unexpected was asked, and all that was expected."""
        assert self.wrong == [], "\n".join(self.wrong)
        assert self.expected == [], self.expected


def anything(request):
    """Calls the first tool, and says a sentence to its result, or where there is none."""
    tools, is_answered = list(request.tools), request.history[-1][0] == "result"
    number = sum(entry[0] == "call" for entry in request.history)
    return [Say(SENTENCE)] if is_answered or not tools else [Call(tools[0], {"location": "here"}, f"call_{number}")]


if __name__ == "__main__":
    served = Model(sys.argv[1], anything)
    print(served.url, flush=True)
    try:
        sys.stdin.read()
    finally:
        print("\n".join(served.wrong), file=sys.stderr)
        sys.exit(1 if served.wrong else 0)
