"""The shapes of answers, as the server's OpenAPI document has them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Role = Literal["system", "user", "assistant", "tool"]
Chunk = dict[str, Any]


class _Stored(TypedDict):
    index: int
    state: Literal["complete", "streaming", "interrupted", "synthetic"]
    first_seq: int
    last_seq: int
    chunk_indexes: list[int]
    role: Role
    chunks: list[Chunk]


class StoredMessage(_Stored, total=False):
    """A message in its place. Fields of your own are there, too."""

    id: str
    created_at: str
    finish_reason: str
    model: str
    provider: str
    turn_id: str
    step_id: str
    usage: Any
    native: dict[str, Any]


class Receipt(TypedDict):
    conversation: str
    first_seq: int
    last_seq: int
    message_indexes: list[int]
    durable: bool
    duplicate: bool


class Appended(Receipt, total=False):
    report: list[dict[str, Any]]


class Ingested(Receipt, total=False):
    finish_reason: str


class Parent(TypedDict):
    conversation: str
    at_seq: int


class _Conversation(TypedDict):
    conversation: str
    created_at: str
    last_activity: str
    last_seq: int
    messages: int


class Conversation(_Conversation, total=False):
    """What a list has of a conversation; `metadata` is there where one is described."""

    key: str
    title: str
    tags: list[str]
    hidden: int
    owner: str
    parent: Parent
    metadata: dict[str, Any]


class _Entry(TypedDict):
    seq: int
    kind: str
    created_at: str


class Entry(_Entry, total=False):
    """An entry of the log."""

    role: Role
    message_index: int
    chunk_index: int
    chunk: Chunk
    finish_reason: str


class Entries(TypedDict):
    entries: list[Entry]
    cursor: str


class _Page(TypedDict):
    messages: list[StoredMessage]


class MessagePage(_Page, total=False):
    next: int


class _Listed(TypedDict):
    items: list[Conversation]


class ConversationPage(_Listed, total=False):
    next: str


class Prompt(TypedDict):
    conversation: str
    request: dict[str, Any]
    report: list[dict[str, Any]]


class Repaired(TypedDict):
    request: Any
    report: list[dict[str, Any]]


class Checked(TypedDict):
    accepted: bool
    findings: list[dict[str, Any]]


class _Step(TypedDict):
    step: str


class NextStep(_Step, total=False):
    """What an agent must do now; `calls` where tools are to be run."""

    calls: list[dict[str, Any]]


class _Redacted(TypedDict):
    seq: int
    summaries: list[int]
    meta: list[int]


class Redaction(_Redacted, total=False):
    answers: list[int]


class Stopped(TypedDict):
    conversation: str
    stopped: list[str]
    ingests: int
    responses: int
    elsewhere: list[int]


class Place(TypedDict, total=False):
    conversation: str
    key: str
    message_index: int
    chunk_index: int
    seq: int


class Usage(TypedDict, total=False):
    """Some answers, their tokens, and some errors."""

    day: str
    model: str
    conversation: str
    error: str
    answers: int
    uncounted: int
    errors: int
    input: int
    cached: int
    cache_written: int
    output: int
    reasoning: int


class _Open(TypedDict):
    conversation: str
    message_index: int
    state: Literal["streaming", "interrupted"]


class Open(_Open, total=False):
    """A message that was begun and is not finished."""

    key: str
    owner: str


class _Exchange(TypedDict):
    exchange: str
    state: str


class Exchange(_Exchange, total=False):
    """A call of a model that passed the proxy."""

    how: Literal["new", "continued", "forked", "attempt"]
    conversation: str
    message: int
    status: int
    error: str
