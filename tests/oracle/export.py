#!/usr/bin/env python3
"""Writes requests with the oracle's verdicts to tests/fixtures/oracle/WIRE.jsonl; with --check only compares.

Each line:

    {"case", "request", "verdicts": [{"targets", "hard": [[rule, place]...], "soft": [...], "unknown": [...]}...]}

A target is the crate's name of a wire, with a dialect where the oracle judged by a profile; targets of one verdict stand
together. Where the oracle itself stops at a broken request, having found enough, there is no verdict.

The requests are the oracle's own test cases and, of some accepted ones, every variant with one value removed, set to
null or doubled. The crate's `check` is compared with them in tests/library/check.rs. To export another wire: one row in WIRES.
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
        ["deepseek", "mistral", "groq", "moonshot", "vllm", "databricks", "perplexity", "openrouter", "xai", "azure", "ollama", "cerebras",
         "compatible"],
        {"two parallel calls", "tool parts text", "custom call", "refusal only", "image data url", "image http",
         "full body"},
    ),
    "openai_responses": (
        ["deepseek", "azure"],
        {"easy messages", "parallel pairs", "reasoning+call", "reasoning+message", "image", "output with image",
         "custom pair", "reasoning without id, encrypted", "output continues a stored response"},
    ),
    "anthropic": (
        ["bedrock"],
        {"system blocks cached", "tool loop", "parallel tools, text after results", "thinking loop",
         "redacted thinking loop", "image in tool_result", "pdf", "system role after user, opus 4.8", "server tool",
         "split results", "thinking dropped, older turns have it"},
    ),
    "bedrock_converse": (
        [],
        {"converse: call loop", "converse: document", "converse: reasoning", "converse: image in result"},
    ),
    "gemini": (
        ["vertex", "gemini3"],
        {"alternating + system", "call loop", "two steps", "parallel, signature on first", "snake case", "inline image",
         "empty text with signature", "declaration name", "fileData without uri"},
    ),
}

# Items, or blocks, that no case of the oracle's own has, each row a request of its own; of their fields but the type, and
# not of what is in these, variants are made as well.
ITEMS = {
    "openai_responses": [
        [{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}],
        [{"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None}],
        [{"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "container_id": "c",
          "outputs": [{"type": "logs", "logs": "1"}]}],
        [{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="}],
        [{"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [], "error": None}],
        [{"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "f", "arguments": "{}"},
         {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True, "reason": "r"}],
        [{"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f", "arguments": "{}", "output": "o",
          "status": "completed", "error": None, "approval_request_id": "mcpr_1"}],
        [{"type": "computer_call", "id": "cu_1", "call_id": "c1", "status": "completed", "pending_safety_checks": [],
          "action": {"type": "screenshot"}},
         {"type": "computer_call_output", "call_id": "c1", "acknowledged_safety_checks": [], "status": "completed",
          "output": {"type": "computer_screenshot", "image_url": "https://e.x/a.png"}}],
        [{"type": "shell_call", "id": "sh_1", "call_id": "c1", "status": "completed", "action": {"commands": ["ls"]},
          "environment": {"type": "local"}},
         {"type": "shell_call_output", "call_id": "c1", "max_output_length": 1, "status": "completed",
          "output": [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}],
        [{"type": "apply_patch_call", "id": "ap_1", "call_id": "c1", "status": "completed",
          "operation": {"type": "delete_file", "path": "a"}},
         {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "o"}],
        [{"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "status": "completed",
          "action": {"type": "exec", "command": ["ls"], "env": {}}},
         {"type": "local_shell_call_output", "id": "c1", "output": "o", "status": "completed"}],
        [{"type": "tool_search_call", "arguments": {}, "call_id": "c1", "execution": "server", "status": "completed"},
         {"type": "tool_search_output", "tools": [], "call_id": "c1", "execution": "server", "status": "completed"}],
        [{"type": "additional_tools", "role": "developer", "tools": [], "id": "at_1"}],
        [{"type": "program", "id": "pr_1", "call_id": "c1", "code": "1", "fingerprint": "f"},
         {"type": "program_output", "id": "po_1", "call_id": "c1", "result": "1", "status": "completed"}],
        [{"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}, {"type": "compaction_trigger"}],
        [{"type": "item_reference", "id": "msg_1"}],
        [{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "namespace": "n",
          "status": "completed", "caller": {"type": "direct"}},
         {"type": "function_call_output", "call_id": "c1", "output": "o", "name": "f", "namespace": "n",
          "status": "completed", "caller": {"type": "direct"}}],
        [{"type": "message", "role": "user", "status": "completed", "content": [{"type": "input_text", "text": "a"}]}],
    ],
    "anthropic": [
        [{"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "a"}],
          "citations": {"enabled": True}, "cache_control": None}],
        [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}, "title": "t",
          "context": "c", "citations": {"enabled": True}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        [{"type": "document", "source": {"type": "content", "content": "a"}}],
        [{"type": "document", "source": {"type": "file", "file_id": "f"}}],
        [{"type": "image", "source": {"type": "url", "url": "https://e.x/a.png"}, "transformations": None}],
        [{"type": "image", "source": {"type": "file", "file_id": "f"}}],
        [{"type": "container_upload", "file_id": "f"}],
        [{"type": "text", "text": "a", "citations": [
            {"type": "web_search_result_location", "cited_text": "a", "encrypted_index": "i", "title": "t", "url": "u"}]}],
        [{"type": "server_tool_use", "id": "s1", "name": "web_fetch", "input": {}, "caller": {"type": "direct"}},
         {"type": "web_fetch_tool_result", "tool_use_id": "s1", "caller": {"type": "direct"},
          "content": {"type": "web_fetch_result", "url": "u", "content": {
              "type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}}}],
        [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
         {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
             {"type": "web_search_result", "encrypted_content": "x", "title": "t", "url": "u"}]}],
        [{"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}},
         {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {
             "type": "code_execution_result", "content": [], "return_code": 0, "stderr": "", "stdout": ""}}],
        [{"type": "server_tool_use", "id": "s1", "name": "bash_code_execution", "input": {}},
         {"type": "bash_code_execution_tool_result", "tool_use_id": "s1", "content": {
             "type": "bash_code_execution_result", "content": [], "return_code": 0, "stderr": "", "stdout": ""}}],
        [{"type": "server_tool_use", "id": "s1", "name": "text_editor_code_execution", "input": {}},
         {"type": "text_editor_code_execution_tool_result", "tool_use_id": "s1", "content": {
             "type": "text_editor_code_execution_create_result", "is_file_update": False}}],
        [{"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {}},
         {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": {
             "type": "tool_search_tool_search_result", "tool_references": []}}],
    ],
    "gemini": [
        [{"executableCode": {"language": "PYTHON", "code": "1", "id": "x"}},
         {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "x"}}],
        [{"fileData": {"fileUri": "https://e.x/a", "mimeType": "image/png", "displayName": "a"}, "partMetadata": {},
          "videoMetadata": {}, "mediaResolution": {}, "mediaProcessing": "STATIC"}],
        [{"inlineData": {"mimeType": "image/gif", "data": "R0lG", "displayName": "a"}, "documentMetadata": {},
          "spreadsheetMetadata": {}, "audioMetadata": {}}],
        [{"toolCall": {"id": "x", "toolType": "URL_CONTEXT", "args": {}}}, {"toolResponse": {"id": "x", "response": {}}}],
        [{"text": "a", "thought": True, "thoughtSignature": "c2ln", "speechMetadata": {}, "audioTranscription": {}}],
        [{"text": "a", "thought": True}],
        [{"thoughtSignature": "c2ln"}],
        [{"text": "a", "inline_data": {"mime_type": "text/csv; charset=utf-8", "data": "_-8"}}],
    ],
}

USER = {"role": "user", "content": "hi"}
TEXT = {"role": "user", "parts": [{"text": "hi"}]}

# What stands around them: their path, and the request.
FRAMES = {
    "openai_responses": lambda items: ((), [*items, USER]),
    "anthropic": lambda blocks: ((1, "content"), [
        USER, {"role": "assistant", "content": [*blocks, {"type": "text", "text": "a"}]}, USER]),
    "gemini": lambda parts: ((1, "parts"), [TEXT, {"role": "model", "parts": parts}, TEXT]),
}

# Requests above this size stay out; tests/library/check.rs makes such ones itself.
CHARACTERS = 64 * 1024

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "oracle"


def verdict(wire, request, profiles):
    """{level: [[rule, place]...]}, or None where the oracle stops early."""
    context = oracle.Ctx(wire, profiles)
    try:
        oracle._CHECKS[wire](context, request)
    except (TypeError, AttributeError, KeyError, IndexError, ValueError):
        return None
    places = {"hard": set(), "soft": set(), "unknown": set()}
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
        same = next((row for row in rows if found == {level: row[level] for level in ("hard", "soft", "unknown")}), None)
        if same:
            same["targets"].append(target)
        elif found:
            rows.append({"targets": [target], **found})
    return rows


def variants(places, request):
    """Yields (name, request), each one edit at one of the places away from `request`."""
    for path in places:
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


def candidates(wire, varied):
    """Yields (case, request)."""
    for target, _, case, request, _ in test_oracle.CASES:
        if target == wire:
            yield case, request
            if case in varied:
                yield from ((f"{case}: {name}", variant) for name, variant in variants(paths(request), request))
    for items in ITEMS.get(wire, []):
        case, (place, request) = name_of(items[-1]), FRAMES[wire](items)
        fields = [(*place, i, name) for i, item in enumerate(items) for name in item if name != "type"]
        yield case, request
        yield from ((f"{case}: {name}", variant) for name, variant in variants(fields, request))


def name_of(item):
    return item.get("type") or " and ".join(item)


def requests(wire, varied):
    """Yields (case, request), none twice."""
    seen = set()
    for case, request in candidates(wire, varied):
        text = json.dumps(request)
        if text not in seen and len(text) <= CHARACTERS:
            seen.add(text)
            yield case, request


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
