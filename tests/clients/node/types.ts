// What TypeScript must take, in its strict mode, with either major of the AI SDK.

import { useChat } from "@ai-sdk/react";
import { convertToModelMessages, streamText, validateUIMessages, type LanguageModel, type ToolSet, type UIMessage } from "ai";
import { query, type SessionStore } from "@anthropic-ai/claude-agent-sdk";
import { useLocalRuntime, useRemoteThreadListRuntime, type ChatModelAdapter } from "@assistant-ui/react";
import { Agent, run, type Session } from "@openai/agents";
import { Client, NotFoundError, type Chunk, type Entry, type Message, type Receipt, type StoredMessage } from "conversation-store";
import { ChatStore, chatRoutes, chatTransport, type ChatRoutes } from "conversation-store/ai-sdk";
import { historyAdapter, threadListAdapter } from "conversation-store/assistant-ui";
import { ConvoSessionStore } from "conversation-store/claude-agent";
import { ConvoSession } from "conversation-store/openai-agents";

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

export async function agents(client: Client): Promise<void> {
  const session: Session = new ConvoSession(client, "chat");
  await run(new Agent({ name: "a" }), "hello", { session });
  const sessionStore: SessionStore = new ConvoSessionStore(client);
  for await (const message of query({ prompt: "hello", options: { sessionStore } })) if (message.type === "result") return;
}

export function useThread(client: Client, model: ChatModelAdapter) {
  const runtimeHook = () => useLocalRuntime(model, { adapters: { history: historyAdapter(client, "thread") } });
  return useRemoteThreadListRuntime({ adapter: threadListAdapter(client), runtimeHook });
}
