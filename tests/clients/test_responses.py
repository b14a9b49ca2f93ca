"""The official packages `openai` and `openai-agents`, unchanged: `responses` over a model behind each of the five wires."""

import asyncio
import concurrent.futures
import itertools
import json
import os
import urllib.parse
from unittest.mock import ANY

import httpx2
import openai
import pydantic
import pytest
import websockets.exceptions
from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from conftest import Server
from wires import KEY, MODEL, SAID, WIRES, Call, Cut, Model, Patch, Refuse, Say, Think

set_tracing_disabled(True)
# Wires that have a place for what a model thought.
THINKING = ["openai-responses", "anthropic", "bedrock-converse"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    models = {wire: Model(wire) for wire in WIRES}
    settings = "".join(f'[[upstream]]\nname = "{wire}"\nurl = "{model.url}"\nwire = "{wire}"\nkey_env = "UPSTREAM_KEY"\n\n'
                       for wire, model in models.items())
    os.environ["UPSTREAM_KEY"] = KEY
    server = Server(tmp_path_factory.mktemp("responses"), settings)
    yield server, models
    server.kill()


class Asked:
    """A client, and the model that it asks."""

    def __init__(self, server, model):
        self.server, self.model, self.name = server, model, f"{model.wire}/{MODEL}"
        self.client = server.client(max_retries=0, timeout=60)

    def create(self, input, **fields):
        return self.client.responses.create(model=self.name, input=input, **fields)

    def stored(self, id, **fields):
        return self.client.responses.retrieve(id, **fields)


def fresh(served, wire):
    server, models = served
    model = models[wire]
    model.wrong.clear()
    model.expected.clear()
    model.requests.clear()
    model.left.clear()
    model.release()
    return Asked(server, model)


@pytest.fixture(params=WIRES)
def asked(served, request):
    asked = fresh(served, request.param)
    yield asked
    asked.model.release()
    asked.model.check()


WEATHER = {
    "type": "function", "name": "weather", "description": "The weather.", "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def result(call, text):
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


def calls(response):
    return [item for item in response.output if item.type.endswith("_call")]


def test_create(asked):
    asked.model.expect([("user", "hello")], Say("I see it."))
    made = asked.create("hello", metadata={"topic": "a"}, temperature=0.5, max_output_tokens=100)
    # The model is what its provider calls it.
    assert (made.status, made.output_text, made.model) == ("completed", "I see it.", MODEL)
    assert (made.usage.input_tokens, made.usage.output_tokens, made.usage.total_tokens) == (100, 9, 109)
    assert (made.usage.input_tokens_details.cached_tokens, made.usage.input_tokens_details.cache_write_tokens) == (0, 0)
    assert (made.metadata, made.temperature, made.max_output_tokens) == ({"topic": "a"}, 0.5, 100)
    assert made.id.startswith("resp_") and made.error is None and made.incomplete_details is None
    assert asked.stored(made.id).model_dump() == made.model_dump()


def test_stream(asked):
    says = [Say("I see it."), Call("weather", {"city": "Graz"}, "call_1"), Call("weather", {"city": "Linz"}, "call_2")]
    asked.model.expect([("user", "hello")], *says)
    with asked.client.responses.stream(model=asked.name, input="hello", tools=[WEATHER]) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert final.output_text == "I see it."
    assert [(call.name, json.loads(call.arguments)) for call in calls(final)] == [("weather", {"city": "Graz"}), ("weather", {"city": "Linz"})]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "I see it."
    stored = asked.stored(final.id)
    assert [item.model_dump(exclude={"parsed_arguments", "content"}) for item in stored.output] == [
        item.model_dump(exclude={"parsed_arguments", "content"}) for item in final.output]
    # Every item has an id of its own.
    assert len({item.id for item in stored.output}) == len(stored.output) == 3


def test_turns_and_a_fork(asked):
    model = asked.model
    model.expect([("user", "one")], Say("first"))
    first = asked.create("one", instructions=None)
    model.expect([("user", "one"), ("assistant", "first"), ("user", "two")], Say("second"))
    second = asked.create("two", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    model.expect([("user", "one"), ("assistant", "first"), ("user", "two"), ("assistant", "second"), ("user", "three")], Say("third"))
    asked.create("three", previous_response_id=second.id)
    model.expect([("user", "one"), ("assistant", "first"), ("user", "other")], Say("fork"))
    asked.create("other", previous_response_id=first.id)
    # What was forked stays what it was.
    model.expect([("user", "one"), ("assistant", "first"), ("user", "two"), ("assistant", "second"), ("user", "again")], Say("fourth"))
    asked.create("again", previous_response_id=second.id)


def test_several_go_on_from_one_response_at_one_time(asked):
    asked.model.expect([("user", "one")], Say("first"))
    first = asked.create("one")
    history = [("user", "one"), ("assistant", "first"), ("user", "two")]
    for _ in range(4):
        asked.model.expect(history, Say("second"))
    asked.model.hold()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = [pool.submit(asked.create, "two", previous_response_id=first.id) for _ in range(4)]
        # Each has asked before any has its answer.
        asked.model.came(5)
        asked.model.release()
        made = [one.result() for one in made]
    assert {one.output_text for one in made} == {"second"} and len({one.id for one in made}) == 4
    for one in made:
        asked.model.expect([*history, ("assistant", "second"), ("user", "three")], Say("third"))
        asked.create("three", previous_response_id=one.id)


def test_instructions_are_not_inherited(asked):
    asked.model.expect([("system", "Be brief."), ("user", "one")], Say("first"))
    first = asked.create("one", instructions="Be brief.")
    assert first.instructions == "Be brief."
    asked.model.expect([("user", "one"), ("assistant", "first"), ("user", "two")], Say("second"))
    second = asked.create("two", previous_response_id=first.id)
    assert second.instructions is None


def test_tools_over_two_turns(asked):
    asked.model.expect([("user", "hello")], Call("weather", {"city": "Graz"}, "call_1"), Call("weather", {"city": "Linz"}, "call_2"))
    first = asked.create("hello", tools=[WEATHER], tool_choice="required")
    graz, linz = calls(first)
    asked.model.expect(
        [("user", "hello"), ("call", "weather", {"city": "Graz"}), ("call", "weather", {"city": "Linz"}), ("result", "sun"), ("result", "rain")],
        Say("Sun and rain."))
    second = asked.create([result(graz, "sun"), result(linz, "rain")], previous_response_id=first.id, tools=[WEATHER])
    assert second.output_text == "Sun and rain."
    assert list(asked.model.requests[0].tools) == ["weather"]


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "openai-responses"])
def test_a_custom_tool_is_a_function_elsewhere(served, wire):
    asked = fresh(served, wire)
    tools = [{"type": "custom", "name": "patch", "description": "Changes files."}]
    asked.model.expect([("user", "hello")], Call("patch", {"input": "*** Begin\n"}, "call_1"))
    first = asked.create("hello", tools=tools)
    call, = first.output
    assert (call.type, call.name, call.input) == ("custom_tool_call", "patch", "*** Begin\n")
    asked.model.expect([("user", "hello"), ("call", "patch", {"input": "*** Begin\n"}), ("result", "done")], Say("It is done."))
    answer = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "done"}
    assert asked.create([answer], previous_response_id=first.id, tools=tools).output_text == "It is done."
    # The same without a state: the client has the call.
    asked.model.expect([("user", "hello"), ("call", "patch", {"input": "*** Begin\n"}), ("result", "done")], Say("It is done."))
    items = [{"role": "user", "content": "hello"}, call.model_dump(exclude_none=True), answer]
    assert asked.create(items, tools=tools, store=False).output_text == "It is done."
    asked.model.check()


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "openai-responses"])
def test_a_tool_of_a_namespace_comes_back_in_it(served, wire):
    asked = fresh(served, wire)
    tools = [{"type": "namespace", "name": "crm", "description": "Customers.", "tools": [{**WEATHER, "name": "find"}]}, {**WEATHER, "name": "find"}]
    asked.model.expect([("user", "hello")], Call("crm__find", {"city": "Graz"}, "call_1"), Call("find", {"city": "Linz"}, "call_2"))
    first = asked.create("hello", tools=tools)
    assert [(call.name, call.namespace) for call in first.output] == [("find", "crm"), ("find", None)]
    answers = [result(call, "found") for call in first.output]
    history = [("user", "hello"), ("call", "crm__find", {"city": "Graz"}), ("call", "find", {"city": "Linz"}), ("result", "found"), ("result", "found")]
    asked.model.expect(history, Say("There."))
    asked.create(answers, previous_response_id=first.id, tools=tools)
    items = [{"role": "user", "content": "hello"}, *[call.model_dump(exclude_none=True) for call in first.output], *answers]
    asked.model.expect(history, Say("There."))
    asked.create(items, tools=tools, store=False)
    asked.model.check()


def test_a_custom_tool_of_a_namespace_is_one_from_its_beginning(served):
    asked = fresh(served, "openai-responses")
    tools = [{"type": "namespace", "name": "crm", "description": "Customers.", "tools": [{"type": "custom", "name": "patch"}]}]
    asked.model.expect([("user", "hello")], Patch("patch", "*** Begin", "crm"))
    with asked.client.responses.stream(model=asked.name, input="hello", tools=tools) as stream:
        events = list(stream)
        call, = stream.get_final_response().output
    assert (call.type, call.name, call.namespace, call.input) == ("custom_tool_call", "patch", "crm", "*** Begin")
    assert "".join(event.delta for event in events if event.type == "response.custom_tool_call_input.delta") == "*** Begin"
    asked.model.check()


def test_structured_output(asked):
    class Place(pydantic.BaseModel):
        city: str

    asked.model.expect([("user", "hello")], Say('{"city": "Graz"}'))
    made = asked.client.responses.parse(model=asked.name, input="hello", text_format=Place)
    assert made.output_parsed == Place(city="Graz")
    assert '"city"' in json.dumps(asked.model.requests[0].fields).replace("\\", "")


def test_a_conversation(asked):
    conversation = asked.client.conversations.create(items=[{"role": "user", "content": "one"}])
    asked.model.expect([("user", "one\n\ntwo")], Say("first"))
    first = asked.create("two", conversation=conversation.id)
    assert first.conversation.id == conversation.id
    asked.model.expect([("user", "one\n\ntwo"), ("assistant", "first"), ("user", "three")], Say("second"))
    asked.create("three", conversation={"id": conversation.id})
    items = asked.client.conversations.items.list(conversation.id, order="asc").data
    assert [item.content[0].text for item in items] == ["one", "two", "first", "three", "second"]
    both = {"conversation": conversation.id, "previous_response_id": first.id}
    refused(openai.BadRequestError, lambda: asked.create("x", **both), "previous_response_id", "mutually_exclusive_parameters")
    refused(openai.BadRequestError, lambda: asked.create("x", conversation=conversation.id, store=False), "store", "invalid_value")
    refused(openai.BadRequestError, lambda: asked.create("x", conversation={}), "conversation.id", "missing_required_parameter")
    refused(openai.NotFoundError, lambda: asked.create("x", conversation="conv_none"))
    # By a key and by a UUID, as on the Conversations API.
    address, key = f"{asked.server.address}/api/v1/conversations", f"chat/{asked.model.wire}"
    headers = {"authorization": f"Bearer {asked.server.secrets['ada']}"}
    body = {"role": "user", "chunks": [{"type": "text", "text": "zero"}]}
    made = httpx2.post(f"{address}/{urllib.parse.quote(key, safe='')}/messages", json=body, headers=headers).json()
    uuid, history = made["conversation"], [("user", "zero\n\nmore")]
    for name in (key, {"id": uuid}):
        asked.model.expect(list(history), Say("ok"))
        assert asked.create("more", conversation=name).conversation.id == f"conv_{uuid.replace('-', '')}"
        history += [("assistant", "ok"), ("user", "more")]
    other = asked.server.client("grace", max_retries=0)
    refused(openai.NotFoundError, lambda: other.responses.create(model=asked.name, input="x", conversation=key))
    refused(openai.NotFoundError, lambda: other.responses.create(model=asked.name, input="x", conversation={"id": conversation.id}))
    # While one answers, no other does.
    asked.model.expect([("user", "one\n\ntwo"), ("assistant", "first"), ("user", "three"), ("assistant", "second"), ("user", "four")], Say("third"))
    asked.model.hold(events=1)
    slow = asked.create("four", conversation=conversation.id, background=True)
    refused(openai.ConflictError, lambda: asked.create("x", conversation=conversation.id), code="conversation_locked")
    asked.model.release()
    assert list(asked.stored(slow.id, stream=True))[-1].response.output[0].content[0].text == "third"


@pytest.mark.parametrize("wire", THINKING)
def test_what_was_thought_goes_back(served, wire):
    asked = fresh(served, wire)
    fields = {} if wire == "openai-responses" else {"max_output_tokens": 4000}
    asked.model.expect([("user", "hello")], Think("I have to look."), Call("weather", {"city": "Graz"}, "call_1"))
    first = asked.create("hello", tools=[WEATHER], **fields)
    thought = next(item for item in first.output if item.type == "reasoning")
    assert "I have to look." in json.dumps(thought.model_dump())
    history = [("user", "hello"), ("thought", "I have to look."), ("call", "weather", {"city": "Graz"}), ("result", "sun")]
    call, = calls(first)
    asked.model.expect(history, Say("Sun."))
    asked.create([result(call, "sun")], previous_response_id=first.id, tools=[WEATHER], **fields)

    # The same without a state: the client has it.
    asked.model.expect([("user", "hello")], Think("I have to look."), Call("weather", {"city": "Graz"}, "call_1"))
    loose = asked.create("hello", tools=[WEATHER], store=False, include=["reasoning.encrypted_content"], **fields)
    with pytest.raises(openai.NotFoundError):
        asked.stored(loose.id)
    call, = calls(loose)
    items = [{"role": "user", "content": "hello"}, *[item.model_dump(exclude_none=True) for item in loose.output], result(call, "sun")]
    asked.model.expect(history, Say("Sun."))
    asked.create(items, tools=[WEATHER], store=False, include=["reasoning.encrypted_content"], **fields)
    asked.model.check()


def steps(kinds):
    """Kinds of events, as they change: pieces of a text that come at one time may be one."""
    return [kind for kind, _ in itertools.groupby(kinds)]


def in_background(asked, **fields):
    """A response that is being written, and its events so far."""
    return asked.create("hello", background=True, stream=True, **fields)


def test_resume_after_a_cut_at_every_event(asked):
    says = [Say("I see it."), Call("weather", {"city": "Graz"}, "call_1")]
    asked.model.expect([("user", "hello")], *says)
    whole = list(in_background(asked, tools=[WEATHER]))
    assert [event.sequence_number for event in whole] == list(range(len(whole)))
    id = whole[0].response.id
    for at in range(len(whole)):
        # After it has ended.
        rest = list(asked.stored(id, stream=True, starting_after=at))
        assert [event.model_dump() for event in rest] == [event.model_dump() for event in whole[at + 1:]], at
    assert [event.model_dump() for event in asked.stored(id, stream=True)] == [event.model_dump() for event in whole]

    for at in range(len(whole)):
        asked.model.expect([("user", "hello")], *says)
        # While it runs: a cut at this event, and the rest from there.
        seen = []
        with in_background(asked, tools=[WEATHER]) as stream:
            for event in stream:
                seen.append(event)
                if len(seen) > at:
                    break
        seen += asked.stored(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number)
        assert steps(event.type for event in seen) == steps(event.type for event in whole), at
        assert [event.sequence_number for event in seen] == list(range(len(seen))), at
        final = seen[-1].response
        assert final.status == "completed" and final.output_text == "I see it."
        assert [json.loads(call.arguments) for call in calls(final)] == [{"city": "Graz"}]


def test_two_read_at_one_time(asked):
    asked.model.expect([("user", "hello")], Say("I see it."))
    asked.model.hold(events=1)
    stream = in_background(asked)
    first = next(iter(stream))
    other = iter(asked.stored(first.response.id, stream=True))
    assert next(other).response.id == first.response.id
    # It is not done, and what is there can be read.
    assert asked.stored(first.response.id).status in ("queued", "in_progress")
    asked.model.release()
    mine, others = [first, *stream], [first, *other]
    assert [event.model_dump() for event in mine] == [event.model_dump() for event in others]
    assert mine[-1].type == "response.completed"


def test_background(asked):
    asked.model.expect([("user", "hello")], Say("I see it."))
    asked.model.hold()
    made = asked.create("hello", background=True)
    assert made.status in ("queued", "in_progress") and made.background
    asked.model.release()
    events = list(asked.stored(made.id, stream=True))
    assert events[-1].type == "response.completed"
    done = asked.stored(made.id)
    assert (done.status, done.output_text) == ("completed", "I see it.")
    with pytest.raises(openai.BadRequestError):
        asked.create("hello", background=True, store=False)


def test_cancel(asked):
    asked.model.expect([("user", "hello")], Say("I see it."))
    asked.model.hold(events=1)
    made = asked.create("hello", background=True)
    cancelled = asked.client.responses.cancel(made.id)
    assert cancelled.status == "cancelled"
    # The model's answer ends with it.
    assert asked.model.left.wait(30)
    assert asked.client.responses.cancel(made.id).status == "cancelled"
    assert asked.stored(made.id).status == "cancelled"
    events = list(asked.stored(made.id, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_cancel_of_what_has_ended_changes_nothing(asked):
    asked.model.expect([("user", "hello")], Say("I see it."))
    made = asked.create("hello", background=True)
    list(asked.stored(made.id, stream=True))
    assert asked.client.responses.cancel(made.id).status == "completed"


def test_delete(asked):
    asked.model.expect([("user", "hello")], Say("I see it."))
    made = asked.create("hello")
    asked.client.responses.delete(made.id)
    for call in (asked.stored, asked.client.responses.delete, lambda id: asked.client.responses.input_items.list(id)):
        with pytest.raises(openai.NotFoundError):
            call(made.id)
    with pytest.raises(openai.BadRequestError) as caught:
        asked.create("again", previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"


def refused(kind, call, param=None, code=None):
    with pytest.raises(kind) as caught:
        call()
    assert (caught.value.param, caught.value.code) == (param, code)


def test_input_tokens(asked):
    def count(**fields):
        counted = asked.client.responses.input_tokens.count(model=asked.name, **fields)
        assert counted.object == "response.input_tokens"
        return counted.input_tokens

    asked.model.expect([("user", "one")], Say("first"))
    first = asked.create("one")
    conversation = asked.client.conversations.create(items=[{"role": "user", "content": "one " * 100}])
    counts = [count(input="hello"), count(input="hello", instructions="Be brief."), count(input="hello", tools=[WEATHER]),
              count(input="hello", previous_response_id=first.id), count(input="hello " * 1000),
              count(input="hello", conversation=conversation.id), count(conversation={"id": conversation.id})]
    assert all(more > counts[0] > 0 for more in counts[1:])
    missing = "previous_response_not_found"
    refused(openai.BadRequestError, lambda: count(input="x", previous_response_id="resp_none"), "previous_response_id", missing)
    refused(openai.BadRequestError, lambda: count(), "input", "missing_required_parameter")
    refused(openai.NotFoundError, lambda: count(input="x", conversation="conv_none"))
    # The model is asked nothing, and nothing is stored.
    assert len(asked.model.requests) == 1
    assert asked.client.conversations.items.list(conversation.id).data[0].content[0].text == "one " * 100


def test_compact(asked):
    def compact(**fields):
        return asked.client.responses.compact(model=asked.name, **fields)

    asked.model.expect([("user", "I am Ada.")], Say("Hello, Ada."))
    first = asked.create("I am Ada.")
    asked.model.expect([("user", "I am Ada."), ("assistant", "Hello, Ada."), ("user", ANY)], Say("She is Ada."))
    compacted = compact(previous_response_id=first.id)
    assert compacted.object == "response.compaction" and compacted.usage.total_tokens == 109
    item, = compacted.output
    assert item.type == "compaction" and "Ada" not in item.encrypted_content
    # It takes the place of the history, and can be compacted again.
    summary = "Summary of the conversation up to here:\n\nShe is Ada."
    given = [item.to_dict(), {"role": "user", "content": "Who am I?"}]
    asked.model.expect([("user", f"{summary}\n\nWho am I?")], Say("Ada."))
    assert asked.create(given).output_text == "Ada."
    asked.model.expect([("user", ANY)], Say("She asked who she is."))
    assert compact(input=given).output[0].encrypted_content != item.encrypted_content
    assert asked.model.requests[-1].history[0][1].startswith(f"{summary}\n\nWho am I?")
    # Only its owner's key opens it.
    asked.model.expect([("user", "Who am I?")], Say("I do not know."))
    other = asked.server.client("grace", max_retries=0)
    if asked.model.wire != "openai-responses":
        other.responses.create(model=asked.name, input=given)
    else:
        asked.model.expected.clear()

    missing = "previous_response_not_found"
    refused(openai.BadRequestError, lambda: compact(previous_response_id="resp_none"), "previous_response_id", missing)
    refused(openai.BadRequestError, lambda: compact(), "input", "missing_required_parameter")
    refused(openai.NotFoundError, lambda: compact(input="x", extra_body={"conversation": "conv_none"}))
    for says, kind, code in [([Refuse(429)], openai.RateLimitError, "upstream_error"), ([Say(" ")], openai.InternalServerError, "no_summary"),
                             ([Cut([Say("She"), Say("is")], 3)], openai.InternalServerError, "upstream_cut")]:
        asked.model.expect([("user", ANY)], *says)
        refused(kind, lambda: compact(input="x"), code=code)


def test_a_summary_that_was_cut_takes_no_historys_place(served, monkeypatch):
    asked, said = fresh(served, "openai-chat"), SAID["openai-chat"]
    monkeypatch.setitem(SAID, "openai-chat", lambda *says: [event.replace(b'"stop"', b'"length"') for event in said(*says)])
    asked.model.expect([("user", ANY)], Say("She is"))
    refused(openai.InternalServerError, lambda: asked.client.responses.compact(model=asked.name, input="I am Ada."), code="no_summary")
    asked.model.check()


def answered(connection, **fields):
    """The last event of a request, by WebSocket."""
    connection.response.create(**fields)
    return next(event for event in connection if event.type in ("response.completed", "response.incomplete", "response.failed", "error"))


def test_a_web_socket(asked):
    model, unstored = asked.model, {"model": asked.name, "store": False}
    with asked.client.responses.connect() as connection:
        model.expect([("user", "one")], Call("weather", {"city": "Graz"}, "call_1"))
        first = answered(connection, input="one", tools=[WEATHER], **unstored).response
        call, = calls(first)
        history = [("user", "one"), ("call", "weather", {"city": "Graz"}), ("result", "sun")]
        model.expect(history, Say("Sun."))
        connection.response.create(input=[result(call, "sun")], tools=[WEATHER], previous_response_id=first.id, **unstored)
        events = []
        for event in connection:
            events.append(event)
            if event.type == "response.completed":
                break
        assert [event.sequence_number for event in events] == list(range(len(events)))
        second = events[-1].response
        assert second.output[-1].content[0].text == "Sun."
        # What is not stored is of this connection alone.
        refused(openai.NotFoundError, lambda: asked.stored(second.id))
        with asked.client.responses.connect() as other:
            error = answered(other, input="two", previous_response_id=second.id, **unstored)
            assert (error.status, error.error.code, error.error.param) == (400, "previous_response_not_found", "previous_response_id")
            # An error ends no connection.
            model.expect([("user", "two")], Refuse(429))
            error = answered(other, input="two", model=asked.name)
            assert (error.status, error.error.code) == (429, "upstream_error")
            model.expect([("user", "two")], Say("stored"))
            assert asked.stored(answered(other, input="two", model=asked.name).response.id).output_text == "stored"
        model.expect([*history, ("assistant", "Sun."), ("user", "three")], Say("third"))
        assert answered(connection, input="three", tools=[WEATHER], previous_response_id=second.id, **unstored).type == "response.completed"
    with pytest.raises(websockets.exceptions.InvalidStatus, match="401"):
        openai.OpenAI(base_url=f"{asked.server.address}/v1", api_key="wrong").responses.connect().enter()


def test_input_items(asked):
    asked.model.expect([("user", "one")], Say("first"))
    first = asked.create("one")
    asked.model.expect([("user", "one"), ("assistant", "first"), ("user", "two\n\nthree")], Say("second"))
    second = asked.create([{"role": "user", "content": "two"}, {"role": "user", "content": "three"}], previous_response_id=first.id)
    items = list(asked.client.responses.input_items.list(second.id, order="asc", limit=1))
    texts = [item.content[0].text for item in items]
    assert texts[-2:] == ["two", "three"]
    assert len({item.id for item in items}) == len(items)
    newest = asked.client.responses.input_items.list(second.id, limit=1).data
    assert [item.content[0].text for item in newest] == ["three"]


def test_errors_by_class(asked):
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{asked.server.address}/v1", api_key="wrong", max_retries=0).responses.create(model=asked.name, input="x")
    with pytest.raises(openai.NotFoundError):
        asked.stored("resp_unknown")
    for fields, param, code in [
        ({"previous_response_id": "resp_unknown"}, "previous_response_id", "previous_response_not_found"),
        ({"temperature": 3}, "temperature", None),
        ({"extra_body": {"temprature": 1}}, "temprature", "unknown_parameter"),
        ({"prompt": {"id": "x"}}, "prompt", "unsupported_parameter"),
    ]:
        with pytest.raises(openai.BadRequestError) as caught:
            asked.create("hello", **fields)
        assert (caught.value.param, code or caught.value.code) == (param, caught.value.code)
    # Another owner's response is not there.
    asked.model.expect([("user", "hello")], Say("I see it."))
    made = asked.create("hello")
    with pytest.raises(openai.NotFoundError):
        asked.server.client("grace", max_retries=0).responses.retrieve(made.id)
    # What the upstream refuses.
    for status, kind in [(400, openai.BadRequestError), (429, openai.RateLimitError), (503, openai.InternalServerError)]:
        asked.model.expect([("user", "hello")], Refuse(status))
        with pytest.raises(kind):
            asked.create("hello")


def test_what_is_said_twice_is_no_repetition(served):
    asked = fresh(served, "openai-chat")
    conversation = asked.client.conversations.create()
    asked.model.expect([("user", "go on")], Say("first"))
    first = asked.create("go on", conversation=conversation.id)
    history = [("user", "go on"), ("assistant", "first"), ("user", "go on")]
    asked.model.expect(history, Refuse(429))
    asked.model.expect(history, Say("second"))
    patient = asked.server.client(max_retries=1)
    second = patient.responses.create(model=asked.name, input="go on", conversation=conversation.id)
    assert second.id != first.id and second.output_text == "second"
    asked.model.check()


def test_an_answer_that_was_cut_is_not_completed(asked):
    asked.model.expect([("user", "hello")], Cut([Say("I see it."), Say("And more.")], 3))
    events = list(in_background(asked))
    assert events[-1].type in ("response.failed", "response.incomplete")
    assert asked.stored(events[0].response.id).status in ("failed", "incomplete")
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("background", [False, True])
def test_a_kill_at_each_event(tmp_path, monkeypatch, background):
    """The server is killed once the client has all that has come, and started again where it was."""
    monkeypatch.setenv("UPSTREAM_KEY", KEY)
    model = Model("openai-chat")
    server = Server(tmp_path, f'[[upstream]]\nname = "openai-chat"\nurl = "{model.url}"\nwire = "openai-chat"\nkey_env = "UPSTREAM_KEY"\n')
    port = int(server.address.rpartition(":")[2])
    asked = Asked(server, model)

    def create():
        return asked.create("hello", tools=[WEATHER], stream=True, background=background)

    says = [Say("I see it."), Call("weather", {"city": "Graz"}, "call_1")]
    model.expect([("user", "hello")], *says)
    whole = [event.type for event in create()]
    sent = len(SAID["openai-chat"](says, 1))
    for at in range(sent):
        model.expect([("user", "hello")], Cut(says, at))
        kinds = [event.type for event in create()]
        # On this wire items end with the answer: before that is what comes of so many of the model's events.
        ends = next(position for position, kind in enumerate(kinds) if kind.endswith((".done", "failed", "completed")))
        come = len(steps(kinds[:ends]))
        model.expect([("user", "hello")], *says)
        model.hold(events=at)
        stream, seen = create(), []
        while len(steps(event["type"] for event in seen)) < come:
            seen.append(next(stream).to_dict())
        id = seen[0]["response"]["id"]
        # In the background, the model is asked after that.
        model.came(2 * at + 3)
        server.kill()
        model.release()
        server.start(port)
        stored = asked.stored(id)
        assert (stored.status, stored.error.code) == ("failed", "server_error"), at
        after = [event.to_dict() for event in asked.stored(id, stream=True)]
        assert after[:len(seen)] == seen, at
        assert [event["sequence_number"] for event in after] == list(range(len(after))), at
        assert after[-1] == {"type": "response.failed", "sequence_number": len(after) - 1, "response": stored.to_dict()}, at
        for known in range(len(after)):
            assert [event.to_dict() for event in asked.stored(id, stream=True, starting_after=known)] == after[known + 1:], (at, known)
    model.expect([("user", "hello")], *says)
    ended = list(create())
    server.kill()
    server.start(port)
    assert steps(event.type for event in ended) == steps(whole)
    assert asked.stored(ended[0].response.id).to_dict() == ended[-1].response.to_dict()
    server.kill()
    model.check()


@pytest.mark.parametrize("state", ["previous_response_id", "conversation_id"])
def test_agents(asked, state):
    """Three turns of the Agents SDK, each with two calls of a tool, one after the other."""

    @function_tool
    def double(number: int) -> str:
        return str(2 * number)

    async def story():
        client = asked.server.async_client(max_retries=0)
        agent = Agent(name="a", instructions="Double.", model=OpenAIResponsesModel(asked.name, client), tools=[double])
        kept = {state: (await client.conversations.create()).id if state == "conversation_id" else None}
        history = [("system", "Double.")]
        for turn in (1, 2, 3):
            history.append(("user", f"turn {turn}"))
            for number in (turn, 10 * turn):
                asked.model.expect(list(history), Call("double", {"number": number}, f"call_{number}"))
                history += [("call", "double", {"number": number}), ("result", str(2 * number))]
            asked.model.expect(list(history), Say(f"It is {2 * turn}."))
            history.append(("assistant", f"It is {2 * turn}."))
            found = await Runner.run(agent, f"turn {turn}", **kept)
            assert found.final_output == f"It is {2 * turn}."
            if state == "previous_response_id":
                kept[state] = found.last_response_id

    asyncio.run(story())


def test_agents_stream(asked):
    asked.model.expect([("system", "Be brief."), ("user", "hello")], Say("I see it."))

    async def story():
        client = asked.server.async_client(max_retries=0)
        agent = Agent(name="a", instructions="Be brief.", model=OpenAIResponsesModel(asked.name, client))
        run = Runner.run_streamed(agent, "hello")
        kinds = [event.data.type async for event in run.stream_events() if event.type == "raw_response_event"]
        assert kinds[-1] == "response.completed" and run.final_output == "I see it."

    asyncio.run(story())
