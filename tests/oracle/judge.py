#!/usr/bin/env python3
"""Judges rendered requests: judge.py [FILE...]   (without files: stdin)

Each line is {"case": "...", "target": "openai_chat", "profiles": [...], "request": {...}}.
Prints every hard violation, then the counts. Exit status: 0 all are accepted, 1 some are not, 2 nothing was judged or a
line cannot be.
"""
from __future__ import annotations

import collections
import json
import sys

import oracle


def lines(paths):
    """Yields (place, line) of every line that is not blank."""
    for path in paths or ["-"]:
        name = "stdin" if path == "-" else path
        with open(0 if path == "-" else path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{name}:{number}", line


def judge(place, line):
    """The target of one line and its hard violations; raises ValueError where the line cannot be judged."""
    try:
        row = json.loads(line)
        target, profiles, request = row["target"], row.get("profiles", []), row["request"]
        return target, oracle.hard(oracle.check(target, request, profiles)), row.get("case", "")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {type(error).__name__}: {error}") from error


def main(paths):
    sys.stdout.reconfigure(errors="backslashreplace")  # a request may hold lone surrogates
    judged, refused = collections.Counter(), 0
    try:
        for place, line in lines(paths):
            target, violations, case = judge(place, line)
            judged[target] += 1
            refused += bool(violations)
            for v in violations:
                print(f"{place}: {case}: {target}: {v['rule']} at {v['path']}: {v['message']}")
    except (OSError, ValueError) as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    if not judged:
        print("judge: nothing to judge", file=sys.stderr)
        return 2
    counts = ", ".join(f"{n} {target}" for target, n in sorted(judged.items()))
    print(f"judged {sum(judged.values())} requests ({counts}): {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
