// `conversation-store/claude-agent` beside the SDK's own `InMemorySessionStore`, and through the SDK's functions.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  deleteSession, foldSessionSummary, forkSession, getSessionMessages, getSubagentMessages, InMemorySessionStore, listSessions, renameSession, tagSession,
} from "@anthropic-ai/claude-agent-sdk";
import { Client } from "conversation-store";
import { ConvoSessionStore, conversationKey } from "conversation-store/claude-agent";
import { OPERATIONS, SEED, randomness } from "./random.mjs";
import { Server } from "./server.mjs";

let server, client;
before(async () => {
  server = await new Server("memory:").start();
  client = new Client({ url: server.address, key: server.secret });
});
after(() => server.kill());

const collect = async (iterable) => {
  const all = [];
  for await (const one of iterable) all.push(one);
  return all;
};

let sessions = 0;
const fresh = () => ({ projectKey: "-work-app", sessionId: `00000000-0000-4000-8000-${String(++sessions).padStart(12, "0")}` });

/** A session as Claude Code writes it: what is said, and what is not. */
function transcript(sessionId, uuid = (n) => `00000000-0000-4000-9000-${sessionId.slice(-6)}${String(n).padStart(6, "0")}`) {
  const common = (n) => ({ uuid: uuid(n), parentUuid: n > 1 ? uuid(n - 1) : null, sessionId, isSidechain: false, cwd: "/work/app", version: "2.1.0", timestamp: `2026-11-26T02:00:0${n}.000Z`, userType: "external" });
  const answer = (n, block, stop_reason = null) => ({
    type: "assistant", ...common(n), requestId: "req_1",
    message: { id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [block], stop_reason, usage: { input_tokens: 9, output_tokens: 3 } },
  });
  return [
    { type: "file-history-snapshot", messageId: "m", snapshot: { files: {} }, isSnapshotUpdate: false },
    { type: "user", ...common(1), message: { role: "user", content: "List the files." } },
    answer(2, { type: "thinking", thinking: "I list them.", signature: "c2ln" }),
    answer(3, { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls", nested: { a: [1, null] } } }, "tool_use"),
    { type: "user", ...common(4), message: { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "a.txt" }], is_error: false }] }, toolUseResult: { stdout: "a.txt" } },
    answer(5, { type: "text", text: "There is a.txt. 😀" }, "end_turn"),
    { type: "system", ...common(6), subtype: "turn_duration", durationMs: 5, unknown: { later: ["kinds"] } },
    { type: "summary", summary: "Files", leafUuid: uuid(5) },
  ];
}

test("lines come back as they were, and the session is a conversation for everybody", async () => {
  const key = fresh();
  const store = new ConvoSessionStore(client);
  const lines = transcript(key.sessionId);
  await store.append(key, lines.slice(0, 3));
  await store.append(key, lines.slice(3));
  assert.deepEqual(await store.load(key), lines);
  const name = conversationKey(key);
  const { tags, metadata } = await client.describe(name);
  assert.deepEqual(tags.sort(), ["claude-agent:-work-app", "kind:main", `session:${key.sessionId}`]);
  const [{ data }] = (await store.listSessionSummaries(key.projectKey)).filter(({ sessionId }) => sessionId === key.sessionId);
  assert.deepEqual(data, foldSessionSummary(undefined, key, lines).data);
  assert.equal(metadata.claude_agent.first_prompt, "List the files.");
  for (const target of ["openai-chat", "anthropic", "gemini"]) {
    const { request, report } = await client.prompt(name, { for: target });
    assert.equal((await client.check(target, request)).accepted, true);
    const text = JSON.stringify(request);
    for (const said of ["List the files.", "a.txt", "There is a.txt. 😀"]) assert.ok(text.includes(said), `${target} ${said}`);
    assert.ok(!text.includes("turn_duration") && !text.includes("Files"));
    assert.deepEqual(report.filter(({ severity, rule }) => severity === "lost" && !rule.startsWith("thinking")), []);
  }
  const [call] = (await collect(client.messages(name))).flatMap(({ chunks }) => chunks).filter(({ type }) => type === "tool_call");
  assert.equal(call.arguments, '{"command":"ls","nested":{"a":[1,null]}}');
});

test("what comes again is stored once; what has no uuid, each time; two processes, too", async () => {
  const key = fresh();
  const [one, two] = [new ConvoSessionStore(client), new ConvoSessionStore(client)];
  const lines = transcript(key.sessionId);
  await one.append(key, lines);
  await two.append(key, lines);
  const without = lines.filter(({ uuid }) => uuid === undefined);
  assert.deepEqual(await one.load(key), [...lines, ...without]);
  const atOnce = fresh();
  const same = transcript(atOnce.sessionId).filter(({ uuid }) => uuid !== undefined);
  await Promise.all(same.flatMap((line) => [one.append(atOnce, [line]), two.append(atOnce, [line])]));
  assert.deepEqual(await two.load(atOnce), same);
  const more = Array.from({ length: 12 }, (_, n) => ({ type: "custom-title", customTitle: `Title ${n}`, sessionId: key.sessionId }));
  await Promise.all(more.map((line, n) => (n % 2 ? one : two).append(key, [line])));
  const loaded = (await two.load(key)).slice(lines.length + without.length);
  assert.deepEqual(loaded.map(({ customTitle }) => customTitle).sort(), more.map(({ customTitle }) => customTitle).sort());
  // The summary is that of the order in which they were stored.
  const [{ data }] = (await one.listSessionSummaries(key.projectKey)).filter(({ sessionId }) => sessionId === key.sessionId);
  assert.equal(data.customTitle, loaded.at(-1).customTitle);
  assert.equal((await client.describe(conversationKey(key))).title, loaded.at(-1).customTitle);
});

test("sub-agents are conversations of their own, linked, and go with their session", async () => {
  const key = fresh();
  const store = new ConvoSessionStore(client);
  const [main, agent] = [transcript(key.sessionId), transcript(key.sessionId, (n) => `10000000-0000-4000-9000-00000000000${n}`)];
  const subkey = { ...key, subpath: "subagents/agent-a" };
  await store.append(key, main);
  await store.append(subkey, agent);
  await store.append({ ...key, subpath: "subagents/agent-b" }, agent);
  assert.deepEqual((await store.listSubkeys(key)).sort(), ["subagents/agent-a", "subagents/agent-b"]);
  assert.deepEqual(await store.load(subkey), agent);
  assert.deepEqual((await store.listSessions(key.projectKey)).filter(({ sessionId }) => sessionId === key.sessionId).length, 1);
  const { conversation } = await client.describe(conversationKey(key));
  assert.equal((await collect(client.list({ tags: [`started-by:${conversation}`] }))).length, 2);
  await store.delete({ ...key, subpath: "subagents/agent-b" });
  assert.deepEqual(await store.listSubkeys(key), ["subagents/agent-a"]);
  await store.delete(key);
  assert.deepEqual([await store.load(key), await store.load(subkey), await store.listSubkeys(key)], [null, null, []]);
  await store.append(key, main);
  assert.deepEqual(await store.load(key), main);
});

test("a sub-agent that speaks first is linked; a session that was made again in another process is written whole", async () => {
  const key = fresh();
  const [one, two] = [new ConvoSessionStore(client), new ConvoSessionStore(client)];
  const lines = transcript(key.sessionId).filter(({ uuid }) => uuid !== undefined);
  await one.append({ ...key, subpath: "subagents/agent-a" }, lines);
  assert.deepEqual((await one.listSessions(key.projectKey)).filter(({ sessionId }) => sessionId === key.sessionId), []);
  await one.append(key, lines);
  assert.deepEqual((await one.listSessions(key.projectKey)).filter(({ sessionId }) => sessionId === key.sessionId).length, 1);
  const { conversation } = await client.describe(conversationKey(key));
  assert.equal((await collect(client.list({ tags: [`started-by:${conversation}`] }))).length, 1);
  await two.delete(key);
  await two.append(key, lines.slice(0, 2));
  await one.append(key, lines);
  assert.deepEqual(await one.load(key), lines);
});

test("a session that was made again, as long as before, is another one", async () => {
  const key = fresh();
  const [first, second] = [new ConvoSessionStore(client), new ConvoSessionStore(client)];
  const [one, two, three] = ["1", "2", "3"].map((uuid) => ({ type: "user", uuid }));
  await second.append(key, [one]);
  await first.delete(key);
  await first.append(key, [two]);
  await second.append(key, [three]);
  await second.append(key, [two]);
  assert.deepEqual(await first.load(key), [two, three]);
  await first.delete(key);
  await first.append(key, [one]);
  await second.append(key, [three, two]);
  assert.deepEqual(await first.load(key), [one, three, two]);
});

test("a session of any name, and none that is not there", async () => {
  const store = new ConvoSessionStore(client);
  const key = { projectKey: "a/b c'(ü)*!%", sessionId: "../x y" };
  assert.equal(await store.load(key), null);
  assert.deepEqual([await store.listSessions(key.projectKey), await store.listSessionSummaries(key.projectKey), await store.listSubkeys(key)], [[], [], []]);
  await store.delete(key);
  await store.append(key, []);
  assert.equal(await store.load(key), null);
  await store.append(key, transcript(key.sessionId));
  assert.equal(conversationKey(key), "claude-agent/a%2Fb%20c%27%28%C3%BC%29%2A%21%25/..%2Fx%20y");
  assert.deepEqual((await store.listSessions(key.projectKey)).map(({ sessionId }) => sessionId), [key.sessionId]);
});

test("the SDK's own functions see the same as in memory", async () => {
  const [store, memory] = [new ConvoSessionStore(client), new InMemorySessionStore()];
  const dir = process.cwd();
  const projectKey = dir.replace(/[^a-zA-Z0-9]/g, "-");
  const { sessionId } = fresh();
  const seen = await Promise.all([store, memory].map(async (sessionStore) => {
    await sessionStore.append({ projectKey, sessionId }, transcript(sessionId));
    await sessionStore.append({ projectKey, sessionId, subpath: "subagents/agent-a" }, transcript(sessionId).map((line) => ({ ...line, isSidechain: true, agentId: "a" })));
    const options = { dir, sessionStore };
    await renameSession(sessionId, "A name", options);
    await tagSession(sessionId, "a-tag", options);
    const fork = await forkSession(sessionId, options);
    const said = async (id) => (await getSessionMessages(id, options)).map(({ type, message }) => [type, message]);
    const listed = (await listSessions(options)).map(({ customTitle, summary, tag, firstPrompt }) => [customTitle, summary, tag, firstPrompt]).sort();
    const of = { said: await said(sessionId), fork: await said(fork.sessionId), agent: await getSubagentMessages(sessionId, "a", options), listed };
    await deleteSession(sessionId, options);
    return { ...of, left: (await listSessions(options)).length };
  }));
  assert.deepEqual(seen[0], seen[1]);
  assert.ok(seen[0].said.length > 0 && seen[0].agent.length > 0);
});

test(`${OPERATIONS} operations give what InMemorySessionStore gives (seed ${SEED})`, async () => {
  const { below, one, many, text, json } = randomness();
  const [store, memory] = [new ConvoSessionStore(client), new InMemorySessionStore()];
  const ids = Array.from({ length: 4 }, () => fresh().sessionId);
  const projects = ["random a", "random/b"];
  const key = () => ({ projectKey: one(projects), sessionId: one(ids), ...(below(3) === 0 ? { subpath: one(["subagents/agent-1", "subagents/deep/agent-2"]) } : {}) });
  let count = 0;
  const line = () => ({
    type: one(["user", "assistant", "system", "summary", "custom-title", "tag", "later"]),
    ...(below(4) > 0 ? { uuid: `uuid-${++count}` } : {}), ...(below(2) ? { timestamp: one(["2026-11-26T02:00:00.123Z", "yesterday"]) } : {}),
    ...(below(2) ? { message: one([json(), { role: "user", content: one([text(), many(3, () => one([{ type: "text", text: text() }, { type: text(), x: json() }, json()]))]) }]) } : {}),
    ...(below(4) === 0 ? { customTitle: text(), tag: text(), isSidechain: below(2) === 0, cwd: text() } : {}), payload: json(3),
  });
  const order = (list) => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  const seen = (value) => (Array.isArray(value) ? value.map(({ mtime, ...rest }) => rest) : value);
  const operations = {
    append: (to, key, lines) => to.append(key, lines),
    load: (to, key) => to.load(key),
    listSessions: async (to, { projectKey }) => order(seen(await to.listSessions(projectKey))),
    listSessionSummaries: async (to, { projectKey }) => order(seen(await to.listSessionSummaries(projectKey))),
    listSubkeys: async (to, { projectKey, sessionId }) => order(await to.listSubkeys({ projectKey, sessionId })),
    delete: (to, key) => to.delete(key),
  };
  for (let at = 0; at < OPERATIONS; at++) {
    const name = one(["append", "append", "append", "append", ...Object.keys(operations)]);
    if (name === "delete" && below(3) > 0) continue;
    const [where, lines] = [key(), [line(), ...many(3, line)]];
    const [mine, theirs] = [await operations[name](store, where, lines), await operations[name](memory, where, lines)];
    assert.deepEqual(mine, JSON.parse(JSON.stringify(theirs ?? null)) ?? theirs, `operation ${at}: ${name} ${JSON.stringify(where)}`);
  }
});
