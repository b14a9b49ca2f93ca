"""Each request of the native API, described once for both clients."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import quote

from ._types import (
    Appended,
    Checked,
    Conversation,
    ConversationPage,
    Entries,
    Exchange,
    Ingested,
    MessagePage,
    NextStep,
    Open,
    Place,
    Prompt,
    Receipt,
    Redaction,
    Repaired,
    StoredMessage,
    Stopped,
    Usage,
)

T = TypeVar("T")
Json = Mapping[str, object]

#: What rows of usage are counted by.
_APART = ("day", "model", "conversation", "error")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and what its answer is read as."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Any], T] = lambda answer: answer
    #: Whether a repetition changes nothing.
    repeatable: bool = False


@dataclass(frozen=True)
class Pages(Generic[T]):
    """A list in pages: the items of a page, and where the next one begins."""

    page: Callable[[Any], Call[tuple[list[T], Any]]]
    start: Any


def _path(conversation: str, rest: str = "") -> str:
    """The path of a conversation, or of what it has."""
    # An address takes the dots for steps in a path, and has no half characters.
    if conversation in ("", ".", "..") or any("\ud800" <= character <= "\udfff" for character in conversation):
        raise ValueError(f"no conversation can be named {conversation!r} in an address")
    return f"/api/v1/conversations/{quote(conversation, safe='')}{rest}"


def _given(**query: Any) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _body(value: object) -> dict[str, Any]:
    return {"content": json.dumps(value).encode(), "headers": {"content-type": "application/json"}}


def _get(path: str, read: Callable[[Any], T], **query: Any) -> Call[T]:
    return Call("GET", path, _given(**query), read=read, repeatable=True)


def _as_it_is(answer: Any) -> Any:
    return answer


def create(
    *, key: str | None = None, title: str | None = None, tags: Sequence[str] = (), metadata: Json | None = None
) -> Call[Conversation]:
    """Creates a conversation without messages. One whose key exists is `NameTaken`."""
    body = _given(key=key, title=title, tags=list(tags) or None, metadata=metadata)
    return Call("POST", "/api/v1/conversations", read=_as_it_is, **_body(body))


def describe(conversation: str) -> Call[Conversation]:
    """What is known about a conversation, with its metadata."""
    return _get(_path(conversation), _as_it_is)


def conversations(
    *,
    title: str | None = None,
    tags: Sequence[str] = (),
    key_prefix: str | None = None,
    forked_from: str | None = None,
    metadata: Json | None = None,
    since: str | None = None,
    until: str | None = None,
    sort: Literal["newest", "oldest", "created"] | None = None,
    owner: str | None = None,
    page_size: int = 100,
) -> Pages[Conversation]:
    """The owner's conversations, page by page: those with all tags, and with these fields of metadata; newest activity first.
    `owner` is for keys with the scope `admin`."""
    fields = {
        f"metadata[{name}]": value if isinstance(value, str) else json.dumps(value) for name, value in (metadata or {}).items()
    }

    def page(after: str | None) -> Call[tuple[list[Conversation], str | None]]:
        def read(answer: ConversationPage) -> tuple[list[Conversation], str | None]:
            return answer["items"], answer.get("next")

        return _get(
            "/api/v1/conversations",
            read,
            title=title,
            tag=list(tags) or None,
            key_prefix=key_prefix,
            forked_from=forked_from,
            since=since,
            until=until,
            sort=sort,
            owner=owner,
            limit=page_size,
            after=after,
            **fields,
        )

    return Pages(page, None)


def delete(conversation: str) -> Call[None]:
    """Erases a conversation."""
    return Call("DELETE", _path(conversation), read=lambda _: None)


def append(
    conversation: str,
    messages: Json | Sequence[Json],
    *,
    expect: int | str | None = None,
    idempotency_key: str | None = None,
    buffered: bool = False,
    title: str | None = None,
    add_tags: Sequence[str] = (),
    remove_tags: Sequence[str] = (),
    metadata: Json | None = None,
    wire: str | None = None,
) -> Call[Appended]:
    """Appends messages: all or none. With `wire`, they are a provider's own, as in "anthropic". `expect` is a seq, a cursor, or "new", and refuses an append to anything else with `StaleHead`.
    Title, tags and metadata change in the same moment. Without an idempotency key the client makes one for its own repetitions."""
    changes = _given(title=title, metadata=metadata)
    if add_tags or remove_tags:
        changes["tags"] = {"add": list(add_tags), "remove": list(remove_tags)}
    several = [messages] if isinstance(messages, Mapping) else list(messages)
    body = _body({"messages": several, **changes} if changes else several)
    body["headers"]["idempotency-key"] = idempotency_key or str(uuid.uuid4())
    query = _given(expect=expect, durability="buffered" if buffered else None, **{"from": wire})
    return Call("POST", _path(conversation, "/messages"), query, read=_as_it_is, repeatable=True, **body)


def message(conversation: str, index: int) -> Call[StoredMessage]:
    """One message."""
    return _get(_path(conversation, f"/messages/{index}"), _as_it_is)


def messages(conversation: str, *, start: int = 0, page_size: int = 100) -> Pages[StoredMessage]:
    """The messages from an index on, page by page."""

    def page(index: int) -> Call[tuple[list[StoredMessage], int | None]]:
        def read(answer: MessagePage) -> tuple[list[StoredMessage], int | None]:
            return answer["messages"], answer.get("next")

        return _get(_path(conversation, "/messages"), read, **{"from": index}, limit=page_size)

    return Pages(page, start)


def newest(conversation: str, count: int = 100) -> Call[list[StoredMessage]]:
    """The newest messages, oldest of them first: up to 100, and fewer if they are very large."""
    return _get(_path(conversation, "/messages"), lambda answer: list(answer["messages"]), newest=count)


def entries(conversation: str, *, since: int | str | None = None, limit: int | None = None) -> Call[Entries]:
    """A page of the log, and its cursor: the `since` of the next page. An empty one is the end."""
    return _get(_path(conversation, "/entries"), _as_it_is, since=since, limit=limit)


def ingest(
    conversation: str,
    wire: str,
    stream: bytes | Iterable[bytes] | AsyncIterable[bytes],
    *,
    provider: str | None = None,
    model: str | None = None,
    expect: int | str | None = None,
    idempotency_key: str | None = None,
) -> Call[Ingested]:
    """Stores a provider's answer while it arrives. `stream` has the provider's bytes as they come, `wire` names their form."""
    query = {"from": wire, **_given(provider=provider, model=model, expect=expect)}
    headers = {"content-type": "application/octet-stream", **({"idempotency-key": idempotency_key} if idempotency_key else {})}
    can_repeat = isinstance(stream, bytes) and idempotency_key is not None
    return Call("POST", _path(conversation, "/ingest"), query, stream, headers, _as_it_is, can_repeat)


def prompt(conversation: str, target: str, *, tools: Sequence[Json] = (), **options: str | int) -> Call[Prompt]:
    """The request for a target, and the report of what had to be changed. Options are those of `convo prompt`: `model`, `window_tokens` …"""
    return Call(
        "POST",
        _path(conversation, "/prompt"),
        {"for": target, **options},
        read=_as_it_is,
        repeatable=True,
        **_body({"tools": list(tools)}),
    )


def next_step(conversation: str) -> Call[NextStep]:
    """What an agent must do now."""
    return _get(_path(conversation, "/next"), _as_it_is)


def fork(conversation: str, *, at_seq: int | None = None, key: str | None = None) -> Call[Conversation]:
    """A conversation that shares the entries up to a seq."""
    return Call("POST", _path(conversation, "/fork"), read=_as_it_is, **_body(_given(at_seq=at_seq, key=key)))


def rewind(conversation: str, to: int) -> Call[Receipt]:
    """Hides all messages from an index on."""
    return Call("POST", _path(conversation, "/rewind"), read=_as_it_is, **_body({"to": to}))


def remove(conversation: str, index: int, *, chunk: int | None = None) -> Call[Receipt]:
    """Hides a message, or one chunk of it."""
    return Call("DELETE", _path(conversation, f"/messages/{index}"), _given(chunk=chunk), read=_as_it_is)


def redact(conversation: str, index: int, *, chunk: int | None = None) -> Call[Redaction]:
    """Erases the content of a message, or of one chunk of it."""
    return Call("POST", _path(conversation, f"/messages/{index}/redact"), _given(chunk=chunk), read=_as_it_is)


def set_title(conversation: str, title: str | None) -> Call[Receipt]:
    """Changes the title; None is the first text of the user."""
    return Call("PUT", _path(conversation, "/title"), read=_as_it_is, **_body({"title": title}))


def set_metadata(conversation: str, metadata: Json) -> Call[Receipt]:
    """Replaces the metadata."""
    return Call("PUT", _path(conversation, "/metadata"), read=_as_it_is, **_body(metadata))


def change_tags(conversation: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Call[list[str]]:
    """Removes tags, then adds some."""
    return Call(
        "POST",
        _path(conversation, "/tags"),
        read=lambda answer: list(answer["tags"]),
        **_body({"add": list(add), "remove": list(remove)}),
    )


def summarize(conversation: str, through: int, text: str) -> Call[Receipt]:
    """Says in a text what the messages up to an index said: prompts use it."""
    return Call("POST", _path(conversation, "/summaries"), read=_as_it_is, **_body({"through": through, "text": text}))


def stop(conversation: str) -> Call[Stopped]:
    """Stops the answers that are being written to a conversation."""
    return Call("POST", _path(conversation, "/stop"), read=_as_it_is, repeatable=True)


def unfinished() -> Call[list[Open]]:
    """Messages that are being written, or were interrupted."""
    return _get("/api/v1/unfinished", lambda answer: list(answer["messages"]))


def exchange(exchange: str) -> Call[Exchange]:
    """What has become of a call of a model, by its `x-convo-exchange`."""
    return _get(f"/api/v1/exchanges/{quote(exchange, safe='')}", _as_it_is)


def find(item: str) -> Call[list[Place]]:
    """The places of a provider's item id in all of the owner's conversations."""
    return _get("/api/v1/find", lambda answer: list(answer["items"]), item=item)


def search(
    words: str,
    *,
    within: Sequence[Literal["texts", "calls", "results"]] = (),
    conversation: str | None = None,
    tags: Sequence[str] = (),
    role: str | None = None,
    since: str | None = None,
    until: str | None = None,
    owner: str | None = None,
    page_size: int = 20,
) -> Pages[dict[str, Any]]:
    """What has all of the words, with any ending, best first, page by page: texts and titles, unless `within` says otherwise."""

    def page(after: str | None) -> Call[tuple[list[dict[str, Any]], str | None]]:
        return _get(
            "/api/v1/search",
            lambda answer: (answer["hits"], answer.get("next")),
            q=words,
            conversation=conversation,
            tag=list(tags) or None,
            role=role,
            since=since,
            until=until,
            owner=owner,
            limit=page_size,
            after=after,
            **{"in": list(within) or None},
        )

    return Pages(page, None)


def usage(
    *,
    by: Sequence[Literal["day", "model", "conversation", "error"]] = (),
    since: str | None = None,
    until: str | None = None,
    tags: Sequence[str] = (),
    owner: str | None = None,
) -> Pages[Usage]:
    """The stored answers, their tokens, and errors: all of them, however many pages that takes."""

    def page(after: str | None) -> Call[tuple[list[Usage], str | None]]:
        return _get(
            "/api/v1/usage",
            lambda answer: (answer["rows"], answer.get("next")),
            by=",".join(by) or None,
            since=since,
            until=until,
            tag=list(tags) or None,
            owner=owner,
            after=after,
        )

    return Pages(page, None)


def _added_up(rows: Iterable[Usage]) -> list[Usage]:
    """The rows of all pages, each of its kind once, in the order of one page."""
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        fields = cast(dict[str, Any], row)
        known = sums.setdefault(tuple(fields.get(name, "") for name in _APART), {})
        known.update({name: value if name in _APART else known.get(name, 0) + value for name, value in fields.items()})
    return [cast(Usage, sums[apart]) for apart in sorted(sums)]


def check(target: str, request: object) -> Call[Checked]:
    """Whether a target accepts a request."""
    return Call("POST", "/api/v1/check", {"for": target}, read=_as_it_is, repeatable=True, **_body(request))


def repair(target: str, request: object, *, wire: str | None = None, model: str | None = None) -> Call[Repaired]:
    """Turns a request that a target refuses into one that it accepts. `wire` names the request's own form, if it is another one,
    and `model` the model that it then goes to."""
    query = {"for": target, **_given(**{"from": wire, "model": model})}
    return Call("POST", "/api/v1/repair", query, read=_as_it_is, repeatable=True, **_body(request))


def targets() -> Call[list[str]]:
    """The wires and dialects that prompts and ingests may name."""
    return _get("/api/v1/targets", lambda answer: list(answer["targets"]))
