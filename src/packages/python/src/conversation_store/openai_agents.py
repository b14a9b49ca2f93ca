"""`Session`: the memory of the OpenAI Agents SDK as a conversation. Tested with openai-agents 0.24.0.

What the model said in one go is one message, with a chunk for each item; so its calls stay beside each other for every provider. Each
item is kept as it is, and comes back equal. What is removed or redacted here does not come back. What others wrote, such as the package
for TypeScript, is read from its chunks.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast

from agents import SessionSettings, TResponseInputItem

from ._client import AsyncClient
from ._errors import NotFound
from ._kept import keep, kept, readable
from ._types import Chunk, StoredMessage

#: The field of a chunk, or of a message, that keeps its item. In a chunk it has the chunk's index, too.
ITEM = "openai_agents"
_PAGE = 100


class Session:
    """`Runner.run(..., session=Session("chat-42"))`. Without a client it makes one of the environment's settings."""

    def __init__(
        self, session_id: str, client: AsyncClient | None = None, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self.client = client or AsyncClient()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit == 0:
            return []
        is_bounded = limit is not None and limit > 0
        found: list[Any] = []
        async for message in _newest_first(self.client, self.session_id):
            found.extend(item for item, _ in reversed(list(_items(message))))
            if is_bounded and len(found) >= cast("int", limit):
                break
        found.reverse()
        return found[-cast("int", limit) :] if is_bounded else found

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            await self.client.append(self.session_id, list(_messages(cast("list[dict[str, Any]]", items))))

    async def pop_item(self) -> TResponseInputItem | None:
        while True:
            taken = await self._last()
            if taken is None:
                return None
            item, index, chunk = taken
            try:
                await self.client.remove(self.session_id, index, chunk=chunk)
            except NotFound:
                # Another one took it.
                continue
            return cast("TResponseInputItem", item)

    async def _last(self) -> tuple[Any, int, int | None] | None:
        async for message in _newest_first(self.client, self.session_id):
            items = list(_items(message))
            if items:
                item, chunk = items[-1]
                return item, message["index"], None if len(message["chunks"]) == 1 else chunk
        return None

    async def clear_session(self) -> None:
        try:
            await self.client.delete(self.session_id)
        except NotFound:
            pass


async def _newest_first(client: AsyncClient, conversation: str) -> AsyncIterator[StoredMessage]:
    try:
        page = await client.newest(conversation, _PAGE)
    except NotFound:
        return
    while page:
        for message in reversed(page):
            yield message
        end = page[0]["index"]
        start = max(0, end - _PAGE)
        page = [message async for message in _between(client, conversation, start, end)]
        while not page and start > 0:
            end, start = start, max(0, start - _PAGE)
            page = [message async for message in _between(client, conversation, start, end)]


async def _between(client: AsyncClient, conversation: str, start: int, end: int) -> AsyncIterator[StoredMessage]:
    async for message in client.messages(conversation, start=start, page_size=_PAGE):
        if message["index"] >= end:
            return
        yield message


def _items(message: StoredMessage) -> Iterator[tuple[Any, int | None]]:
    """The items of a message, each with the index of its chunk, if it has one of its own."""
    whole = cast("dict[str, Any]", message).get(ITEM)
    if whole is not None and "item" in whole:
        yield kept(whole["item"]), None
        return
    if message["state"] == "streaming":
        return
    parts = [_input(chunk) for chunk in message["chunks"]]
    if parts and message["role"] != "assistant" and all(parts):
        # What people and systems said is one item, unless results are beside it.
        yield _said(message["role"], parts), None
        return
    for index, chunk in zip(message["chunk_indexes"], message["chunks"], strict=True):
        if own := chunk.get(ITEM):
            if "item" in own:
                yield kept(own["item"]), index
        elif item := _foreign(message["role"], chunk):
            yield item, index


def _said(role: str, parts: list[Any]) -> dict[str, Any]:
    """The item that people, or a system, said with these parts."""
    is_text = len(parts) == 1 and parts[0]["type"] == "input_text"
    return {"role": "system" if role == "system" else "user", "content": parts[0]["text"] if is_text else parts}


def _input(chunk: Chunk) -> dict[str, Any] | None:
    match chunk:
        case {"type": "text", "text": str(text)}:
            return {"type": "input_text", "text": text}
        case {"type": "image", "url": str(url)}:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"type": "file"}:
            mime = chunk.get("mime_type", "application/octet-stream")
            url = chunk.get("url") or f"data:{mime};base64,{chunk.get('data', '')}"
            name = {"filename": chunk["name"]} if "name" in chunk else {}
            return {"type": "input_file", "file_data" if url.startswith("data:") else "file_url": url, **name}
    return None


def _json(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "input_text", "text": json.dumps(part.get("json", part), ensure_ascii=False)}


def _foreign(role: str, chunk: Chunk) -> dict[str, Any] | None:
    """The item that a chunk of another program is. What a provider's own tools did is none."""
    match chunk:
        case {"type": "tool_call", "server": True}:
            return None
        case {"type": "tool_call", "id": str(call), "arguments": str(arguments)}:
            item_id = {"id": chunk["item_id"]} if "item_id" in chunk else {}
            name = chunk.get("name", "")
            return {"type": "function_call", **item_id, "call_id": call, "name": name, "arguments": arguments, "status": "completed"}
        case {"type": "tool_result", "content": content} if role != "assistant":
            output = content if isinstance(content, str) else [_input(part) or _json(part) for part in content]
            return {"type": "function_call_output", **_id(chunk), "call_id": chunk.get("tool_call_id", ""), "output": output}
        case {"type": "thinking", "id": str(id)}:
            # Without an id it is of another provider.
            summary = [{"type": "summary_text", "text": chunk["text"]}] if chunk.get("text") else []
            sealed = {"encrypted_content": chunk["signature"]} if "signature" in chunk else {}
            return {"type": "reasoning", "id": id, "summary": summary, **sealed}
        case {"type": "opaque", "provider": "openai", "json": dict(item)}:
            return item
        case {"type": "text", "text": str(text), "id": str(id)} if role == "assistant":
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "id": id, "role": role, "status": "completed", "content": content}
        case {"type": "text" | "refusal", "text": str(text)} if role == "assistant":
            return {"role": role, "content": text}
    part = _input(chunk)
    return None if part is None or role == "assistant" else _said(role, [part])


def _messages(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    answer: list[Chunk] = []
    for item in items:
        chunk = _of_the_model(item)
        if chunk is not None:
            answer.append({**readable(chunk), ITEM: {"item": keep(item), "index": len(answer)}})
            continue
        if answer:
            yield {"role": "assistant", "chunks": answer}
            answer = []
        yield {**readable(_whole(item)), ITEM: {"item": keep(item)}}
    if answer:
        yield {"role": "assistant", "chunks": answer}


def _id(item: Mapping[str, Any], name: str = "id") -> dict[str, str]:
    return {name: item["id"]} if isinstance(item.get("id"), str) else {}


def _of_the_model(item: dict[str, Any]) -> Chunk | None:
    """The chunk that an item of the model is."""
    match item:
        case {"type": "function_call", "call_id": str(call), "name": str(name), "arguments": str(arguments)}:
            return {"type": "tool_call", "id": call, "name": name, "arguments": arguments, **_id(item, "item_id")}
        case {"type": "reasoning"}:
            texts = [
                part["text"] for part in item.get("summary") or () if isinstance(part, dict) and isinstance(part.get("text"), str)
            ]
            sealed = item.get("encrypted_content")
            return {
                "type": "thinking",
                "text": "\n\n".join(texts),
                **({"signature": sealed} if isinstance(sealed, str) else {}),
                **_id(item),
            }
        case {"role": "assistant", "content": str(text)}:
            return {"type": "text", "text": text, **_id(item)}
        case {"role": "assistant", "content": [dict(part)]}:
            return {**_part(part), **_id(item)}
        case {"role": _} | {"type": "message"}:
            return None
        case {"type": str(kind)} if not kind.endswith("_output") and kind != "item_reference":
            return {"type": "opaque", "provider": "openai", "kind": kind, "json": item, **_id(item)}
    return None


def _whole(item: dict[str, Any]) -> dict[str, Any]:
    """The message that an item is."""
    match item:
        case {"type": "function_call_output", "call_id": str(call)}:
            output = item.get("output")
            content = [_part(part) for part in output] if isinstance(output, list) else output
            return {"role": "tool", "chunks": [{"type": "tool_result", "tool_call_id": call, "content": content, **_id(item)}]}
        case {"role": str(role)}:
            content = item.get("content")
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            chunks = [_part(part) for part in parts] if isinstance(parts, list) else []
            known = {"assistant": "assistant", "system": "system", "developer": "system"}
            return {"role": known.get(role, "user"), "chunks": chunks, **_id(item)}
        case {"type": str(kind)} if kind != "item_reference":
            return {"role": "tool", "chunks": [{"type": "opaque", "provider": "openai", "kind": kind, "json": item, **_id(item)}]}
    return {"role": "system", "chunks": []}


def _part(part: Any) -> Chunk:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "refusal", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image", "url": url}
        case {"type": "input_file"}:
            names = {"filename": "name", "file_url": "url", "file_data": "url"}
            return {"type": "file", **{ours: part[theirs] for theirs, ours in names.items() if isinstance(part.get(theirs), str)}}
        case {"type": str(kind)}:
            return {"type": "opaque", "provider": "openai", "kind": kind, "json": part}
    return {"type": "text", "text": json.dumps(part)}
