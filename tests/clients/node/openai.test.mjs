// The official package `openai`, unchanged.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { Server } from "./server.mjs";

let server, client;

before(async () => {
  server = await new Server().start();
  client = new OpenAI({ baseURL: `${server.address}/v1`, apiKey: server.secret });
});
after(() => server.kill());

const said = (content) => ({ role: "user", content });

test("the calls", async () => {
  const made = await client.conversations.create({ metadata: { topic: "a" }, items: [said("hello")] });
  assert.deepEqual((await client.conversations.retrieve(made.id)).metadata, { topic: "a" });
  assert.deepEqual((await client.conversations.update(made.id, { metadata: { b: "c" } })).metadata, { b: "c" });
  const added = await client.conversations.items.create(made.id, { items: [said("again")] });
  assert.deepEqual(added.data.map((item) => item.content[0].text), ["again"]);
  const item = await client.conversations.items.retrieve(added.last_id, { conversation_id: made.id, include: ["reasoning.encrypted_content"] });
  assert.deepEqual(item, added.data[0]);
  assert.equal((await client.conversations.items.delete(item.id, { conversation_id: made.id })).id, made.id);
  assert.equal((await client.conversations.delete(made.id)).deleted, true);
  await assert.rejects(client.conversations.retrieve(made.id), OpenAI.NotFoundError);
});

test("pages of both orders", async () => {
  const conversation = await client.conversations.create();
  for (let start = 0; start < 100; start += 20) {
    const items = Array.from({ length: 20 }, (_, at) => said(String(start + at)));
    await client.conversations.items.create(conversation.id, { items });
  }
  for (const order of ["asc", "desc"]) {
    for (const limit of [100, 20, 7]) {
      const found = [];
      for await (const item of client.conversations.items.list(conversation.id, { order, limit })) {
        found.push(Number(item.content[0].text));
      }
      const expected = Array.from({ length: 100 }, (_, at) => at);
      assert.deepEqual(found, order === "asc" ? expected : expected.reverse());
    }
  }
});

test("errors reach the client", async () => {
  const wrong = new OpenAI({ baseURL: `${server.address}/v1`, apiKey: "wrong" });
  await assert.rejects(wrong.conversations.retrieve("conv_x"), { status: 401, code: "invalid_api_key" });
  const conversation = await client.conversations.create();
  const items = Array.from({ length: 21 }, () => said("x"));
  const code = "array_above_max_length";
  await assert.rejects(client.conversations.items.create(conversation.id, { items }), { status: 400, code, param: "items" });
});

test("a lost answer is asked for again, and stored once", async () => {
  let lost = 0;
  const unlucky = new OpenAI({
    baseURL: `${server.address}/v1`,
    apiKey: server.secret,
    fetch: async (...asked) => {
      const response = await fetch(...asked);
      if (lost++ > 0) return response;
      await response.text();
      throw new TypeError("the connection was cut");
    },
  });
  const conversation = await client.conversations.create();
  await unlucky.conversations.items.create(conversation.id, { items: [said("once")] });
  assert.equal(lost, 2);
  const { data } = await client.conversations.items.list(conversation.id);
  assert.deepEqual(data.map((item) => item.content[0].text), ["once"]);
});
