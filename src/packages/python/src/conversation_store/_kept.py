"""What adapters keep as it is, beside what people and providers read."""

from __future__ import annotations

import json
import math
from typing import Any

#: The store takes 128; a field is within some.
_DEPTH = 100


def keep(value: dict[str, Any]) -> dict[str, Any] | str:
    """An object as the store can keep it: itself, or its JSON as a text, where it has what the store's JSON has not: halves of
    characters, numbers that are none, or more depth."""
    return value if _is_plain(value, 0) else json.dumps(value)


def kept(field: Any) -> Any:
    """What `keep` was given."""
    return json.loads(field) if isinstance(field, str) else field


def _is_plain(value: Any, depth: int) -> bool:
    match value:
        case str():
            return not any("\ud800" <= character <= "\udfff" for character in value)
        case float():
            return math.isfinite(value)
        case dict():
            return depth < _DEPTH and all(_is_plain(name, depth) and _is_plain(item, depth + 1) for name, item in value.items())
        case list() | tuple():
            return depth < _DEPTH and all(_is_plain(item, depth + 1) for item in value)
        case _:
            return True


def readable(value: Any, depth: int = 0) -> Any:
    """A value without what the store's JSON has not."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case float() if not math.isfinite(value):
            return str(value)
        case dict() | list() | tuple() if depth == _DEPTH:
            return "..."
        case dict():
            return {readable(name): readable(item, depth + 1) for name, item in value.items()}
        case list() | tuple():
            return [readable(item, depth + 1) for item in value]
        case _:
            return value


def arguments(value: Any) -> str:
    """Arguments of a call, as a model writes them."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def usage(input: int, cached: int, output: int, reasoning: int) -> dict[str, Any]:
    """Tokens in a form that the store counts: `input` has those from a cache, `output` those of reasoning."""
    return {
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
    }
