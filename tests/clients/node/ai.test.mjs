// The recipe of `src/docs/recipes.md` for the Vercel AI SDK, as it is there.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync, writeFileSync } from "node:fs";
import { finish, scripted, tools, words, call } from "./chats.mjs";
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

test("a turn, its stream, its end", async () => {
  const { model } = scripted([[...call("c1", "double", { number: 4 }), finish("tool-calls")], [...words("t", "It is 8."), finish()]]);
  const routes = recipe.chats(model, tools);
  const message = { id: "m1", role: "user", parts: [{ type: "text", text: "double 4" }] };
  const response = await routes.post(new Request("http://app/api/chat", { method: "POST", body: JSON.stringify({ id: "chat", messages: [message] }) }));
  assert.match(await response.text(), /"delta":"It is 8\."/);
  const [asked, answer] = await recipe.store.load("chat");
  assert.deepEqual(asked, message);
  assert.deepEqual(answer.parts.map(({ type }) => type), ["step-start", "tool-double", "step-start", "text"]);
  assert.match(await (await routes.stream("chat")).text(), /"delta":"It is 8\."/, "it has just ended");
  assert.equal((await routes.stream("other")).status, 204);
  assert.deepEqual(await (await routes.stop("chat")).json(), { stopped: false });
});
