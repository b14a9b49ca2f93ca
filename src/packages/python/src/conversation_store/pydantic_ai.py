"""`History` and `AsyncHistory`: the messages of pydantic-ai in a conversation. Tested with pydantic-ai 2.68.0.

Each message is kept as `ModelMessagesTypeAdapter` writes it, and comes back equal. A request with instructions, results of tools and
words of the user is several messages here. Messages that others wrote to the conversation are read from their chunks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ._client import AsyncClient, Client
from ._errors import NotFound
from ._kept import arguments, keep, kept, readable, usage
from ._types import Chunk, StoredMessage

#: The field of a message that keeps pydantic-ai's. What belongs to the message before has an empty one.
FIELD = "pydantic_ai"


class History:
    """`agent.run_sync(..., message_history=history.load())`, then `history.save(result.new_messages())`."""

    def __init__(self, conversation: str, client: Client | None = None) -> None:
        self.conversation = conversation
        self.client = client or Client()

    def load(self) -> list[ModelMessage]:
        try:
            return read(self.client.messages(self.conversation, page_size=1000))
        except NotFound:
            return []

    def save(self, messages: Sequence[ModelMessage]) -> None:
        if messages:
            self.client.append(self.conversation, write(messages))


class AsyncHistory:
    """The same for `await agent.run(...)`."""

    def __init__(self, conversation: str, client: AsyncClient | None = None) -> None:
        self.conversation = conversation
        self.client = client or AsyncClient()

    async def load(self) -> list[ModelMessage]:
        try:
            return read([message async for message in self.client.messages(self.conversation, page_size=1000)])
        except NotFound:
            return []

    async def save(self, messages: Sequence[ModelMessage]) -> None:
        if messages:
            await self.client.append(self.conversation, write(messages))


def write(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """The messages as the store takes them."""
    written = []
    for message in ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"):
        own = (
            [_response(message)] if message["kind"] == "response" else list(_request(message)) or [{"role": "system", "chunks": []}]
        )
        fields = [keep(message), *[{}] * (len(own) - 1)]
        written += [{**readable(each), FIELD: field} for each, field in zip(own, fields, strict=True)]
    return written


def read(messages: Iterable[StoredMessage]) -> list[ModelMessage]:
    """The messages of pydantic-ai that stored ones are."""
    found: list[ModelMessage] = []
    for message in messages:
        field = kept(cast("dict[str, Any]", message).get(FIELD))
        if field is None:
            found += _foreign(message)
        elif field:
            found += ModelMessagesTypeAdapter.validate_python([field])
    return found


def _request(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    parts = [(role, chunk) for part in message["parts"] for role, chunk in _asked(part)]
    for role, group in groupby(parts, key=lambda part: part[0]):
        yield {"role": role, "chunks": [chunk for _, chunk in group]}


def _asked(part: dict[str, Any]) -> Iterator[tuple[str, Chunk]]:
    content = part.get("content")
    match part:
        case {"part_kind": "system-prompt", "content": str(text)}:
            yield "system", {"type": "text", "text": text}
        case {"part_kind": "user-prompt"}:
            for item in [content] if isinstance(content, str) else content or ():
                yield "user", _said(item)
        case {"part_kind": "tool-return" | "builtin-tool-return" | "retry-prompt", "tool_call_id": str(id)} if part.get(
            "tool_name"
        ):
            result = {"type": "tool_result", "tool_call_id": id, "name": part["tool_name"], "content": _result(content)}
            has_failed = part["part_kind"] == "retry-prompt" or part.get("outcome") in (
                "failed",
                "denied",
                "interrupted",
                "retried",
            )
            yield "tool", {**result, "is_error": True} if has_failed else result
        case {"part_kind": "retry-prompt" | "retry-feedback"}:
            yield "user", {"type": "text", "text": content if isinstance(content, str) else json.dumps(content)}
        case {"part_kind": str(kind)}:
            yield "system", {"type": "opaque", "provider": "pydantic-ai", "kind": kind, "json": part}


def _result(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [content]
    return [_said(item) if isinstance(item, dict) and _is_media(item) else {"type": "json", "json": item} for item in items]


def _is_media(item: dict[str, Any]) -> bool:
    return item.get("kind") in ("binary", "image-url", "audio-url", "document-url", "video-url")


def _said(item: Any) -> Chunk:
    match item:
        case str(text) | {"kind": "text-content", "content": str(text)}:
            return {"type": "text", "text": text}
        case {"kind": "binary", "data": str(data), "media_type": str(mime)}:
            # It is written with the alphabet of URLs.
            data = data.replace("-", "+").replace("_", "/")
            kind = mime.partition("/")[0]
            if kind == "image":
                return {"type": "image", "url": f"data:{mime};base64,{data}", "mime_type": mime}
            return {"type": kind if kind == "audio" else "file", "data": data, "mime_type": mime}
        case {"kind": "image-url" | "audio-url" | "document-url" | "video-url" as kind, "url": str(url)}:
            return {"type": {"image-url": "image", "audio-url": "audio"}.get(kind, "file"), "url": url}
        case {"kind": str(kind)}:
            return {"type": "opaque", "provider": "pydantic-ai", "kind": kind, "json": item}
    return {"type": "text", "text": json.dumps(item)}


def _response(message: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"role": "assistant", "chunks": [_answered(part) for part in message["parts"]]}
    names = {"model_name": "model", "provider_name": "provider", "timestamp": "created_at", "provider_response_id": "id"}
    made |= {ours: message[theirs] for theirs, ours in names.items() if message.get(theirs)}
    if reason := message.get("finish_reason"):
        made["finish_reason"] = "tool_calls" if reason == "tool_call" else reason
    counts = message.get("usage") or {}
    if counts.get("input_tokens") or counts.get("output_tokens"):
        made["usage"] = usage(
            counts.get("input_tokens", 0),
            counts.get("cache_read_tokens", 0),
            counts.get("output_tokens", 0),
            (counts.get("details") or {}).get("reasoning_tokens", 0),
        )
    return made


def _answered(part: dict[str, Any]) -> Chunk:
    item = {"id": part["id"]} if isinstance(part.get("id"), str) else {}
    match part:
        case {"part_kind": "text", "content": str(text)}:
            return {"type": "text", "text": text, **item}
        case {"part_kind": "thinking", "content": str(text)}:
            sealed = {"signature": part["signature"]} if part.get("signature") else {}
            return {"type": "thinking", "text": text, **sealed, **item}
        case {"part_kind": "tool-call" | "builtin-tool-call", "tool_name": str(name), "tool_call_id": str(id)}:
            given = part.get("args")
            text = given if isinstance(given, str) else arguments(given or {})
            server = {"server": True} if part["part_kind"] == "builtin-tool-call" else {}
            return {
                "type": "tool_call",
                "id": id,
                "name": name,
                "arguments": text,
                **server,
                **({"item_id": item["id"]} if item else {}),
            }
        case {"part_kind": "builtin-tool-return", "tool_call_id": str(id)}:
            return {"type": "tool_result", "tool_call_id": id, "name": part["tool_name"], "content": _result(part.get("content"))}
        case {"part_kind": "file", "content": dict(content)}:
            return _said(content)
    return {"type": "opaque", "provider": "pydantic-ai", "kind": part["part_kind"], "json": part}


def _foreign(message: StoredMessage) -> list[ModelMessage]:
    chunks = message["chunks"]
    texts = [chunk["text"] for chunk in chunks if chunk["type"] == "text"]
    results = [
        ToolReturnPart(
            chunk.get("name") or "",
            chunk["content"],
            chunk["tool_call_id"],
            outcome="failed" if chunk.get("is_error") else "success",
        )
        for chunk in chunks
        if chunk["type"] == "tool_result"
    ]
    match message["role"]:
        case "system":
            return [ModelRequest([SystemPromptPart(text) for text in texts])] if texts else []
        case "user" | "tool":
            asked: list[ModelRequestPart] = [*results, *([UserPromptPart(texts[0] if len(texts) == 1 else texts)] if texts else [])]
            return [ModelRequest(asked)] if asked else []
    parts = [part for chunk in chunks if (part := _part(chunk)) is not None]
    return [ModelResponse(parts, model_name=message.get("model"))] if parts else []


def _part(chunk: Chunk) -> TextPart | ThinkingPart | ToolCallPart | None:
    match chunk:
        case {"type": "text" | "refusal", "text": text}:
            return TextPart(text)
        case {"type": "thinking", "text": text} if text:
            return ThinkingPart(text)
        case {"type": "tool_call"}:
            return ToolCallPart(chunk["name"], chunk["arguments"], chunk["id"])
    return None
