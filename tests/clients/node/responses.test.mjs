// The official packages `openai` and `@openai/agents`, unchanged: `responses` over a model behind each of the five wires. The models are
// `wires.py`: each calls the first tool, and says a sentence to its result, or where there is none.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeFileSync } from "node:fs";
import { Agent, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { z } from "zod";
import { Server } from "./server.mjs";

const WIRES = ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"];
const SENTENCE = "I see it.";
const WEATHER = {
  type: "function",
  name: "weather",
  strict: false,
  parameters: { type: "object", properties: { location: { type: "string" } } },
};

setTracingDisabled(true);

let server, client;
const models = [];

before(async () => {
  let settings = "";
  for (const wire of WIRES) {
    const model = spawn(process.env.PYTHON ?? "python3", [process.env.WIRES ?? "wires.py", wire], { stdio: ["pipe", "pipe", "pipe"] });
    model.problems = "";
    model.stderr.on("data", (piece) => (model.problems += piece));
    const { value: url } = await createInterface({ input: model.stdout })[Symbol.asyncIterator]().next();
    models.push(model);
    settings += `[[upstream]]\nname = "${wire}"\nurl = "${url}"\nwire = "${wire}"\nkey_env = "UPSTREAM_KEY"\n\n`;
  }
  process.env.UPSTREAM_KEY = "sk-upstream";
  server = new Server();
  server.config = join(server.folder, "convo.toml");
  writeFileSync(server.config, settings);
  await server.start();
  client = new OpenAI({ baseURL: `${server.address}/v1`, apiKey: server.secret, maxRetries: 0 });
});

after(async () => {
  await server.kill();
  for (const model of models) {
    const ended = new Promise((resolve) => model.once("exit", resolve));
    model.stdin.end();
    assert.equal(await ended, 0, model.problems);
  }
});

const collect = async (stream) => {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
};

for (const wire of WIRES) {
  const model = `${wire}/m-1`;

  test(`${wire}: create, retrieve, the next turn, delete`, async () => {
    const made = await client.responses.create({ model, input: "hello" });
    assert.equal(made.output_text, SENTENCE);
    assert.deepEqual((await client.responses.retrieve(made.id)).output, made.output);
    const next = await client.responses.create({ model, input: "again", previous_response_id: made.id });
    assert.equal(next.previous_response_id, made.id);
    const items = [];
    for await (const item of client.responses.inputItems.list(next.id, { order: "asc" })) items.push(item);
    assert.equal(items.at(-1).content[0].text, "again");
    await client.responses.delete(made.id);
    await assert.rejects(client.responses.retrieve(made.id), OpenAI.NotFoundError);
    const again = client.responses.create({ model, input: "x", previous_response_id: made.id });
    await assert.rejects(again, { status: 400, code: "previous_response_not_found" });
  });

  test(`${wire}: a stream with a tool, and its result`, async () => {
    const stream = client.responses.stream({ model, input: "hello", tools: [WEATHER] });
    const events = await collect(stream);
    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    const final = await stream.finalResponse();
    const [call] = final.output;
    assert.deepEqual([call.type, JSON.parse(call.arguments)], ["function_call", { location: "here" }]);
    const input = [{ type: "function_call_output", call_id: call.call_id, output: "sun" }];
    const next = await client.responses.create({ model, input, previous_response_id: final.id, tools: [WEATHER] });
    assert.equal(next.output_text, SENTENCE);
  });

  test(`${wire}: the rest after each event`, async () => {
    const whole = await collect(await client.responses.create({ model, input: "hello", background: true, stream: true }));
    assert.equal(whole.at(-1).type, "response.completed");
    for (const { sequence_number } of whole) {
      const rest = await collect(await client.responses.retrieve(whole[0].response.id, { stream: true, starting_after: sequence_number }));
      assert.deepEqual(rest, whole.slice(sequence_number + 1));
    }
    assert.equal((await client.responses.cancel(whole[0].response.id)).status, "completed");
  });

  test(`${wire}: count, and compact`, async () => {
    const first = await client.responses.create({ model, input: "I am Ada." });
    const alone = await client.responses.inputTokens.count({ model, input: "hello" });
    const after = await client.responses.inputTokens.count({ model, input: "hello", previous_response_id: first.id });
    assert.equal(alone.object, "response.input_tokens");
    assert.ok(after.input_tokens > alone.input_tokens);
    const compacted = await client.responses.compact({ model, previous_response_id: first.id });
    assert.deepEqual([compacted.object, compacted.output.map((item) => item.type)], ["response.compaction", ["compaction"]]);
    const made = await client.responses.create({ model, input: [...compacted.output, { role: "user", content: "hello" }] });
    assert.equal(made.output_text, SENTENCE);
    for (const call of [(body) => client.responses.inputTokens.count(body), (body) => client.responses.compact(body)]) {
      const unknown = call({ model, previous_response_id: "resp_none" });
      await assert.rejects(unknown, { constructor: OpenAI.BadRequestError, code: "previous_response_not_found" });
      await assert.rejects(call({ model }), { constructor: OpenAI.BadRequestError, code: "missing_required_parameter", param: "input" });
    }
  });

  test(`${wire}: a conversation as text and as an object`, async () => {
    const { id } = await client.conversations.create({ items: [{ role: "user", content: "one" }] });
    const first = await client.responses.create({ model, input: "two", conversation: id });
    const second = await client.responses.create({ model, input: "three", conversation: { id } });
    assert.deepEqual([first.conversation, second.conversation], [{ id }, { id }]);
    const said = [];
    for await (const item of client.conversations.items.list(id, { order: "asc" })) said.push(item.content[0].text);
    assert.deepEqual(said, ["one", "two", SENTENCE, "three", SENTENCE]);
    await assert.rejects(client.responses.create({ model, input: "x", conversation: "conv_none" }), OpenAI.NotFoundError);
    const both = client.responses.create({ model, input: "x", conversation: id, previous_response_id: first.id });
    await assert.rejects(both, { status: 400, code: "mutually_exclusive_parameters" });
  });

  test(`${wire}: by WebSocket`, async () => {
    const socket = new ResponsesWS(client, { reconnect: null });
    socket.on("error", () => {});
    const messages = socket.stream();
    const answered = async (fields) => {
      socket.send({ type: "response.create", model, ...fields });
      const events = [];
      while (events.at(-1)?.type !== "response.completed") {
        const { type, message, error } = (await messages.next()).value;
        if (type === "error") return error;
        if (type === "message") events.push(message);
      }
      assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
      return events.at(-1).response;
    };
    const first = await answered({ input: "hello", tools: [WEATHER], store: false });
    const [call] = first.output;
    const input = [{ type: "function_call_output", call_id: call.call_id, output: "sun" }];
    const second = await answered({ input, tools: [WEATHER], store: false, previous_response_id: first.id });
    assert.equal(second.output[0].content[0].text, SENTENCE);
    await assert.rejects(client.responses.retrieve(second.id), OpenAI.NotFoundError);
    const third = await answered({ input: "stored" });
    assert.deepEqual((await client.responses.retrieve(third.id)).output, third.output);
    const error = await answered({ input: "x", previous_response_id: "resp_none" });
    assert.equal(error.error.error.code, "previous_response_not_found");
    socket.close();
  });

  for (const state of ["previousResponseId", "conversationId"]) {
    test(`${wire}: three turns of an agent with a tool, by ${state}`, async () => {
      const asked = [];
      const weather = tool({
        name: "weather", description: "The weather.", parameters: z.object({ location: z.string() }),
        execute: async ({ location }) => void asked.push(location) ?? "sun",
      });
      const agent = new Agent({ name: "a", model: new OpenAIResponsesModel(client, model), tools: [weather] });
      let kept = state === "conversationId" ? (await client.conversations.create()).id : undefined;
      for (const turn of [1, 2, 3]) {
        const found = await new Runner().run(agent, `turn ${turn}`, { [state]: kept });
        assert.equal(found.finalOutput, SENTENCE);
        assert.equal(asked.length, turn);
        if (state === "previousResponseId") kept = found.lastResponseId;
      }
    });
  }
}
