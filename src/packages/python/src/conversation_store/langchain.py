"""`ChatMessageHistory`: LangChain's history of a chat as a conversation. Tested with langchain-core 1.7.2.

Each message is kept as LangChain writes it, and comes back equal; a chunk of a stream becomes the message that it is. A message with an
id is stored once, however often it is added. Messages that others wrote to the conversation are read from their chunks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_from_dict,
)

from ._client import Client
from ._errors import NotFound
from ._kept import arguments, keep, kept, readable, usage
from ._types import Chunk, StoredMessage

#: The field of a message that keeps LangChain's.
MESSAGE = "langchain"
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool", "developer": "system"}


class ChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation. Without a client it makes one of the environment's settings. The asynchronous methods call the
    others in a thread."""

    def __init__(self, session_id: str, client: Client | None = None) -> None:
        self.session_id = session_id
        self.client = client or Client()

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        try:
            return [message for stored in self.client.messages(self.session_id, page_size=1000) for message in _read(stored)]
        except NotFound:
            return []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        whole = [_write(message_chunk_to_message(message)) for message in messages]
        # One with an id is a request of its own, which a repetition cannot store twice, also among others.
        for id, group in groupby(whole, key=lambda message: cast("str | None", message.get("id"))):
            if id is None:
                self.client.append(self.session_id, list(group))
                continue
            for message in group:
                digest = hashlib.sha256(json.dumps(message, sort_keys=True).encode()).hexdigest()
                self.client.append(self.session_id, message, idempotency_key=f"langchain-{digest}")

    def clear(self) -> None:
        try:
            self.client.delete(self.session_id)
        except NotFound:
            pass


def _write(message: BaseMessage) -> dict[str, Any]:
    # What is no JSON, as an artifact of a tool may be, is kept as its text.
    data = message.model_dump(mode="json", fallback=str)
    role = _ROLES.get(getattr(message, "role", message.type), "user")
    written: dict[str, Any] = {"role": role, "chunks": []}
    if isinstance(message, ToolMessage):
        written["chunks"] = [_result(message)]
    elif message.type == "function":
        written["chunks"] = [{"type": "tool_result", "name": message.name or "", "content": message.text}]
    elif message.type == "remove":
        written["role"] = "system"
    else:
        written["chunks"] = list(_chunks(message))
    if message.id is not None:
        written["id"] = message.id
    if isinstance(message, AIMessage):
        written |= _made(message)
    return {**readable(written), MESSAGE: keep({"type": message.type, "data": data})}


def _made(message: AIMessage) -> dict[str, Any]:
    """What is known about an answer, in the words of the store."""
    known = message.response_metadata
    names = {
        "model_name": "model",
        "model": "model",
        "model_provider": "provider",
        "stop_reason": "finish_reason",
        "finish_reason": "finish_reason",
    }
    made: dict[str, Any] = {ours: known[theirs] for theirs, ours in names.items() if isinstance(known.get(theirs), str)}
    if counts := message.usage_metadata:
        made["usage"] = usage(
            counts["input_tokens"],
            counts.get("input_token_details", {}).get("cache_read") or 0,
            counts["output_tokens"],
            counts.get("output_token_details", {}).get("reasoning") or 0,
        )
    return made


def _result(message: ToolMessage) -> Chunk:
    content = message.content if isinstance(message.content, str) else [_part(block) for block in message.content]
    result: Chunk = {"type": "tool_result", "tool_call_id": message.tool_call_id, "content": content}
    if message.name:
        result["name"] = message.name
    if message.status == "error":
        result["is_error"] = True
    return result


def _part(block: str | dict[Any, Any]) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    chunk = _chunk(block)
    return chunk if chunk is not None and chunk["type"] in ("text", "image", "audio", "file") else {"type": "json", "json": block}


def _chunks(message: BaseMessage) -> Iterator[Chunk]:
    calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    ids = {call["id"] for call in calls}
    # LangChain's own translation of all providers' forms. It leaves out some calls.
    for block in message.content_blocks:
        chunk = _chunk(cast("dict[str, Any]", block))
        if chunk is not None and not (
            chunk["type"] == "tool_call" and (chunk["id"] in ids or block["type"] == "invalid_tool_call")
        ):
            yield chunk
    for call in calls:
        yield _call(cast("dict[str, Any]", call))


def _call(call: dict[Any, Any]) -> Chunk:
    given = call.get("input" if call.get("type") == "tool_use" else "args")
    return {
        "type": "tool_call",
        "id": call.get("id") or "",
        "name": call.get("name") or "",
        "arguments": given if isinstance(given, str) else arguments(given),
    }


def _chunk(block: dict[Any, Any]) -> Chunk | None:
    match block:
        case {"type": "text" | "text-plain", "text": str(text)}:
            return {"type": "text", "text": text} if text else None
        case {"type": "reasoning"}:
            extras = block.get("extras") or {}
            signature = extras.get("signature") if isinstance(extras, dict) else None
            thinking = {"type": "thinking", "text": block.get("reasoning") or ""}
            return {**thinking, "signature": signature} if isinstance(signature, str) else thinking
        case {"type": "thinking", "thinking": str(text)}:
            signature = block.get("signature")
            return {"type": "thinking", "text": text, **({"signature": signature} if isinstance(signature, str) else {})}
        case {"type": "tool_call" | "invalid_tool_call" | "tool_use"}:
            return _call(block)
        case {"type": "server_tool_call"}:
            return {**_call(block), "server": True}
        case {"type": "image_url", "image_url": str(url) | {"url": str(url)}}:
            return {"type": "image", "url": url}
        case {"type": "image" | "audio" | "file" as kind}:
            return _media(kind, block)
        case {"type": "non_standard", "value": dict(value)}:
            return _chunk(value)
        case {"type": str(kind)}:
            return {"type": "opaque", "provider": "langchain", "kind": kind, "json": block}
        case _:
            return {"type": "opaque", "provider": "langchain", "kind": "block", "json": block}


def _media(kind: str, block: dict[Any, Any]) -> Chunk:
    chunk: Chunk = {"type": kind}
    if isinstance(mime := block.get("mime_type"), str):
        chunk["mime_type"] = mime
    data = block.get("base64")
    if isinstance(block.get("url"), str):
        chunk["url"] = block["url"]
    elif isinstance(data, str) and kind == "image":
        chunk["url"] = f"data:{mime or 'image/png'};base64,{data}"
    elif isinstance(data, str):
        chunk["data"] = data
    else:
        return {"type": "opaque", "provider": "langchain", "kind": kind, "json": block}
    return chunk


def _read(stored: StoredMessage) -> list[BaseMessage]:
    message = kept(cast("dict[str, Any]", stored).get(MESSAGE))
    if message is not None:
        return messages_from_dict([message])
    id, chunks = stored.get("id"), stored["chunks"]
    if stored["role"] == "tool":
        return [_tool_message(chunk, id) for chunk in chunks if chunk["type"] == "tool_result"]
    blocks = [block for chunk in chunks if (block := _block(chunk)) is not None]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    content: Any = texts[0] if len(texts) == len(blocks) == 1 else blocks or ""
    match stored["role"]:
        case "system":
            return [SystemMessage(content=content, id=id)] if chunks else []
        case "user":
            results = [_tool_message(chunk, None) for chunk in chunks if chunk["type"] == "tool_result"]
            return [*results, *([HumanMessage(content=content, id=id)] if blocks or not results else [])]
    calls, invalid = [], []
    for chunk in chunks:
        if chunk["type"] == "tool_call":
            call = {"id": chunk["id"], "name": chunk["name"]}
            try:
                args = json.loads(chunk["arguments"] or "{}")
            except ValueError:
                args = None
            if isinstance(args, dict):
                calls.append({**call, "args": args, "type": "tool_call"})
            else:
                invalid.append({**call, "args": chunk["arguments"], "error": None, "type": "invalid_tool_call"})
    return [AIMessage(content=content, tool_calls=calls, invalid_tool_calls=invalid, id=id)]


def _tool_message(chunk: Chunk, id: str | None) -> ToolMessage:
    content = chunk["content"]
    if not isinstance(content, str):
        content = [
            block if (block := _block(part)) is not None else {"type": "text", "text": json.dumps(part.get("json"))}
            for part in content
        ]
    return ToolMessage(
        content=content,
        tool_call_id=chunk["tool_call_id"],
        name=chunk.get("name"),
        id=id,
        status="error" if chunk.get("is_error") else "success",
    )


def _block(chunk: Chunk) -> dict[str, Any] | None:
    match chunk:
        case {"type": "text", "text": text} | {"type": "refusal", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "thinking", "text": text} if text:
            return {"type": "reasoning", "reasoning": text}
        case {"type": "image", "url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "audio" | "file" as kind, "data": str(data)}:
            return {"type": kind, "base64": data, **({"mime_type": chunk["mime_type"]} if "mime_type" in chunk else {})}
        case {"type": "audio" | "file" as kind, "url": str(url)}:
            return {"type": kind, "url": url, **({"mime_type": chunk["mime_type"]} if "mime_type" in chunk else {})}
    return None
