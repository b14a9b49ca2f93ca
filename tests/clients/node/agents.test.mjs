// The official package `@openai/agents`: its session, and its runner with a scripted model.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Agent, OpenAIConversationsSession, Runner, setTracingDisabled, tool, Usage } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { Server } from "./server.mjs";

setTracingDisabled(true);

let server;
const client = () => new OpenAI({ baseURL: `${server.address}/v1`, apiKey: server.secret });

before(async () => void (server = await new Server().start()));
after(() => server.kill());

/** Answers with what it is given, turn by turn, and keeps what it was sent. */
class Scripted {
  constructor(turns) {
    this.turns = turns;
    this.seen = [];
  }

  async getResponse({ input }) {
    this.seen.push(input);
    return { usage: new Usage(), output: this.turns.shift() };
  }
}

const said = (text, id) => ({
  type: "message", id, role: "assistant", status: "completed", content: [{ type: "output_text", text }],
});
const text = (item) => (typeof item.content === "string" ? item.content : item.content[0].text);

test("a session", async () => {
  const session = new OpenAIConversationsSession({ client: client() });
  assert.deepEqual(await session.getItems(), []);
  await session.addItems(Array.from({ length: 15 }, (_, at) => ({ type: "message", role: "user", content: String(at) })));
  const expected = Array.from({ length: 15 }, (_, at) => String(at));
  assert.deepEqual((await session.getItems()).map(text), expected);
  assert.deepEqual((await session.getItems(3)).map(text), ["12", "13", "14"]);
  assert.equal(text(await session.popItem()), "14");
  assert.equal((await session.getItems()).length, 14);
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
});

test("a runner with tools, over a kill of the server", async () => {
  const double = tool({
    name: "double", description: "Doubles", parameters: z.object({ number: z.number() }),
    execute: async ({ number }) => String(2 * number),
  });
  const calls = [0, 1, 2].map((at) => ({
    type: "function_call", id: `fc_${at}`, callId: `call_${at}`, name: "double", arguments: `{"number": ${at}}`, status: "completed",
  }));
  const model = new Scripted([calls, [said("done", "msg_1")], [said("again", "msg_2")]]);
  const agent = new Agent({ name: "a", model, tools: [double] });
  const session = new OpenAIConversationsSession({ client: client() });
  const first = await new Runner().run(agent, "go", { session });
  assert.equal(first.finalOutput, "done");
  const conversationId = await session.getSessionId();
  await server.kill();
  await server.start();
  const other = new OpenAIConversationsSession({ client: client(), conversationId });
  const second = await new Runner().run(agent, "more", { session: other });
  assert.equal(second.finalOutput, "again");
  const kinds = model.seen[2].map((item) => item.type);
  const expected = ["message", ...Array(3).fill("function_call"), ...Array(3).fill("function_call_result"), "message", "message"];
  assert.deepEqual(kinds, expected);
  // What the SDK wrote is an ordinary conversation: it renders for another provider.
  const { request } = await server.native(`${conversationId}/prompt?for=anthropic`);
  assert.deepEqual(request.messages[1].content.map((block) => block.type), Array(3).fill("tool_use"));
  assert.deepEqual(request.messages[2].content.map((block) => block.type), Array(3).fill("tool_result"));
  assert.deepEqual(await server.native(`${conversationId}/next`), { step: "await_user" });
});
