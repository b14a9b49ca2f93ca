// `Session` of OpenAI Agents: items of the model that follow one another are a message, every other item is one. The first chunk of an item
// has it as it is in the field `openai_agents`.

import type { AgentInputItem, Session, SessionHistoryMutation, SessionHistoryTransactionArgs } from "@openai/agents";
import type { Client } from "./client.js";
import { NotFoundError, StaleHeadError } from "./errors.js";
import { keep, kept, readable } from "./kept.js";
import type { Chunk, Message, StoredMessage } from "./transcript.js";

/** The field of a chunk: which one of its message it is, and, on the first of an item, the item. */
interface OfChunk {
  index: number;
  item?: AgentInputItem | string;
}

/** The field of a message: those in whose place it is, and those that were stored with it. */
interface OfMessage {
  replaces: { index: number; chunks: number[] }[];
}

interface Place {
  index: number;
  /** The chunks that say it. */
  chunks: number[];
  item: AgentInputItem;
}

/** The most messages that are asked for by their number. */
const NEWEST = 100;

export class HistoryConflictError extends Error {
  override name = "HistoryConflictError";
}

/** The history of one conversation, for `run(agent, input, { session })`. */
export class ConvoSession implements Session {
  constructor(readonly client: Client, readonly sessionId: string = crypto.randomUUID()) {}

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  /** All items, or the newest, oldest first. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    if (limit !== undefined && limit <= NEWEST) {
      const found = places(await this.#found(() => this.client.newest(this.sessionId, limit)));
      if (found.length >= limit) return found.slice(-limit).map(({ item }) => item);
    }
    const all = (await this.#read()).map(({ item }) => item);
    return limit === undefined ? all : all.slice(-limit);
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) await this.client.append(this.sessionId, toMessages(items));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    const newest = places(await this.#found(() => this.client.newest(this.sessionId, 1)));
    const last = newest.at(-1) ?? (await this.#read()).at(-1);
    if (last) await this.#remove([last]);
    return last?.item;
  }

  /** Erases the conversation. */
  async clearSession(): Promise<void> {
    await this.#found(async () => {
      await this.client.delete(this.sessionId);
      return [];
    });
  }

  /** Changes calls that are stored. */
  async applyHistoryMutations({ mutations }: { mutations: SessionHistoryMutation[] }): Promise<void> {
    const before = await this.#read();
    let after: AgentInputItem[] = before.map(({ item }) => item);
    for (const { callId, replacement } of mutations) {
      const isCall = (item: AgentInputItem) => item.type === "function_call" && item.callId === callId;
      const first = after.findIndex(isCall);
      after = after.flatMap((item, at) => (isCall(item) ? (at === first ? [replacement] : []) : [item]));
    }
    const from = before.findIndex(({ item }, at) => !isSame(item, after[at]));
    if (from < 0) return;
    const replaced = before.slice(from);
    await this.client.append(this.sessionId, toMessages(after.slice(from), replaced), { expect: await this.#lastSeq() });
    await this.#remove(replaced);
  }

  /** Appends items, or replaces the newest ones: all or nothing, once for each `operationId`. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    const digest = await digested(transaction);
    for (;;) {
      const { last_seq, metadata = {} } = await this.#describe();
      const { operations = {}, ...others } = (metadata.openai_agents ?? {}) as { operations?: Record<string, string> };
      const before = operations[operationId];
      if (before === digest) return;
      if (before !== undefined) throw new HistoryConflictError("this operation was already applied with another transaction");
      const items = transaction.type === "append_items" ? transaction.items : transaction.replacement;
      const expected = transaction.type === "append_items" ? [] : transaction.expectedSuffix;
      const suffix = expected.length > 0 ? (await this.#read()).slice(-expected.length) : [];
      if (!isSame(suffix.map(({ item }) => item), expected)) throw new HistoryConflictError("the history does not end so any more");
      const newest = Object.entries(operations).slice(1 - OPERATIONS);
      const kept = { ...others, operations: { ...Object.fromEntries(newest), [operationId]: digest } };
      try {
        const options = { expect: last_seq === 0 ? "new" : last_seq, metadata: { ...metadata, openai_agents: kept } };
        await this.client.append(this.sessionId, toMessages(items, suffix), options);
      } catch (error) {
        if (error instanceof StaleHeadError) continue;
        throw error;
      }
      return this.#remove(suffix);
    }
  }

  /** They are replaced already: now people do not see them any more, either. */
  async #remove(places: Place[]): Promise<void> {
    const chunks = places.flatMap(({ index, chunks }) => chunks.map((chunk) => ({ index, chunk })));
    await Promise.all(chunks.map(({ index, chunk }) => this.client.remove(this.sessionId, index, { chunk })));
  }

  async #describe(): Promise<{ last_seq: number; metadata?: Record<string, unknown> }> {
    try {
      return await this.client.describe(this.sessionId);
    } catch (error) {
      if (error instanceof NotFoundError) return { last_seq: 0 };
      throw error;
    }
  }

  async #lastSeq(): Promise<number> {
    return (await this.#describe()).last_seq;
  }

  async #read(): Promise<Place[]> {
    return places(
      await this.#found(async () => {
        const all = [];
        for await (const message of this.client.messages(this.sessionId, { limit: 1000 })) all.push(message);
        return all;
      }),
    );
  }

  /** A conversation that is not there has nothing. */
  async #found(read: () => Promise<StoredMessage[]>): Promise<StoredMessage[]> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof NotFoundError) return [];
      throw error;
    }
  }
}

/** Operations that are remembered. */
const OPERATIONS = 100;

/** The items of messages, each with its place. A chunk of another program is an item that says the same. */
function places(messages: StoredMessage[]): Place[] {
  const replaced = messages.flatMap(({ openai_agents }) => (openai_agents as OfMessage | undefined)?.replaces ?? []);
  const isGone = (index: number, chunk: number) => replaced.some((one) => one.index === index && one.chunks.includes(chunk));
  const found: Place[] = [];
  for (const message of messages.filter(({ state }) => state !== "streaming")) {
    const { index } = message;
    for (const [at, chunk] of message.chunks.entries()) {
      const own = chunk.openai_agents as OfChunk | undefined;
      if (isGone(index, own?.index ?? at)) continue;
      if (!own) found.push(...toItems(message, chunk).map((item) => ({ index, chunks: [at], item })));
      else if (own.item) found.push({ index, chunks: [own.index], item: kept(own.item) });
      else found.at(-1)?.chunks.push(own.index);
    }
  }
  return found;
}

function toMessages(items: AgentInputItem[], replaced: Place[] = []): Message[] {
  const messages: Message[] = [];
  for (const item of items) {
    const { role, chunks } = toMessage(item);
    const last = messages.at(-1);
    const { id } = item as { id?: unknown };
    const message = role === "assistant" && last?.role === role ? last : { role, ...(typeof id === "string" && { id }), chunks: [] };
    if (message !== last) messages.push(message);
    // What says nothing to others has a place all the same.
    for (const [at, chunk] of (chunks.length > 0 ? chunks : [{ type: "text" as const, text: "" }]).entries()) {
      message.chunks.push({ ...readable(chunk), openai_agents: { index: message.chunks.length, ...(at === 0 && { item: keep(item) }) } });
    }
  }
  if (replaced.length === 0) return messages;
  const [first = { role: "system", chunks: [] }, ...others] = messages;
  return [{ ...first, openai_agents: { replaces: replaced.map(({ index, chunks }) => ({ index, chunks })) } }, ...others];
}

type Fields = Record<string, unknown>;

function toMessage(item: AgentInputItem): Message {
  const fields = item as Fields;
  const message = (role: Message["role"], ...chunks: Chunk[]): Message => ({ role, chunks });
  switch (fields.type) {
    case undefined:
    case "message": {
      const role = fields.role === "user" || fields.role === "system" ? fields.role : "assistant";
      const content = typeof fields.content === "string" ? [{ type: "text", text: fields.content }] : ((fields.content ?? []) as Fields[]);
      return message(role, ...content.flatMap(toChunk));
    }
    case "reasoning": {
      const text = ((fields.content ?? []) as Fields[]).map(({ text }) => text).join("\n");
      return message("assistant", { type: "thinking", text });
    }
    case "function_call":
      return message("assistant", {
        type: "tool_call", id: String(fields.callId), name: String(fields.name), arguments: String(fields.arguments ?? ""),
      });
    case "function_call_result": {
      const output = fields.output as string | Fields | undefined;
      const text = typeof output === "object" && output.type === "text" ? output.text : output;
      const content = typeof text === "string" ? text : [{ type: "json", json: output ?? null }];
      return message("tool", { type: "tool_result", tool_call_id: String(fields.callId), name: String(fields.name), content });
    }
    default:
      return message("assistant", { type: "opaque", provider: "openai-agents", kind: String(fields.type), json: item });
  }
}

function toChunk(part: Fields): Chunk[] {
  const { type, text, image, file, filename } = part as Record<string, string>;
  const isAddress = (value: unknown): value is string => typeof value === "string" && /^(https?|data):/.test(value);
  if (type === "refusal") return [{ type: "refusal", text: part.refusal as string }];
  if (typeof text === "string") return [{ type: "text", text }];
  if (isAddress(image)) return [{ type: "image", url: image }];
  if (isAddress(file)) return [{ type: "file", url: file, ...(filename && { name: filename }) }];
  return [];
}

/** A chunk of a message that another program stored. */
function toItems({ role }: StoredMessage, chunk: Chunk): AgentInputItem[] {
  const items = (): Fields[] => {
    switch (chunk.type) {
      case "text":
        if (role === "system") return [{ type: "message", role, content: chunk.text }];
        if (role === "user") return [{ type: "message", role, content: [{ type: "input_text", text: chunk.text }] }];
        return [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: chunk.text }] }];
      case "image":
        return [{ type: "message", role: "user", content: [{ type: "input_image", image: chunk.url }] }];
      case "tool_call":
        return [{ type: "function_call", callId: chunk.id, name: chunk.name ?? "", arguments: chunk.arguments, status: "completed" }];
      case "tool_result": {
        const output = typeof chunk.content === "string" ? chunk.content : JSON.stringify(chunk.content);
        return [{ type: "function_call_result", callId: chunk.tool_call_id ?? "", name: chunk.name ?? "", status: "completed", output }];
      }
      default:
        return [];
    }
  };
  return items() as unknown as AgentInputItem[];
}

/** With the names of objects in order, and without those that have no value: what JSON keeps. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, sorted(value)]));
}

const isSame = (left: unknown, right: unknown) => JSON.stringify(sorted(left)) === JSON.stringify(sorted(right));

async function digested(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(sorted(value)));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
