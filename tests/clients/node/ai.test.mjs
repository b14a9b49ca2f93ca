// The recipe of `src/docs/recipes.md` for the Vercel AI SDK, as it is there.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync, writeFileSync } from "node:fs";
import { readUIMessageStream, parseJsonEventStream, simulateReadableStream, tool, uiMessageChunkSchema } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { Server } from "./server.mjs";

let server, recipe;

before(async () => {
  server = await new Server().start();
  Object.assign(process.env, { CONVO_URL: server.address, CONVO_KEY: server.secret });
  const [, code] = readFileSync(process.env.RECIPES, "utf8").match(/```js\n(.*?)```/s);
  writeFileSync(new URL("./recipe.mjs", import.meta.url), code);
  recipe = await import("./recipe.mjs");
});
after(() => server.kill());

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const finish = (unified) => ({ type: "finish", finishReason: { unified, raw: unified }, usage });
const words = (id, ...deltas) => [
  { type: "text-start", id }, ...deltas.map((delta) => ({ type: "text-delta", id, delta })), { type: "text-end", id },
];
const asked = (id, text) => ({ id, role: "user", parts: [{ type: "text", text }] });
const request = (id, message) => new Request("http://app/api/chat", { method: "POST", body: JSON.stringify({ id, message }) });

/** A model that answers with these steps; `gate` is awaited before the last delta of each. */
function scripted(steps, gate) {
  const prompts = [];
  const model = new MockLanguageModelV3({
    doStream: async ({ prompt }) => {
      prompts.push(prompt);
      const chunks = steps.shift();
      const stream = new ReadableStream({
        async start(controller) {
          for (const chunk of chunks) {
            if (chunk.gate) await gate;
            else controller.enqueue(chunk);
          }
          controller.close();
        },
      });
      return { stream };
    },
  });
  return { model, prompts };
}

/** The message that a page builds from a response. */
async function built(response) {
  const parsed = parseJsonEventStream({ stream: response.body, schema: uiMessageChunkSchema });
  const stream = parsed.pipeThrough(new TransformStream({
    transform: (part, controller) => (part.success ? controller.enqueue(part.value) : controller.error(part.error)),
  }));
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return last;
}

/** What counts of a message. */
const seen = ({ role, parts }) => ({
  role,
  parts: parts.map(({ type, text, input, output, errorText, toolCallId }) =>
    Object.fromEntries(Object.entries({ type, text, input, output, errorText, toolCallId }).filter(([, value]) => value !== undefined))),
});

const until = async (condition) => {
  for (let at = 0; at < 1000; at++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail("it did not come");
};

const tools = { double: tool({ inputSchema: z.object({ number: z.number() }), execute: async ({ number }) => {
  if (number < 0) throw new Error("too small");
  return { doubled: 2 * number };
} }) };
const call = (toolCallId, number) => ({ type: "tool-call", toolCallId, toolName: "double", input: JSON.stringify({ number }) });
const thought = [
  { type: "reasoning-start", id: "r" }, { type: "reasoning-delta", id: "r", delta: "I have to " },
  { type: "reasoning-delta", id: "r", delta: "count." }, { type: "reasoning-end", id: "r" },
];

test("a chat is stored, with its tools, and comes back", async () => {
  const steps = [
    [...thought, call("call_1", 4), call("call_2", -1), finish("tool-calls")], [...words("t", "It is ", "8."), finish("stop")],
    [...words("t", "Yes."), finish("stop")],
  ];
  const { model, prompts } = scripted(steps);
  const { POST, GET } = recipe.handlers(model, tools);
  const shown = await built(await POST(request("chat 1", asked("m1", "double 4"))));
  // What the page has seen is stored a moment later.
  await until(async () => (await server.native("chat%201/next")).step === "await_user");
  const loaded = await recipe.loadChat("chat 1");
  assert.deepEqual(loaded.map(seen), [seen(asked("m1", "double 4")), seen(shown)]);
  assert.equal(loaded[1].id, shown.id);
  assert.equal((await GET(undefined, { params: { id: "chat 1" } })).status, 204, "nothing is being written");
  // The next turn is sent what was stored.
  await built(await POST(request("chat 1", asked("m2", "sure?"))));
  assert.deepEqual(prompts[2].map(({ role }) => role), ["user", "assistant", "tool", "assistant", "user"]);
  // A page that sends its message twice stores it once.
  await recipe.saveMessage("chat 1", asked("m2", "sure?"));
  await until(async () => (await server.native("chat%201/next")).step === "await_user");
  assert.equal((await recipe.loadChat("chat 1")).length, 4);
  // It renders for a provider that never saw it.
  const { request: rendered } = await server.native("chat%201/prompt?for=anthropic");
  const roles = ["user", "assistant", "user", "assistant", "user", "assistant"];
  assert.deepEqual(rendered.messages.map(({ role }) => role).slice(0, 6), roles);
});

test("a page that reloads resumes the stream from its beginning", async () => {
  let open;
  const gate = new Promise((resolve) => (open = resolve));
  const steps = [
    [...thought, ...words("a", "I ask. "), call("call_1", 4), finish("tool-calls")],
    [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: "It " }, { gate: true },
      { type: "text-delta", id: "t", delta: "is 8." }, { type: "text-end", id: "t" }, finish("stop")],
  ];
  const { POST, GET } = recipe.handlers(scripted(steps, gate).model, tools);
  const first = await POST(request("chat 2", asked("m1", "double 4")));
  // The page goes away in the middle.
  const reader = first.body.getReader();
  await until(async () => new TextDecoder().decode((await reader.read()).value).includes('"It "'));
  await reader.cancel();
  let response;
  await until(async () => (response = await GET(undefined, { params: { id: "chat 2" } })).status === 200);
  const second = await GET(undefined, { params: { id: "chat 2" } });
  setTimeout(open, 50);
  const [one, two] = await Promise.all([built(response), built(second)]);
  assert.deepEqual(seen(one).parts.filter(({ type }) => type === "text").map(({ text }) => text), ["I ask. ", "It is 8."]);
  assert.deepEqual(seen(one), seen(two));
  assert.deepEqual(seen((await recipe.loadChat("chat 2"))[1]), seen(one));
  await until(async () => (await server.native("chat%202/next")).step === "await_user");
  assert.equal((await GET(undefined, { params: { id: "chat 2" } })).status, 204);
});

test("an answer that breaks off stays as far as it came", async () => {
  const stream = simulateReadableStream({ chunks: ['data: {"type":"start","messageId":"x"}\n\n', 'data: {"type":"start-step"}\n\n',
    'data: {"type":"text-delta","id":"t","delta":"half"}\n\n'] });
  await recipe.saveMessage("chat 3", asked("m1", "hello"));
  await recipe.saveStream("chat 3", stream);
  assert.equal((await server.native("chat%203/messages/1")).finish_reason, "interrupted");
  assert.deepEqual((await recipe.loadChat("chat 3"))[1].parts.at(-1).text, "half");
});
