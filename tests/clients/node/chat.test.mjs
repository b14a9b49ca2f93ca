// `conversation-store/ai-sdk` through `useChat` itself, the package's example server, and a real store. `AI=7` takes the next major.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { after, before, test } from "node:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  DefaultChatTransport, createUIMessageStream, lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls, readUIMessageStream,
} from "ai";
import { ChatStore, chatTransport } from "conversation-store/ai-sdk";
import { call, chats, finish, gate, thought, words } from "./chats.mjs";
import { Page } from "./page.mjs";
import { Server } from "./server.mjs";

let server;
const opened = [];

before(async () => void (server = await new Server().start()));
after(async () => {
  for (const one of opened) one();
  await server.kill();
});

let chat = 0;
const next = () => `chat ${++chat}`;

async function start(steps, at = server) {
  const app = await chats(at, steps);
  opened.push(() => app.end());
  return app;
}

async function open(app, id, options) {
  const page = await Page.open(app.url, id, options);
  opened.push(() => page.leave());
  return page;
}

const plain = (value) => JSON.parse(JSON.stringify(value));
const kinds = ({ parts }) => parts.map(({ type, state }) => (state && !["done"].includes(state) ? `${type} ${state}` : type));
const roles = (prompt) => prompt.map(({ role }) => role);
const outcome = ({ parts }) => parts.find(({ type }) => type === "data-answer")?.data;

/** A page that comes now shows what this one shows. */
async function reloaded(app, id, page) {
  const other = await open(app, id);
  await other.until(() => other.chat.status === "ready" && other.messages.length === page.messages.length);
  assert.deepEqual(plain(other.messages), plain(page.messages));
  return other;
}

test("a turn with thinking, tools and their errors, and a reload", async () => {
  const id = next();
  const app = await start([
    [...thought("r", "I have to ", "count."), ...words("t", "I look. "), ...call("c1", "double", { number: 4 }), ...call("c2", "double", { number: -1 }), finish("tool-calls")],
    [...words("t", "It is ", "8."), finish()],
    [...words("t", "Yes."), finish()],
  ]);
  const page = await open(app, id);
  await page.say("double 4");
  assert.deepEqual(kinds(page.last), [
    "step-start", "reasoning", "text", "tool-double output-available", "tool-double output-error", "step-start", "text",
  ]);
  assert.equal(page.last.parts[1].providerMetadata.anthropic.signature, "c2lnbmVk");
  await reloaded(app, id, page);
  await page.say("sure?");
  assert.deepEqual(roles(app.prompts[2]), ["user", "assistant", "tool", "assistant", "user"]);
  await reloaded(app, id, page);
  // It is an ordinary conversation: it renders for a provider that never saw it.
  const { request, report } = await app.client.prompt(id, { for: "anthropic" });
  // The target wants the last word to be the user's.
  assert.deepEqual(request.messages.map(({ role }) => role), ["user", "assistant", "user", "assistant", "user", "assistant", "user"]);
  assert.deepEqual(request.messages[1].content.map(({ type }) => type), ["text", "tool_use", "tool_use"]);
  assert.deepEqual(report.filter(({ severity }) => severity === "lost").map(({ rule }) => rule), ["thinking_left_out"]);
  assert.deepEqual(await app.client.next(id), { step: "await_user" });
});

test("the transport of the AI SDK, which posts all messages", async () => {
  const id = next();
  const app = await start([[...words("t", "one"), finish()], [...words("t", "two"), finish()]]);
  const page = await open(app, id, { transport: (own) => new DefaultChatTransport({ api: app.url, fetch: own }) });
  await page.say("first");
  await page.say("second");
  assert.deepEqual(page.texts, ["first", "one", "second", "two"]);
  assert.deepEqual(roles(app.prompts[1]), ["user", "assistant", "user"]);
  await reloaded(app, id, page);
});

test("a page that leaves in the middle comes back to the same answer, in two windows", async () => {
  const id = next();
  const hold = gate();
  const app = await start([
    [...thought("r", "Hm."), ...call("c1", "double", { number: 4 }), finish("tool-calls")], [...words("t", "It ", hold, "is 8."), finish()],
  ]);
  const first = await open(app, id);
  first.chat.sendMessage({ text: "double 4" });
  await first.saw("It ");
  first.leave();
  const [one, two] = [await open(app, id), await open(app, id)];
  await Promise.all([one.saw("It "), two.saw("It ")]);
  hold.open();
  await Promise.all([one, two].map((page) => page.until(() => page.chat.status === "ready" && page.texts[1] === "It is 8.")));
  assert.deepEqual(kinds(one.last), ["step-start", "reasoning", "tool-double output-available", "step-start", "text"]);
  assert.deepEqual(plain(one.messages), plain(two.messages));
  await reloaded(app, id, one);
});

// `useChat` of major 6 hides from its chat that a resumed stream is a replay.
test("a page whose network breaks resumes its own stream, each part once", { skip: process.env.AI !== "7" }, async () => {
  const id = next();
  const hold = gate();
  const app = await start([[...thought("r", "Hm."), ...words("t", "one ", hold, "two"), finish()]]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "first" });
  await page.saw("one ");
  page.breakNetwork();
  await page.until(() => page.chat.status === "error");
  const resumed = page.chat.resumeStream();
  await page.until(() => page.chat.status === "streaming");
  hold.open();
  await resumed;
  await page.until(() => page.chat.status === "ready" && page.texts[1] === "one two");
  assert.deepEqual(kinds(page.last), ["step-start", "reasoning", "text"]);
  await reloaded(app, id, page);
});

test("an answer ends between a page's messages and its stream", async () => {
  const id = next();
  const hold = gate();
  const app = await start([[...words("t", "one ", hold, "two"), finish()]]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "first" });
  await page.saw("one ");
  while (!(await app.client.newest(id, 1))[0].chunks.some(({ text }) => text === "one ")) await new Promise((resolve) => setTimeout(resolve, 5));
  const late = gate();
  const other = await open(app, id, {
    transport: (own) => chatTransport({ api: app.url, fetch: async (...call) => (String(call[0]).endsWith("/stream") && (await late.gate), own(...call)) }),
  });
  assert.equal(other.texts[1], "one ");
  hold.open();
  await page.until(() => page.chat.status === "ready");
  late.open();
  await other.until(() => other.chat.status === "ready" && other.texts[1] === "one two");
  assert.deepEqual(plain(other.messages), plain(page.messages));
});

test("a reload before the first token, and while the second step begins", async () => {
  const id = next();
  const [first, second] = [gate(), gate()];
  const app = await start([
    [{ early: first.gate }, ...call("c1", "double", { number: 4 }), finish("tool-calls")], [{ early: second.gate }, ...words("t", "8"), finish()],
  ]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "double 4" });
  await page.until(() => page.chat.status === "streaming" || app.prompts.length === 1);
  while (app.prompts.length < 1) await new Promise(setImmediate);
  page.leave();
  const other = await open(app, id);
  await other.until(() => other.chat.status !== "ready", "it resumes");
  first.open();
  await other.until(() => other.last.parts.some(({ state }) => state === "output-available"));
  while (app.prompts.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  other.leave();
  const third = await open(app, id);
  await third.until(() => third.chat.status !== "ready", "it resumes");
  second.open();
  await third.until(() => third.texts[1] === "8" && third.chat.status === "ready");
  assert.deepEqual(kinds(third.last), ["step-start", "tool-double output-available", "step-start", "text"]);
  await reloaded(app, id, third);
});

test("a reload in the middle of a call's input", async () => {
  const id = next();
  const hold = gate();
  const app = await start([
    [
      ...words("t", "I look. "), { type: "tool-input-start", id: "c1", toolName: "double" }, { type: "tool-input-delta", id: "c1", delta: '{"number"' }, hold,
      { type: "tool-input-delta", id: "c1", delta: ":4}" }, ...call("c1", "double", { number: 4 }).slice(2), finish("tool-calls"),
    ],
    [...words("t", "8"), finish()],
  ]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "double 4" });
  await page.until(() => page.last.parts.at(-1).state === "input-streaming");
  page.leave();
  while (!(await app.client.newest(id, 1))[0].chunks.some(({ arguments: text }) => text)) await new Promise((resolve) => setTimeout(resolve, 5));
  const other = await open(app, id);
  await other.until(() => other.chat.status === "streaming");
  hold.open();
  await other.until(() => other.chat.status === "ready" && other.texts[1] === "I look. |8");
  assert.deepEqual(kinds(other.last), ["step-start", "text", "tool-double output-available", "step-start", "text"]);
  await reloaded(app, id, other);
});

test("stop ends the model, then a message, and a reload in the middle of its answer", async () => {
  const id = next();
  const [never, hold] = [gate(), gate()];
  const app = await start([[...words("t", "one ", never, "more"), finish()], [...words("t", "two ", hold, "three"), finish()]]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "first" });
  await page.saw("one ");
  await page.chat.stop();
  while (!app.signals[0].aborted) await new Promise((resolve) => setTimeout(resolve, 5));
  page.chat.sendMessage({ text: "second" });
  await page.saw("two ");
  page.leave();
  const other = await open(app, id);
  await other.saw("two ");
  hold.open();
  await other.until(() => other.chat.status === "ready" && other.texts[3] === "two three");
  assert.deepEqual(other.texts, ["first", "one ", "second", "two three"]);
  assert.deepEqual(outcome(other.messages[1]), { state: "stopped" });
  await reloaded(app, id, other);
});

test("a stop before the model is called ends the turn, and the next one works", async () => {
  const id = next();
  const app = await start([[...words("t", "two"), finish()]]);
  const store = new ChatStore(app.client);
  const said = (id, text) => ({ id, role: "user", parts: [{ type: "text", text }] });
  const turn = await store.turn({ id, messages: [said("u1", "one")], parentId: null });
  const aborted = new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
  await store.stop(id);
  await aborted;
  let asked = 0;
  const source = new ReadableStream({
    pull(controller) {
      asked++;
      controller.enqueue({ type: "text-start", id: "t" });
    },
  }, { highWaterMark: 0 });
  const shown = [];
  for await (const part of turn.stream(source)) shown.push(part.type);
  await turn.done;
  assert.deepEqual([asked, shown.includes("text-start"), shown.at(-1)], [0, false, "abort"]);
  // The last one is the mark of the stop.
  const stored = (await app.client.newest(id, 10)).map(({ role, state }) => `${role} ${state}`);
  assert.deepEqual(stored, ["user complete", "assistant interrupted", "assistant complete"]);
  const page = await open(app, id);
  await page.until(() => page.chat.status === "ready" && page.messages.length > 0);
  await page.say("two?");
  assert.equal(page.texts.at(-1), "two");
});

test("any window stops an answer, and the others see it", async () => {
  const id = next();
  const never = gate();
  const app = await start([[...words("t", "one ", never), finish()]]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "first" });
  await page.saw("one ");
  const [other, third] = [await open(app, id), await open(app, id)];
  await Promise.all([other.saw("one "), third.saw("one ")]);
  await other.chat.stop();
  await Promise.all([page, third].map((one) => one.until(() => one.chat.status === "ready" && outcome(one.last)?.state === "stopped")));
  assert.ok(app.signals[0].aborted);
  await reloaded(app, id, page);
});

test("a page that resumes twice gives up a stream, not the answer", async () => {
  const id = next();
  const hold = gate();
  const app = await start([[...words("t", "one ", hold, "two"), finish()]]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "first" });
  await page.saw("one ");
  const other = await open(app, id);
  await other.saw("one ");
  void other.chat.resumeStream();
  await new Promise((resolve) => setTimeout(resolve, 50));
  hold.open();
  await Promise.all([page, other].map((one) => one.until(() => one.chat.status === "ready" && one.texts[1] === "one two")));
  assert.ok(!app.signals[0].aborted);
});

test("regenerate replaces an answer, and the model does not see it", async () => {
  const id = next();
  const app = await start([[...words("t", "one"), finish()], [...words("t", "two"), finish()], [...words("t", "three"), finish()]]);
  const page = await open(app, id);
  await page.say("first");
  await page.say("second");
  await page.chat.regenerate({ messageId: page.messages[1].id });
  assert.deepEqual(page.texts, ["first", "three"]);
  assert.deepEqual(roles(app.prompts[2]), ["user"]);
  await reloaded(app, id, page);
});

test("an edit begins again there; with `branches` what it replaces stays a conversation", async () => {
  const id = next();
  const app = await start([[...words("t", "one"), finish()], [...words("t", "two"), finish()]]);
  app.store.options.branches = true;
  const page = await open(app, id);
  await page.say("first");
  await page.chat.sendMessage({ text: "other", messageId: page.messages[0].id });
  assert.deepEqual(page.texts, ["other", "two"]);
  assert.deepEqual(app.prompts[1].map(({ content }) => content[0].text), ["other"]);
  await reloaded(app, id, page);
  const { conversation } = await app.client.describe(id);
  const branches = [];
  for await (const branch of app.client.list({ tags: [`branch-of:${conversation}`] })) branches.push(await app.store.load(branch.conversation));
  assert.deepEqual(branches.map((messages) => messages.map(({ parts }) => parts.at(-1).text)), [["first", "one"]]);
});

test("two windows that send at once: one is answered, the other is told", async () => {
  const id = next();
  const hold = gate();
  const app = await start([[...words("t", "zero"), finish()], [...words("t", "one ", hold, "more"), finish()], [...words("t", "late"), finish()]]);
  const first = await open(app, id);
  await first.say("begin");
  const second = await open(app, id);
  first.chat.sendMessage({ text: "mine" });
  second.chat.sendMessage({ text: "yours" });
  const told = (page) => page.chat.status === "error";
  await Promise.race([first, second].map((page) => page.until(() => told(page))));
  const [one, other] = told(second) ? [first, second] : [second, first];
  assert.match(other.chat.error.message, /another window/);
  await one.saw("one ");
  // Later is no better, and stops nothing: it does not know what was said.
  await other.say("again");
  assert.match(other.chat.error.message, /another window/);
  hold.open();
  await one.until(() => one.chat.status === "ready" && one.texts[3] === "one more");
  const third = await reloaded(app, id, one);
  await third.say("now");
  assert.equal(third.texts[5], "late");
});

test("a tool that the page runs: its output is stored, and the chat goes on", async () => {
  const id = next();
  const hold = gate();
  const app = await start([
    [...words("t", "I ask. "), ...call("c1", "where", {}), finish("tool-calls")], [...words("t", "In ", hold, "Rome."), finish()],
    [...words("t", "Yes."), finish()],
  ]);
  const page = await open(app, id, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
  await page.say("where am I?");
  assert.equal(page.last.parts.at(-1).state, "input-available");
  await (await reloaded(app, id, page)).leave();
  await page.chat.addToolOutput({ tool: "where", toolCallId: "c1", output: { city: "Rome" } });
  await page.saw("In ");
  const other = await open(app, id);
  await other.saw("In ");
  hold.open();
  await Promise.all([page, other].map((one) => one.until(() => one.chat.status === "ready" && one.texts[1] === "I ask. |In Rome.")));
  assert.deepEqual(plain(other.messages), plain(page.messages));
  assert.equal(page.messages.length, 2);
  assert.deepEqual(app.prompts[1].at(-1).content[0].output, { type: "json", value: { city: "Rome" } });
  await reloaded(app, id, page);
  await page.say("sure?");
  assert.deepEqual(roles(app.prompts[2]), ["user", "assistant", "tool", "assistant", "user"]);
  const { request } = await app.client.prompt(id, { for: "openai-chat" });
  assert.deepEqual(request.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant", "user", "assistant"]);
});

for (const approved of [true, false]) {
  test(`a tool that is ${approved ? "approved" : "refused"}`, async () => {
    const id = next();
    const app = await start([[...call("c1", "erase", { number: 7 }), finish("tool-calls")], [...words("t", "done"), finish()], [...words("t", "ok"), finish()]]);
    const first = await open(app, id);
    await first.say("erase 7");
    assert.equal(first.last.parts.at(-1).state, "approval-requested");
    first.leave();
    const page = await open(app, id, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    assert.equal(page.last.parts.at(-1).state, "approval-requested");
    await page.chat.addToolApprovalResponse({ id: page.last.parts.at(-1).approval.id, approved, reason: "as I like" });
    await page.until(() => page.chat.status === "ready" && page.texts[1] === "done");
    const part = page.last.parts.find(({ type }) => type === "tool-erase");
    assert.deepEqual([part.state, part.output], approved ? ["output-available", "erased 7"] : ["output-denied", undefined]);
    await reloaded(app, id, page);
    await page.say("and?");
    assert.equal(page.texts[3], "ok");
    const { request } = await app.client.prompt(id, { for: "openai-chat" });
    assert.match(request.messages[2].content, approved ? /erased 7/ : /not approved/);
  });
}

test("the application dies in a tool: the page sees it, and the next turn works", async () => {
  const id = next();
  const steps = [[...words("t", "I try. "), ...call("c1", "hang", { number: 1 }), finish("tool-calls")]];
  const child = fork(new URL("./chats.mjs", import.meta.url).pathname, [server.address, server.secret, JSON.stringify(steps)]);
  const heard = (is) => new Promise((resolve) => child.on("message", (message) => is(message) && resolve(message)));
  const hangs = heard((message) => message === "hangs");
  const { url } = await heard((message) => message.url);
  const page = await open({ url }, id);
  page.chat.sendMessage({ text: "go" });
  await hangs;
  await page.until(() => page.last.parts.at(-1).state === "input-available");
  child.kill("SIGKILL");
  await page.until(() => page.chat.status === "error");
  const app = await start([[...words("t", "It broke."), finish()]]);
  const other = await open(app, id);
  await other.until(() => outcome(other.last)?.state === "interrupted" && ["ready", "error"].includes(other.chat.status));
  await other.say("and?");
  assert.equal(other.texts[3], "It broke.");
  assert.match(JSON.stringify(app.prompts[0]), /what came of it is not known/);
  const third = await open(app, id);
  assert.deepEqual(outcome(third.messages[1]), { state: "interrupted" });
});

for (const signal of ["SIGKILL", "SIGTERM"]) {
  test(`the store gets ${signal} in the middle: the application lives, pages see an error, the message is interrupted`, async () => {
    const own = new Server();
    own.config = join(own.folder, "convo.toml");
    writeFileSync(own.config, "[server]\nshutdown_seconds = 1\n");
    await own.start();
    const id = next();
    const never = gate();
    const app = await start([[...words("t", "one ", never, "two"), finish()], [...words("t", "again"), finish()]], own);
    app.store.options.patience = 0.3;
    const page = await open(app, id);
    page.chat.sendMessage({ text: "first" });
    await page.saw("one ");
    const other = await open(app, id);
    await other.saw("one ");
    const ended = new Promise((resolve) => own.process.once("exit", resolve));
    own.process.kill(signal);
    await ended;
    await Promise.all([page, other].map((one) => one.until(() => one.chat.status === "error")));
    assert.match(page.chat.error.message, /interrupted/);
    assert.ok(app.signals[0].aborted, "the model is stopped");
    await own.start();
    const third = await open(app, id);
    assert.deepEqual(outcome(third.last), { state: "interrupted" });
    assert.deepEqual(third.texts, ["first", "one "]);
    await third.say("second");
    assert.equal(third.texts[3], "again");
    await own.kill();
  });
}

test("a model that fails, that is cut off, that runs into its limit: kept, and shown after a reload", async () => {
  const id = next();
  const seen = gate();
  const app = await start([
    [...words("t", "half").slice(0, 2), seen, { fail: new Error("the connection broke") }],
    [...words("t", "long"), finish("length")],
    [{ type: "error", error: new Error("overloaded") }, finish("error")],
    [...words("t", "fine"), finish()],
  ]);
  const page = await open(app, id);
  page.chat.sendMessage({ text: "one" });
  await page.saw("half");
  seen.open();
  await page.until(() => page.chat.status === "error");
  assert.equal(outcome(page.last).state, "failed");
  await reloaded(app, id, page);
  await page.say("two");
  assert.deepEqual(outcome(page.last), { state: "length" });
  assert.equal((await app.client.newest(id, 1))[0].finish_reason, "length");
  await reloaded(app, id, page);
  await page.say("three");
  assert.equal(outcome(page.last).state, "failed");
  assert.equal((await app.client.newest(id, 1))[0].finish_reason, "error");
  await page.say("four");
  assert.deepEqual(page.texts, ["one", "half", "two", "long", "three", "", "four", "fine"]);
  await reloaded(app, id, page);
});

const everything = [
  { type: "start", messageMetadata: { began: 1 } },
  { type: "data-plan", id: "p", data: { step: 1 } },
  { type: "start-step" },
  { type: "reasoning-start", id: "0" },
  { type: "reasoning-delta", id: "0", delta: "Hm, " },
  { type: "reasoning-delta", id: "0", delta: "yes.", providerMetadata: { anthropic: { signature: "abc" } } },
  { type: "reasoning-end", id: "0" },
  { type: "reasoning-start", id: "1", providerMetadata: { anthropic: { redactedData: "xyz" } } },
  { type: "reasoning-end", id: "1" },
  { type: "text-start", id: "2", providerMetadata: { openai: { itemId: "msg_1" } } },
  { type: "text-delta", id: "2", delta: "A\ud83d" },
  { type: "text-start", id: "3" },
  { type: "text-delta", id: "3", delta: "B" },
  { type: "text-delta", id: "2", delta: "\ude00a" },
  { type: "text-end", id: "2" },
  { type: "text-delta", id: "3", delta: "b" },
  { type: "text-end", id: "3", providerMetadata: { openai: { annotations: [1] } } },
  { type: "source-url", sourceId: "s1", url: "https://example.org/", title: "A page" },
  { type: "source-document", sourceId: "s2", mediaType: "application/pdf", title: "A file", filename: "a.pdf" },
  { type: "file", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=", providerMetadata: { google: { made: true } } },
  { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,aGVsbG8=" },
  { type: "data-plan", id: "p", data: { step: 2, half: "\ud83d" } },
  { type: "tool-input-available", toolCallId: "w1", toolName: "web_search", input: { q: "x" }, providerExecuted: true },
  { type: "tool-output-available", toolCallId: "w1", output: [{ url: "https://example.org/" }], providerExecuted: true },
  { type: "tool-input-start", toolCallId: "c1", toolName: "double", dynamic: true, title: "Doubles" },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: '{"number"' },
  { type: "tool-input-start", toolCallId: "c2", toolName: "double" },
  { type: "tool-input-delta", toolCallId: "c2", inputTextDelta: "{}" },
  { type: "tool-input-delta", toolCallId: "c1", inputTextDelta: ": 4}" },
  { type: "tool-input-available", toolCallId: "c2", toolName: "double", input: { number: -1 } },
  { type: "tool-input-available", toolCallId: "c1", toolName: "double", input: { number: 4 }, dynamic: true, title: "Doubles", providerMetadata: { google: { thoughtSignature: "s" } } },
  { type: "tool-output-error", toolCallId: "c2", errorText: "too small" },
  { type: "tool-output-available", toolCallId: "c1", output: "half", preliminary: true, dynamic: true },
  { type: "tool-output-available", toolCallId: "c1", output: "8", dynamic: true },
  { type: "finish-step" },
  { type: "start-step" },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "It is 8." },
  { type: "text-end", id: "0" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop", messageMetadata: { ended: 2 } },
];

async function built(stream) {
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return last;
}

test("no part of a message is lost, whatever it is", async () => {
  const app = await start([]);
  const id = next();
  const asked = {
    id: "m1", role: "user", metadata: { from: "here" },
    parts: [
      { type: "text", text: "look" }, { type: "text", text: "twice", providerMetadata: { x: { y: 1 } } },
      { type: "file", mediaType: "image/png", filename: "a.png", url: "data:image/png;base64,iVBORw0KGgo=" },
      { type: "file", mediaType: "application/pdf", filename: "b.pdf", url: "data:application/pdf;base64,JVBERi0=", providerMetadata: { x: { z: 1 } } },
      { type: "file", mediaType: "text/plain", url: "https://example.org/c.txt" }, { type: "data-place", id: "d", data: { city: "Rome" } },
    ],
  };
  const turn = await app.store.turn({ id, messages: [asked], parentId: null });
  const shown = await built(turn.stream(createUIMessageStream({ execute: ({ writer }) => everything.forEach((part) => writer.write(part)) })));
  await turn.done;
  const stored = await app.store.load(id);
  assert.deepEqual(plain(stored), plain([asked, shown]));
  assert.deepEqual(kinds(shown), [
    "data-plan", "step-start", "reasoning", "reasoning", "text", "text", "source-url", "source-document", "file", "file",
    "tool-web_search output-available", "dynamic-tool output-available", "tool-double output-error", "step-start", "text",
  ]);
  // As a whole, into another chat.
  const copy = next();
  await app.store.append(copy, stored);
  assert.deepEqual(plain(await app.store.load(copy)), plain(stored));
  for (const one of [id, copy]) {
    const { request } = await app.client.prompt(one, { for: "openai-chat" });
    // A picture that a model made is a user's there.
    assert.deepEqual(request.messages.map(({ role }) => role), ["user", "assistant", "tool", "tool", "user", "assistant"], one);
  }
});

// What the store's JSON has no room for.
const HALF = "a\ud83d";
const deep = (depth) => (depth === 0 ? HALF : { in: [deep(depth - 1)] });

test("what is nested deep, and half a character, comes back as it was", async () => {
  const app = await start([]);
  for (const [at, odd] of [deep(1), deep(50), deep(64), deep(300), HALF].entries()) {
    const id = next();
    const asked = {
      id: `m ${at}`, role: "user", metadata: { odd },
      parts: [
        { type: "text", text: HALF, providerMetadata: { x: { odd } } }, { type: "data-place", id: "d", data: { odd } },
        { type: "file", mediaType: "image/png", filename: HALF, url: "data:image/png;base64,iVBORw0KGgo=", providerMetadata: { x: { odd } } },
      ],
    };
    const parts = [
      { type: "start" }, { type: "start-step" },
      { type: "text-start", id: "1", providerMetadata: { x: { odd } } }, { type: "text-delta", id: "1", delta: "well" }, { type: "text-end", id: "1" },
      { type: "tool-input-available", toolCallId: "c1", toolName: "double", input: { number: 4 }, providerMetadata: { x: { odd } } },
      { type: "tool-output-available", toolCallId: "c1", output: odd },
      { type: "tool-input-available", toolCallId: "c2", toolName: "double", input: {} },
      { type: "tool-output-error", toolCallId: "c2", errorText: HALF },
      { type: "finish-step" }, { type: "finish", finishReason: "stop", messageMetadata: { odd } },
    ];
    const turn = await app.store.turn({ id, messages: [asked], parentId: null });
    const shown = await built(turn.stream(createUIMessageStream({ execute: ({ writer }) => parts.forEach((part) => writer.write(part)) })));
    await turn.done;
    const stored = await app.store.load(id);
    assert.deepEqual(plain(stored), plain([asked, shown]), String(at));
    const copy = next();
    await app.store.append(copy, stored);
    assert.deepEqual(plain(await app.store.load(copy)), plain(stored), String(at));
    // Models get text.
    const { request } = await app.client.prompt(copy, { for: "openai-chat" });
    assert.equal(JSON.stringify(request).includes("\\ud83d"), false);
  }
});

test("a stream that is cut after each part, and resumed by two pages, has each part once", async () => {
  const app = await start([]);
  const asked = { id: "m1", role: "user", parts: [{ type: "text", text: "go" }] };
  const whole = everything.filter(({ preliminary }) => !preliminary);
  const expected = plain(await built(new ReadableStream({ start: (c) => whole.forEach((part) => c.enqueue(structuredClone(part))) ?? c.close() })));
  await Promise.all(whole.map(async (_, at) => {
    const id = `cut ${process.env.AI ?? 6} ${at}`;
    const turn = await app.store.turn({ id, messages: [asked], parentId: null });
    let controller;
    const page = turn.stream(new ReadableStream({ start: (own) => void (controller = own) }));
    whole.slice(0, at).forEach((part) => controller.enqueue(part));
    const reader = page.getReader();
    // The end comes with what is stored.
    const isSeen = (part) => !["finish", "error", "abort"].includes(part.type);
    for (let seen = 0; seen < whole.slice(0, at).filter(isSeen).length; seen++) await reader.read();
    await reader.cancel();
    const streams = [await app.store.resume(id), await app.store.resume(id)];
    whole.slice(at).forEach((part) => controller.enqueue(part));
    controller.close();
    const stored = { ...expected, id: turn.messageId };
    for (const message of await Promise.all(streams.map(built))) assert.deepEqual(plain(message), stored, `cut after ${at}`);
    await turn.done;
    assert.deepEqual(plain((await app.store.load(id))[1]), stored);
    // A page may have loaded the messages before the end.
    assert.deepEqual(plain(await built(await app.store.resume(id))), stored);
  }));
});

test("a conversation of another program is a chat", async () => {
  const app = await start([[...words("t", "yes"), finish()]]);
  const id = next();
  await app.client.append(id, [
    { role: "system", chunks: [{ type: "text", text: "be brief" }] },
    { role: "user", chunks: [{ type: "text", text: "double 4" }] },
    { role: "assistant", chunks: [{ type: "thinking", text: "hm" }, { type: "tool_call", id: "c1", name: "double", arguments: '{"number":4}' }], finish_reason: "tool_calls" },
    { role: "tool", chunks: [{ type: "tool_result", tool_call_id: "c1", content: '{"doubled":8}' }] },
    { role: "assistant", chunks: [{ type: "text", text: "8" }], finish_reason: "stop" },
  ]);
  const page = await open(app, id);
  assert.deepEqual(page.messages.map(kinds), [["text"], ["text"], ["step-start", "reasoning", "tool-double output-available", "step-start", "text"]]);
  assert.deepEqual(page.last.parts[2].output, { doubled: 8 });
  await page.say("sure?");
  assert.deepEqual(roles(app.prompts[0]), ["system", "user", "assistant", "tool", "assistant", "user"]);
  await reloaded(app, id, page);
});

test("an answer that another program stores while it comes is resumed", async () => {
  const app = await start([]);
  const id = next();
  const hold = gate();
  const delta = (content, finish_reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
  await app.client.append(id, { role: "user", chunks: [{ type: "text", text: "count" }] });
  const ingested = app.client.ingest(id, (async function* () {
    yield delta("one ");
    await hold.gate;
    yield delta("two", "stop");
  })(), { from: "openai-chat" });
  while ((await app.client.newest(id, 1))[0].state !== "streaming") await new Promise((resolve) => setTimeout(resolve, 5));
  const page = await open(app, id);
  await page.saw("one ");
  hold.open();
  await page.until(() => page.chat.status === "ready" && page.texts[1] === "one two");
  await ingested;
  await reloaded(app, id, page);
});
