"""Following a conversation: what both clients do with the server's events, without their I/O."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx

from ._calls import Call, _path, entries
from ._errors import Busy, ConversationStoreError, NotFound, NotPermitted, ServerFailed, Unreachable, refusal, retry_after
from ._types import Entries, Entry

#: The server says something each 15 seconds, unless it is set otherwise.
SILENCE = httpx.Timeout(60, connect=10)
_LONGEST_DELAY = 5.0


class Lines:
    """The lines of the server's events. Those of `httpx` also end at characters that a text may have."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def take(self, piece: bytes) -> list[str]:
        """The lines that a piece of the stream ends."""
        first, *others = piece.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        *whole, rest = [b"".join(self._begun), *others]
        self._begun = [rest]
        return [line.decode() for line in whole]


class Following:
    """Where a follower is. It goes on there after a connection was lost, for `patience` seconds."""

    def __init__(self, conversation: str, since: int | str | None, patience: float) -> None:
        self._conversation = conversation
        self._since = since
        self._patience = patience
        self._incarnation: str | None = None
        self._seq = 0
        self._fields: dict[str, str] = {}
        self._failed_since: float | None = None
        self._delay = 0.1
        self._was_there = False
        self.has_ended = False

    @property
    def cursor(self) -> str | int | None:
        """Where the next entry begins: the `since` of a later follower."""
        return self._since if self._incarnation is None else f"{self._seq}-{self._incarnation}"

    @property
    def has_begun(self) -> bool:
        return self._incarnation is not None

    def beginning(self) -> Call[Entries]:
        """A seq does not know its conversation, so that one deleted and made again would be followed as if it were the same."""
        return entries(self._conversation, since=self._since, limit=1)

    def begins_at(self, found: Entries) -> None:
        _, _, self._incarnation = found["cursor"].partition("-")
        first, _, _ = str(self._since or 0).partition("-")
        self._seq = int(first)
        self._was_there = True

    def request(self) -> dict[str, Any]:
        self._fields = {}
        return {
            "method": "GET",
            "url": _path(self._conversation, "/events"),
            "params": {"since": self.cursor},
            "headers": {"accept": "text/event-stream"},
            "timeout": SILENCE,
        }

    def connected(self) -> None:
        self._was_there = True
        self._failed_since = None

    def take(self, line: str) -> Entry | None:
        """The entry that a line of the stream ends."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        data = json.loads(fields["data"])
        self._delay = 0.1
        if fields.get("event") == "close":
            self._close(data["reason"])
            return None
        entry: Entry = data
        self._seq = entry["seq"]
        return entry

    def _close(self, reason: str) -> None:
        match reason:
            case "deleted":
                self.has_ended = True
            case "unauthorized":
                raise NotPermitted("the key is no longer valid", code="invalid_api_key", status=401)
            case "error":
                raise ServerFailed("the conversation could not be read on", code="internal")
            # After a shutdown the same server, or another one, may come.

    def refused(self, response: httpx.Response) -> float:
        """The time to wait after an answer that is no stream."""
        error = refusal(response)
        if self._was_there and isinstance(error, NotFound):
            # It was deleted while there was no connection.
            self.has_ended = True
            return 0
        if not (isinstance(error, Busy) or response.status_code in (502, 503, 504)):
            raise error
        return self.lost(error, retry_after(response))

    def lost(self, failure: Exception, asked: float | None = None) -> float:
        """The time to wait before it connects again, or 0 where it has ended."""
        if self.has_ended:
            return 0
        now = time.monotonic()
        self._failed_since = self._failed_since or now
        if now - self._failed_since > self._patience:
            raise (
                failure if isinstance(failure, ConversationStoreError) else Unreachable(str(failure), code="unreachable")
            ) from failure
        delay, self._delay = self._delay, min(self._delay * 2, _LONGEST_DELAY)
        return delay if asked is None else asked
