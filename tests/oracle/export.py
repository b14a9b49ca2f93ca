#!/usr/bin/env python3
"""Writes requests with the oracle's verdicts to tests/fixtures/oracle/WIRE.jsonl; with --check only compares.

Each line:

    {"case", "request", "verdicts": [{"targets", "hard": [[rule, place]...], "soft": [[rule, place]...]}...]}

A target is the crate's name of a wire, with a dialect where the oracle judged by a profile; targets of one verdict stand
together. Where the oracle itself stops at a broken request, having found enough, there is no verdict.

The requests are the oracle's own test cases and, of some accepted ones, every variant with one value removed, set to
null or doubled. The crate's `check` is compared with them in tests/check.rs. To export another wire: one row in WIRES.
"""
from __future__ import annotations

import copy
import json
import pathlib
import re
import sys

import oracle
import test_oracle

# wire: the profiles that the crate has a dialect for; the cases to make variants of
WIRES = {
    "openai_chat": (
        ["deepseek", "mistral", "groq", "moonshot", "vllm", "databricks"],
        {"two parallel calls", "tool parts text", "custom call", "refusal only", "image data url", "image http",
         "full body"},
    ),
    "openai_responses": (
        [],
        {"easy messages", "parallel pairs", "reasoning+call", "reasoning+message", "image", "output with image",
         "custom pair", "reasoning without id, encrypted", "output continues a stored response"},
    ),
}

# Requests above this size stay out; tests/check.rs makes such ones itself.
CHARACTERS = 64 * 1024

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "oracle"


def verdict(wire, request, profiles):
    """{level: [[rule, place]...]}, or None where the oracle stops early."""
    context = oracle.Ctx(wire, profiles)
    try:
        oracle._CHECKS[wire](context, request)
    except (TypeError, AttributeError, KeyError, IndexError, ValueError):
        return None
    places = {"hard": set(), "soft": set()}
    for v in context.out:
        places[v["level"]].add((v["rule"], place(v)))
    return {level: sorted(pairs) for level, pairs in places.items()}


def place(violation):
    """Of mistralai's types the message only: behind it their own names follow, and addresses in memory."""
    path = violation["path"]
    return re.match(r"messages\[\d+\]", path)[0] if violation["rule"] == "MI-08" else path


def verdicts(wire, request, dialects):
    """The verdicts on a request, each with the targets it holds for."""
    name = wire.replace("_", "-")
    targets = {name: [], **{f"{name}/{dialect}": [dialect] for dialect in dialects}}
    rows = []
    for target, profiles in targets.items():
        found = verdict(wire, request, profiles)
        same = next((row for row in rows if found == {level: row[level] for level in ("hard", "soft")}), None)
        if same:
            same["targets"].append(target)
        elif found:
            rows.append({"targets": [target], **found})
    return rows


def variants(request):
    """Yields (name, request), each one edit away from `request`."""
    for path in paths(request):
        for edit in (remove, clear, double):
            variant = copy.deepcopy(request)
            parent = variant
            for key in path[:-1]:
                parent = parent[key]
            edit(parent, path[-1])
            yield f"{edit.__name__} {'.'.join(map(str, path))}", variant


def paths(value, path=()):
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(child, (*path, key))


def remove(parent, key):
    del parent[key]


def clear(parent, key):
    parent[key] = None


def double(parent, key):
    """An array's element twice, or a value in an array of its own."""
    if isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[key] = [parent[key]]


def requests(wire, varied):
    """Yields (case, request), none twice."""
    seen = set()
    for target, _, case, request, _ in test_oracle.CASES:
        if target == wire:
            edited = ((f"{case}: {name}", variant) for name, variant in variants(request)) if case in varied else ()
            for name, candidate in [(case, request), *edited]:
                text = json.dumps(candidate)
                if text not in seen and len(text) <= CHARACTERS:
                    seen.add(text)
                    yield name, candidate


def lines(wire, dialects, varied):
    for case, request in requests(wire, varied):
        row = {"case": case, "request": request, "verdicts": verdicts(wire, request, dialects)}
        yield json.dumps(row, separators=(",", ":")) + "\n"


def main(check):
    stale = False
    for wire, (dialects, varied) in WIRES.items():
        path = FIXTURES / f"{wire}.jsonl"
        text = "".join(lines(wire, dialects, varied))
        if not check:
            FIXTURES.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")
        elif not path.exists() or path.read_text(encoding="ascii") != text:
            print(f"{path} is not what the oracle says today: run export.py")
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(check=sys.argv[1:] == ["--check"]))
