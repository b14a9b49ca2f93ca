"""Amazon Bedrock Converse: the request's messages, blocks, documents and tools. Called by oracle.py.

The types are those of botocore 1.44.5 (bedrock-runtime, Converse), by hand: the package's own validator knows neither the
rules nor the places. What the types do not know is soft: providers add fields every month.
"""
from __future__ import annotations

import base64
import binascii
import re

PARAMETERS = {"additionalModelRequestFields", "additionalModelResponseFieldPaths", "guardrailConfig", "inferenceConfig",
              "messages", "modelId", "outputConfig", "performanceConfig", "promptVariables", "requestMetadata",
              "serviceTier", "system", "toolConfig"}
ANY, TEXT, OBJECT, LIST = "any", "text", "object", "list"
# kind: {field: (required, type)}; None: any object; a type: the value itself.
REASONING_TEXT = {"text": (True, TEXT), "signature": (False, TEXT)}
MEDIA = {"format": (True, TEXT), "source": (True, OBJECT), "error": (False, OBJECT)}
KINDS = {
    "audio": MEDIA,
    "cachePoint": {"type": (True, TEXT), "ttl": (False, TEXT)},
    "citationsContent": {"content": (False, LIST), "citations": (False, LIST)},
    "document": {"format": (False, TEXT), "name": (True, TEXT), "source": (True, OBJECT), "context": (False, TEXT),
                 "citations": (False, OBJECT)},
    "guardContent": None,
    "image": MEDIA,
    "reasoningContent": {"reasoningText": (False, REASONING_TEXT), "redactedContent": (False, TEXT)},
    "searchResult": {"source": (True, TEXT), "title": (True, TEXT), "content": (True, LIST), "citations": (False, OBJECT)},
    "text": TEXT,
    "toolResult": {"toolUseId": (True, TEXT), "content": (True, LIST), "status": (False, TEXT), "type": (False, TEXT)},
    "toolUse": {"toolUseId": (True, TEXT), "name": (True, TEXT), "input": (True, ANY), "type": (False, TEXT)},
    "video": MEDIA,
}
ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}\Z")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
DOCUMENT = re.compile(r"(?:[a-zA-Z0-9()\[\]-]|[ \t\n\x0c\r](?![ \t\n\x0c\r]))+\Z")
DOCUMENTS, IMAGES = 5, 20


def misfits(c, value, kind, place):
    """BC-24 for what is not of its type, BC-25 for what no type knows."""
    if kind == ANY:
        return
    if kind == TEXT:
        if not isinstance(value, str):
            c.add("BC-24", place, "not a string")
        return
    if kind == LIST:
        if not isinstance(value, list):
            return c.add("BC-24", place, "not an array")
        for i, item in enumerate(value):
            if not isinstance(item, dict):
                c.add("BC-24", f"{place}[{i}]", "not an object")
        return
    if not isinstance(value, dict):
        return c.add("BC-24", place, "not an object")
    if kind in (OBJECT, None):
        return
    for name, (required, of) in kind.items():
        if name not in value:
            if required:
                c.add("BC-24", f"{place}.{name}", "required")
        elif value[name] is None and not required:
            pass
        else:
            misfits(c, value[name], of, f"{place}.{name}")
    for name in value:
        if name not in kind:
            c.add("BC-25", f"{place}.{name}", "not in the type", "unknown")


class Request:
    def __init__(self, c, model):
        self.c, self.model = c, model if isinstance(model, str) else ""
        self.names, self.documents, self.tools = set(), 0, False

    def text(self, text, place):
        if isinstance(text, str) and not text.strip():
            self.c.add("BC-08", place, "blank text", "soft" if text else "hard")

    def media(self, media, place):
        source = media.get("source")
        data = source.get("bytes") if isinstance(source, dict) else None
        if isinstance(data, str):
            try:
                good = bool(base64.b64decode(data, validate=True))
            except (binascii.Error, ValueError):
                good = False
            if not good:
                self.c.add("BC-26", f"{place}.source.bytes", "not base64")

    def image(self, image, place):
        if isinstance(image.get("format"), str) and image["format"] not in ("png", "jpeg", "gif", "webp"):
            self.c.add("BC-26", f"{place}.format", f"format {image['format']!r}")
        self.media(image, place)

    def document(self, document, place):
        self.documents += 1
        name = document.get("name")
        if isinstance(name, str):
            if len(name) > 200 or not DOCUMENT.match(name):
                self.c.add("BC-19", f"{place}.name", "bad name")
            if name in self.names:
                self.c.add("BC-19", f"{place}.name", "the name of an earlier document")
            self.names.add(name)
        self.media(document, place)

    def tool_id(self, block, place):
        self.tools = True
        if isinstance(block.get("toolUseId"), str) and not ID.match(block["toolUseId"]):
            self.c.add("BC-12", f"{place}.toolUseId", "bad id")

    def block(self, block, role, place):
        c = self.c
        if not isinstance(block, dict):
            return c.add("BC-24", place, "not an object")
        kinds = sorted(name for name in KINDS if name in block)
        if not kinds:
            return c.add("BC-25", place, f"unknown block {sorted(block)}", "unknown")
        if len(kinds) > 1:
            return c.add("BC-24", place, f"several kinds of content: {kinds}")
        kind, value = kinds[0], block[kinds[0]]
        for name in block:
            if name != kind:
                c.add("BC-25", f"{place}.{name}", "not in the type", "unknown")
        place = f"{place}.{kind}"
        misfits(c, value, KINDS[kind], place)
        hosted = kind == "toolResult" and isinstance(value, dict) and value.get("type") is not None
        if (kind in ("toolUse", "reasoningContent") and role == "user"
                or kind in ("toolResult", "image", "document", "video") and role == "assistant" and not hosted):
            c.add("BC-16", place, f"{kind} of the role {role}")
        if kind == "text":
            self.text(value, place)
        if not isinstance(value, dict):
            return
        if kind == "toolUse":
            self.tool_id(value, place)
            if isinstance(value.get("name"), str) and not NAME.match(value["name"]):
                c.add("BC-13", f"{place}.name", "bad name")
            if "input" in value and not isinstance(value["input"], dict):
                c.add("BC-15", f"{place}.input", "not an object", "hard" if isinstance(value["input"], str) else "soft")
        elif kind == "toolResult":
            self.result(value, place)
        elif kind == "reasoningContent":
            text = value.get("reasoningText")
            if "reasoningText" in value and not (isinstance(text, dict) and isinstance(text.get("signature"), str) and text["signature"]):
                claude = ("anthropic" in self.model or "claude" in self.model) and "inference-profile" not in self.model
                c.add("BC-23", f"{place}.reasoningText", "no signature", "hard" if claude else "soft")
        elif kind == "document":
            self.document(value, place)
        elif kind == "image":
            self.image(value, place)
        elif kind in ("video", "audio"):
            self.media(value, place)

    def result(self, result, place):
        self.tool_id(result, place)
        parts = result.get("content") if isinstance(result.get("content"), list) else []
        if not parts and result.get("status") == "error":
            self.c.add("BC-17", f"{place}.content", "a failure without content")
        for i, part in enumerate(parts):
            if not isinstance(part, dict) or not part:
                continue
            at, (kind, value) = f"{place}.content[{i}]", next(iter(sorted(part.items())))
            if kind == "text":
                self.text(value, f"{at}.text")
            elif kind == "image" and isinstance(value, dict):
                self.image(value, f"{at}.image")
            elif kind == "document" and isinstance(value, dict):
                self.document(value, f"{at}.document")

    def message(self, message, place):
        c = self.c
        if not isinstance(message, dict):
            return c.add("BC-03", place, "not an object")
        role = message.get("role")
        if not isinstance(role, str):
            return c.add("BC-03", f"{place}.role", "no role")
        if role not in ("user", "assistant"):
            c.add("BC-03", f"{place}.role", f"role {role!r}", "soft" if role == "system" else "hard")
        content, place = message.get("content"), f"{place}.content"
        if not isinstance(content, list) or not content:
            return c.add("BC-04", place, "not an array, or empty")
        for i, block in enumerate(content):
            self.block(block, role, f"{place}[{i}]")
        count = {kind: sum(isinstance(b, dict) and kind in b for b in content) for kind in ("document", "text", "image")}
        if count["document"] and not count["text"]:
            c.add("BC-18", place, "a document without a text")
        if count["image"] > IMAGES:
            c.add("BC-22", place, f"{count['image']} images")


def ids(message, kind):
    content = message.get("content")
    for i, block in enumerate(content if isinstance(content, list) else []):
        inner = block.get(kind) if isinstance(block, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("toolUseId"), str):
            yield i, inner["toolUseId"]


def sequence(c, messages):
    before = None
    for i, message in enumerate(messages):
        place, role = f"messages[{i}]", message.get("role") if isinstance(message.get("role"), str) else ""
        if before is None:
            if role == "assistant":
                c.add("BC-05", place, "begins with the assistant")
        elif role == (before.get("role") if isinstance(before.get("role"), str) else ""):
            c.add("BC-06", place, f"two messages of the role {role} in a row")
        after = messages[i + 1] if i + 1 < len(messages) else {}
        answered = {x for m in (after, message) for _, x in ids(m, "toolResult")}
        seen = set()
        for j, x in ids(message, "toolUse"):
            if x in seen:
                c.add("BC-11", f"{place}.content[{j}].toolUse.toolUseId", "repeated id")
            seen.add(x)
        if seen - answered:
            c.add("BC-09", place, f"no toolResult for {sorted(seen - answered)}")
        called = {x for m in (before or {}, message) for _, x in ids(m, "toolUse")}
        seen = set()
        for j, x in ids(message, "toolResult"):
            at = f"{place}.content[{j}].toolResult.toolUseId"
            if x not in called:
                c.add("BC-10", at, "no toolUse of the message before")
            elif x in seen:
                c.add("BC-11", at, "answered already")
            seen.add(x)
        content = message.get("content") if isinstance(message.get("content"), list) else []
        results = [isinstance(b, dict) and "toolResult" in b for b in content]
        if role == "user" and results != sorted(results, reverse=True):
            c.add("BC-27", place, "a toolResult behind another block")
        before = message
    if messages and messages[-1].get("role") == "assistant":
        c.add("BC-07", f"messages[{len(messages) - 1}]", "ends with the assistant")


def check(c, req, check_surrogates):
    if isinstance(req, list):
        req = {"messages": req}
    if not isinstance(req, dict):
        return c.add("BC-01", "", "request is not an object")
    for name in req:
        if name not in PARAMETERS:
            c.add("BC-02", name, "not a parameter", "unknown")
    check_surrogates(c, req, "BC-20")
    r, system = Request(c, req.get("modelId")), req.get("system")
    if isinstance(system, list):
        for i, block in enumerate(system):
            if not isinstance(block, dict):
                c.add("BC-24", f"system[{i}]", "not an object")
            elif "text" in block:
                misfits(c, block["text"], TEXT, f"system[{i}].text")
                r.text(block["text"], f"system[{i}].text")
    elif system is not None:
        c.add("BC-24", "system", "not an array")
    messages = req.get("messages")
    if not isinstance(messages, list) or not messages:
        c.add("BC-01", "messages", "not an array, or empty")
    else:
        for i, message in enumerate(messages):
            r.message(message, f"messages[{i}]")
        if all(isinstance(message, dict) for message in messages):
            sequence(c, messages)
    if r.documents > DOCUMENTS:
        c.add("BC-21", "messages", f"{r.documents} documents")
    config = req.get("toolConfig")
    tools = config.get("tools") if isinstance(config, dict) else None
    tools = tools if isinstance(tools, list) else []
    for i, tool in enumerate(tools):
        if not isinstance(tool, dict) or "toolSpec" not in tool:
            continue
        spec, place = tool["toolSpec"], f"toolConfig.tools[{i}].toolSpec"
        name = spec.get("name") if isinstance(spec, dict) else None
        if not isinstance(name, str) or not NAME.match(name):
            c.add("BC-13", f"{place}.name", "bad name")
        description = spec.get("description") if isinstance(spec, dict) else None
        if isinstance(description, str) and not description.strip():
            c.add("BC-24", f"{place}.description", "blank")
    if r.tools and not tools and any(name not in ("messages", "system") for name in req):
        c.add("BC-14", "toolConfig", "no tool is declared")
