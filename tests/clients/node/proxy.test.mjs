// The official packages `openai` and `@anthropic-ai/sdk`, and the AI SDK on three wires, unchanged, through the proxy to a model
// with a script.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";
import { Model } from "./model.mjs";

let model, convo, address;

beforeEach(async () => {
  model = await new Model().start();
  const args = ["--store", "memory:", "--json", "proxy", "mine", "--url", model.url, "--listen", "127.0.0.1:0"];
  convo = spawn(process.env.CONVO, args, { stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface({ input: convo.stdout })) {
    address = JSON.parse(line).listening;
    break;
  }
});
afterEach(async () => {
  const ended = new Promise((resolve) => convo.once("exit", resolve));
  convo.kill("SIGTERM");
  assert.equal(await ended, 0);
  model.end();
});

const get = async (path) => (await fetch(`${address}/api/v1${path}`)).json();

/** What each conversation holds, once so many answers are recorded. */
async function rows(answers) {
  for (const until = Date.now() + 30_000; ;) {
    const { items } = await get("/conversations?limit=100");
    const lists = await Promise.all(items.map((item) => get(`/conversations/${item.conversation}/messages`)));
    const all = lists.map(({ messages }) => messages);
    const ended = all.flat().filter((message) => message.role === "assistant" && message.finish_reason).length;
    const said = all.map((messages) => messages.map(({ role, chunks }) => [role, ...chunks.map((chunk) => chunk.type)].join(" ")));
    if (ended >= answers) return { said, messages: all };
    assert.ok(Date.now() < until, JSON.stringify(said));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Each answer's request, as it is given, is what the model got. */
async function isAsSent(messages) {
  const answers = messages.flat().filter((message) => message.convo?.exchange);
  const given = await Promise.all(answers.map(async ({ convo: { exchange } }) =>
    (await fetch(`${address}/api/v1/exchanges/${exchange}/request`)).text()));
  assert.deepEqual(given.sort(), [...model.bodies].sort());
}

const TWO_TURNS = [["user text", "assistant text", "user text", "assistant text"]];

for (const stream of [false, true]) {
  test(`openai, Chat Completions, stream ${stream}`, async () => {
    const client = new OpenAI({ baseURL: `${address}/proxy/mine/v1`, apiKey: "sk-1", maxRetries: 0 });
    const messages = [{ role: "user", content: "hello" }];
    for (const text of ["and now?", "and then?"]) {
      const answer = await client.chat.completions.create({ model: "m-1", messages, stream });
      let said = "";
      if (stream) for await (const piece of answer) said += piece.choices[0].delta.content ?? "";
      messages.push({ role: "assistant", content: stream ? said : answer.choices[0].message.content }, { role: "user", content: text });
    }
    const { said, messages: stored } = await rows(2);
    assert.deepEqual(said, TWO_TURNS);
    await isAsSent(stored);
  });

  test(`openai, Responses, stream ${stream}`, async () => {
    const client = new OpenAI({ baseURL: `${address}/proxy/mine/v1`, apiKey: "sk-1", maxRetries: 0 });
    let last;
    for (const text of ["hello", "and now?"]) {
      const input = [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];
      const answer = await client.responses.create({ model: "m-1", input, previous_response_id: last, stream });
      if (stream) for await (const event of answer) last = event.response?.id ?? last;
      else last = answer.id;
    }
    const { said, messages } = await rows(2);
    assert.deepEqual(said, TWO_TURNS);
    await isAsSent(messages);
  });

  test(`anthropic, stream ${stream}`, async () => {
    const client = new Anthropic({ baseURL: `${address}/proxy/mine`, apiKey: "sk-1", maxRetries: 0 });
    const tools = [{ name: "shell", input_schema: { type: "object" } }];
    const messages = [{ role: "user", content: "run: ls" }];
    const ask = () => {
      const request = { model: "m-1", max_tokens: 9, messages, tools };
      return stream ? client.messages.stream(request).finalMessage() : client.messages.create(request);
    };
    const answer = await ask();
    assert.deepEqual(answer.content[0].input, { command: "ls" });
    messages.push({ role: "assistant", content: answer.content });
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: answer.content[0].id, content: "Cargo.toml" }] });
    assert.equal((await ask()).content[0].text, "I see it. (2)");
    const { said, messages: stored } = await rows(2);
    assert.deepEqual(said, [["user text", "assistant tool_call", "user tool_result", "assistant text"]]);
    await isAsSent(stored);
  });
}

const WIRES = {
  anthropic: () => createAnthropic({ baseURL: `${address}/proxy/mine/v1`, apiKey: "sk-1" })("m-1"),
  chat: () => createOpenAI({ baseURL: `${address}/proxy/mine/v1`, apiKey: "sk-1" }).chat("m-1"),
  responses: () => createOpenAI({ baseURL: `${address}/proxy/mine/v1`, apiKey: "sk-1" }).responses("m-1"),
};

for (const wire of Object.keys(WIRES)) {
  for (const stream of [false, true]) {
    test(`AI SDK, ${wire}, stream ${stream}`, async () => {
      const shell = tool({ description: "runs a command", inputSchema: z.object({ command: z.string() }), execute: async () => "Cargo.toml" });
      const messages = [{ role: "user", content: "run: ls" }];
      for (const text of ["and now?", null]) {
        const options = { model: WIRES[wire](), messages, tools: { shell }, stopWhen: stepCountIs(3), maxRetries: 0 };
        const answer = stream ? streamText(options) : await generateText(options);
        assert.match(await answer.text, /^I see it/);
        messages.push(...(await answer.response).messages);
        if (text) messages.push({ role: "user", content: text });
      }
      const { said, messages: stored } = await rows(3);
      const result = wire === "chat" || wire === "responses" ? "tool tool_result" : "user tool_result";
      assert.deepEqual(said, [["user text", "assistant tool_call", result, "assistant text", "user text", "assistant text"]]);
      await isAsSent(stored);
      if (wire === "responses") {
        // The SDK names what the model said by its id alone.
        assert.match(model.bodies[2], /"type":"item_reference"/);
        assert.equal(stored[0][3].chunks[0].text, "I see it. (2)");
      }
    });
  }
}
