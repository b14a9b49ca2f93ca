// `conversation-store/assistant-ui` in the library's own runtimes, in a document of jsdom.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { JSDOM } from "jsdom";
import { Client } from "conversation-store";
import { historyAdapter, threadListAdapter } from "conversation-store/assistant-ui";
import { OPERATIONS, SEED, randomness } from "./random.mjs";
import { Server } from "./server.mjs";

const { window } = new JSDOM("<!doctype html><div></div>", { url: "http://127.0.0.1/" });
Object.assign(globalThis, { window, document: window.document });
globalThis.navigator ??= window.navigator;
const { createElement, useMemo } = await import("react");
const { createRoot } = await import("react-dom/client");
const { AssistantRuntimeProvider, useLocalRuntime, useRemoteThreadListRuntime } = await import("@assistant-ui/react");

let server, client;
const roots = [];
before(async () => {
  server = await new Server("memory:").start();
  client = new Client({ url: server.address, key: server.secret });
});
after(async () => {
  roots.forEach((root) => root.unmount());
  await server.kill();
});

const until = async (condition, what = condition.toString()) => {
  for (const end = Date.now() + 10_000; ;) {
    const found = await condition();
    if (found) return found;
    assert.ok(Date.now() < end, `${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** A page with a runtime. */
async function page(useRuntime) {
  const root = createRoot(window.document.createElement("div"));
  roots.push(root);
  let runtime;
  const Page = () => {
    runtime = useRuntime();
    return createElement(AssistantRuntimeProvider, { runtime });
  };
  root.render(createElement(Page));
  await until(() => runtime, "a runtime");
  return { get runtime() { return runtime; }, leave: () => root.unmount() };
}

let answers = 0;
const model = {
  async *run() {
    const number = ++answers;
    yield { content: [{ type: "text", text: "answer " }] };
    yield { content: [
      { type: "reasoning", text: "hm" },
      { type: "tool-call", toolCallId: `c${number}`, toolName: "clock", args: {}, argsText: "{}", result: { now: "noon" } },
      { type: "text", text: `answer ${number}` },
    ], metadata: { custom: { number } } };
  },
};

const texts = (thread) => thread.getState().messages.map(({ content }) => content.find(({ type }) => type === "text")?.text);
const isIdle = (thread, count) => () => thread.getState().messages.length === count && !thread.getState().isRunning;
const plain = (value) => JSON.parse(JSON.stringify(value));

test("a thread with a branch, and a reload", async () => {
  const open = () => page(() => useLocalRuntime(model, { adapters: { history: useMemo(() => historyAdapter(client, "thread"), []) } }));
  const first = await open();
  const { thread } = first.runtime;
  thread.append({ role: "user", content: [{ type: "text", text: "one" }] });
  await until(isIdle(thread, 2));
  thread.append({ role: "user", content: [{ type: "text", text: "two" }] });
  await until(isIdle(thread, 4));
  const native = async () => {
    const { request } = await client.prompt("thread", { for: "openai-chat" }).catch(() => ({ request: { messages: [] } }));
    return request.messages.flatMap(({ role, content }) => (role === "user" ? [content] : typeof content === "string" && role === "assistant" ? [content] : []));
  };
  await until(async () => (await native()).length === 4, "four messages");
  assert.deepEqual(await native(), ["one", "answer 1", "two", "answer 2"]);
  // Another answer to the first message.
  thread.getMessageByIndex(1).reload();
  await until(() => texts(thread).join() === "one,answer 3" && !thread.getState().isRunning);
  await until(async () => (await native()).join() === "one,answer 3", "the branch");
  assert.equal(thread.getMessageByIndex(1).getState().branchCount, 2);
  const exported = plain(thread.export());
  first.leave();

  const second = await open();
  const again = second.runtime.thread;
  await until(isIdle(again, 2));
  assert.deepEqual(plain(again.export()), exported);
  assert.deepEqual(texts(again), ["one", "answer 3"]);
  again.getMessageByIndex(1).switchToBranch({ position: "previous" });
  await until(() => texts(again).join() === "one,answer 1,two,answer 2");
  again.append({ role: "user", content: [{ type: "text", text: "three" }] });
  await until(isIdle(again, 6));
  await until(async () => (await native()).join() === "one,answer 1,two,answer 2,three,answer 4", "the branch");
  second.leave();
  const third = (await open()).runtime.thread;
  await until(isIdle(third, 6));
  assert.deepEqual(texts(third), ["one", "answer 1", "two", "answer 2", "three", "answer 4"]);
  assert.equal(third.getMessageByIndex(1).getState().branchCount, 2);
});

test("a list of threads", async () => {
  let listed;
  const adapter = threadListAdapter(client);
  const open = () => page(() => useRemoteThreadListRuntime({ adapter, runtimeHook: () => useLocalRuntime(model) }));
  const first = await open();
  const { threads, thread } = first.runtime;
  thread.append({ role: "user", content: [{ type: "text", text: "Plans for the week\nand more" }] });
  await until(async () => (listed = (await adapter.list()).threads).length === 1 && listed[0].title === "Plans for the week", "a thread with a title");
  await until(() => threads.mainItem.getState().remoteId === listed[0].remoteId);
  await threads.mainItem.rename("Other plans");
  await threads.switchToNewThread();
  first.runtime.thread.append({ role: "user", content: [{ type: "text", text: "Second" }] });
  await until(async () => (listed = (await adapter.list()).threads).length === 2 && listed.every(({ title }) => title), "two threads");
  assert.deepEqual(listed.map(({ title, status }) => [title, status]), [["Second", "regular"], ["Other plans", "regular"]]);
  await until(() => threads.mainItem.getState().remoteId === listed[0].remoteId);
  await threads.mainItem.archive();
  first.leave();
  const second = await open();
  await until(() => second.runtime.threads.getState().threadIds.length === 1 && second.runtime.threads.getState().archivedThreadIds.length === 1);
  const item = second.runtime.threads.getArchivedItemByIndex(0);
  assert.equal(item.getState().title, "Second");
  await item.unarchive();
  assert.deepEqual((await adapter.list()).threads.map(({ status }) => status), ["regular", "regular"]);
  await second.runtime.threads.getItemById(listed[1].remoteId).delete();
  assert.deepEqual((await adapter.list()).threads.map(({ title }) => title), ["Second"]);
  await adapter.updateCustom(listed[0].remoteId, { color: "blue" });
  assert.deepEqual((await adapter.fetch(listed[0].remoteId)).custom, { color: "blue" });
});

test(`${OPERATIONS / 10} changes of a history are what they are in memory (seed ${SEED})`, async () => {
  const { below, one, text } = randomness();
  const history = historyAdapter(client, "random history").withFormat({
    format: "ai-sdk/v6", encode: ({ message: { id, ...rest } }) => rest, decode: ({ id, parent_id, content }) => ({ parentId: parent_id, message: { id, ...content } }), getId: ({ id }) => id,
  });
  let messages = [];
  let head = null;
  for (let at = 0; at < OPERATIONS / 10; at++) {
    const known = one([null, ...messages]);
    const message = (id) => ({ id, role: one(["user", "assistant"]), parts: [{ type: "text", text: text() }] });
    const kind = below(8);
    if (kind === 0 && known) {
      await history.delete([known]);
      messages = messages.filter((one) => one !== known).map((one) => (one.parentId === known.message.id ? { ...one, parentId: known.parentId } : one));
    } else if (kind === 1 && known) {
      known.message = message(known.message.id);
      await history.update(known);
    } else {
      const parent = below(3) > 0 ? messages.find(({ message }) => message.id === head) ?? known : known;
      const item = { parentId: parent?.message.id ?? null, message: message(`m${at}`) };
      await history.append(item);
      messages.push(item);
      head = item.message.id;
    }
    if (at % 10 === 0) assert.deepEqual(plain((await history.load()).messages), plain(messages), `after ${at}`);
  }
  const loaded = await history.load();
  assert.deepEqual(plain(loaded.messages), plain(messages));
  if (messages.some(({ message }) => message.id === head)) assert.equal(loaded.headId, head);
});
