"""`SessionService`: sessions of Google's ADK as conversations. Tested with google-adk 2.13.0.

An event is a message; the session's state changes in the same append. The states of an app and of its users are conversations of their
own, without messages: what an event changes there is noted with the event, and applied once, also if the program ends in between.
Each state has the store's limit of metadata, 64 KiB.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.platform import time as platform_time
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai.types import Part
from pydantic_core import to_jsonable_python

from ._client import AsyncClient
from ._errors import KeyReused, NameTaken, NotFound, StaleCursor, StaleHead
from ._kept import arguments, keep, kept, readable
from ._types import Chunk, Conversation, Receipt, StoredMessage

try:
    from google.adk.errors._stale_session_error import StaleSessionError
except ImportError:

    class StaleSessionError(ValueError):  # type: ignore[no-redef]
        """The session has been superseded by what is stored."""


#: The field of a message that keeps its event, and of metadata that has a state.
FIELD = "adk"
_STALE = "the session was modified in storage since it was loaded: load it again"
_APPLIED = 1024
#: Conversations that are described at one time.
_AT_ONCE = 8


class SessionService(BaseSessionService):
    """`Runner(session_service=SessionService())`. Without a client it makes one of the environment's settings."""

    def __init__(self, client: AsyncClient | None = None) -> None:
        self.client = client or AsyncClient()
        # What is known to be applied is not sent again.
        self._applied: dict[str, None] = {}

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        session_id = (session_id or "").strip() or str(uuid.uuid4())
        deltas = _deltas(state or {})
        known = {
            "app_name": app_name,
            "user_id": user_id,
            "id": session_id,
            "state": deltas["session"],
            "last_update_time": platform_time.get_time(),
            "pending": _pending(deltas, str(uuid.uuid4())),
        }
        key = _key(app_name, user_id, session_id)
        try:
            await self.client.create(key=key, tags=[_tag(app_name), _tag(app_name, user_id)], metadata={FIELD: known})
        except NameTaken:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        await self._apply(known)
        session = await self.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
        if session is None:
            raise SessionNotFoundError(f"Session {session_id} not found.")
        return session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        key = _key(app_name, user_id, session_id.strip())
        try:
            incarnation = (await self.client.entries(key, limit=1))["cursor"].partition("-")[2]
            stored = await self.client.describe(key)
            known = _known(stored)
            events = await self._events(key, stored["last_seq"], config)
        except NotFound:
            return None
        # It was noted with the last event, and may not have been applied.
        await self._apply(known)
        app, user = await asyncio.gather(self._state(app_name), self._state(app_name, user_id))
        session = _session(known, app, user, events)
        session._storage_update_marker = f"{stored['last_seq']}-{incarnation}"
        return session

    async def _events(self, key: str, last_seq: int, config: GetSessionConfig | None) -> list[Event]:
        recent = None if config is None else config.num_recent_events
        if recent == 0:
            return []
        messages: list[StoredMessage] = []
        if recent is not None and recent <= 100:
            messages = await self.client.newest(key, 100)
        if len(messages) < 100:
            # Fewer are all, or they are very large.
            messages = [message async for message in self.client.messages(key, page_size=1000)]
        fields = [kept(cast("dict[str, Any]", message).get(FIELD)) for message in messages if message["first_seq"] <= last_seq]
        events = [Event.model_validate(field) for field in fields if field is not None]
        if recent is not None:
            events = events[-recent:]
        if config is not None and config.after_timestamp is not None:
            early = [at for at, event in enumerate(events) if event.timestamp < config.after_timestamp]
            events = events[early[-1] + 1 :] if early else events
        return events

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        tag = _tag(app_name) if user_id is None else _tag(app_name, user_id)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def known(item: Conversation) -> dict[str, Any] | None:
            async with at_once:
                try:
                    return _known(await self.client.describe(item["conversation"]))
                except NotFound:
                    return None

        listed = [item async for item in self.client.conversations(tags=[tag], page_size=1000)]
        found = [each for each in await asyncio.gather(*map(known, listed)) if each is not None]
        for each in found:
            await self._apply(each)
        users = {each["user_id"] for each in found}
        app, *states = await asyncio.gather(self._state(app_name), *(self._state(app_name, user) for user in users))
        by_user = dict(zip(users, states, strict=True))
        sessions = [_session(each, app, by_user[each["user_id"]], []) for each in found]
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        try:
            await self.client.delete(_key(app_name, user_id, session_id.strip()))
        except NotFound:
            pass

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await self._state(app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        key = _key(session.app_name, session.user_id, session.id)
        deltas = _deltas(event.actions.state_delta if event.actions else {})
        field = event.model_dump(mode="json", exclude_none=True)
        digest = hashlib.sha256(json.dumps(field, sort_keys=True).encode()).hexdigest()
        try:
            known, receipt, incarnation = await self._store(key, session, event, field, deltas, digest)
        except KeyReused:
            # The same event, when the state was another one.
            if _has(session, event):
                return event
            return await self._stored_before(key, session, event)
        except NotFound:
            raise SessionNotFoundError(f"Session {session.id} not found.") from None
        except (StaleHead, StaleCursor):
            raise StaleSessionError(_STALE) from None
        # Without it in the session, the answer to the first attempt was lost.
        if receipt["duplicate"] and _has(session, event):
            return event
        session._storage_update_marker = f"{receipt['last_seq']}-{incarnation}"
        session.last_update_time = event.timestamp
        await self._apply(known)
        return self._commit_event_to_session(session, event)

    async def _stored_before(self, key: str, session: Session, event: Event) -> Event:
        """An event that is stored, and of which the session does not know."""
        stored = await self.client.describe(key)
        newest = await self._events(key, stored["last_seq"], GetSessionConfig(num_recent_events=1))
        if [known.id for known in newest] != [event.id]:
            raise StaleSessionError(_STALE)
        committed = self._commit_event_to_session(session, event)
        session._storage_update_marker = await self._marker(key, stored, session)
        session.last_update_time = event.timestamp
        return committed

    async def _store(
        self, key: str, session: Session, event: Event, field: dict[str, Any], deltas: dict[str, dict[str, Any]], digest: str
    ) -> tuple[dict[str, Any], Receipt, str]:
        marker = session._storage_update_marker
        while True:
            stored = await self.client.describe(key)
            known = _known(stored)
            # Of the last event of another process.
            await self._apply(known)
            marker = marker or await self._marker(key, stored, session)
            known |= {
                "state": {**known["state"], **deltas["session"]},
                "last_update_time": event.timestamp,
                "pending": _pending(deltas, digest),
            }
            metadata = {**stored.get("metadata", {}), FIELD: known}
            try:
                receipt = await self.client.append(
                    key, _message(event, field), expect=marker, metadata=metadata, idempotency_key=f"adk-{digest}"
                )
                return known, receipt, marker.partition("-")[2]
            except StaleHead:
                new = await self.client.entries(key, since=marker)
                # A title or a tag, which a person changed, makes no session stale.
                if not new["entries"] or any(entry["kind"] not in ("meta", "summary") for entry in new["entries"]):
                    raise
                marker = new["cursor"]

    async def _marker(self, key: str, stored: Conversation, session: Session) -> str:
        """The place of a session that was not loaded from here: its last event decides whether it is the stored one."""
        newest = await self._events(key, stored["last_seq"], GetSessionConfig(num_recent_events=1))
        if [event.id for event in newest] != [event.id for event in session.events[-1:]]:
            raise StaleSessionError(_STALE)
        incarnation = (await self.client.entries(key, limit=1))["cursor"].partition("-")[2]
        return f"{stored['last_seq']}-{incarnation}"

    async def _state(self, app_name: str, *user_id: str) -> dict[str, Any]:
        try:
            state: dict[str, Any] = _known(await self.client.describe(_state_key(app_name, *user_id)))["state"]
        except NotFound:
            return {}
        return state

    async def _apply(self, known: dict[str, Any]) -> None:
        """Applies what an event changes in the states of its app and its user, once."""
        pending = known.get("pending")
        if not pending or pending["id"] in self._applied:
            return
        for scope, user_id in (("app", ()), ("user", (known["user_id"],))):
            delta = pending[scope]
            if delta:
                await self._change(_state_key(known["app_name"], *user_id), delta, f"adk-{scope}-{pending['id']}")
        self._applied[pending["id"]] = None
        if len(self._applied) > _APPLIED:
            del self._applied[next(iter(self._applied))]

    async def _change(self, key: str, delta: dict[str, Any], idempotency_key: str) -> None:
        while True:
            expected: int | str = "new"
            metadata: dict[str, Any] = {}
            try:
                stored = await self.client.describe(key)
                expected, metadata = stored["last_seq"], stored.get("metadata") or {}
            except NotFound:
                pass
            state = {**metadata.get(FIELD, {}).get("state", {}), **delta}
            try:
                await self.client.append(
                    key, [], expect=expected, metadata={**metadata, FIELD: {"state": state}}, idempotency_key=idempotency_key
                )
            except (StaleHead, NameTaken):
                # Another event changed it since.
                continue
            except KeyReused:
                # It was applied, when the state was another one.
                pass
            return


def _key(app_name: str, user_id: str, session_id: str) -> str:
    return "adk/" + "/".join(quote(part, safe="") for part in (app_name, user_id, session_id))


def _state_key(*scope: str) -> str:
    return "adk-state/" + "/".join(quote(part, safe="") for part in scope)


def _has(session: Session, event: Event) -> bool:
    return any(known.id == event.id for known in session.events)


def _tag(*scope: str) -> str:
    return "adk:" + "/".join(quote(part, safe="") for part in scope)


def _known(stored: Conversation) -> dict[str, Any]:
    """What a conversation of this service has in its metadata."""
    known = (stored.get("metadata") or {}).get(FIELD)
    if known is None:
        raise NotFound("the conversation is no session of ADK", code="not_found")
    return dict(known)


def _session(known: dict[str, Any], app: dict[str, Any], user: dict[str, Any], events: list[Event]) -> Session:
    state = {
        **known["state"],
        **{State.APP_PREFIX + name: value for name, value in app.items()},
        **{State.USER_PREFIX + name: value for name, value in user.items()},
    }
    return Session(
        app_name=known["app_name"],
        user_id=known["user_id"],
        id=known["id"],
        state=state,
        events=events,
        last_update_time=known["last_update_time"],
    )


def _deltas(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a state changes of the app, the user and the session. What is no JSON is kept as its text."""
    deltas: dict[str, dict[str, Any]] = {"app": {}, "user": {}, "session": {}}
    for name, value in readable(to_jsonable_python(dict(state), serialize_unknown=True)).items():
        if name.startswith(State.APP_PREFIX):
            deltas["app"][name.removeprefix(State.APP_PREFIX)] = value
        elif name.startswith(State.USER_PREFIX):
            deltas["user"][name.removeprefix(State.USER_PREFIX)] = value
        elif not name.startswith(State.TEMP_PREFIX):
            deltas["session"][name] = value
    return deltas


def _pending(deltas: dict[str, dict[str, Any]], id: str) -> dict[str, Any] | None:
    return {"id": id, "app": deltas["app"], "user": deltas["user"]} if deltas["app"] or deltas["user"] else None


def _message(event: Event, field: dict[str, Any]) -> dict[str, Any]:
    parts = (event.content.parts or []) if event.content else []
    chunks = [chunk for part in parts for chunk in _chunks(part)]
    if not chunks:
        role = "system"
    elif all(chunk["type"] == "tool_result" for chunk in chunks):
        role = "tool"
    else:
        role = "user" if event.author == "user" or (event.content and event.content.role == "user") else "assistant"
    message: dict[str, Any] = {"role": role, "chunks": chunks, "id": event.id}
    if event.error_message or event.error_code:
        message["chunks"].append({"type": "error", "message": event.error_message or "", "code": event.error_code or ""})
        message["role"] = "assistant"
    if message["role"] == "assistant":
        message["provider"] = "gemini"
        if event.model_version:
            message["model"] = event.model_version
        if event.finish_reason:
            message["finish_reason"] = event.finish_reason.name
        if event.usage_metadata:
            message["usage"] = event.usage_metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**readable(message), FIELD: keep(field)}


def _chunks(part: Part) -> Iterator[Chunk]:
    signature = {"signature": base64.b64encode(part.thought_signature).decode()} if part.thought_signature else {}
    if part.text is not None:
        if part.text or signature:
            yield {"type": "thinking", "text": part.text, **signature} if part.thought else {"type": "text", "text": part.text}
    elif call := part.function_call:
        yield {
            "type": "tool_call",
            "id": call.id or "",
            "name": call.name or "",
            "arguments": arguments(call.args or {}),
            **signature,
        }
    elif answer := part.function_response:
        content = [{"type": "json", "json": to_jsonable_python(answer.response, serialize_unknown=True)}]
        yield {"type": "tool_result", "tool_call_id": answer.id or "", "name": answer.name or "", "content": content}
    elif blob := part.inline_data:
        yield _media(blob.mime_type, data=base64.b64encode(blob.data or b"").decode())
    elif file := part.file_data:
        yield _media(file.mime_type, url=file.file_uri or "")
    else:
        given = part.model_dump(mode="json", by_alias=True, exclude_none=True)
        yield {"type": "opaque", "provider": "gemini", "kind": next(iter(given), "part"), "json": given}


def _media(mime: str | None, **where: str) -> Chunk:
    kind = (mime or "").partition("/")[0]
    typed = {"mime_type": mime} if mime else {}
    if kind == "image" and "data" in where:
        return {"type": "image", "url": f"data:{mime};base64,{where['data']}", **typed}
    return {"type": kind if kind in ("image", "audio") else "file", **where, **typed}
