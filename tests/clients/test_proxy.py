"""The official packages `openai` and `anthropic`, unchanged, through the proxy to a model with a script."""

import json
import pathlib
import subprocess
import sys
import time
import urllib.request

import anthropic
import google.genai
import openai
import pytest
from conftest import PROGRAM

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "agents"))
from upstream import Model  # noqa: E402


@pytest.fixture
def proxied(tmp_path):
    model = Model()
    command = [PROGRAM, "--store", "memory:", "--json", "proxy", "mine", "--url", model.url, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(tmp_path / "log", "w"), text=True)
    address = json.loads(process.stdout.readline())["listening"]
    yield model, address
    process.terminate()
    assert process.wait(60) == 0


def get(address, path):
    with urllib.request.urlopen(f"{address}/api/v1{path}") as answer:
        return json.load(answer)


def rows(address, calls):
    """What each conversation holds, once so many calls are recorded."""
    until = time.monotonic() + 30
    while True:
        found = get(address, "/conversations?limit=100")["items"]
        lists = [get(address, f"/conversations/{item['conversation']}/messages")["messages"] for item in found]
        said = [[(message["role"], *[chunk["type"] for chunk in message["chunks"]]) for message in messages] for messages in lists]
        ended = sum(message["role"] == "assistant" and "finish_reason" in message for messages in lists for message in messages)
        if ended >= calls:
            return sorted(said)
        assert time.monotonic() < until, said
        time.sleep(0.01)


@pytest.mark.parametrize("streams", [False, True])
def test_chat(proxied, streams):
    model, address = proxied
    client = openai.OpenAI(base_url=f"{address}/proxy/mine/v1", api_key="sk-1", max_retries=0)
    messages = [{"role": "user", "content": "hello"}]
    for text in ("and now?", "and then?"):
        answer = client.chat.completions.create(model="m-1", messages=messages, stream=streams)
        said = "".join(piece.choices[0].delta.content or "" for piece in answer) if streams else answer.choices[0].message.content
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": text}]
    assert rows(address, 2) == [[("user", "text"), ("assistant", "text")] * 2]
    assert [len(json.loads(body)["messages"]) for body in model.bodies] == [1, 3]


@pytest.mark.parametrize("streams", [False, True])
def test_responses(proxied, streams):
    _, address = proxied
    client = openai.OpenAI(base_url=f"{address}/proxy/mine/v1", api_key="sk-1", max_retries=0)
    last = None
    for text in ("hello", "and now?"):
        response = client.responses.create(model="m-1", input=[{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}],
                                           previous_response_id=last, stream=streams)
        last = [event for event in response][-1].response.id if streams else response.id
    assert rows(address, 2) == [[("user", "text"), ("assistant", "text")] * 2]


@pytest.mark.parametrize("streams", [False, True])
def test_messages(proxied, streams):
    _, address = proxied
    client = anthropic.Anthropic(base_url=f"{address}/proxy/mine", api_key="sk-1", max_retries=0)
    tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
    messages = [{"role": "user", "content": "run: ls"}]

    def ask():
        if not streams:
            return client.messages.create(model="m-1", max_tokens=9, messages=messages, tools=tools)
        with client.messages.stream(model="m-1", max_tokens=9, messages=messages, tools=tools) as stream:
            return stream.get_final_message()

    answer = ask()
    call = answer.content[0]
    assert (call.type, call.input["command"]) == ("tool_use", "ls")
    messages.append({"role": "assistant", "content": answer.content})
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Cargo.toml"}]})
    assert ask().content[0].text.startswith("I see it.")
    assert rows(address, 2) == [[("user", "text"), ("assistant", "tool_call"), ("user", "tool_result"), ("assistant", "text")]]


@pytest.mark.parametrize("streams", [False, True])
def test_gemini(proxied, streams):
    model, address = proxied
    options = google.genai.types.HttpOptions(base_url=f"{address}/proxy/mine")
    client = google.genai.Client(api_key="sk-1", http_options=options)
    run = {"name": "shell", "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}}
    config = google.genai.types.GenerateContentConfig(tools=[{"function_declarations": [run]}])
    chat = client.chats.create(model="m-1", config=config)

    def ask(message):
        if not streams:
            return chat.send_message(message).candidates[0].content.parts
        return [part for piece in chat.send_message_stream(message) for part in piece.candidates[0].content.parts]

    assert ask("run: ls")[0].function_call.args == {"command": "ls"}
    result = google.genai.types.Part.from_function_response(name="shell", response={"output": "Cargo.toml"})
    assert "".join(part.text for part in ask(result)) == "I see it. (2)"
    assert "".join(part.text for part in ask("and now?")) == "I see it. (3)"
    assert rows(address, 3) == [[("user", "text"), ("assistant", "tool_call"), ("tool", "tool_result"), ("assistant", "text"),
                                 ("user", "text"), ("assistant", "text")]]


def test_an_error_of_the_model_is_the_clients(proxied):
    model, address = proxied
    model.troubles.append((429, "rate_limit_error"))
    client = anthropic.Anthropic(base_url=f"{address}/proxy/mine", api_key="sk-1", max_retries=1)
    answer = client.messages.create(model="m-1", max_tokens=9, messages=[{"role": "user", "content": "hello"}])
    assert answer.content[0].text == "I see it. (2)"
    assert rows(address, 1) == [[("user", "text"), ("assistant", "text")]]


def test_programs_that_say_the_same_are_apart(proxied):
    _, address = proxied
    for _ in range(3):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="sk-1", max_retries=0)
        client.chat.completions.create(model="m-1", messages=[{"role": "user", "content": "hello"}])
    assert rows(address, 3) == [[("user", "text"), ("assistant", "text")]] * 3
