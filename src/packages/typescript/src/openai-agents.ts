// `Session` of OpenAI Agents: items of the model that follow one another are a message, every other item is one. The first chunk
// of an item has it as it is in the field `openai_agents_js`. The package for Python has items of another form, in the field
// `openai_agents`: each reads the chunks of the other one's messages, as it does those of any program.

import type { AgentInputItem, Session, SessionHistoryMutation, SessionHistoryTransactionArgs } from "@openai/agents";
import type { Client } from "./client.js";
import { ConflictError, NotFoundError, StaleHeadError } from "./errors.js";
import { keep, kept, readable } from "./kept.js";
import type { Chunk, Message, StoredMessage } from "./transcript.js";
import { uuid } from "./uuid.js";

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
  /** Whether another program's message has no others. */
  isWhole?: boolean;
  item: AgentInputItem;
}

/** The most messages that are asked for by their number. */
const NEWEST = 100;

export class HistoryConflictError extends Error {
  override name = "HistoryConflictError";
}

/** The history of one conversation, for `run(agent, input, { session })`. */
export class ConvoSession implements Session {
  constructor(readonly client: Client, readonly sessionId: string = `session-${uuid()}`) {}

  async getSessionId(): Promise<string> {
    return this.sessionId;
  }

  /** All items, or the newest, oldest first. */
  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    if (limit !== undefined && limit <= NEWEST) {
      const found = await this.#newest(limit);
      if (found.length >= limit) return found.slice(-limit).map(({ item }) => item);
    }
    const all = (await this.#read()).map(({ item }) => item);
    return limit === undefined ? all : all.slice(-limit);
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) await this.client.append(this.sessionId, toMessages(items));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    for (;;) {
      const last = (await this.#newest(1)).at(-1) ?? (await this.#read()).at(-1);
      if (!last) return undefined;
      const [first, ...others] = last.isWhole ? [undefined] : last.chunks;
      // Who takes the first chunk, which has the item, takes the item.
      await Promise.all(others.map((chunk) => this.#take(last.index, chunk)));
      if (await this.#take(last.index, first)) return last.item;
    }
  }

  /** What the model goes on with after a compaction; the runner leaves out what comes before it. Without this it would erase the log. */
  async replaceHistoryWithCompaction(items: AgentInputItem[]): Promise<void> {
    await this.addItems(items);
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
    const expect = await this.#lastSeq();
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
    await this.client.append(this.sessionId, toMessages(after.slice(from), replaced), { expect });
    await this.#remove(replaced);
  }

  /** Appends items, or replaces the newest ones: all or nothing, once for each `operationId`. */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    const digest = await digested(transaction);
    for (;;) {
      const { last_seq, metadata = {} } = await this.#describe();
      const { operations = {}, ...others } = (metadata.openai_agents_js ?? {}) as { operations?: Record<string, string> };
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
        const options = { expect: last_seq === 0 ? "new" : last_seq, metadata: { ...metadata, openai_agents_js: kept } };
        await this.client.append(this.sessionId, toMessages(items, suffix), options);
      } catch (error) {
        if (error instanceof StaleHeadError || error instanceof ConflictError) continue;
        throw error;
      }
      return this.#remove(suffix);
    }
  }

  /** Whether it was there. */
  async #take(index: number, chunk: number | undefined): Promise<boolean> {
    try {
      await this.client.remove(this.sessionId, index, { chunk });
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** They are replaced already: now people do not see them any more, either. */
  async #remove(places: Place[]): Promise<void> {
    const chunks = places.flatMap(({ index, chunks, isWhole }) => (isWhole ? [undefined] : chunks).map((chunk) => ({ index, chunk })));
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

  /** What the newest messages have: at least of these, or of all. */
  async #newest(count: number): Promise<Place[]> {
    const found = places(await this.#found(() => this.client.newest(this.sessionId, count)));
    // The tool of a result of another program is named where it was called.
    return found.some(({ item }) => item.type === "function_call_result" && item.name === "") ? this.#read() : found;
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
  const replaced = messages.flatMap(({ openai_agents_js }) => (openai_agents_js as OfMessage | undefined)?.replaces ?? []);
  const isGone = (index: number, chunk: number) => replaced.some((one) => one.index === index && one.chunks.includes(chunk));
  const found: Place[] = [];
  const names = new Map<string, string>();
  for (const message of messages.filter(({ state }) => state !== "streaming")) {
    const { index } = message;
    const left = message.chunks
      .map((chunk, at) => ({ chunk, own: chunk.openai_agents_js as OfChunk | undefined, number: message.chunk_indexes[at]! }))
      .filter(({ chunk, number }) => {
        if (chunk.type === "tool_call") names.set(chunk.id, chunk.name ?? "");
        return !isGone(index, number);
      });
    // What people and systems said is one item, unless results are beside it.
    if (message.role !== "assistant" && left.length > 0 && left.every(({ chunk, own }) => !own && toPart(chunk))) {
      const item = said(message.role, left.map(({ chunk }) => chunk));
      found.push({ index, chunks: left.map(({ number }) => number), isWhole: left.length === message.chunks.length, item });
      continue;
    }
    for (const { chunk, own, number } of left) {
      const item = own ? own.item && kept(own.item) : toItem(message, chunk, names);
      if (item) found.push({ index, chunks: [number], isWhole: !own && message.chunks.length === 1, item });
      else if (own && found.at(-1)?.index === index) found.at(-1)!.chunks.push(number);
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
    // What a model said has its id in its chunks, and so have results.
    const ofMessage = typeof id === "string" && (role === "user" || role === "system") ? { id } : {};
    const message = role === "assistant" && last?.role === role ? last : { role, ...ofMessage, chunks: [] };
    if (message !== last) messages.push(message);
    // What says nothing to others has a place all the same.
    for (const [at, chunk] of (chunks.length > 0 ? chunks : [{ type: "text" as const, text: "" }]).entries()) {
      message.chunks.push({ ...readable(chunk), openai_agents_js: { index: message.chunks.length, ...(at === 0 && { item: keep(item) }) } });
    }
  }
  if (replaced.length === 0) return messages;
  const [first = { role: "system", chunks: [] }, ...others] = messages;
  return [{ ...first, openai_agents_js: { replaces: replaced.map(({ index, chunks }) => ({ index, chunks })) } }, ...others];
}

type Fields = Record<string, unknown>;

function toMessage(item: AgentInputItem): Message {
  const fields = item as Fields;
  const { id, callId, name } = fields;
  const of = (field: "id" | "item_id") => (typeof id === "string" ? { [field]: id } : {});
  const message = (role: Message["role"], ...chunks: Chunk[]): Message => ({ role, chunks });
  switch (fields.type) {
    case undefined:
    case "message": {
      const role = fields.role === "user" || fields.role === "system" ? fields.role : "assistant";
      const content = typeof fields.content === "string" ? [{ type: "text", text: fields.content }] : ((fields.content ?? []) as Fields[]);
      return message(role, ...content.flatMap(toChunk).map((chunk) => (role === "assistant" ? { ...chunk, ...of("id") } : chunk)));
    }
    case "reasoning": {
      const text = ((fields.content ?? []) as Fields[]).map(({ text }) => text).join("\n\n");
      const { encryptedContent, encrypted_content = encryptedContent } = (fields.providerData ?? {}) as Fields;
      return message("assistant", { type: "thinking", text, ...(typeof encrypted_content === "string" && { signature: encrypted_content }), ...of("id") });
    }
    case "function_call": {
      const given = String(fields.arguments ?? "");
      return message("assistant", { type: "tool_call", id: String(callId), name: String(name), arguments: given, ...of("item_id") });
    }
    case "function_call_result": {
      const output = fields.output as string | Fields | undefined;
      const text = typeof output === "object" && output.type === "text" ? output.text : output;
      const content = typeof text === "string" ? text : [{ type: "json", json: output ?? null }];
      return message("tool", { type: "tool_result", tool_call_id: String(callId), name: String(name), content, ...of("id") });
    }
    default:
      return message("assistant", { type: "opaque", provider: "openai-agents", kind: String(fields.type), json: item, ...of("id") });
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

/** The item that people, or a system, said with these chunks. */
function said(role: string, chunks: Chunk[]): AgentInputItem {
  const parts = chunks.map((chunk) => toPart(chunk)!);
  const [first] = parts;
  const isText = parts.length === 1 && first?.type === "input_text";
  const content = role === "system" ? parts.map(({ text }) => text ?? "").join("\n\n") : isText ? first.text : parts;
  return { type: "message", role: role === "system" ? role : "user", content } as AgentInputItem;
}

function toPart(chunk: Chunk): Fields | undefined {
  if (chunk.type === "text") return { type: "input_text", text: chunk.text };
  if (chunk.type === "image") return { type: "input_image", image: chunk.url };
  if (chunk.type !== "file") return undefined;
  const file = chunk.url ?? `data:${chunk.mime_type ?? "application/octet-stream"};base64,${chunk.data ?? ""}`;
  return { type: "input_file", file, ...(chunk.name && { filename: chunk.name }) };
}

/** The item that a chunk of another program is. What a provider's own tools did is none. */
function toItem({ role }: StoredMessage, chunk: Chunk, names: Map<string, string>): AgentInputItem | undefined {
  const item = (): Fields | undefined => {
    const status = "completed";
    const of = (id: unknown) => (typeof id === "string" ? { id } : {});
    switch (chunk.type) {
      case "tool_call":
        if (chunk.server) return undefined;
        return { type: "function_call", ...of(chunk.item_id), callId: chunk.id, name: chunk.name ?? "", arguments: chunk.arguments, status };
      case "tool_result": {
        if (role === "assistant") return undefined;
        const callId = chunk.tool_call_id ?? "";
        const toText = (part: Fields) => ({ type: "input_text", text: JSON.stringify(part.json ?? part) });
        const { content } = chunk;
        const output = typeof content === "string" ? { type: "text", text: content } : content.map((part) => toPart(part as Chunk) ?? toText(part));
        return { type: "function_call_result", ...of(chunk.id), callId, name: chunk.name ?? names.get(callId) ?? "", status, output };
      }
      case "thinking": {
        // Without an id it is of another provider.
        if (chunk.id === undefined) return undefined;
        const sealed = chunk.signature === undefined ? {} : { providerData: { encryptedContent: chunk.signature } };
        return { type: "reasoning", id: chunk.id, content: chunk.text ? [{ type: "input_text", text: chunk.text }] : [], ...sealed };
      }
      case "opaque":
        return chunk.provider === "openai" ? { type: "unknown", providerData: chunk.json } : undefined;
      case "text":
      case "refusal": {
        if (role !== "assistant") return { ...said(role, [{ type: "text", text: chunk.text }]) };
        const content = chunk.type === "text" ? { type: "output_text", text: chunk.text } : { type: "refusal", refusal: chunk.text };
        return { type: "message", ...of(chunk.id), role, status, content: [content] };
      }
      default:
        return role === "assistant" || !toPart(chunk) ? undefined : { ...said(role, [chunk]) };
    }
  };
  return item() as AgentInputItem | undefined;
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
