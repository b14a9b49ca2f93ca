// A chat server in one file: `npm install conversation-store ai`, `convo serve`, `node chat-server.mjs`. A page has
// `useChat({ id, messages, resume: true, transport: chatTransport({ api: "http://127.0.0.1:3000/api/chat" }) })`.

import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { convertToModelMessages, stepCountIs, streamText } from "ai";
import { Client } from "conversation-store";
import { ChatStore, chatRoutes } from "conversation-store/ai-sdk";

/** Serves chats of a model. It resolves with its address once it listens. */
export async function serve({ client, model, tools = {}, port = 3000, origin = "*" }) {
  const store = new ChatStore(client);
  const routes = chatRoutes(store, async (turn) =>
    streamText({
      model,
      tools,
      system: turn.system,
      messages: await convertToModelMessages(turn.messages, { tools }),
      abortSignal: turn.signal,
      stopWhen: stepCountIs(10),
    }),
  );
  const server = createServer(async (incoming, outgoing) => {
    const headers = { "access-control-allow-origin": origin, "access-control-allow-headers": "content-type" };
    try {
      const response = incoming.method === "OPTIONS" ? new Response(null, { status: 204 }) : await routes.handle(await received(incoming));
      outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), ...headers });
      outgoing.flushHeaders();
      await sent(response.body, outgoing);
    } catch (error) {
      console.error(error);
      if (!outgoing.headersSent) outgoing.writeHead(500, headers);
      outgoing.end("The chat server failed.");
    }
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { server, store, url: `http://127.0.0.1:${server.address().port}/api/chat` };
}

async function received(incoming) {
  const url = new URL(incoming.url, `http://${incoming.headers.host}`);
  if (incoming.method !== "POST") return new Request(url);
  const pieces = [];
  for await (const piece of incoming) pieces.push(piece);
  return new Request(url, { method: "POST", body: Buffer.concat(pieces) });
}

/** A page that leaves takes nothing with it: the answer goes on, and is stored. */
async function sent(body, outgoing) {
  const reader = body?.getReader();
  outgoing.once("close", () => reader?.cancel().catch(() => {}));
  for (let next; reader && !(next = await reader.read()).done; ) outgoing.write(next.value);
  outgoing.end();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const client = new Client({ url: process.env.CONVO_URL, key: process.env.CONVO_KEY });
  const { url } = await serve({ client, model: process.env.MODEL ?? "openai/gpt-5" });
  console.log(`chats are at ${url}`);
}
