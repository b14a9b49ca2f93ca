// The native API of `convo serve`.

import { BusyError, ConnectionError, ConvoError, NotFoundError, RateLimitError, ServerError, UnauthorizedError, refused } from "./errors.js";
import { events } from "./events.js";
import type { components, operations } from "./openapi.js";
import type { Entry, Message, StoredMessage } from "./transcript.js";
import { uuid } from "./uuid.js";

type Schemas = components["schemas"];
type Parameters<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;

export type Described = Schemas["Described"];
export type Receipt = Schemas["Receipt"];
export type Appended = Schemas["Appended"];
export type Ingested = Schemas["Ingested"];
export type NextStep = Schemas["NextStep"];
export type Redaction = Schemas["Redaction"];
export type Stopped = Schemas["AnswersStopped"];
export type Checked = Schemas["Checked"];
export type Place = Schemas["Found"]["items"][number];
export type UnfinishedMessage = Schemas["Unfinished"]["messages"][number];
export type UsageRow = Schemas["UsagePage"]["rows"][number];
export type ReportLine = Schemas["Prompt"]["report"][number];
export type Tool = NonNullable<Schemas["PromptTools"]["tools"]>[number];
/** A rendered request, and what was done to the conversation for it. */
export type Prompt<Request = Record<string, unknown>> = Omit<Schemas["Prompt"], "request"> & { request: Request };

export interface ClientOptions {
  /** The server's address. By default http://127.0.0.1:8080. */
  url?: string;
  /** A key, for servers that need one. */
  key?: string;
  fetch?: typeof fetch;
  /** How often a call is repeated that failed and may be repeated. By default 2. */
  retries?: number;
}

/** What every call takes. */
export interface CallOptions {
  signal?: AbortSignal;
}

export interface AppendOptions extends CallOptions {
  /** The last seq that the conversation must have, a cursor at its end, or `new`. */
  expect?: number | string;
  /** The same key and content twice is stored once. One is made if none is given. */
  idempotencyKey?: string;
  /** `buffered`: answered before it is on disk. */
  durability?: "durable" | "buffered";
  /** What changes of the conversation in the same moment: all or nothing with the messages. */
  title?: string;
  tags?: { add?: string[]; remove?: string[] };
  metadata?: Record<string, unknown>;
}

export type ListOptions = Omit<Parameters<"listNativeConversations">, "tag" | "metadata"> &
  CallOptions & {
    /** Conversations that have all of these. */
    tags?: string[];
    /** Conversations whose metadata have these fields. */
    metadata?: Record<string, unknown>;
  };
export type PromptOptions = Parameters<"getPrompt"> & CallOptions & { tools?: Tool[] };
export type IngestOptions = Omit<Parameters<"ingestAnswer">, "expect"> &
  CallOptions & { expect?: number | string; idempotencyKey?: string };
export type Body = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string> | Uint8Array | string;

type Query = Record<string, string | number | boolean | string[] | undefined>;

interface Call extends CallOptions {
  query?: Query;
  headers?: Record<string, string | undefined>;
  json?: unknown;
  body?: BodyInit;
  /** A repetition is harmless. */
  repeatable?: boolean;
}

/** Nothing was done: the server had no room for the request. */
const isNotBegun = (error: unknown): boolean => error instanceof BusyError || error instanceof RateLimitError;

/** Waits longer than this are the caller's. */
const LONGEST_WAIT = 60;

const pause = (seconds: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
  });

/** A growing time, so that clients do not come together. */
const backoff = (attempt: number) => Math.min(0.1 * 2 ** attempt, 5) * (0.5 + Math.random());

async function* pieces(body: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const piece of body) yield typeof piece === "string" ? encoder.encode(piece) : piece;
}

const streamed = (body: AsyncIterable<Uint8Array | string>): ReadableStream<Uint8Array> => {
  const iterator = pieces(body);
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: async () => void (await iterator.return(undefined)),
  });
};

/** A client of one server. A conversation is named by its key, or by its id. */
export class Client {
  readonly url: string;
  readonly #key: string | undefined;
  readonly #fetch: typeof fetch;
  readonly #retries: number;

  constructor({ url = "http://127.0.0.1:8080", key, fetch: own, retries = 2 }: ClientOptions = {}) {
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#fetch = own ?? ((...call) => fetch(...call));
    this.#retries = retries;
  }

  /** Creates a conversation without messages. Appending to a key creates it, too. */
  create(options: Schemas["NativeNew"] & CallOptions = {}): Promise<Described> {
    const { signal, ...json } = options;
    return this.#json("POST", "conversations", { json, signal });
  }

  describe(conversation: string, options: CallOptions = {}): Promise<Described> {
    return this.#json("GET", path(conversation), { ...options, repeatable: true });
  }

  /** The conversations, newest activity first. One that moves meanwhile may be missed or repeated. */
  async *list(options: ListOptions = {}): AsyncGenerator<Described> {
    let after = options.after;
    do {
      const page = await this.listPage({ ...options, after });
      yield* page.items;
      after = page.next;
    } while (after !== undefined);
  }

  /** A page of the list. `next` is the `after` of the one that follows. */
  listPage({ signal, tags, metadata = {}, ...rest }: ListOptions = {}): Promise<Schemas["ConversationPage"]> {
    const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
    const fields = Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`metadata[${name}]`, text(value)]));
    return this.#json("GET", "conversations", { query: { ...rest, ...fields, tag: tags }, signal, repeatable: true });
  }

  /** Erases a conversation. */
  async delete(conversation: string, options: CallOptions = {}): Promise<void> {
    await this.#json("DELETE", path(conversation), options);
  }

  /** Appends messages: all or none, on disk when it resolves. */
  append(conversation: string, messages: Message | Message[], options: AppendOptions = {}): Promise<Appended> {
    const { expect, idempotencyKey = uuid(), durability, signal, ...change } = options;
    const isChanging = Object.values(change).some((value) => value !== undefined);
    const json = isChanging ? { messages: [messages].flat(), ...change } : messages;
    const headers = { "idempotency-key": idempotencyKey };
    return this.#json("POST", path(conversation, "messages"), {
      query: { expect, durability }, headers, json, signal, repeatable: true,
    });
  }

  /** The messages, in order. */
  async *messages(
    conversation: string, { from = 0, limit, signal }: { from?: number; limit?: number } & CallOptions = {},
  ): AsyncGenerator<StoredMessage> {
    for (let next: number | undefined = from; next !== undefined; ) {
      const page: Schemas["Messages"] = await this.#json("GET", path(conversation, "messages"), {
        query: { from: next, limit }, signal, repeatable: true,
      });
      yield* page.messages as unknown as StoredMessage[];
      next = page.next;
    }
  }

  /** The newest messages, up to 100, oldest first. Fewer if they are large. */
  async newest(conversation: string, count: number, { signal }: CallOptions = {}): Promise<StoredMessage[]> {
    const query = { newest: count };
    const page: Schemas["Messages"] = await this.#json("GET", path(conversation, "messages"), { query, signal, repeatable: true });
    return page.messages as unknown as StoredMessage[];
  }

  message(conversation: string, index: number, options: CallOptions = {}): Promise<StoredMessage> {
    return this.#json("GET", path(conversation, `messages/${index}`), { ...options, repeatable: true });
  }

  /** The log, to its present end. */
  async *entries(
    conversation: string, { since = 0, limit, signal }: { since?: number | string; limit?: number } & CallOptions = {},
  ): AsyncGenerator<Entry> {
    for (;;) {
      const page = await this.entriesPage(conversation, { since, limit, signal });
      if (page.entries.length === 0) return;
      yield* page.entries;
      since = page.cursor;
    }
  }

  /** A page of the log. `cursor` is the `since` of what follows; it knows a conversation from one that had its key before. */
  entriesPage(
    conversation: string, { since = 0, limit, signal }: { since?: number | string; limit?: number } & CallOptions = {},
  ): Promise<{ entries: Entry[]; cursor: string }> {
    return this.#json("GET", path(conversation, "entries"), { query: { since, limit }, signal, repeatable: true });
  }

  /**
   * The log, and then what is written, each entry once and in order. It connects again by itself, and ends when the
   * conversation is deleted or `signal` aborts. `patience`: so many seconds it may be without a server.
   */
  async *follow(
    conversation: string, { since = 0, signal, patience = 30 }: { since?: number | string; patience?: number } & CallOptions = {},
  ): AsyncGenerator<Entry> {
    let last: string | undefined;
    let cursor: string | undefined;
    let wasThere = false;
    let lost: number | undefined;
    for (let attempt = 0; ; attempt++) {
      let hasFailed = false;
      try {
        if (cursor === undefined) {
          // A seq does not know its conversation: one that is deleted and made again would be followed as if it were the same.
          const { cursor: found } = await this.entriesPage(conversation, { since, limit: 1, signal });
          cursor = `${Number.parseInt(String(since), 10)}${found.slice(found.indexOf("-"))}`;
          wasThere = true;
        }
        const headers = { "last-event-id": last, accept: "text/event-stream" };
        const query = { since: cursor };
        const body = await this.#call("GET", path(conversation, "events"), { query, headers, signal }, async ({ body }) => body);
        wasThere = true;
        lost = undefined;
        for await (const { name, id, data } of events(body!)) {
          const value = JSON.parse(data);
          if (name !== "close") {
            last = id ?? last;
            attempt = 0;
            yield value;
          } else if (value.reason === "deleted") return;
          else if (value.reason === "unauthorized") {
            throw new UnauthorizedError({ message: "the key was revoked", code: "invalid_api_key" });
          } else if (value.reason === "error") {
            hasFailed = true;
            throw new ServerError({ message: "the conversation could not be read on", code: "internal" });
          }
        }
      } catch (error) {
        // It was deleted while there was no connection.
        if (signal?.aborted || (wasThere && error instanceof NotFoundError)) return;
        const mayPass = !hasFailed && (error instanceof ConnectionError || error instanceof ServerError || isNotBegun(error)
          || (error instanceof ConvoError ? error.retryAfter !== undefined : error instanceof TypeError));
        lost ??= Date.now();
        if (!mayPass || Date.now() - lost > patience * 1000) throw error instanceof ConvoError ? error : this.#noAnswer(error);
      }
      await pause(backoff(attempt), signal).catch(() => {});
      if (signal?.aborted) return;
    }
  }

  /** Stores a provider's answer while it arrives. It resolves when the answer has ended. */
  ingest(conversation: string, body: Body, options: IngestOptions): Promise<Ingested> {
    const { signal, idempotencyKey, ...query } = options;
    const headers = { "idempotency-key": idempotencyKey, "content-type": "application/octet-stream" };
    const whole = typeof body === "string" || body instanceof Uint8Array;
    const sent = whole || body instanceof ReadableStream ? body : streamed(body);
    const repeatable = whole && idempotencyKey !== undefined;
    return this.#json("POST", path(conversation, "ingest"), { query, headers, body: sent as BodyInit, signal, repeatable });
  }

  /** The request for a target, and the report of what was done for it. */
  prompt<Request = Record<string, unknown>>(conversation: string, options: PromptOptions): Promise<Prompt<Request>> {
    const { signal, tools, ...query } = options;
    const json = tools && { tools };
    return this.#json(tools ? "POST" : "GET", path(conversation, "prompt"), { query, json, signal, repeatable: true });
  }

  /** What an agent must do now. */
  next(conversation: string, options: CallOptions = {}): Promise<NextStep> {
    return this.#json("GET", path(conversation, "next"), { ...options, repeatable: true });
  }

  /** A conversation that shares the entries up to `at_seq`, or all. */
  fork(conversation: string, options: Schemas["NewFork"] & CallOptions = {}): Promise<Described> {
    const { signal, ...json } = options;
    return this.#json("POST", path(conversation, "fork"), { json, signal });
  }

  /** Hides the messages from this index on. */
  rewind(conversation: string, to: number, options: CallOptions = {}): Promise<Receipt> {
    return this.#json("POST", path(conversation, "rewind"), { json: { to }, ...options });
  }

  /** Hides a message, or one chunk of it. */
  remove(conversation: string, index: number, { chunk, signal }: { chunk?: number } & CallOptions = {}): Promise<Receipt> {
    return this.#json("DELETE", path(conversation, `messages/${index}`), { query: { chunk }, signal });
  }

  /** Erases what a message says, or one chunk of it. */
  redact(conversation: string, index: number, { chunk, signal }: { chunk?: number } & CallOptions = {}): Promise<Redaction> {
    return this.#json("POST", path(conversation, `messages/${index}/redact`), { query: { chunk }, signal });
  }

  setTitle(conversation: string, title: string | null, options: CallOptions = {}): Promise<Receipt> {
    return this.#json("PUT", path(conversation, "title"), { json: { title }, ...options });
  }

  setMetadata(conversation: string, metadata: Record<string, unknown>, options: CallOptions = {}): Promise<Receipt> {
    return this.#json("PUT", path(conversation, "metadata"), { json: metadata, ...options });
  }

  /** Changes the tags, and gives all of them. */
  async changeTags(conversation: string, change: { add?: string[]; remove?: string[] }, options: CallOptions = {}): Promise<string[]> {
    const { tags }: Schemas["Tags"] = await this.#json("POST", path(conversation, "tags"), { json: change, ...options });
    return tags;
  }

  /** A text that prompts have in the place of the messages up to this index. */
  summarize(conversation: string, through: number, text: string, options: CallOptions = {}): Promise<Receipt> {
    return this.#json("POST", path(conversation, "summaries"), { json: { through, text }, ...options });
  }

  /** Stops the answers that are being written to it. */
  stop(conversation: string, options: CallOptions = {}): Promise<Stopped> {
    return this.#json("POST", path(conversation, "stop"), { ...options, repeatable: true });
  }

  /** Where an item of a provider is. */
  async find(item: string, options: CallOptions = {}): Promise<Place[]> {
    const { items }: Schemas["Found"] = await this.#json("GET", "find", { query: { item }, ...options, repeatable: true });
    return items;
  }

  /** Whether a target accepts a request. */
  check(target: string, request: unknown, options: CallOptions = {}): Promise<Checked> {
    return this.#json("POST", "check", { query: { for: target }, json: request, ...options, repeatable: true });
  }

  /** Turns a refused request into an accepted one. `from` is the request's wire, if it is another one, `model` what it goes to. */
  repair<Request = unknown>(
    target: string, request: Request, { from, model, signal }: { from?: string; model?: string } & CallOptions = {},
  ): Promise<{ request: Request; report: ReportLine[] }> {
    return this.#json("POST", "repair", { query: { for: target, from, model }, json: request, signal, repeatable: true });
  }

  /** Tokens of the stored answers: of all of them, however many pages that takes. */
  async usage(
    { signal, ...query }: Omit<Parameters<"getUsage">, "tag" | "after"> & { tag?: string[] } & CallOptions = {},
  ): Promise<UsageRow[]> {
    const sums = new Map<string, UsageRow>();
    let after: string | undefined;
    do {
      const page: Schemas["UsagePage"] = await this.#json("GET", "usage", { query: { ...query, after }, signal, repeatable: true });
      for (const row of page.rows) {
        const apart = JSON.stringify([row.day, row.model, row.conversation, row.error]);
        sums.set(apart, addedUp(sums.get(apart), row));
      }
      after = page.next;
    } while (after !== undefined);
    return [...sums.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
  }

  /** Messages that are being written, or were interrupted. */
  async unfinished(options: CallOptions = {}): Promise<UnfinishedMessage[]> {
    const { messages }: Schemas["Unfinished"] = await this.#json("GET", "unfinished", { ...options, repeatable: true });
    return messages;
  }

  async #json<Answer>(method: string, to: string, call: Call): Promise<Answer> {
    return this.#call(method, to, call, (response) => response.json());
  }

  async #call<Answer>(method: string, to: string, call: Call, read: (response: Response) => Promise<Answer>): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, to, call, read);
      } catch (error) {
        const isStream = call.body instanceof ReadableStream;
        if (!(error instanceof ConvoError) || attempt >= this.#retries || isStream) throw error;
        // What is before the server has no code: it may have none at the moment.
        const mayPass = error.status === 0 || error.retryAfter !== undefined || (!error.code && [502, 503, 504].includes(error.status));
        const isHarmless = isNotBegun(error) || (call.repeatable && mayPass);
        const wait = error.retryAfter ?? backoff(attempt);
        if (!isHarmless || wait > LONGEST_WAIT) throw error;
        await pause(wait, call.signal);
      }
    }
  }

  async #once<Answer>(
    method: string, to: string, { query = {}, headers = {}, json, body, signal }: Call, read: (response: Response) => Promise<Answer>,
  ): Promise<Answer> {
    const url = new URL(`${this.url}/api/v1/${to}`);
    for (const [name, value] of Object.entries(query)) {
      for (const one of [value].flat()) if (one !== undefined) url.searchParams.append(name, String(one));
    }
    const sent = new Headers();
    if (this.#key !== undefined) sent.set("authorization", `Bearer ${this.#key}`);
    if (json !== undefined) sent.set("content-type", "application/json");
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) sent.set(name, value);
    const init: RequestInit & { duplex?: "half" } = { method, headers: sent, signal };
    if (json !== undefined) init.body = JSON.stringify(json);
    else if (body !== undefined) init.body = body;
    if (body instanceof ReadableStream) init.duplex = "half";
    try {
      const response = await this.#fetch(url, init);
      if (!response.ok) throw await refused(response);
      return await read(response);
    } catch (cause) {
      if (signal?.aborted || cause instanceof ConvoError) throw cause;
      throw this.#noAnswer(cause);
    }
  }

  #noAnswer(cause: unknown): ConnectionError {
    return new ConnectionError({ message: `no answer of ${this.url}: ${reason(cause)}` }, 0, undefined, undefined, { cause });
  }
}

/** Two rows that are counted by the same. */
function addedUp(known: UsageRow | undefined, row: UsageRow): UsageRow {
  if (known === undefined) return row;
  const sum = (value: unknown, before: unknown) => (typeof value === "number" ? value + (before as number) : value);
  const fields = Object.entries(row).map(([name, value]) => [name, sum(value, known[name as keyof UsageRow])]);
  return Object.fromEntries(fields) as UsageRow;
}

/** What `fetch` failed of is often one level deeper. */
function reason(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message ? `${message}: ${cause.message}` : message;
}

function path(conversation: string, rest?: string): string {
  // An address takes the dots for steps in a path, and has no half characters.
  if (/^\.{0,2}$|\p{Surrogate}/u.test(conversation)) throw new TypeError(`no conversation can be named ${JSON.stringify(conversation)} in an address`);
  const name = `conversations/${encodeURIComponent(conversation)}`;
  return rest ? `${name}/${rest}` : name;
}
