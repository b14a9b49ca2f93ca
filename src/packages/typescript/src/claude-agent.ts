// `SessionStore` of the Claude Agent SDK: each line of a transcript is a message, which has the line as it is in its field `claude_code`.
// What no model was sent is a message without content, which no prompt has. The package for Python stores the same.

import { foldSessionSummary } from "@anthropic-ai/claude-agent-sdk";
import type { SessionKey, SessionStore, SessionStoreEntry, SessionSummaryEntry } from "@anthropic-ai/claude-agent-sdk";
import type { Client, Described } from "./client.js";
import { ConflictError, NotFoundError, StaleCursorError, StaleHeadError } from "./errors.js";
import { keep, kept, readable } from "./kept.js";
import type { Chunk, Message } from "./transcript.js";

/** The field of a message that has its line. */
const LINE = "claude_code";
/** Conversations that are described at one time. */
const AT_ONCE = 8;
/** The most sessions of which it is remembered what is stored. */
const KNOWN = 256;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

const projectTag = (project: string) => `claude-agent:${project}`;
const sessionTag = (session: string) => `session:${session}`;
const MAIN = "kind:main";
const AGENT = "kind:agent";

/** What is known of a stored session. An append holds only if nothing else was written since. */
interface Known {
  /** It may be deleted, and made again: what a cursor has beside the seq. */
  incarnation: string;
  seq: number;
  nextIndex: number;
  uuids: Set<string>;
  /** The answers of which the tokens are stored: one is several lines, each with the tokens of all. */
  counted: Set<string>;
  metadata: Record<string, unknown>;
}

type Fields = Record<string, unknown>;

/**
 * For `query({ options: { sessionStore } })`: a conversation for each session, and one for each of its sub-agents, with the tag
 * `started-by:ID`.
 */
export class ConvoSessionStore implements SessionStore {
  readonly #known = new Map<string, Known>();
  /** The last append to each: they go one after the other. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(readonly client: Client) {}

  append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const name = conversationKey(key);
    const turn = (this.#turns.get(name) ?? Promise.resolve()).catch(() => {}).then(() => this.#append(name, key, entries));
    this.#turns.set(name, turn);
    return turn.finally(() => this.#turns.get(name) === turn && this.#turns.delete(name));
  }

  async #append(name: string, key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    while (entries.length > 0) {
      const known = this.#known.get(name) ?? (await this.#read(name));
      try {
        return await this.#write(name, key, known, entries);
      } catch (error) {
        // Another process wrote to it: what is new decides what of this is stored already.
        if (error instanceof StaleHeadError || error instanceof ConflictError) await this.#read(name);
        // It was deleted since, and perhaps made again.
        else if (!(error instanceof NotFoundError || error instanceof StaleCursorError) || !this.#known.delete(name)) throw error;
      }
    }
  }

  async #write(name: string, key: SessionKey, known: Known | undefined, entries: SessionStoreEntry[]): Promise<void> {
    const uuids = new Set(known?.uuids);
    const lines = entries.filter(({ uuid }) => typeof uuid !== "string" || (!uuids.has(uuid) && uuids.add(uuid)));
    if (lines.length === 0) {
      // They are of the session that is known: it may have been deleted since, and made again.
      if (known && (await this.#incarnation(name)) !== known.incarnation) {
        throw new StaleCursorError({ message: "the session was made again", code: "stale_cursor" });
      }
      return;
    }
    const counted = new Set(known?.counted);
    let metadata: Record<string, unknown> = known?.metadata ?? {};
    let title: string | undefined;
    if (key.subpath === undefined) {
      const data = summaryOf(metadata);
      const before = data && { sessionId: key.sessionId, mtime: 0, data };
      metadata = { ...metadata, claude_agent: keep(renamed(foldSessionSummary(before, key, lines).data, snakeCase)) };
      title = lines.map(({ customTitle }) => customTitle).findLast((title) => typeof title === "string") as string | undefined;
    }
    const isChanged = !known || JSON.stringify(metadata) !== JSON.stringify(known.metadata);
    const isFirst = !known || (key.subpath === undefined && known.metadata.claude_agent === undefined);
    const receipt = await this.client.append(name, lines.map((line) => toMessage(line, counted)), {
      expect: known ? `${known.seq}-${known.incarnation}` : "new",
      title: title ? readable(title) : undefined,
      tags: isFirst ? { add: await this.#tags(key) } : undefined,
      metadata: isChanged ? metadata : undefined,
    });
    const nextIndex = receipt.message_indexes.at(-1)! + 1;
    const incarnation = known?.incarnation ?? (await this.#incarnation(name));
    this.#keep(name, { incarnation, seq: receipt.last_seq, nextIndex, uuids, counted, metadata });
  }

  /** The sessions that were used last are known. */
  #keep(name: string, known: Known) {
    this.#known.delete(name);
    this.#known.set(name, known);
    if (this.#known.size > KNOWN) this.#known.delete(this.#known.keys().next().value!);
  }

  async #tags({ projectKey, sessionId, subpath }: SessionKey): Promise<string[]> {
    const session = sessionTag(sessionId);
    if (subpath === undefined) return [projectTag(projectKey), session, MAIN];
    const main = conversationKey({ projectKey, sessionId });
    // What a sub-agent says may come first.
    const parent = (await this.#described(main)) ?? (await this.client.create({ key: main }));
    return [session, AGENT, `started-by:${parent.conversation}`];
  }

  async #described(name: string): Promise<Described | undefined> {
    try {
      return await this.client.describe(name);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  async #incarnation(name: string): Promise<string> {
    const { cursor } = await this.client.entriesPage(name, { limit: 1 });
    return cursor.slice(cursor.indexOf("-") + 1);
  }

  /** What is stored, as far as it is not known. */
  async #read(name: string): Promise<Known | undefined> {
    let incarnation: string;
    let stored: Described;
    try {
      incarnation = await this.#incarnation(name);
      stored = await this.client.describe(name);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      this.#known.delete(name);
      return undefined;
    }
    const before = this.#known.get(name);
    const nothing = { incarnation, seq: 0, nextIndex: 0, uuids: new Set<string>(), counted: new Set<string>(), metadata: {} };
    const known: Known = before?.incarnation === incarnation ? before : nothing;
    for await (const message of this.client.messages(name, { from: known.nextIndex, limit: 1000 })) {
      if (message.first_seq > stored.last_seq) break;
      known.nextIndex = message.index + 1;
      const uuid = lineOf(message)?.uuid;
      if (typeof uuid === "string") known.uuids.add(uuid);
      if (message.usage != null && message.step_id !== undefined) known.counted.add(message.step_id);
    }
    // Only what was read whole is known.
    known.seq = stored.last_seq;
    known.metadata = stored.metadata ?? {};
    this.#keep(name, known);
    return known;
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const lines: SessionStoreEntry[] = [];
    try {
      for await (const message of this.client.messages(conversationKey(key), { limit: 1000 })) {
        const line = lineOf(message);
        if (line) lines.push(line);
      }
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
    return lines.length > 0 ? lines : null;
  }

  /** What a person tagged so, or forked, is no session of its own. */
  async #main(projectKey: string): Promise<{ sessionId: string; item: Described }[]> {
    const start = conversationKey({ projectKey, sessionId: "" });
    const found = [];
    for await (const item of this.client.list({ tags: [projectTag(projectKey)], limit: 1000 })) {
      if (item.key?.startsWith(start)) found.push({ sessionId: decodeURIComponent(item.key.slice(start.length)), item });
    }
    return found;
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    return (await this.#main(projectKey)).map(({ sessionId, item }) => ({ sessionId, mtime: mtime(item) }));
  }

  async listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const waiting = await this.#main(projectKey);
    const found: SessionSummaryEntry[] = [];
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const { sessionId, item } = next;
        const described = await this.#described(item.conversation);
        const data = summaryOf(described?.metadata);
        if (described && data) found.push({ sessionId, mtime: mtime(described), data });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return found;
  }

  /** A session takes its sub-agents along. */
  async delete(key: SessionKey): Promise<void> {
    const name = conversationKey(key);
    if (key.subpath === undefined) for (const subpath of await this.listSubkeys(key)) await this.delete({ ...key, subpath });
    try {
      await this.client.delete(name);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    this.#known.delete(name);
  }

  async listSubkeys({ projectKey, sessionId }: { projectKey: string; sessionId: string }): Promise<string[]> {
    const start = `${conversationKey({ projectKey, sessionId })}/`;
    const found = [];
    for await (const { key } of this.client.list({ tags: [sessionTag(sessionId), AGENT], limit: 1000 })) {
      if (key?.startsWith(start)) found.push(key.slice(start.length));
    }
    return found;
  }
}

const escaped = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

/** The key of the conversation that a session, or a sub-agent of it, is. */
export function conversationKey({ projectKey, sessionId, subpath }: SessionKey): string {
  const main = `claude-agent/${escaped(projectKey)}/${escaped(sessionId)}`;
  return subpath === undefined ? main : `${main}/${subpath}`;
}

/** The names of a summary are stored as the SDK for Python has them. */
const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camelCase = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const renamed = (fields: Fields, name: (name: string) => string): Fields =>
  Object.fromEntries(Object.entries(fields).map(([field, value]) => [name(field), value]));

function summaryOf(metadata: Fields | undefined): Fields | undefined {
  const data = kept(metadata?.claude_agent as Fields | string | undefined);
  return data && renamed(data, camelCase);
}

const mtime = ({ last_activity }: Described) => Date.parse(last_activity);

function toMessage(line: SessionStoreEntry, counted: Set<string>): Message {
  const { type: kind, message: said, timestamp, uuid, isApiErrorMessage } = line;
  let message: Message = { role: "system", chunks: [] };
  if ((kind === "user" || kind === "assistant") && isObject(said)) {
    message = { role: kind, chunks: toChunks(said.content, isApiErrorMessage === true) };
    if (kind === "assistant") {
      message.provider = "anthropic";
      Object.assign(message, text("model", said.model), text("step_id", said.id));
    }
    if (typeof said.stop_reason === "string") {
      message.finish_reason = said.stop_reason;
      if (message.step_id !== undefined && !counted.has(message.step_id) && said.usage != null) {
        counted.add(message.step_id);
        message.usage = said.usage;
      }
    }
  }
  if (typeof timestamp === "string" && TIME.test(timestamp)) message.created_at = timestamp;
  return { ...readable({ ...message, ...text("id", uuid) }), [LINE]: keep(line) };
}

const lineOf = (message: Message) => kept(message[LINE] as SessionStoreEntry | string | undefined);

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

const text = (name: string, value: unknown) => (typeof value === "string" ? { [name]: value } : {});

function toChunks(content: unknown, isError: boolean): Chunk[] {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return (Array.isArray(blocks) ? blocks : []).filter(isObject).flatMap((block): Chunk[] => {
    const { type, id, name, tool_use_id } = block;
    const said = (field: string) => typeof block[field] === "string";
    if (type === "text" && said("text")) {
      return [isError ? { type: "error", message: block.text as string } : { type, text: block.text as string }];
    }
    if (type === "thinking" && said("thinking")) return [{ type, text: block.thinking as string, ...text("signature", block.signature) }];
    if (type === "redacted_thinking" && said("data")) return [{ type: "thinking", text: "", redacted: block.data as string }];
    if (type === "tool_use" && typeof id === "string" && typeof name === "string") {
      return [{ type: "tool_call", id, name, arguments: JSON.stringify(block.input ?? null) }];
    }
    if (type === "tool_result" && typeof tool_use_id === "string") {
      const failed = block.is_error === true ? { is_error: true } : {};
      return [{ type, tool_call_id: tool_use_id, content: toResult(block.content), ...failed }];
    }
    const media = toMedia(block);
    if (media) return [media];
    return typeof type === "string" ? [{ type: "opaque", provider: "anthropic", kind: type, json: block }] : [];
  });
}

function toResult(content: unknown): string | { type: string; [field: string]: unknown }[] {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  return content.map((block: unknown) => {
    if (isObject(block) && block.type === "text" && typeof block.text === "string") return { type: "text", text: block.text };
    return (isObject(block) && toMedia(block)) || { type: "json", json: block };
  });
}

function toMedia(block: Fields): Chunk | undefined {
  if ((block.type !== "image" && block.type !== "document") || !isObject(block.source)) return undefined;
  const isImage = block.type === "image";
  const { type, media_type: mime_type, data, url } = block.source as Record<string, string | undefined>;
  if (type === "url" && typeof url === "string") return isImage ? { type: "image", url } : { type: "file", url };
  if (type !== "base64" || typeof mime_type !== "string" || typeof data !== "string") return undefined;
  if (isImage) return { type: "image", url: `data:${mime_type};base64,${data}`, mime_type };
  return { type: "file", data, mime_type, ...text("name", block.title) };
}
