// A chat server with a model that follows a script: the package's example, as it is.

import * as models from "ai/test";
import { jsonSchema, tool } from "ai";
import { Client } from "conversation-store";
import { serve } from "./node_modules/conversation-store/examples/chat-server.mjs";

const Model = models.MockLanguageModelV4 ?? models.MockLanguageModelV3;

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };

export const finish = (unified = "stop") => ({ type: "finish", finishReason: { unified, raw: unified }, usage });
export const words = (id, ...deltas) => [
  { type: "text-start", id }, ...deltas.map((delta) => (typeof delta === "string" ? { type: "text-delta", id, delta } : delta)), { type: "text-end", id },
];
export const thought = (id, ...deltas) => [
  { type: "reasoning-start", id }, ...deltas.map((delta) => ({ type: "reasoning-delta", id, delta })),
  { type: "reasoning-end", id, providerMetadata: { anthropic: { signature: "c2lnbmVk" } } },
];
export const call = (toolCallId, toolName, input) => [
  { type: "tool-input-start", id: toolCallId, toolName }, { type: "tool-input-delta", id: toolCallId, delta: JSON.stringify(input) },
  { type: "tool-input-end", id: toolCallId }, { type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) },
];

/** What a script waits for. */
export function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { gate: opened, open };
}

/** A model that answers with these steps, one a call. A step may have gates, also before its first part, and failures. */
export function scripted(steps) {
  const prompts = [];
  const signals = [];
  const model = new Model({
    doStream: async ({ prompt, abortSignal }) => {
      prompts.push(prompt);
      signals.push(abortSignal);
      const parts = [...steps.shift()];
      if (parts[0]?.early) await parts.shift().early;
      const stream = new ReadableStream({
        async start(controller) {
          abortSignal?.addEventListener("abort", () => controller.error(abortSignal.reason));
          for (const part of parts) {
            if (part.gate) await part.gate;
            else if (part.fail) return controller.error(part.fail);
            else if (!abortSignal?.aborted) controller.enqueue(part);
          }
          if (!abortSignal?.aborted) controller.close();
        },
      });
      return { stream };
    },
  });
  return { model, prompts, signals };
}

const number = jsonSchema({ type: "object", properties: { number: { type: "number" } }, required: ["number"] });

export const tools = {
  double: tool({
    inputSchema: number,
    execute: async ({ number }) => {
      if (number < 0) throw new Error("too small");
      return { doubled: 2 * number };
    },
  }),
  where: tool({ inputSchema: jsonSchema({ type: "object", properties: {} }) }),
  erase: tool({ inputSchema: number, needsApproval: true, execute: async ({ number }) => `erased ${number}` }),
  hang: tool({ inputSchema: number, execute: () => new Promise(() => process.send?.("hangs")) }),
};

/** The example server, with a script. */
export async function chats(server, steps) {
  const script = scripted(steps);
  const client = new Client({ url: server.address, key: server.secret });
  const app = await serve({ client, model: script.model, tools, port: 0 });
  return { ...script, ...app, client, end: () => app.server.closeAllConnections() ?? app.server.close() };
}

// As a process of its own: its steps come with the arguments.
if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [address, secret, steps] = process.argv.slice(2);
  const { url } = await chats({ address, secret }, JSON.parse(steps));
  process.send({ url });
}
