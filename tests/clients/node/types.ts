// What TypeScript must take, in its strict mode, with either major of the AI SDK.

import { useChat } from "@ai-sdk/react";
import { convertToModelMessages, streamText, validateUIMessages, type LanguageModel, type ToolSet, type UIMessage } from "ai";
import { Client, NotFoundError, type Chunk, type Entry, type Message, type Receipt, type StoredMessage } from "conversation-store";
import { ChatStore, chatRoutes, chatTransport, type ChatRoutes } from "conversation-store/ai-sdk";

type Mine = UIMessage<{ from: string }, { plan: { step: number } }>;

export async function native(client: Client): Promise<string> {
  const message: Message = { role: "user", chunks: [{ type: "text", text: "hello" }], mine: { any: "field" } };
  const receipt: Receipt = await client.append("chat", [message], { expect: "new" });
  const texts: string[] = [];
  for await (const { chunks } of client.messages("chat")) texts.push(...chunks.map((chunk: Chunk) => (chunk.type === "text" ? chunk.text : "")));
  const newest: StoredMessage[] = await client.newest("chat", 1);
  for await (const entry of client.follow("chat", { since: receipt.last_seq })) {
    const { kind, seq }: Entry = entry;
    return `${kind} ${seq} ${newest.length}`;
  }
  const { request } = await client.prompt<{ messages: { role: string }[] }>("chat", { for: "openai-chat", model: "m", last: 3 });
  const next = await client.next("chat").catch((error: unknown) => {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  });
  if (next?.step === "run_tools") return next.calls.length.toString();
  // @ts-expect-error: it is no role
  await client.append("chat", { role: "nobody", chunks: [] });
  return texts.join() + request.messages[0]?.role;
}

export function routes(client: Client, model: LanguageModel, tools: ToolSet): ChatRoutes {
  const store = new ChatStore<Mine>(client, { branches: true });
  return chatRoutes(store, async (turn) => {
    const messages = await validateUIMessages<Mine>({ messages: turn.messages });
    const result = streamText({ model, tools, messages: await convertToModelMessages(messages), abortSignal: turn.signal });
    return result.toUIMessageStream({ sendSources: true });
  });
}

export function Page({ id, messages }: { id: string; messages: Mine[] }) {
  const chat = useChat<Mine>({ id, messages, resume: true, transport: chatTransport<Mine>({ api: "/api/chat" }) });
  return chat.messages.map(({ metadata, parts }) => [metadata?.from, parts.map((part) => (part.type === "data-plan" ? part.data.step : part.type))]);
}
