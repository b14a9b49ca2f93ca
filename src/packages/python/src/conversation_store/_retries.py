"""When a request is repeated, and after how long."""

from __future__ import annotations

from typing import Any

import httpx

from ._calls import Call
from ._errors import ConversationStoreError, OutcomeUnknown, Unreachable, refusal

#: No write has happened where one of these is the answer.
_REFUSED_BEFORE = ("busy", "rate_limit_exceeded", "too_many_streams")
_FIRST_DELAY, _LONGEST_DELAY, _LONGEST_WAIT = 0.1, 5.0, 60.0


class Attempts:
    """The attempts of one call: each failure is either its error, or the seconds until the next attempt."""

    def __init__(self, call: Call[Any], retries: int) -> None:
        self._call = call
        self._left = retries
        self._delay = _FIRST_DELAY

    def after_answer(self, response: httpx.Response) -> float:
        """The time to wait after a refusal; raises it if a repetition is of no use, or could do harm."""
        error = refusal(response)
        is_harmless = self._call.repeatable or error.code in _REFUSED_BEFORE
        may_pass = response.status_code in (429, 502, 503, 504) and response.headers.get("x-should-retry") != "false"
        is_soon = (error.retry_after or 0.0) <= _LONGEST_WAIT
        return self._next(error, is_harmless and may_pass and is_soon, error.retry_after)

    def after_failure(self, failure: httpx.TransportError) -> float:
        """The time to wait where there is no answer."""
        never_sent = isinstance(failure, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        only_reads = self._call.method == "GET"
        kind = Unreachable if never_sent or only_reads else OutcomeUnknown
        error = kind(str(failure) or type(failure).__name__, code="outcome_unknown" if kind is OutcomeUnknown else "unreachable")
        return self._next(error, never_sent or self._call.repeatable)

    def _next(self, error: ConversationStoreError, again: bool, asked: float | None = None) -> float:
        # A stream can be sent once only.
        can_send_again = self._call.content is None or isinstance(self._call.content, bytes)
        if not (again and can_send_again and self._left):
            raise error
        self._left -= 1
        delay = self._delay if asked is None else asked
        self._delay = min(self._delay * 2, _LONGEST_DELAY)
        return delay
