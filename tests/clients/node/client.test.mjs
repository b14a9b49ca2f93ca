// `conversation-store`, installed from its tarball, against a real server.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  Client, ConflictError, ConnectionError, ConvoError, InvalidRequestError, KeyReusedError, NotFoundError, RateLimitError, StaleCursorError,
  ServerError, StaleHeadError, UnauthorizedError,
} from "conversation-store";
import { Server } from "./server.mjs";

let server, client;
const at = (one, options) => new Client({ url: one.address, key: one.secret, ...options });
const said = (text, role = "user") => ({ role, chunks: [{ type: "text", text }] });
const collect = async (iterable) => {
  const all = [];
  for await (const one of iterable) all.push(one);
  return all;
};

before(async () => {
  server = await new Server().start();
  client = at(server);
});
after(() => server.kill());

test("the programs of the README run", () => {
  const readme = readFileSync(new URL("./node_modules/conversation-store/README.md", import.meta.url), "utf8");
  const programs = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
  const outputs = programs.map((code) => {
    writeFileSync(new URL("./readme.mjs", import.meta.url), code);
    const env = { ...process.env, CONVO_URL: server.address, CONVO_KEY: server.secret };
    return execFileSync(process.execPath, ["readme.mjs"], { cwd: new URL(".", import.meta.url), env, encoding: "utf8" });
  });
  assert.match(outputs[0], /\[ 'user', 'assistant' \]\nchat-42 has 2 messages\n/);
  assert.equal(outputs[1], "it ends at 1, not at 0\n");
});

test("a conversation, from its creation to its end", async () => {
  const made = await client.create({ key: "plans", title: "Plans", tags: ["a"], metadata: { n: 1 } });
  await assert.rejects(client.create({ key: "plans" }), (error) => error instanceof ConflictError && error.code === "name_taken");
  const { message_indexes, last_seq } = await client.append("plans", [said("one"), said("two", "assistant"), said("three")]);
  assert.deepEqual(message_indexes, [0, 1, 2]);
  assert.deepEqual((await collect(client.messages("plans", { limit: 1 }))).map(({ index }) => index), [0, 1, 2]);
  assert.deepEqual((await client.newest("plans", 2)).map(({ index }) => index), [1, 2]);
  assert.equal((await client.message("plans", 1)).chunks[0].text, "two");
  assert.deepEqual((await collect(client.entries("plans", { limit: 1 }))).at(-1).seq, last_seq);
  await client.setTitle("plans", "Other plans");
  await client.setMetadata("plans", { n: 2 });
  assert.deepEqual(await client.changeTags("plans", { add: ["b"], remove: ["a"] }), ["b"]);
  const { title, metadata, tags, conversation } = await client.describe("plans");
  assert.deepEqual([title, metadata, tags, conversation], ["Other plans", { n: 2 }, ["b"], made.conversation]);
  const fork = await client.fork("plans", { at_seq: last_seq });
  await client.rewind("plans", 2);
  await client.remove("plans", 1);
  assert.deepEqual((await collect(client.messages("plans"))).map(({ index }) => index), [0]);
  assert.equal((await collect(client.messages(fork.conversation))).length, 3);
  await client.redact("plans", 0);
  assert.equal((await client.message("plans", 0)).chunks[0].text, "[redacted]");
  assert.equal((await client.stop("plans")).ingests, 0);
  assert.deepEqual((await collect(client.list({ tags: ["b"] }))).map(({ key }) => key), ["plans"]);
  await client.delete(fork.conversation);
  await client.delete("plans");
  await assert.rejects(client.describe("plans"), NotFoundError);
});

test("lists page to their end", async () => {
  await Promise.all(Array.from({ length: 7 }, (_, n) => client.create({ key: `many ${n}`, tags: ["many"] })));
  const keys = (await collect(client.list({ tags: ["many"], limit: 2 }))).map(({ key }) => key);
  assert.deepEqual(keys.sort(), Array.from({ length: 7 }, (_, n) => `many ${n}`));
  await client.create({ key: "kept", metadata: { text: "a", number: 1, object: { a: [null] } } });
  for (const [name, value] of [["text", "a"], ["number", 1], ["object", { a: [null] }]]) {
    assert.deepEqual((await collect(client.list({ metadata: { [name]: value } }))).map(({ key }) => key), ["kept"]);
  }
});

test("prompts, steps, checks, repairs, places, counts", async () => {
  const answer = { role: "assistant", id: "msg_1", model: "m-1", usage: { input_tokens: 3, output_tokens: 2 }, chunks: [
    { type: "tool_call", id: "call_1", name: "clock", arguments: "{}" },
  ], finish_reason: "tool_calls" };
  await client.append("clock", [said("What time is it?"), answer]);
  const { step, calls } = await client.next("clock");
  assert.deepEqual([step, calls[0].name], ["run_tools", "clock"]);
  const tools = [{ name: "clock", parameters: { type: "object" } }];
  const { request, report } = await client.prompt("clock", { for: "openai-chat", tools });
  assert.equal(request.tools[0].function.name, "clock");
  assert.ok(report.length > 0);
  assert.equal((await client.check("openai-chat", request)).accepted, true);
  const broken = { messages: [{ role: "tool", tool_call_id: "x", content: "?" }, { role: "user", content: "hi" }] };
  assert.equal((await client.check("openai-chat", broken)).accepted, false);
  assert.deepEqual((await client.repair("openai-chat", broken)).request.messages.map(({ role }) => role), ["user"]);
  assert.equal((await client.find("msg_1"))[0].key, "clock");
  const row = (await client.usage({ by: "model" })).find(({ model }) => model === "m-1");
  assert.deepEqual([row.model, row.input, row.output], ["m-1", 3, 2]);
  await client.summarize("clock", 0, "They talked of time.");
});

test("what was used is added up over all pages", async () => {
  const asked = [];
  const pages = [
    { rows: [{ model: "a", answers: 1, input: 10 }, { model: "b", answers: 2, input: 5 }], next: "1_x" },
    { rows: [], next: "2_x" },
    { rows: [{ model: "", answers: 4, input: 1 }, { model: "b", answers: 8, input: 5 }] },
  ];
  const answer = async (url) => {
    asked.push(url.searchParams.get("after"));
    return Response.json(pages[asked.length - 1]);
  };
  const rows = await new Client({ url: "http://127.0.0.1:9", fetch: answer }).usage({ by: "model" });
  assert.deepEqual(asked, [null, "1_x", "2_x"]);
  assert.deepEqual(rows, [
    { model: "", answers: 4, input: 1 },
    { model: "a", answers: 1, input: 10 },
    { model: "b", answers: 10, input: 10 },
  ]);
});

test("an answer is ingested while it comes, from any kind of body", async () => {
  const chunk = (content, finish_reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
  async function* pieces() {
    yield chunk("one ");
    while ((await client.newest("stream", 1))[0]?.chunks[0]?.text !== "one ") await new Promise((resolve) => setTimeout(resolve, 5));
    yield chunk("two", "stop");
  }
  await client.append("stream", said("count"));
  assert.equal((await client.ingest("stream", pieces(), { from: "openai-chat", model: "m-2" })).finish_reason, "stop");
  const whole = [chunk("one "), chunk("two", "stop")].join("");
  for (const body of [whole, new TextEncoder().encode(whole), new Response(whole).body]) await client.ingest("stream", body, { from: "openai-chat" });
  assert.deepEqual((await collect(client.messages("stream"))).slice(1).map(({ chunks }) => chunks[0].text), Array(4).fill("one two"));
  const [once, again] = [await client.ingest("stream", whole, { from: "openai-chat", idempotencyKey: "k" }), await client.ingest("stream", whole, { from: "openai-chat", idempotencyKey: "k" })];
  assert.deepEqual([once.duplicate, again.duplicate], [false, true]);
});

test("a follower has each entry once, over a kill of the server, until it has enough or the conversation ends", async () => {
  const own = await new Server().start();
  const writer = at(own);
  await writer.append("followed", said("0"));
  const stop = new AbortController();
  const texts = [];
  const following = (async () => {
    for await (const { chunk } of writer.follow("followed", { signal: stop.signal })) {
      texts.push(chunk.text);
      if (texts.length === 3) stop.abort();
    }
  })();
  await writer.append("followed", said("1"));
  while (texts.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  await own.kill();
  await own.start();
  await writer.append("followed", said("2"));
  await following;
  assert.deepEqual(texts, ["0", "1", "2"]);
  const rest = collect(writer.follow("followed", { since: 3 }));
  await writer.delete("followed");
  assert.deepEqual(await rest, []);
  await own.kill();
});

test("a follower that had nothing to read has its whole patience when the server goes", async () => {
  const own = await new Server().start();
  const writer = at(own);
  await writer.append("quiet", said("0"));
  const following = writer.follow("quiet", { patience: 1 });
  await following.next();
  const next = following.next();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await own.kill();
  await own.start();
  await writer.append("quiet", said("1"));
  assert.equal((await next).value.seq, 2);
  await own.kill();
  const lost = following.next();
  await assert.rejects(lost, ConnectionError);
});

test("what is before the server may answer", async () => {
  let answers;
  const between = new Client({ url: "http://127.0.0.1:9", fetch: async () => answers.shift() });
  const html = (status) => new Response("<html>", { status });
  const json = () => Response.json({ last_seq: 1 });
  for (const status of [502, 503, 504]) {
    for (const call of [() => between.describe("k"), () => between.append("k", said("x"))]) {
      answers = [html(status), json()];
      assert.deepEqual(await call(), { last_seq: 1 });
    }
    answers = [html(status), json()];
    await assert.rejects(between.setTitle("k", "t"), ConvoError);
  }
});

test("a follower that comes back after a deletion has ended", async () => {
  const own = await new Server().start();
  const writer = at(own);
  await writer.append("gone", said("0"));
  const following = writer.follow("gone");
  assert.equal((await following.next()).value.seq, 1);
  await own.kill();
  await own.start();
  await writer.delete("gone");
  assert.equal((await following.next()).done, true);
  await assert.rejects(writer.follow("gone").next(), NotFoundError);
  await own.kill();
});

test("a follower has every entry, whatever characters are in it", async () => {
  const odd = ["one", "two\u2028lines\u2029and\u0085more\r", "three"];
  await client.append("odd", odd.map((text) => said(text)));
  const texts = [];
  for await (const { chunk } of client.follow("odd")) if (texts.push(chunk.text) === odd.length) break;
  assert.deepEqual(texts, odd);
});

test("a follower knows a conversation from the next one of its key", async () => {
  const own = await new Server().start();
  const writer = at(own);
  await writer.append("again", ["0", "1"].map((text) => said(text)));
  const following = writer.follow("again");
  await following.next();
  await following.next();
  await own.kill();
  await own.start();
  await writer.delete("again");
  await writer.append("again", ["2", "3", "4"].map((text) => said(text)));
  await assert.rejects(following.next(), StaleCursorError);
  await own.kill();
});

test("a follower says that the server cannot read on", async () => {
  const close = () => new Response('event: close\ndata: {"reason":"error"}\n\n');
  const answer = async (url) => (url.pathname.endsWith("/entries") ? Response.json({ entries: [], cursor: "0-1" }) : close());
  await assert.rejects(new Client({ url: "http://127.0.0.1:9", fetch: answer }).follow("k").next(), ServerError);
});

test("events come whole, however the network cuts them", async () => {
  const one = (bytes) => Array.from(bytes, (_, at) => bytes.slice(at, at + 1));
  const cut = () => new TransformStream({ transform: (bytes, out) => one(bytes).forEach((byte) => out.enqueue(byte)) });
  const slow = at(server, { fetch: async (...call) => new Response((await fetch(...call)).body.pipeThrough(cut())) });
  await client.append("cut", [said("😀\n\nß"), said("two\n")]);
  const texts = [];
  for await (const { chunk } of slow.follow("cut")) if (texts.push(chunk.text) === 2) break;
  assert.deepEqual(texts, ["😀\n\nß", "two\n"]);
});

test("a large event comes whole", async () => {
  const text = "x".repeat(24_000_000);
  await client.append("large", said(text));
  const { value } = await client.follow("large").next();
  assert.ok(value.chunk.text === text);
});

test("errors are classes by code", async () => {
  await assert.rejects(client.append("e", said("x"), { expect: 7 }), (error) => error instanceof StaleHeadError && error.actual === 0);
  await client.append("e", said("x"), { idempotencyKey: "k" });
  await assert.rejects(client.append("e", said("y"), { idempotencyKey: "k" }), KeyReusedError);
  await assert.rejects(client.append("e", { role: "nobody", chunks: [] }), (error) => error instanceof InvalidRequestError && error.requestId !== undefined);
  await assert.rejects(collect(client.entries("e", { since: "1-0000000000000000" })), StaleCursorError);
  await assert.rejects(at(server, { key: "wrong" }).describe("e"), UnauthorizedError);
  const nobody = new Client({ url: "http://127.0.0.1:1", retries: 0 });
  await assert.rejects(nobody.describe("e"), (error) => error instanceof ConnectionError && error instanceof ConvoError && /ECONNREFUSED|bad port/.test(error.message));
  for (const name of ["..", "a\ud800"]) assert.throws(() => client.describe(name), TypeError);
});

test("an answer that is lost is asked for again, and stored once; what may not be repeated is not", async () => {
  let calls = 0;
  const lossy = at(server, {
    fetch: async (...call) => {
      const response = await fetch(...call);
      if (++calls % 2 === 1) throw new TypeError("fetch failed");
      return response;
    },
  });
  await lossy.append("lost", said("once"));
  assert.equal((await collect(client.messages("lost"))).length, 1);
  assert.equal(calls, 2);
  await assert.rejects(lossy.setTitle("lost", "Title"), ConnectionError);
  assert.equal(calls, 3);
});

test("Retry-After is obeyed", async () => {
  const own = new Server();
  own.config = join(own.folder, "convo.toml");
  writeFileSync(own.config, "[limits]\nrequests_per_second = 5\n");
  await own.start();
  const patient = at(own, { retries: 10 });
  await patient.create({ key: "k" });
  const began = Date.now();
  await Promise.all(Array.from({ length: 8 }, () => patient.describe("k")));
  assert.ok(Date.now() - began > 500);
  const hasty = at(own, { retries: 0 });
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => hasty.describe("k")));
  assert.ok(outcomes.some(({ reason }) => reason instanceof RateLimitError && reason.retryAfter > 0));
  await own.kill();
});

test("a call ends with its signal", async () => {
  await assert.rejects(client.describe("plans", { signal: AbortSignal.abort() }), { name: "AbortError" });
});
