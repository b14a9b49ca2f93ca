"""A model with a script, and the wire between a program and convo, with all that passes there.

The model answers by what the last user's text wants: `run: COMMAND` calls the shell with it, `run both: A & B` calls it twice at one time,
`ask both: A & B` starts an agent for each, whose task is the text, and `tool: NAME {...}` calls a tool of `convo mcp`. Anything else
gets a sentence, and so do the results of calls.
"""

import http.server
import json
import re
import socket
import threading
import time

SENTENCE = "I see it."


class Model:
    """Serves Anthropic Messages, Chat Completions, Responses and Gemini. `troubles` go to the next calls: a status, or the number of events before a cut."""

    def __init__(self):
        self.bodies = bodies = []
        self.troubles = troubles = []
        self.unexpected = unexpected = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self):
                self.answer(404, b"{}")

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                path = self.path.partition("?")[0]
                # Gemini's methods follow the model.
                path, method = (":" + path.rpartition(":")[2],) * 2 if ":" in path else (path, "")
                if path.endswith("/count_tokens"):
                    return self.answer(200, b'{"input_tokens": 10}')
                if path not in SPOKEN:
                    unexpected.append(path)
                    return self.answer(404, b"{}")
                bodies.append(body)
                request = json.loads(body)
                trouble = troubles.pop(0) if troubles else None
                if isinstance(trouble, tuple):
                    status, kind = trouble
                    error = {"type": "error", "error": {"type": kind, "message": "not now"}}
                    return self.answer(status, json.dumps(error).encode())
                events = SPOKEN[path](request, len(bodies))
                if not request.get("stream") and not method.startswith(":stream"):
                    return self.answer(200, json.dumps(whole(events)).encode())
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for at, event in enumerate(events):
                    if at == trouble:
                        self.wfile.flush()
                        # What was sent arrives before the reset.
                        time.sleep(0.05)
                        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                        self.connection.shutdown(socket.SHUT_RDWR)
                        self.close_connection = True
                        return None
                    name = f"event: {event['type']}\n" if "type" in event else ""
                    piece = f"{name}data: {json.dumps(event)}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
                return None

            def answer(self, status, body):
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


def wanted(text):
    """The commands that a text asks for."""
    if both := re.search(r"run both: (.*) & (.*)", text):
        return list(both.groups())
    if one := re.search(r"run: (.*)", text):
        return [one.group(1)]
    return []


def messages(request, number):
    """A stream of Anthropic Messages."""
    last = request["messages"][-1]
    # Texts of the system may stand behind the user's.
    said = [message for message in request["messages"] if message["role"] != "system"]
    last = said[-1]
    parts = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else last["content"]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    has_results = any(part["type"] == "tool_result" for part in parts)
    text = texts[-1] if texts and request.get("tools") and not has_results else ""
    calls = [("Bash", {"command": command, "description": "x"}) for command in wanted(text)]
    if tasks := re.search(r"ask both: (.*) & (.*)", text):
        calls = [("Agent", {"description": "a task", "prompt": task, "subagent_type": "general-purpose"}) for task in tasks.groups()]
    if tool := re.search(r"tool: (\S+) (\{.*\})", text):
        calls = [(tool.group(1), json.loads(tool.group(2)))]
    blocks = [{"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": arguments}
              for at, (name, arguments) in enumerate(calls)]
    blocks = blocks or [{"type": "text", "text": f"{SENTENCE} ({number})"}]
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": request["model"], "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    events = [{"type": "message_start", "message": message}]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": half} for half in halves(block["text"])]
        else:
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves(json.dumps(block["input"]))]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    return events


def responses(request, number):
    """A stream of Responses."""
    items = request["input"]
    ended = max((at for at, item in enumerate(items) if item["type"] == "message" and item["role"] == "user"), default=-1)
    text = "".join(part.get("text", "") for part in items[ended]["content"]) if ended >= 0 else ""
    has_results = any(item["type"].endswith("_output") for item in items[ended + 1:])
    commands = [] if has_results else wanted(text)
    output = [{"type": "function_call", "id": f"fc_{number}_{at}", "call_id": f"call_{number}_{at}", "name": "exec_command",
               "arguments": json.dumps({"cmd": command}), "status": "completed"} for at, command in enumerate(commands)]
    part = {"type": "output_text", "text": f"{SENTENCE} ({number})", "annotations": []}
    if not has_results and (tool := re.search(r"tool: (\S+)__(\w+) (\{.*\})", text)):
        namespace, name, arguments = tool.groups()
        output = [{"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "namespace": namespace, "name": name,
                   "arguments": arguments, "status": "completed"}]
    output = output or [{"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}]
    response = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": request["model"], "status": "in_progress", "output": []}
    events = [{"type": "response.created", "response": response}]
    for at, item in enumerate(output):
        empty = {**item, "content": []} if "content" in item else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": at, "item": {**empty, "status": "in_progress"}})
        if "content" in item:
            where = {"item_id": item["id"], "output_index": at, "content_index": 0}
            events.append({"type": "response.content_part.added", **where, "part": {**part, "text": ""}})
            events += [{"type": "response.output_text.delta", **where, "delta": half} for half in halves(part["text"])]
            events.append({"type": "response.output_text.done", **where, "text": part["text"]})
            events.append({"type": "response.content_part.done", **where, "part": part})
        else:
            where = {"item_id": item["id"], "output_index": at}
            events += [{"type": "response.function_call_arguments.delta", **where, "delta": half} for half in halves(item["arguments"])]
            events.append({"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 109}
    events.append({"type": "response.completed", "response": {**response, "status": "completed", "output": output, "usage": usage}})
    return [{**event, "sequence_number": at} for at, event in enumerate(events)]


def chat(request, number):
    """A stream of Chat Completions. Of tools it calls Codex's shell."""
    made = {"id": f"chatcmpl_{number}", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    last, declared = request["messages"][-1], [tool["function"]["name"] for tool in request.get("tools", [])]
    content = last.get("content") or ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    commands = wanted(text) if last["role"] == "user" and "exec_command" in declared else []
    deltas = [{"role": "assistant", "content": ""}]
    for at, command in enumerate(commands):
        call = {"id": f"call_{number}_{at}", "type": "function", "function": {"name": "exec_command", "arguments": ""}}
        deltas.append({"tool_calls": [{"index": at, **call}]})
        deltas += [{"tool_calls": [{"index": at, "function": {"arguments": half}}]} for half in halves(json.dumps({"cmd": command}))]
    if not commands:
        deltas += [{"content": half} for half in halves(f"{SENTENCE} ({number})")]
    reason = "tool_calls" if commands else "stop"
    return [{**made, "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else reason}]} for delta in [*deltas, {}]]


def gemini(request, number):
    """A stream of Gemini."""
    last = request["contents"][-1]["parts"]
    commands = wanted("".join(part.get("text", "") for part in last))
    parts = [{"functionCall": {"name": "shell", "args": {"command": command}}} for command in commands]
    parts = parts or [{"text": half} for half in halves(f"{SENTENCE} ({number})")]
    made = {"responseId": f"gem-{number}", "modelVersion": "m-1", "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}}
    candidates = [{"index": 0, "content": {"role": "model", "parts": [part]}} for part in parts]
    candidates[-1]["finishReason"] = "STOP"
    return [{**made, "candidates": [candidate]} for candidate in candidates]


SPOKEN = {"/v1/messages": messages, "/v1/responses": responses, "/v1/chat/completions": chat, ":generateContent": gemini,
          ":streamGenerateContent": gemini}


def halves(text):
    return [text[:len(text) // 2], text[len(text) // 2:]]


def whole(events):
    """The answer without a stream."""
    if "candidates" in events[0]:
        parts = [part for event in events for part in event["candidates"][0]["content"]["parts"]]
        return {**events[-1], "candidates": [{**events[-1]["candidates"][0], "content": {"role": "model", "parts": parts}}]}
    if "choices" in events[0]:
        text = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {**events[0], "object": "chat.completion", "choices": [choice]}
    if events[-1]["type"] == "response.completed":
        return events[-1]["response"]
    message, parts = events[0]["message"], {}
    for event in events:
        if event["type"] == "content_block_start":
            parts[event["index"]] = {**event["content_block"], "written": ""}
        if event["type"] == "content_block_delta":
            parts[event["index"]]["written"] += event["delta"].get("text") or event["delta"].get("partial_json") or ""
    content = []
    for part in parts.values():
        written = part.pop("written")
        content.append({**part, "text": written} if part["type"] == "text" else {**part, "input": json.loads(written)})
    return {**message, "content": content, "stop_reason": events[-2]["delta"]["stop_reason"]}


class Wire:
    """Passes bytes between a program and a server, and keeps the bodies that the program sent."""

    def __init__(self, to):
        self.to = to
        self.sent = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(self.to)
            except OSError:
                client.close()
                continue
            kept = bytearray()
            self.sent.append(kept)
            threading.Thread(target=self.pass_on, args=(client, server, kept), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(server, client, None), daemon=True).start()

    @staticmethod
    def pass_on(source, sink, kept):
        try:
            while piece := source.recv(65536):
                if kept is not None:
                    kept += piece
                sink.sendall(piece)
        except OSError:
            pass
        for end in (sink, source):
            try:
                end.shutdown(socket.SHUT_WR if end is sink else socket.SHUT_RD)
            except OSError:
                pass

    def bodies(self, paths):
        """The bodies of what was sent to these paths."""
        found = []
        for kept in self.sent:
            rest = bytes(kept)
            while b"\r\n\r\n" in rest:
                head, _, rest = rest.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                size = int(length.group(1)) if length else 0
                path = head.split(b" ")[1].split(b"?")[0].decode()
                if head.startswith(b"POST") and path.endswith(paths):
                    found.append(rest[:size])
                rest = rest[size:]
        return found
