// `conversation-store/openai-agents` beside the SDK's own `MemorySession`, and in its runner.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Agent, MemorySession, Runner, setTracingDisabled, tool, Usage } from "@openai/agents";
import { Client } from "conversation-store";
import { ConvoSession } from "conversation-store/openai-agents";
import { z } from "zod";
import { OPERATIONS, SEED, randomness } from "./random.mjs";
import { Server } from "./server.mjs";

setTracingDisabled(true);

let server, client;
before(async () => {
  server = await new Server("memory:").start();
  client = new Client({ url: server.address, key: server.secret });
});
after(() => server.kill());

const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** What a call gives, or that it throws. */
const outcome = (promise) => promise.then((value) => ({ value: plain(value) }), () => ({ throws: true }));

test(`${OPERATIONS} operations give what MemorySession gives (seed ${SEED})`, async () => {
  const { below, one, many, text, json } = randomness();
  const callId = () => `call_${below(4)}`;
  const call = () => ({ type: "function_call", callId: callId(), name: "f", arguments: JSON.stringify(json()), status: "completed" });
  const item = () => one([
    () => ({ role: "user", content: text() }),
    () => ({ type: "message", role: "user", content: many(3, () => ({ type: "input_text", text: text() })), providerData: { given: json() } }),
    () => ({ type: "message", role: "user", content: [{ type: "input_image", image: "data:image/png;base64,iVBORw0KGgo=" }] }),
    () => ({ type: "message", role: "system", content: text() }),
    () => ({ type: "message", id: `msg_${below(9)}`, role: "assistant", status: "completed", content: [{ type: "output_text", text: text() }, { type: "refusal", refusal: "no" }] }),
    () => ({ type: "reasoning", content: [{ type: "input_text", text: text() }], rawContent: [{ type: "reasoning_text", text: text() }] }),
    call,
    () => ({ type: "function_call_result", callId: callId(), name: "f", status: "completed", output: one([text(), { type: "text", text: text() }, [{ type: "input_text", text: text() }]]) }),
    () => ({ type: "hosted_tool_call", name: "web_search_call", status: "completed", providerData: { given: json() } }),
    () => ({ type: "unknown", providerData: { given: json() } }),
  ])();
  const own = new ConvoSession(client, "random");
  const memory = new MemorySession({ sessionId: "random" });
  const done = [];
  const transaction = async () => {
    const items = await memory.getItems();
    const suffix = one([items.slice(-below(4) || items.length), items.slice(0, 2), []]);
    return one([
      () => ({ type: "append_items", items: many(3, item) }),
      () => ({ type: "replace_suffix", expectedSuffix: suffix, replacement: many(3, item) }),
    ])();
  };
  const operations = {
    addItems: async () => [many(4, item)],
    getItems: async () => [one([undefined, undefined, 0, -1, 1, 2, 5, 150])],
    popItem: async () => [],
    applyHistoryMutations: async () => [{ mutations: many(2, () => ({ type: "replace_function_call", callId: callId(), replacement: call() })) }],
    applyHistoryTransaction: async () => {
      const made = { operationId: `op ${done.length}`, transaction: await transaction() };
      const repeated = one([() => one(done) ?? made, () => ({ ...made, operationId: one(done)?.operationId ?? "x" }), () => made, () => made])();
      done.push(repeated);
      return [repeated];
    },
  };
  const weights = ["addItems", "addItems", "addItems", "getItems", "getItems", "popItem", "popItem", "applyHistoryTransaction"];
  for (let at = 0; at < OPERATIONS; at++) {
    // A mutation writes all that comes after it again.
    const name = below(40) === 0 ? "clearSession" : below(40) === 0 ? "applyHistoryMutations" : one(weights);
    const options = await operations[name]?.() ?? [];
    const [mine, theirs] = [await outcome(own[name](...options)), await outcome(memory[name](...options))];
    assert.deepEqual(mine, theirs, `operation ${at}: ${name} ${JSON.stringify(options)}`);
    if (at % 25 === 0) assert.deepEqual(plain(await own.getItems()), plain(await memory.getItems()), `after operation ${at}`);
  }
  assert.deepEqual(plain(await own.getItems()), plain(await memory.getItems()));
});

test("a runner with tools, in two processes' sessions; what it stored renders for another provider", async () => {
  const double = tool({
    name: "double", description: "Doubles", parameters: z.object({ number: z.number() }), execute: async ({ number }) => String(2 * number),
  });
  const calls = [1, 2].map((at) => ({ type: "function_call", id: `fc_${at}`, callId: `call_${at}`, name: "double", arguments: `{"number":${at}}`, status: "completed" }));
  const said = (text) => [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }];
  const turns = [calls, said("done"), said("again")];
  const seen = [];
  const model = { getResponse: async ({ input }) => void seen.push(input) ?? { usage: new Usage(), output: turns.shift() } };
  const agent = new Agent({ name: "a", model, tools: [double] });
  assert.equal((await new Runner().run(agent, "go", { session: new ConvoSession(client, "run") })).finalOutput, "done");
  assert.equal((await new Runner().run(agent, "more", { session: new ConvoSession(client, "run") })).finalOutput, "again");
  assert.deepEqual(seen[2].map(({ type }) => type), ["message", "function_call", "function_call", "function_call_result", "function_call_result", "message", "message"]);
  const { request, report } = await client.prompt("run", { for: "anthropic" });
  assert.deepEqual(request.messages.slice(0, 4).map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assert.deepEqual(request.messages[2].content.map(({ tool_use_id }) => tool_use_id), ["call_1", "call_2"]);
  assert.deepEqual(report.filter(({ severity }) => severity === "lost"), []);
  assert.deepEqual(await client.next("run"), { step: "await_user" });
});

test("a replacement whose process ends before it has hidden what it replaces", async () => {
  const dying = new Client({
    url: server.address, key: server.secret, retries: 0,
    fetch: (to, init) => (init.method === "DELETE" ? Promise.reject(new TypeError("the process ends")) : fetch(to, init)),
  });
  const item = (text) => ({ type: "message", role: "user", content: text });
  await new ConvoSession(dying, "cut").addItems([item("one"), item("two"), item("three")]);
  const transaction = { type: "replace_suffix", expectedSuffix: [item("two"), item("three")], replacement: [item("both")] };
  await assert.rejects(new ConvoSession(dying, "cut").applyHistoryTransaction({ operationId: "1", transaction }));
  const session = new ConvoSession(client, "cut");
  assert.deepEqual((await session.getItems()).map(({ content }) => content), ["one", "both"]);
  assert.deepEqual((await session.getItems(2)).map(({ content }) => content), ["one", "both"]);
  assert.equal((await session.popItem()).content, "both");
});

test("a compaction keeps the log", async () => {
  const session = new ConvoSession(client);
  const hello = { type: "message", role: "user", content: "hello" };
  const compacted = { type: "compaction", encrypted_content: "c2VhbGVk" };
  await session.addItems([hello]);
  await session.replaceHistoryWithCompaction([compacted]);
  assert.deepEqual(plain(await session.getItems()), [hello, compacted]);
  assert.equal((await client.newest(session.sessionId, 10)).length, 2);
});

test("sessions of several processes take, add and change at one time", async () => {
  const session = () => new ConvoSession(client, "shared");
  const item = (text) => ({ type: "message", role: "user", content: text });
  const texts = async () => (await session().getItems()).map(({ content }) => content);
  // A session is begun by one of them.
  const operations = Array.from({ length: 12 }, (_, n) => ({ operationId: `op ${n % 6}`, transaction: { type: "append_items", items: [item(String(n % 6))] } }));
  await Promise.all(operations.map((operation) => session().applyHistoryTransaction(operation)));
  assert.deepEqual((await texts()).sort(), ["0", "1", "2", "3", "4", "5"]);
  const pair = (n) => [item(`ask ${n}`), { type: "message", role: "assistant", status: "completed", content: [1, 2].map((at) => ({ type: "output_text", text: `${at} of ${n}` })) }];
  await Promise.all(Array.from({ length: 5 }, (_, n) => session().addItems(pair(n))));
  const before = await session().getItems();
  const taken = await Promise.all(Array.from({ length: 10 }, () => session().popItem()));
  const order = (items) => items.map((item) => JSON.stringify(item)).sort();
  assert.deepEqual(order(taken), order(before.slice(-10)));
  assert.equal((await texts()).length, 6);
});

test("a conversation of another program is a session", async () => {
  await client.append("other", [
    { role: "user", chunks: [{ type: "text", text: "double 4" }] },
    { role: "assistant", chunks: [{ type: "text", text: "I look." }, { type: "tool_call", id: "c1", name: "double", arguments: "{}" }] },
    { role: "tool", chunks: [{ type: "tool_result", tool_call_id: "c1", content: "8" }] },
  ]);
  const session = new ConvoSession(client, "other");
  assert.deepEqual((await session.getItems()).map(({ type }) => type), ["message", "message", "function_call", "function_call_result"]);
  assert.deepEqual((await session.getItems(2)).map(({ type }) => type), ["function_call", "function_call_result"]);
  await session.popItem();
  assert.equal((await session.popItem()).name, "double");
  assert.deepEqual((await session.getItems()).map(({ role }) => role), ["user", "assistant"]);
});
