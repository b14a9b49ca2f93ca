"""Requests of Bedrock Converse, good and bad, for test_oracle.py and export.py: as its CASES."""
H, S, N, BC = "hard", "soft", "unknown", "bedrock_converse"
PNG = "iVBORw0KGgo="


def t(text="a"): return {"text": text}
def u(*b): return {"role": "user", "content": list(b) or [t()]}
def a(*b): return {"role": "assistant", "content": list(b) or [t()]}
def call(i="c1", **k): return {"toolUse": {"toolUseId": i, "name": "f", "input": {}, **k}}
def res(i="c1", content=None, **k): return {"toolResult": {"toolUseId": i, "content": content or [t()], **k}}
def doc(name="Doc", **k): return {"document": {"name": name, "format": "pdf", "source": {"bytes": "JVBERi0="}, **k}}
def img(**k): return {"image": {"format": "png", "source": {"bytes": PNG}, **k}}
def rea(**k): return {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln", **k}}}


TOOLS = {"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
                   {"cachePoint": {"type": "default"}}], "toolChoice": {"auto": {}}}
UNSIGNED = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
LOOP = [u(), a(t(), call("c1"), call("c2")), u(res("c1"), res("c2", status="error"), t()), a(), u()]

_CASES = [
    ("one message", [u()], []),
    ("call loop", LOOP, []),
    ("whole request", {"modelId": "m", "system": [t(), {"cachePoint": {"type": "default", "ttl": "1h"}}], "messages": LOOP,
                       "toolConfig": TOOLS, "inferenceConfig": {"maxTokens": 9}}, []),
    ("typed call", [u(), a(call(type="tool_use")), u(res(status="success"))], []),
    ("hosted pair", [u(), a(call(type="server_tool_use"), res(type="web_search_result"), t()), u()], []),
    ("document", [u(doc("Report (2) [x]", context="c", citations={"enabled": True}), t(), {"cachePoint": {"type": "default"}})], []),
    ("reasoning", [u(), a(rea(), {"reasoningContent": {"redactedContent": "eA=="}}, t()), u()], []),
    ("image in result", [u(), a(call()), u(res(content=[img(), t(), {"json": {"a": 1}}]))], []),
    ("citations", [u(), a({"citationsContent": {"content": [t()], "citations": [{"title": "x"}]}}), u()], []),
    ("search result", [u({"searchResult": {"source": "s", "title": "t", "content": [t()]}}, t())], []),
    ("guarded", [u({"guardContent": {"text": t()}})], []),
    ("film elsewhere", [u({"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}}, t())], []),
    ("sound", [u({"audio": {"format": "mp3", "source": {"bytes": "SUQz"}}}, t())], []),
    ("no messages", [], [("BC-01", H)]),
    ("no object", "a", [("BC-01", H)]),
    ("parameter", {"messages": [u()], "model": "m"}, [("BC-02", N)]),
    ("role tool", [u(), {"role": "tool", "content": [t()]}], [("BC-03", H)]),
    ("role system", [u(), {"role": "system", "content": [t()]}], [("BC-03", S)]),
    ("no role", [{"content": [t()]}], [("BC-03", H)]),
    ("no content", [{"role": "user", "content": []}], [("BC-04", H)]),
    ("content string", [{"role": "user", "content": "a"}], [("BC-04", H)]),
    ("assistant first", [a(), u()], [("BC-05", H)]),
    ("two users", [u(), u()], [("BC-06", H)]),
    ("assistant last", [u(), a()], [("BC-07", S)]),
    ("empty text", [u(t(""))], [("BC-08", H)]),
    ("blank text", [u(t("\n"), t())], [("BC-08", S)]),
    ("blank system", {"system": [t("")], "messages": [u()]}, [("BC-08", H)]),
    ("open call", [u(), a(call("c1"), call("c2")), u(res("c1"))], [("BC-09", H)]),
    ("late result", [u(), a(call()), u(), a(), u(res())], [("BC-09", H), ("BC-10", H)]),
    ("orphan", [u(res())], [("BC-10", H)]),
    ("ids twice", [u(), a(call(), call()), u(res())], [("BC-11", H)]),
    ("answered twice", [u(), a(call()), u(res(), res())], [("BC-11", H)]),
    ("id", [u(), a(call("c/1")), u(res("c/1"))], [("BC-12", H)]),
    ("name", [u(), a(call(name="a.b")), u(res())], [("BC-13", H)]),
    ("tool name", {"messages": [u()], "toolConfig": {"tools": [{"toolSpec": {"name": "a b"}}]}}, [("BC-13", H)]),
    ("no tools", {"messages": [u(), a(call()), u(res())], "inferenceConfig": {}}, [("BC-14", H)]),
    ("input string", [u(), a(call(input="{}")), u(res())], [("BC-15", H)]),
    ("input array", [u(), a(call(input=[])), u(res())], [("BC-15", S)]),
    ("image of the assistant", [u(), a(img()), u()], [("BC-16", H)]),
    ("reasoning of the user", [u(rea(), t())], [("BC-16", H)]),
    ("failure without content", [u(), a(call()), u({"toolResult": {"toolUseId": "c1", "content": [], "status": "error"}})], [("BC-17", H)]),
    ("result without content", [u(), a(call()), u({"toolResult": {"toolUseId": "c1", "content": []}})], []),
    ("document alone", [u(doc())], [("BC-18", H)]),
    ("document name", [u(doc("a.pdf"), t())], [("BC-19", H)]),
    ("document twice", [u(doc(), t()), a(), u(doc(), t())], [("BC-19", H)]),
    ("surrogate", [u(t("\ud800"))], [("BC-20", H)]),
    ("six documents", [u(*[doc(f"D{i}") for i in range(6)], t())], [("BC-21", H)]),
    ("21 images", [u(*[img()] * 21)], [("BC-22", S)]),
    ("unsigned", [u(), a(UNSIGNED, t()), u()], [("BC-23", S)]),
    ("unsigned, Claude", {"modelId": "us.anthropic.claude-sonnet-4", "messages": [u(), a(UNSIGNED, t()), u()]}, [("BC-23", H)]),
    ("text number", [u({"text": 1})], [("BC-24", H)]),
    ("two kinds", [u({"text": "a", "cachePoint": {"type": "default"}})], [("BC-24", H)]),
    ("block string", [u("a")], [("BC-24", H)]),
    ("system string", {"system": "s", "messages": [u()]}, [("BC-24", H)]),
    ("no input", [u(), a({"toolUse": {"toolUseId": "c1", "name": "f"}}), u(res())], [("BC-24", H)]),
    ("blank description", {"messages": [u()], "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": ""}}]}}, [("BC-24", H)]),
    ("unknown block", [u({"hologram": {}}, t())], [("BC-25", N)]),
    ("unknown field", [u({"text": "a", "type": "text"})], [("BC-25", N)]),
    ("bytes", [u(img(source={"bytes": "%%%"}))], [("BC-26", H)]),
    ("image format", [u(img(format="tiff"))], [("BC-26", H)]),
    ("late in the message", [u(), a(call()), u(t(), res())], [("BC-27", S)]),
]
CASES = [(BC, "", f"converse: {name}", request, want) for name, request, want in _CASES]
