"""What adapters keep as it is beside what people and providers read."""

from __future__ import annotations

from typing import Any


def readable(value: Any) -> Any:
    """A value without halves of characters, which Python's strings may have: with one in a chunk, no field of the message comes back equal."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict():
            return {readable(name): readable(item) for name, item in value.items()}
        case list() | tuple():
            return [readable(item) for item in value]
        case _:
            return value
