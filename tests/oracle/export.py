#!/usr/bin/env python3
"""Writes requests with the oracle's verdicts to tests/fixtures/oracle/WIRE.jsonl; with --check only compares.

Each line:

    {"case", "target", "request", "verdicts": [{"profiles", "hard": [[rule, place]...], "soft": [[rule, place]...]}...]}

The requests are the oracle's own test cases and, of some accepted ones, every variant with one value removed, set to
null or doubled. The crate's `check` is compared with them in tests/check.rs. To export another wire: one row in WIRES.
"""
from __future__ import annotations

import copy
import json
import pathlib
import sys

import oracle
import test_oracle

# wire: the profiles that the crate has a dialect for, each judged for every request; the cases to make variants of
WIRES = {
    "openai_chat": (
        [[], ["deepseek"]],
        {"two parallel calls", "tool parts text", "custom call", "refusal only", "image data url", "image http",
         "full body"},
    ),
    "openai_responses": (
        [],
        {"easy messages", "parallel pairs", "reasoning+call", "reasoning+message", "image", "output with image",
         "custom pair", "reasoning without id, encrypted", "output continues a stored response"},
    ),
}

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "oracle"


def verdict(target, request, profiles):
    found = oracle.check(target, request, profiles)
    places = {"hard": set(), "soft": set()}
    for v in found:
        places[v["level"]].add((v["rule"], v["path"]))
    return {"profiles": profiles, **{level: sorted(pairs) for level, pairs in places.items()}}


def variants(request):
    """Yields (name, request), each one edit away from `request`."""
    for path in paths(request):
        for edit in (remove, clear, double):
            variant = copy.deepcopy(request)
            parent = variant
            for key in path[:-1]:
                parent = parent[key]
            if edit(parent, path[-1]):
                yield f"{edit.__name__} {'.'.join(map(str, path))}", variant


def paths(value, path=()):
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(child, (*path, key))


def remove(parent, key):
    del parent[key]
    return True


def clear(parent, key):
    parent[key] = None
    return True


def double(parent, key):
    """An array's element twice, or a value in an array of its own; not an id, where the oracle would stop early."""
    if key == "id":
        return False
    if isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[key] = [parent[key]]
    return True


def requests(wire, varied):
    """Yields (case, request), none twice."""
    seen = set()
    for target, _, case, request, _ in test_oracle.CASES:
        if target == wire:
            edited = ((f"{case}: {name}", variant) for name, variant in variants(request)) if case in varied else ()
            for name, candidate in [(case, request), *edited]:
                text = json.dumps(candidate)
                if text not in seen:
                    seen.add(text)
                    yield name, candidate


def lines(wire, profiles, varied):
    for case, request in requests(wire, varied):
        verdicts = [verdict(wire, request, names) for names in profiles]
        row = {"case": case, "target": wire, "request": request, "verdicts": verdicts}
        yield json.dumps(row, separators=(",", ":")) + "\n"


def main(check):
    stale = False
    for wire, (profiles, varied) in WIRES.items():
        path = FIXTURES / f"{wire}.jsonl"
        text = "".join(lines(wire, profiles, varied))
        if not check:
            FIXTURES.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")
        elif not path.exists() or path.read_text(encoding="ascii") != text:
            print(f"{path} is not what the oracle says today: run export.py")
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(check=sys.argv[1:] == ["--check"]))
