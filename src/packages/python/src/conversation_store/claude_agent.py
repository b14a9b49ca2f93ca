"""`SessionStore`: sessions of the Claude Agent SDK as conversations. Tested with claude-agent-sdk 0.2.189.

A line of a transcript that is a message is a message here; every other line is one without content, which no prompt has. Each keeps the
line as it is, so that what is loaded is equal to what was stored. What is removed or redacted here is not loaded any more.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote, unquote
from weakref import WeakValueDictionary

import claude_agent_sdk as sdk

from ._client import AsyncClient
from ._errors import NameTaken, NotFound, StaleCursor, StaleHead
from ._kept import arguments, keep, kept, readable
from ._types import Chunk, Conversation, StoredMessage

#: The field of a message that keeps its line.
LINE = "claude_code"
#: The tags by which sessions are listed; calls that pass the proxy have the last three, too.
_PROJECT, _SESSION, _MAIN, _AGENT = "claude-agent:", "session:", "kind:main", "kind:agent"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
#: Sessions of which the lines are known without a look.
_KNOWN = 256
#: Conversations that are described at one time.
_AT_ONCE = 8


@dataclass
class _Session:
    """What is known of a stored session. An append holds only if nothing else was written since, and if it is not another one of that key."""

    incarnation: str
    seq: int = 0
    next_index: int = 0
    uuids: set[str] = field(default_factory=set)
    #: The answers of which the tokens are stored: one is several lines, each with the tokens of all.
    counted: set[str] = field(default_factory=set)
    metadata: dict[str, Any] = field(default_factory=dict)


class SessionStore(sdk.SessionStore):
    """A store for `ClaudeAgentOptions(session_store=...)`: one conversation for each session, and one for each of its sub-agents, with the
    tag `started-by:ID`. Without a client it makes one of the environment's settings."""

    def __init__(self, client: AsyncClient | None = None) -> None:
        self.client = client or AsyncClient()
        self._sessions: dict[str, _Session] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def append(self, key: sdk.SessionKey, entries: list[sdk.SessionStoreEntry]) -> None:
        if not entries:
            return
        name = conversation_key(key)
        async with self._locks.setdefault(name, asyncio.Lock()):
            while len(self._sessions) > _KNOWN:
                del self._sessions[next(iter(self._sessions))]
            while True:
                try:
                    await self._append(name, key, entries)
                    return
                except (StaleHead, NameTaken):
                    # Another process wrote to it: what is new decides what of this is stored already.
                    await self._read(name)
                except (NotFound, StaleCursor):
                    # It was deleted since, and perhaps made again.
                    if self._sessions.pop(name, None) is None:
                        raise

    async def _append(self, name: str, key: sdk.SessionKey, entries: list[sdk.SessionStoreEntry]) -> None:
        session = self._sessions.get(name) or await self._read(name)
        uuids = set() if session is None else set(session.uuids)
        counted = set() if session is None else set(session.counted)
        new = []
        for entry in entries:
            uuid = entry.get("uuid")
            if isinstance(uuid, str):
                if uuid in uuids:
                    continue
                uuids.add(uuid)
            new.append(cast("dict[str, Any]", entry))
        if not new:
            # Of the session that is known: it may have been deleted since, and made again.
            if session is not None and await self._incarnation(name) != session.incarnation:
                raise StaleCursor("the session was made again", code="stale_cursor")
            return
        metadata = dict(session.metadata) if session is not None else {}
        title = None
        if "subpath" not in key:
            metadata["claude_agent"] = keep(
                _folded(kept(metadata.get("claude_agent")), key, cast("list[sdk.SessionStoreEntry]", new))
            )
            title = next((line["customTitle"] for line in reversed(new) if isinstance(line.get("customTitle"), str)), None)
        is_first = session is None or ("subpath" not in key and "claude_agent" not in session.metadata)
        receipt = await self.client.append(
            name,
            [_message(line, counted) for line in new],
            expect="new" if session is None else f"{session.seq}-{session.incarnation}",
            title=readable(title) or None,
            add_tags=await self._tags(key) if is_first else (),
            metadata=metadata if session is None or metadata != session.metadata else None,
        )
        incarnation = await self._incarnation(name) if session is None else session.incarnation
        self._sessions[name] = _Session(
            incarnation, receipt["last_seq"], receipt["message_indexes"][-1] + 1, uuids, counted, metadata
        )

    async def _tags(self, key: sdk.SessionKey) -> list[str]:
        session = _SESSION + key["session_id"]
        if "subpath" not in key:
            return [_PROJECT + key["project_key"], session, _MAIN]
        main = conversation_key({"project_key": key["project_key"], "session_id": key["session_id"]})
        try:
            # What a sub-agent says may come first.
            parent = await self.client.create(key=main)
        except NameTaken:
            parent = await self.client.describe(main)
        return [session, _AGENT, f"started-by:{parent['conversation']}"]

    async def _read(self, name: str) -> _Session | None:
        """What is stored, as far as it is not known."""
        try:
            incarnation = await self._incarnation(name)
            stored = await self.client.describe(name)
        except NotFound:
            self._sessions.pop(name, None)
            return None
        session = self._sessions.get(name)
        if session is None or session.incarnation != incarnation:
            session = _Session(incarnation)
        async for message in self.client.messages(name, start=session.next_index, page_size=1000):
            if message["first_seq"] > stored["last_seq"]:
                break
            session.next_index = message["index"] + 1
            line = _line(message)
            if line is not None and isinstance(line.get("uuid"), str):
                session.uuids.add(line["uuid"])
            if "usage" in message and "step_id" in message:
                session.counted.add(message["step_id"])
        # Only what was read whole is known.
        session.seq, session.metadata = stored["last_seq"], stored.get("metadata") or {}
        self._sessions[name] = session
        return session

    async def _incarnation(self, name: str) -> str:
        """What a cursor has beside the seq: it distinguishes conversations that had the same key."""
        cursor = (await self.client.entries(name, limit=1))["cursor"]
        return cursor.partition("-")[2]

    async def load(self, key: sdk.SessionKey) -> list[sdk.SessionStoreEntry] | None:
        try:
            found = [message async for message in self.client.messages(conversation_key(key), page_size=1000)]
        except NotFound:
            return None
        lines = [_line(message) for message in found]
        return [cast("sdk.SessionStoreEntry", line) for line in lines if line is not None] or None

    async def _main(self, project_key: str) -> list[tuple[str, Conversation]]:
        found = [item async for item in self.client.conversations(tags=[_PROJECT + project_key], page_size=1000)]
        start = conversation_key({"project_key": project_key, "session_id": ""})
        # What a person tagged so, or forked, is no session of its own.
        keyed = [(item.get("key", ""), item) for item in found]
        return [(unquote(key.removeprefix(start)), item) for key, item in keyed if key.startswith(start)]

    async def list_sessions(self, project_key: str) -> list[sdk.SessionStoreListEntry]:
        return [{"session_id": session, "mtime": _mtime(item)} for session, item in await self._main(project_key)]

    async def list_session_summaries(self, project_key: str) -> list[sdk.SessionSummaryEntry]:
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def summary(session: str, item: Conversation) -> sdk.SessionSummaryEntry | None:
            async with at_once:
                try:
                    described = await self.client.describe(item["conversation"])
                except NotFound:
                    return None
            data = kept((described.get("metadata") or {}).get("claude_agent"))
            return None if data is None else {"session_id": session, "mtime": _mtime(described), "data": data}

        found = await asyncio.gather(*(summary(session, item) for session, item in await self._main(project_key)))
        return [entry for entry in found if entry is not None]

    async def delete(self, key: sdk.SessionKey) -> None:
        name = conversation_key(key)
        if "subpath" not in key:
            for subpath in await self.list_subkeys({"project_key": key["project_key"], "session_id": key["session_id"]}):
                await self.delete({**key, "subpath": subpath})
        try:
            await self.client.delete(name)
        except NotFound:
            pass
        self._sessions.pop(name, None)

    async def list_subkeys(self, key: sdk.SessionListSubkeysKey) -> list[str]:
        main = conversation_key({"project_key": key["project_key"], "session_id": key["session_id"]})
        found = self.client.conversations(tags=[_SESSION + key["session_id"], _AGENT], page_size=1000)
        keys = [item.get("key", "") async for item in found]
        return [name.removeprefix(f"{main}/") for name in keys if name.startswith(f"{main}/")]


def conversation_key(key: sdk.SessionKey) -> str:
    """The key of the conversation that a session, or a sub-agent of it, is."""
    main = f"claude-agent/{quote(key['project_key'], safe='')}/{quote(key['session_id'], safe='')}"
    return f"{main}/{key['subpath']}" if "subpath" in key else main


def _folded(data: Any, key: sdk.SessionKey, entries: list[sdk.SessionStoreEntry]) -> dict[str, Any]:
    before: sdk.SessionSummaryEntry | None = None
    if isinstance(data, dict):
        before = {"session_id": key["session_id"], "mtime": 0, "data": data}
    return sdk.fold_session_summary(before, key, entries)["data"]


def _mtime(item: Conversation) -> int:
    seconds, _, fraction = item["last_activity"].removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(f"{seconds}+00:00").timestamp()) * 1000 + int(f"{fraction}000"[:3])


def _line(message: StoredMessage) -> dict[str, Any] | None:
    line: dict[str, Any] | None = kept(cast("dict[str, Any]", message).get(LINE))
    return line


def _message(line: dict[str, Any], counted: set[str]) -> dict[str, Any]:
    kind, said = line.get("type"), line.get("message")
    message: dict[str, Any] = {"role": "system", "chunks": []}
    if kind in ("user", "assistant") and isinstance(said, dict):
        message = {"role": kind, "chunks": list(_chunks(said.get("content"), bool(line.get("isApiErrorMessage"))))}
        reason = said.get("stop_reason")
        if kind == "assistant":
            message["provider"] = "anthropic"
            if isinstance(said.get("model"), str):
                message["model"] = said["model"]
            if isinstance(said.get("id"), str):
                message["step_id"] = said["id"]
        if isinstance(reason, str):
            message["finish_reason"] = reason
            step = message.get("step_id")
            if step is not None and step not in counted and said.get("usage") is not None:
                counted.add(step)
                message["usage"] = said["usage"]
    if isinstance(line.get("timestamp"), str) and _TIME.fullmatch(line["timestamp"]):
        message["created_at"] = line["timestamp"]
    if isinstance(line.get("uuid"), str):
        message["id"] = line["uuid"]
    return {**readable(message), LINE: keep(line)}


def _chunks(content: Any, is_error: bool) -> Iterator[Chunk]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        match block:
            case {"type": "text", "text": str(text)} if is_error:
                yield {"type": "error", "message": text}
            case {"type": "text", "text": str(text)}:
                yield {"type": "text", "text": text}
            case {"type": "thinking", "thinking": str(text)}:
                yield {"type": "thinking", "text": text, **_given(signature=block.get("signature"))}
            case {"type": "redacted_thinking", "data": str(data)}:
                yield {"type": "thinking", "text": "", "redacted": data}
            case {"type": "tool_use", "id": str(id), "name": str(name)}:
                yield {"type": "tool_call", "id": id, "name": name, "arguments": arguments(block.get("input"))}
            case {"type": "tool_result", "tool_use_id": str(id)}:
                result = {"type": "tool_result", "tool_call_id": id, "content": _result(block.get("content"))}
                yield {**result, "is_error": True} if block.get("is_error") is True else result
            case {"type": "image" | "document"} if (media := _media(block)) is not None:
                yield media
            case {"type": str(kind)}:
                yield {"type": "opaque", "provider": "anthropic", "kind": kind, "json": block}


def _result(content: Any) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case {"type": "text", "text": str(text)}:
                parts.append({"type": "text", "text": text})
            case {"type": "image" | "document"} if (media := _media(block)) is not None:
                parts.append(media)
            case _:
                parts.append({"type": "json", "json": block})
    return parts


def _media(block: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = "image" if block["type"] == "image" else "file"
    match block.get("source"):
        case {"type": "base64", "media_type": str(mime), "data": str(data)} if kind == "image":
            return {"type": kind, "url": f"data:{mime};base64,{data}", "mime_type": mime}
        case {"type": "base64", "media_type": str(mime), "data": str(data)}:
            return {"type": kind, "data": data, "mime_type": mime, **_given(name=block.get("title"))}
        case {"type": "url", "url": str(url)}:
            return {"type": kind, "url": url}
        case _:
            return None


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if isinstance(value, str)}
