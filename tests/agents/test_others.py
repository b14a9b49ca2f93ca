"""Gemini CLI and opencode as they are, once: what they say passes byte for byte, and a turn is one conversation."""

import json

from conftest import run


def test_gemini_cli(proxy, model):
    settings = proxy.folder / "home/.gemini"
    settings.mkdir(parents=True)
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (settings / "settings.json").write_text(json.dumps(auth))
    said = run(proxy.folder, ["gemini", "--skip-trust", "-m", "m-1", "-p", "hello"], GEMINI_API_KEY="sk-canary-3",
               GOOGLE_GEMINI_BASE_URL=f"{proxy.wire.url}/proxy/mine")
    assert said.splitlines()[-1].startswith("I see it.")
    assert sorted(proxy.wire.bodies((":generateContent", ":streamGenerateContent"))) == sorted(model.bodies)
    rows = [row for item in proxy.conversations() for row in proxy.said(item["conversation"])]
    assert ("assistant", "text") in rows and {row["state"] for row in proxy.recorded()} == {"complete"}


def test_opencode(proxy, model):
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{proxy.wire.url}/proxy/mine/v1", "apiKey": "sk-canary-4"}}
    settings = {"provider": {"up": {**provider, "models": {"m-1": {}}}}, "model": "up/m-1", "autoupdate": False, "share": "disabled"}
    folder = proxy.folder / "work"
    folder.mkdir()
    (folder / "opencode.json").write_text(json.dumps(settings))
    said = run(folder, ["opencode", "run", "hello"], OPENCODE_CONFIG=str(folder / "opencode.json"))
    assert "I see it." in said
    assert sorted(proxy.wire.bodies(("/chat/completions",))) == sorted(model.bodies)
    # A title has a conversation of its own.
    lists = [[row[0] for row in proxy.said(item["conversation"])] for item in proxy.conversations()]
    assert ["user", "assistant"] in lists and {row["state"] for row in proxy.recorded()} == {"complete"}
