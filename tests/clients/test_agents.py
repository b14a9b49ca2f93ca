"""The official package `openai-agents`: its session, and its runner with a scripted model."""

import asyncio
import json
import pathlib
import sys
import time
import urllib.error
import urllib.request

import openai
from agents import Agent, ModelResponse, OpenAIConversationsSession, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText, ResponseReasoningItem

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "oracle"))
import oracle

set_tracing_disabled(True)


def wait_for_key(server, secret):
    """The server reads its file of keys again within two seconds."""
    until = time.monotonic() + 30
    while True:
        request = urllib.request.Request(f"{server.address}/api/v1/targets", headers={"Authorization": f"Bearer {secret}"})
        try:
            return urllib.request.urlopen(request).read()
        except urllib.error.HTTPError:
            assert time.monotonic() < until, "a new key is not noticed"
            time.sleep(0.05)


class Scripted(Model):
    """Answers with what it is given, turn by turn, and keeps what it was sent."""

    def __init__(self, turns):
        self.turns, self.seen = list(turns), []

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self.seen.append(input)
        return ModelResponse(output=self.turns.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def said(text, id):
    return ResponseOutputMessage(id=id, type="message", role="assistant", status="completed", content=[ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])])


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_session(server):
    async def story():
        session = OpenAIConversationsSession(openai_client=server.async_client())
        assert await session.get_items() == []
        await session.add_items([{"role": "user", "content": str(at)} for at in range(55)])
        items = await session.get_items()
        assert [item["content"][0]["text"] for item in items] == [str(at) for at in range(55)]
        assert [item["content"][0]["text"] for item in await session.get_items(3)] == ["52", "53", "54"]
        popped = await session.pop_item()
        assert popped["content"][0]["text"] == "54"
        assert len(await session.get_items()) == 54
        await session.clear_session()
        assert await session.get_items() == []
    run(story())


def test_a_runner_with_tools_and_reasoning(server):
    @function_tool
    def double(number: int) -> str:
        return str(2 * number)

    async def story():
        calls = [ResponseFunctionToolCall(id=f"fc_{at}", type="function_call", call_id=f"call_{at}", name="double", arguments=f'{{"number": {at}}}', status="completed") for at in range(11)]
        thought = ResponseReasoningItem(id="rs_1", type="reasoning", summary=[], encrypted_content="gAAA")
        model = Scripted([[thought, *calls], [said("done", "msg_1")], [said("again", "msg_2")]])
        agent = Agent(name="a", model=model, tools=[double])
        session = OpenAIConversationsSession(openai_client=server.async_client())
        first = await Runner.run(agent, "go", session=session)
        assert first.final_output == "done"
        # A second process goes on with the same conversation.
        other = OpenAIConversationsSession(conversation_id=await session._get_session_id(), openai_client=server.async_client())
        second = await Runner.run(agent, "more", session=other)
        assert second.final_output == "again"
        sent = model.seen[2]
        kinds = [item.get("type", "message") for item in sent]
        assert kinds == ["message", "reasoning"] + ["function_call"] * 11 + ["function_call_output"] * 11 + ["message", "message"]
        assert [item["output"] for item in sent if item.get("type") == "function_call_output"] == [str(2 * at) for at in range(11)]
        return await session._get_session_id()

    conversation = run(story())
    # What the SDK wrote is an ordinary conversation: it renders for another provider.
    def native(path):
        headers = {"Authorization": f"Bearer {server.secrets['ada']}"}
        request = urllib.request.Request(f"{server.address}/api/v1/conversations/{conversation}/{path}", headers=headers)
        return json.load(urllib.request.urlopen(request))

    prompt = native("prompt?for=anthropic")
    messages = prompt["request"]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user", "assistant", "user"], "a bridge at the end"
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"] * 11
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result"] * 11
    assert [line["rule"] for line in prompt["report"] if "call" in line["rule"]] == []
    assert native("next") == {"step": "await_user"}


def test_after_kill_all_is_there(server):
    async def before():
        session = OpenAIConversationsSession(openai_client=server.async_client())
        await session.add_items([{"role": "user", "content": "kept"}])
        return await session._get_session_id()

    conversation = run(before())
    server.kill()
    server.start()

    async def after():
        session = OpenAIConversationsSession(conversation_id=conversation, openai_client=server.async_client())
        return await session.get_items()

    assert [item["content"][0]["text"] for item in run(after())] == ["kept"]


def damaged():
    """The histories that broke real products."""
    lines = (pathlib.Path(__file__).parents[1] / "fixtures" / "corruption.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_next_turn_over_damaged_histories_is_accepted(server):
    """What the SDK sends a model is what the judge accepts, over every history that was damaged; stored items stay."""
    secret = server.key("ada", "--repaired")
    wait_for_key(server, secret)
    client = openai.AsyncOpenAI(base_url=f"{server.address}/v1", api_key=secret)
    plain = server.async_client()

    def store(case):
        body = json.dumps(case["history"]).encode()
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.address}/api/v1/conversations/{case['id']}/messages", body, headers)
        try:
            return "conv_" + json.load(urllib.request.urlopen(request))["conversation"].replace("-", "")
        except urllib.error.HTTPError:
            return None  # what no store takes

    async def story():
        refused, judged = 0, 0
        for case in damaged():
            conversation = store(case)
            if conversation is None:
                continue
            before = [item.id async for item in plain.conversations.items.list(conversation, order="asc", limit=100)]
            for repaired, given in [(False, plain), (True, client)]:
                model = Scripted([[said("done", f"msg_{judged}")]])
                session = OpenAIConversationsSession(conversation_id=conversation, openai_client=given)
                sent = await session.get_items() + [{"role": "user", "content": "And now?"}]
                violations = oracle.hard(oracle.check("openai_responses", {"model": "gpt-5", "input": json.loads(json.dumps(sent))}))
                if not repaired:
                    refused += bool(violations)
                    continue
                assert not violations, (case["id"], violations)
                await Runner.run(Agent(name="a", model=model), "And now?", session=session)
                turn = json.loads(json.dumps([item if isinstance(item, dict) else item.model_dump(exclude_unset=True) for item in model.seen[0]]))
                violations = oracle.hard(oracle.check("openai_responses", {"model": "gpt-5", "input": turn}))
                assert not violations, (case["id"], violations)
                # The last item is the answer: popping it and the question leaves what was stored.
                assert (await session.pop_item())["content"][0]["text"] == "done"
                assert (await session.pop_item())["content"][0]["text"] == "And now?"
                after = [item.id async for item in plain.conversations.items.list(conversation, order="asc", limit=100)]
                assert after == before, case["id"]
            judged += 1
        assert judged > 90 and refused > 10, (judged, refused)
        print(f"{judged} histories, {refused} refused as they are stored, 0 repaired")

    run(story())
