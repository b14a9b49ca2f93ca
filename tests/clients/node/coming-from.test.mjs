// The code of `src/docs/coming-from.md` for people of the AI SDK, as it is there.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { finish, scripted, words } from "./chats.mjs";
import { Server } from "./server.mjs";

let server, code;

before(async () => {
  server = await new Server().start();
  Object.assign(process.env, { CONVO_URL: server.address, CONVO_KEY: server.secret });
  const blocks = readFileSync(join(dirname(process.env.RECIPES), "coming-from.md"), "utf8").match(/(?<=```js\n).*?(?=```)/gs);
  assert.equal(blocks.length, 1);
  writeFileSync(new URL("./coming-from.mjs", import.meta.url), blocks[0]);
  code = await import("./coming-from.mjs");
});
after(() => server.kill());

const saved = [
  { id: "m1", role: "user", metadata: { at: 1 }, parts: [{ type: "text", text: "double 4" }] },
  {
    id: "m2",
    role: "assistant",
    parts: [
      { type: "step-start" },
      { type: "tool-double", toolCallId: "c1", state: "output-available", input: { number: 4 }, output: { doubled: 8 } },
      { type: "data-chart", data: { bars: [8] } },
      { type: "step-start" },
      { type: "text", text: "It is 8.", state: "done" },
    ],
  },
];

test("a chat that was saved goes on here, and its next answer is stored", async () => {
  await code.takeOver("chat", saved);
  assert.deepEqual(await code.store.load("chat"), saved);
  const { model, prompts } = scripted([[...words("t", "As I said."), finish()]]);
  const said = { id: "m3", role: "user", parts: [{ type: "text", text: "Sure?" }] };
  const request = new Request("http://app/api/chat", { method: "POST", body: JSON.stringify({ id: "chat", messages: [...saved, said] }) });
  assert.match(await (await code.chats(model).post(request)).text(), /"delta":"As I said\."/);
  assert.deepEqual(prompts[0].map(({ role }) => role), ["user", "assistant", "tool", "assistant", "user"]);
  const answers = (await code.store.load("chat")).slice(2);
  assert.deepEqual(answers.map(({ role, parts }) => [role, parts.at(-1).text]), [["user", "Sure?"], ["assistant", "As I said."]]);
});

test("a tool without a result is no end of the chat", async () => {
  const cut = { ...saved[1], parts: [{ type: "tool-double", toolCallId: "c1", state: "input-available", input: { number: 4 } }] };
  await code.takeOver("cut", [saved[0], cut]);
  const { model, prompts } = scripted([[...words("t", "Well."), finish()]]);
  const said = { id: "m3", role: "user", parts: [{ type: "text", text: "And?" }] };
  const request = new Request("http://app/api/chat", { method: "POST", body: JSON.stringify({ id: "cut", messages: [saved[0], cut, said] }) });
  assert.match(await (await code.chats(model).post(request)).text(), /"delta":"Well\."/);
  assert.equal(prompts[0].filter(({ role }) => role === "tool").length, 1);
});

test("the files of the guide are imported, too", () => {
  mkdirSync(join(server.folder, ".chats"));
  for (const id of ["7f3a", "8b2c"]) writeFileSync(join(server.folder, ".chats", `${id}.json`), JSON.stringify(saved, null, 2));
  const args = ["--store", server.address, "--json", "import", join(server.folder, ".chats")];
  const lines = execFileSync(process.env.CONVO, args, { encoding: "utf8", env: { ...process.env, CONVO_KEY: server.secret } }).trim().split("\n");
  const [one, other, sum] = lines.map((line) => JSON.parse(line));
  assert.deepEqual([one.key, other.key, sum.conversations, sum.failed], ["ai-sdk:7f3a", "ai-sdk:8b2c", 2, 0]);
});
