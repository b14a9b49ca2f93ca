"""What a server refuses, as classes by its `code`."""

from __future__ import annotations

from typing import Any

import httpx


class ConversationStoreError(Exception):
    """A request that got no answer, or a refusal. `code` decides what to do; the words of `message` may change."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        details: dict[str, Any] | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.details = details or {}
        self.param = param
        self.retry_after = retry_after


class Unreachable(ConversationStoreError):
    """There is no answer, and nothing was written."""


class OutcomeUnknown(ConversationStoreError):
    """There is no answer to a write: it may be stored. Repeat it with the same idempotency key."""


class NotFound(ConversationStoreError):
    """There is no such thing for this owner."""


class NotPermitted(ConversationStoreError):
    """The key is missing, wrong, or has not the scope."""


class InvalidRequest(ConversationStoreError):
    """`param` names what to correct."""


class StaleHead(ConversationStoreError):
    """Something else was written since: `details["actual"]` is the last seq."""


class StaleCursor(ConversationStoreError):
    """The cursor, or the seq, is of what is no more: read from the beginning."""


class Conflict(ConversationStoreError):
    """What is stored, or being written, forbids it."""


class NameTaken(Conflict):
    """A conversation has this key already."""


class KeyReused(ConversationStoreError):
    """The idempotency key was used for something else."""


class LimitExceeded(ConversationStoreError):
    """It is larger than a limit."""


class NothingToSend(ConversationStoreError):
    """The conversation has nothing that the target takes."""


class Busy(ConversationStoreError):
    """The server asks to wait for `retry_after` seconds."""


class ServerFailed(ConversationStoreError):
    """The store cannot do it: its operator looks at the log."""


_BY_CODE: dict[str, type[ConversationStoreError]] = {
    "not_found": NotFound,
    "not_kept": NotFound,
    "stale_head": StaleHead,
    "stale_cursor": StaleCursor,
    "cursor_out_of_range": StaleCursor,
    "name_taken": NameTaken,
    "key_reused": KeyReused,
    "nothing_to_send": NothingToSend,
    "outcome_unknown": OutcomeUnknown,
    "busy": Busy,
    "rate_limit_exceeded": Busy,
    "too_many_streams": Busy,
}

_BY_STATUS: dict[int, type[ConversationStoreError]] = {
    400: InvalidRequest,
    401: NotPermitted,
    403: NotPermitted,
    404: NotFound,
    405: InvalidRequest,
    408: InvalidRequest,
    409: Conflict,
    410: StaleCursor,
    413: LimitExceeded,
    422: InvalidRequest,
    429: Busy,
}


def answer(response: httpx.Response) -> Any:
    """What an answer says that is no refusal."""
    try:
        return response.json()
    except ValueError:
        raise ServerFailed("the answer is no JSON: is this a server of conversations?", status=response.status_code) from None


def refusal(response: httpx.Response) -> ConversationStoreError:
    """The error of an answer that was read."""
    try:
        error = response.json()["error"]
        code, message = error["code"], str(error["message"])
    except (ValueError, KeyError, TypeError):
        # Something between here and the server answered.
        error, code, message = {}, None, f"the server answered {response.status_code}"
    kind = _BY_CODE.get(code or "") or _BY_STATUS.get(response.status_code, ServerFailed)
    return kind(
        message,
        code=code,
        status=response.status_code,
        details=error.get("details"),
        param=error.get("param"),
        retry_after=retry_after(response),
    )


def retry_after(response: httpx.Response) -> float | None:
    """The seconds that an answer asks to wait."""
    try:
        return max(0.0, float(response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
