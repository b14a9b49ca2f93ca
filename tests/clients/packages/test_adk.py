"""`SessionService` of Google's ADK: random operations beside its own in memory, stale sessions, and a run with tools."""

import asyncio
import os
import random
import warnings

import conversation_store
import httpx
import pytest
from conversation_store import AsyncClient
from conversation_store.adk import SessionService, StaleSessionError
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.platform import time as platform_time
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

OPERATIONS = int(os.environ.get("OPERATIONS", "250"))
STATE = {"n": 1, "app:a": [1, {"b": None}], "user:u": "text", "temp:t": 1, "app:z": 2.5, "user:list": []}

CONTENTS = [
    None,
    types.Content(
        role="user", parts=[types.Part(text="hello"), types.Part(inline_data=types.Blob(data=b"\0\xff", mime_type="image/png"))]
    ),
    types.Content(role="model", parts=[types.Part(text="hm", thought=True, thought_signature=b"\1\2"), types.Part(text="I look")]),
    types.Content(
        role="model",
        parts=[types.Part(function_call=types.FunctionCall(id="c", name="f", args={"x": [1]}), thought_signature=b"s")],
    ),
    types.Content(
        role="user", parts=[types.Part(function_response=types.FunctionResponse(id="c", name="f", response={"result": 4}))]
    ),
    types.Content(
        role="model",
        parts=[
            types.Part(executable_code=types.ExecutableCode(code="1", language="PYTHON")),
            types.Part(file_data=types.FileData(file_uri="https://e.x/a", mime_type="text/plain")),
        ],
    ),
]


def event(chance, at):
    content = chance.choice(CONTENTS)
    delta = {name: [at, value] for name, value in STATE.items() if chance.random() < 0.2}
    more = {"error_code": "E", "error_message": "failed"} if chance.random() < 0.1 else {}
    return Event(
        id=f"e{at}",
        author="user" if content and content.role == "user" else "agent",
        invocation_id=f"i{at}",
        timestamp=float(at),
        content=content,
        actions=EventActions(state_delta=delta, artifact_delta={"f": at}),
        long_running_tool_ids={"c"} if at % 3 == 0 else None,
        **more,
    )


def plain(session):
    return session and session.model_dump()


def test_random_operations_are_the_same_as_in_memory(address, monkeypatch):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    now = [0.0]
    monkeypatch.setattr(platform_time, "get_time", lambda: now[0])

    async def program():
        async with AsyncClient(address) as client:
            theirs = InMemorySessionService()
            for at in range(1, OPERATIONS):
                now[0] = float(at)
                # Another process each time.
                ours = SessionService(client)
                place = {"app_name": f"{seed}/{chance.choice('ab')}", "user_id": chance.choice(["u/1", "ü"])}
                named = {**place, "session_id": chance.choice(["s", "s/2", " t "])}
                match chance.choices(
                    ["create", "get", "list", "delete", "event", "user"], [3, 5, 2, 1 if at % 5 == 0 else 0, 12, 1]
                )[0]:
                    case "create":
                        state = {name: [at, value] for name, value in STATE.items() if chance.random() < 0.3 and "temp" not in name}
                        made = [await outcome(service.create_session(**named, state=state)) for service in (ours, theirs)]
                        assert made[0] == made[1]
                    case "get":
                        config = chance.choice(
                            [
                                None,
                                GetSessionConfig(num_recent_events=chance.randrange(4)),
                                GetSessionConfig(after_timestamp=float(chance.randrange(at))),
                            ]
                        )
                        found = [plain(await service.get_session(**named, config=config)) for service in (ours, theirs)]
                        assert found[0] == found[1]
                    case "list":
                        if chance.random() < 0.3:
                            del place["user_id"]
                        listed = [
                            [plain(each) for each in (await service.list_sessions(**place)).sessions] for service in (ours, theirs)
                        ]
                        assert listed[0] == listed[1]
                    case "delete":
                        for service in (ours, theirs):
                            await service.delete_session(**named)
                    case "event":
                        made = event(chance, at)
                        sessions = [await service.get_session(**named) for service in (ours, theirs)]
                        assert (sessions[0] is None) == (sessions[1] is None)
                        # In memory, one that comes twice is the same event if it had nothing temporary.
                        times = (
                            1 if any(name.startswith("temp:") for name in made.actions.state_delta) else chance.choice([1, 1, 2])
                        )
                        for _ in range(times if sessions[0] else 0):
                            returned = [
                                await service.append_event(session, made.model_copy(deep=True))
                                for service, session in zip((ours, theirs), sessions, strict=True)
                            ]
                            assert returned[0].model_dump() == returned[1].model_dump()
                            assert plain(sessions[0]) == plain(sessions[1])
                    case "user":
                        assert await ours.get_user_state(**place) == await theirs.get_user_state(**place)

    asyncio.run(program())


async def outcome(call):
    try:
        return plain(await call)
    except AlreadyExistsError:
        return "exists"


def says(text, **actions):
    return Event(
        author="agent", content=types.Content(role="model", parts=[types.Part(text=text)]), actions=EventActions(**actions)
    )


def test_a_stale_session_is_refused_and_a_labelled_one_is_not(address, client, name):
    place = {"app_name": name, "user_id": "u"}

    async def program():
        async with AsyncClient(address) as asynchronous:
            service = SessionService(asynchronous)
            first = await service.create_session(**place, session_id="s")
            second = await service.get_session(**place, session_id="s")
            await service.append_event(first, says("one", state_delta={"n": 1}))
            with pytest.raises(StaleSessionError):
                await service.append_event(second, says("two", state_delta={"n": 2}))
            second = await service.get_session(**place, session_id="s")
            client.change_tags(f"adk/{name}/u/s", add=["important"])
            await service.append_event(second, says("three"))
            await service.append_event(second, says("four"))
            loaded = await service.get_session(**place, session_id="s")
            assert [event.content.parts[0].text for event in loaded.events] == ["one", "three", "four"] and loaded.state == {"n": 1}
            # One that was loaded elsewhere knows its last event only.
            elsewhere = loaded.model_copy(deep=True)
            elsewhere._storage_update_marker = None
            await service.append_event(elsewhere, says("five"))
            elsewhere._storage_update_marker = None
            elsewhere.events.pop()
            with pytest.raises(StaleSessionError):
                await service.append_event(elsewhere, says("six"))
            await service.delete_session(**place, session_id="s")
            with pytest.raises(SessionNotFoundError):
                await service.append_event(second, says("seven"))
            await service.create_session(**place, session_id="s")
            with pytest.raises(StaleSessionError):
                await service.append_event(second, says("eight"))

    asyncio.run(program())


def test_changes_at_one_time_are_all_kept(address, name):
    async def program():
        async with AsyncClient(address) as client:
            service = SessionService(client)
            sessions = [await service.create_session(app_name=name, user_id=f"u{at % 2}") for at in range(8)]
            await asyncio.gather(
                *(
                    service.append_event(session, says("x", state_delta={f"app:{at}": at, f"user:{at}": at}))
                    for at, session in enumerate(sessions)
                )
            )
            loaded = await service.get_session(app_name=name, user_id="u1", session_id=sessions[1].id)
            assert loaded.state == {**{f"app:{at}": at for at in range(8)}, **{f"user:{at}": at for at in range(1, 8, 2)}}

    asyncio.run(program())


class LosesStates(httpx.AsyncBaseTransport):
    """The network of a program that ends before it changes the state of an app or a user."""

    def __init__(self):
        self.network = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request):
        if request.method == "POST" and "adk-state" in request.url.path:
            raise httpx.ConnectError("gone")
        return await self.network.handle_async_request(request)


def test_a_program_that_ends_in_between_loses_no_state(address, name):
    place = {"app_name": name, "user_id": "u"}

    async def program():
        async with AsyncClient(address) as client, AsyncClient(address, transport=LosesStates(), retries=0) as dying:
            service = SessionService(client)
            session = await service.create_session(**place, session_id="s")
            with pytest.raises(Exception, match="gone"):
                await SessionService(dying).append_event(session, says("x", state_delta={"app:a": 1, "user:u": 1, "n": 1}))
            for _ in range(2):
                loaded = await service.get_session(**place, session_id="s")
                assert loaded.state == {"app:a": 1, "user:u": 1, "n": 1}
            other = await service.create_session(**place, session_id="other")
            await service.append_event(other, says("y", state_delta={"app:a": 2}))
            # What was applied once is not applied again over what came later.
            assert (await service.get_session(**place, session_id="s")).state["app:a"] == 2

    asyncio.run(program())


class LosesAnswers(httpx.AsyncBaseTransport):
    """A network that breaks after the server has stored what it was sent."""

    def __init__(self, times):
        self.network, self.times = httpx.AsyncHTTPTransport(), times

    async def handle_async_request(self, request):
        answer = await self.network.handle_async_request(request)
        if request.method == "POST" and request.url.path.endswith("/messages") and self.times > 0:
            self.times -= 1
            await answer.aclose()
            raise httpx.ReadError("lost")
        return answer


@pytest.mark.parametrize(("times", "retries"), [(1, 4), (1, 0), (2, 1)])
def test_an_event_whose_answer_is_lost_is_in_the_session(address, name, times, retries):
    """The client sends it again, or, once that gives up, the program."""
    place = {"app_name": name, "user_id": "u"}

    async def program():
        async with AsyncClient(address) as client, AsyncClient(address, transport=LosesAnswers(times), retries=retries) as losing:
            service = SessionService(losing)
            session = await SessionService(client).create_session(**place, session_id="s")
            event = says("one", state_delta={"n": 1, "app:a": 1})
            try:
                await service.append_event(session, event)
            except conversation_store.OutcomeUnknown:
                await service.append_event(session, event)
            await service.append_event(session, says("two"))
            loaded = await SessionService(client).get_session(**place, session_id="s")
            for one in (session, loaded):
                assert [event.content.parts[0].text for event in one.events] == ["one", "two"]
                assert one.state["n"] == 1
            assert loaded.state["app:a"] == 1

    asyncio.run(program())


class Scripted(BaseLlm):
    """A model that calls a tool in each turn, then says what came."""

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text=f"It is {last.function_response.response['result']}.")
        else:
            part = types.Part(function_call=types.FunctionCall(name="weather", args={"city": last.text}))
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=9, candidates_token_count=3)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage, model_version="m-1")


def test_a_run_with_tools_over_three_turns(address, client, name):
    def weather(city: str) -> str:
        """The weather."""
        return f"wet in {city}"

    async def turns(service):
        agent = LlmAgent(name="a", model=Scripted(model="scripted"), tools=[weather], output_key="said")
        runner = Runner(app_name=name, agent=agent, session_service=service)
        await service.create_session(app_name=name, user_id="u", session_id="s")
        said = []
        for city in ("Oslo", "Rome", "Bern"):
            message = types.Content(role="user", parts=[types.Part(text=city)])
            async for each in runner.run_async(user_id="u", session_id="s", new_message=message):
                if each.is_final_response():
                    said.append(each.content.parts[0].text)
        session = await service.get_session(app_name=name, user_id="u", session_id="s")
        return said, session.state, [(each.author, each.content.role) for each in session.events]

    async def ours():
        async with AsyncClient(address) as asynchronous:
            return await turns(SessionService(asynchronous))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = asyncio.run(turns(InMemorySessionService()))
        assert asyncio.run(ours()) == expected
    assert expected[0] == ["It is wet in Oslo.", "It is wet in Rome.", "It is wet in Bern."]
    key = f"adk/{name}/u/s"
    kinds = [(message["role"], *[chunk["type"] for chunk in message["chunks"]]) for message in client.messages(key)]
    assert kinds == [("user", "text"), ("assistant", "tool_call"), ("tool", "tool_result"), ("assistant", "text")] * 3
    for target in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        request = client.prompt(key, target, model="m")["request"]
        assert client.check(target, {"max_tokens": 9, **request} if target == "anthropic" else request)["accepted"], request
    rows = client.usage(by=["model"], tags=[f"adk:{name}"])
    assert [(row["model"], row["answers"], row["input"], row["output"]) for row in rows] == [("m-1", 6, 54, 18)]
