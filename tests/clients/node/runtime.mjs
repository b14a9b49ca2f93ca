// What the package does in each runtime: `RUNTIME runtime.mjs URL KEY`. It asks for a kill of the server on its stdout, and hears of
// the next server on its stdin.

import assert from "node:assert/strict";
import { convertToModelMessages, streamText } from "ai";
import { Client, ConflictError, ConnectionError, StaleHeadError } from "conversation-store";
import { ChatStore } from "conversation-store/ai-sdk";
import { finish, gate, scripted, words } from "./chats.mjs";

const [url, key] = process.argv.slice(2);
const client = new Client({ url, key });
const said = (text) => ({ role: "user", chunks: [{ type: "text", text }] });
const collect = async (iterable) => {
  const all = [];
  for await (const one of iterable) all.push(one);
  return all;
};
const texts = (messages) => messages.map(({ chunks, parts }) => (chunks ?? parts).map(({ text }) => text ?? "").join(""));
const name = `${process.argv[4]} a/b %2F ü?#`;

// Appends, pages, errors, aborts.
await client.append(name, [said("one 😀\u0000"), said("two")], { idempotencyKey: "k" });
assert.equal((await client.append(name, [said("one 😀\u0000"), said("two")], { idempotencyKey: "k" })).duplicate, true);
assert.deepEqual(texts(await collect(client.messages(name, { limit: 1 }))), ["one 😀\u0000", "two"]);
await Promise.all(Array.from({ length: 5 }, (_, n) => client.create({ key: `${name} ${n}`, tags: [name] })));
assert.equal((await collect(client.list({ tags: [name], limit: 2 }))).length, 5);
await assert.rejects(client.append(name, said("x"), { expect: 1 }), StaleHeadError);
await assert.rejects(client.create({ key: name }), ConflictError);
await assert.rejects(new Client({ url: "http://127.0.0.1:9", retries: 0 }).describe(name), ConnectionError);
const aborted = new AbortController();
const waiting = assert.rejects(collect(client.entries(name, { signal: aborted.signal })), { name: "AbortError" });
aborted.abort();
await waiting;

// An answer that comes in pieces.
const chunk = (content, finish_reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
async function* pieces() {
  yield chunk("thr");
  while (texts(await client.newest(name, 1))[0] !== "thr") await new Promise((resolve) => setTimeout(resolve, 5));
  yield chunk("ee", "stop");
}
assert.equal((await client.ingest(name, pieces(), { from: "openai-chat" })).finish_reason, "stop");

// A follower over a kill of the server.
const seen = [];
const stop = new AbortController();
for await (const { kind, chunk } of client.follow(name, { signal: stop.signal })) {
  if (kind === "finish") console.log("kill");
  if (kind === "finish") process.stdin.once("data", () => client.append(name, said("four")));
  if (kind === "chunk") seen.push(chunk.text);
  if (chunk?.text === "four") stop.abort();
}
assert.deepEqual([seen.at(0), seen.at(-1)], ["one 😀\u0000", "four"]);
assert.equal(seen.filter((text) => text === "two").length, 1);

// The store of the AI SDK: a page that comes in the middle has the answer from its beginning.
const store = new ChatStore(client);
const middle = gate();
const { model } = scripted([[...words("t", "It is ", { gate: middle.gate }, "noon."), finish()]]);
const chat = `${process.argv[4]} chat`;
const turn = await store.turn({ id: chat, message: { id: "m1", role: "user", parts: [{ type: "text", text: "What time?" }] }, trigger: "submit-message" });
const answer = streamText({ model, messages: await convertToModelMessages(turn.messages), abortSignal: turn.signal });
const body = turn.response(answer.toUIMessageStream()).text();
while ((await store.load(chat)).length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
const resumed = store.resume(chat);
middle.open();
await turn.done;
assert.deepEqual(texts(await store.load(chat)), ["What time?", "It is noon."]);
const stream = await resumed;
const again = stream instanceof Response ? await stream.text() : (await collect(stream)).map((part) => JSON.stringify(part)).join("");
for (const whole of [await body, again]) assert.ok(whole.includes("It is") && whole.includes("noon."), whole);
console.log("done");
process.exit(0);
