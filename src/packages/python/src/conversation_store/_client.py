"""The two clients: what is said is described in `_calls`, and each of them sends it in its own way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import httpx

from . import _calls
from ._calls import Call, Pages
from ._errors import answer
from ._follow import Following, Lines
from ._retries import Attempts
from ._types import Entry

P = ParamSpec("P")
T = TypeVar("T")

_TIMEOUT = httpx.Timeout(60, connect=10)
#: Each follower has a connection for as long as it follows: they must not keep other calls waiting.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


class _Method(Generic[P, T]):
    """A request as a method of both clients."""

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    @overload
    def __get__(self, client: None, owner: type) -> _Method[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> Any:
        if client is None:
            return self
        send: Callable[[Call[T]], Any] = client.send
        return _named(lambda *args, **named: send(self._describe(*args, **named)), self._describe)


class _Listing(Generic[P, T]):
    """A list in pages as a method of both clients, which gives an iterator."""

    def __init__(self, describe: Callable[P, Pages[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    @overload
    def __get__(self, client: None, owner: type) -> _Listing[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> Any:
        if client is None:
            return self
        walk: Callable[[Pages[T]], Any] = client.walk
        return _named(lambda *args, **named: walk(self._describe(*args, **named)), self._describe)


class _Whole(Generic[P, T]):
    """A list in pages as a method of both clients, which gives what all pages come to."""

    def __init__(self, describe: Callable[P, Pages[T]], of: Callable[[list[T]], list[T]]) -> None:
        self._describe, self._of = describe, of
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    @overload
    def __get__(self, client: None, owner: type) -> _Whole[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, list[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[list[T]]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> Any:
        if client is None:
            return self
        gather: Callable[[Pages[T], Callable[[list[T]], list[T]]], Any] = client.gather
        return _named(lambda *args, **named: gather(self._describe(*args, **named), self._of), self._describe)


def _named(method: Callable[..., Any], described: Callable[..., Any]) -> Callable[..., Any]:
    method.__name__, method.__doc__ = described.__name__, described.__doc__
    method.__dict__["__wrapped__"] = described
    return method


class _Methods:
    create = _Method(_calls.create)
    describe = _Method(_calls.describe)
    conversations = _Listing(_calls.conversations)
    delete = _Method(_calls.delete)
    append = _Method(_calls.append)
    message = _Method(_calls.message)
    messages = _Listing(_calls.messages)
    newest = _Method(_calls.newest)
    entries = _Method(_calls.entries)
    ingest = _Method(_calls.ingest)
    prompt = _Method(_calls.prompt)
    next_step = _Method(_calls.next_step)
    fork = _Method(_calls.fork)
    rewind = _Method(_calls.rewind)
    remove = _Method(_calls.remove)
    redact = _Method(_calls.redact)
    set_title = _Method(_calls.set_title)
    set_metadata = _Method(_calls.set_metadata)
    change_tags = _Method(_calls.change_tags)
    summarize = _Method(_calls.summarize)
    stop = _Method(_calls.stop)
    unfinished = _Method(_calls.unfinished)
    exchange = _Method(_calls.exchange)
    find = _Method(_calls.find)
    search = _Listing(_calls.search)
    usage = _Whole(_calls.usage, _calls._added_up)
    check = _Method(_calls.check)
    repair = _Method(_calls.repair)
    targets = _Method(_calls.targets)


def _options(url: str | None, key: str | None) -> dict[str, Any]:
    key = key or os.environ.get("CONVO_KEY")
    return {
        "base_url": url or os.environ.get("CONVO_URL") or "http://127.0.0.1:8080",
        "headers": {"authorization": f"Bearer {key}"} if key else {},
        "timeout": _TIMEOUT,
        "limits": _LIMITS,
    }


def _request(call: Call[Any]) -> dict[str, Any]:
    return {
        "method": call.method,
        "url": call.path,
        "params": dict(call.query),
        "content": call.content,
        "headers": dict(call.headers),
    }


class Client(_Methods):
    """A server of conversations. The address is that of `CONVO_URL`, the key that of `CONVO_KEY`, if none is given."""

    def __init__(
        self, url: str | None = None, key: str | None = None, *, retries: int = 4, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(**_options(url, key), transport=transport)
        self._retries = retries
        self.url = str(self._http.base_url).rstrip("/")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._retries)
        while True:
            try:
                response = self._http.request(**_request(call))
            except httpx.TransportError as failure:
                delay = attempts.after_failure(failure)
            else:
                if response.is_success:
                    return call.read(answer(response))
                delay = attempts.after_answer(response)
            time.sleep(delay)

    def walk(self, pages: Pages[T]) -> Iterator[T]:
        at = pages.start
        while True:
            items, at = self.send(pages.page(at))
            yield from items
            if at is None:
                return

    def gather(self, pages: Pages[T], of: Callable[[list[T]], list[T]]) -> list[T]:
        return of(list(self.walk(pages)))

    def follow(self, conversation: str, *, since: int | str | None = None, patience: float = 300) -> Follower:
        """The entries of a conversation from a seq or a cursor on, then each new one as soon as it is durable. It ends when the
        conversation is deleted. A lost connection is made again, for `patience` seconds."""
        return Follower(self, self._http, Following(conversation, since, patience))


class Follower(Iterator[Entry]):
    """An iterator of entries, which may be used with `with`. It may be closed from another thread than the one that waits for an
    entry: that one has the end then."""

    def __init__(self, client: Client, http: httpx.Client, following: Following) -> None:
        self._following = following
        self._end = _End()
        self._entries = _followed(client, http, following, self._end)
        #: Held by who asks for an entry.
        self._asking = threading.Lock()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __next__(self) -> Entry:
        with self._asking:
            return next(self._entries)

    def close(self) -> None:
        """Ends it."""
        self._end.come()
        # Who waits for an entry leaves by itself.
        if self._asking.acquire(blocking=False):
            try:
                self._entries.close()
            finally:
                self._asking.release()

    @property
    def cursor(self) -> str | int | None:
        """Where it is: the `since` of a later follower."""
        return self._following.cursor


class _End:
    """The end of a follower, which another thread may cause. It is no part of the follower, and holds none: one that nobody has
    any more goes at once, and not when Python collects cycles, which may be in the middle of a call of `httpx`."""

    def __init__(self) -> None:
        self.has_come = threading.Event()
        self._lock = threading.Lock()
        self._answer: httpx.Response | None = None

    def come(self) -> None:
        with self._lock:
            self.has_come.set()
            if self._answer is not None:
                _cut(self._answer)

    def cuts(self, answer: httpx.Response | None) -> None:
        """The answer that is read from now on."""
        with self._lock:
            self._answer = answer
            if answer is not None and self.has_come.is_set():
                _cut(answer)


def _cut(answer: httpx.Response) -> None:
    """Ends the connection of an answer, also while another thread reads it."""
    stream = answer.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if isinstance(connection, socket.socket):
        with contextlib.suppress(OSError):
            # That of the class for TLS is not for two threads.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _followed(client: Client, http: httpx.Client, following: Following, end: _End) -> Generator[Entry, None, None]:
    following.begins_at(client.send(following.beginning()))
    while not (following.has_ended or end.has_come.is_set()):
        try:
            with http.stream(**following.request()) as response:
                if response.is_success:
                    following.connected()
                    end.cuts(response)
                    lines = Lines()
                    for line in (line for piece in response.iter_bytes() for line in lines.take(piece)):
                        if entry := following.take(line):
                            yield entry
                        if end.has_come.is_set():
                            return
                    delay = following.lost(httpx.ReadError("the server ended the stream"))
                else:
                    response.read()
                    delay = following.refused(response)
        except httpx.TransportError as failure:
            delay = 0 if end.has_come.is_set() else following.lost(failure)
        finally:
            end.cuts(None)
        end.has_come.wait(delay)


class AsyncClient(_Methods):
    """The same for programs of asyncio."""

    def __init__(
        self, url: str | None = None, key: str | None = None, *, retries: int = 4, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx.AsyncClient(**_options(url, key), transport=transport)
        self._retries = retries
        self.url = str(self._http.base_url).rstrip("/")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._retries)
        while True:
            try:
                response = await self._http.request(**_request(call))
            except httpx.TransportError as failure:
                delay = attempts.after_failure(failure)
            else:
                if response.is_success:
                    return call.read(answer(response))
                delay = attempts.after_answer(response)
            await asyncio.sleep(delay)

    async def walk(self, pages: Pages[T]) -> AsyncIterator[T]:
        at = pages.start
        while True:
            items, at = await self.send(pages.page(at))
            for item in items:
                yield item
            if at is None:
                return

    async def gather(self, pages: Pages[T], of: Callable[[list[T]], list[T]]) -> list[T]:
        return of([item async for item in self.walk(pages)])

    def follow(self, conversation: str, *, since: int | str | None = None, patience: float = 300) -> AsyncFollower:
        """As `Client.follow`, with `async for` and `async with`."""
        return AsyncFollower(self, self._http, Following(conversation, since, patience))


class AsyncFollower(AsyncIterator[Entry]):
    """As `Follower`."""

    def __init__(self, client: AsyncClient, http: httpx.AsyncClient, following: Following) -> None:
        self._client, self._http, self._following = client, http, following
        self._entries = self._followed()

    def _followed(self) -> AsyncGenerator[Entry, None]:
        return _async_followed(self._client, self._http, self._following)

    async def __aenter__(self) -> AsyncFollower:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def __anext__(self) -> Entry:
        try:
            return await self._entries.__anext__()
        except asyncio.CancelledError:
            # Nobody waits for this entry any more, as after `asyncio.wait_for`: the next one who asks gets it.
            self._entries = self._followed()
            raise

    async def close(self) -> None:
        """Ends it."""
        await self._entries.aclose()

    @property
    def cursor(self) -> str | int | None:
        """Where it is: the `since` of a later follower."""
        return self._following.cursor


async def _async_followed(client: AsyncClient, http: httpx.AsyncClient, following: Following) -> AsyncGenerator[Entry, None]:
    if not following.has_begun:
        following.begins_at(await client.send(following.beginning()))
    while not following.has_ended:
        try:
            async with http.stream(**following.request()) as response:
                if response.is_success:
                    following.connected()
                    lines = Lines()
                    async for piece in response.aiter_bytes():
                        for line in lines.take(piece):
                            if entry := following.take(line):
                                yield entry
                    delay = following.lost(httpx.ReadError("the server ended the stream"))
                else:
                    await response.aread()
                    delay = following.refused(response)
        except httpx.TransportError as failure:
            delay = following.lost(failure)
        await asyncio.sleep(delay)
