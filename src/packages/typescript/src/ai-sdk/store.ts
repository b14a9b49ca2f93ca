// A chat's messages, its turns, and the streams that pages read.

import { createUIMessageStreamResponse, generateId } from "ai";
import type { UIMessage, UIMessageChunk } from "ai";
import type { Client } from "../client.js";
import { NotFoundError, StaleHeadError } from "../errors.js";
import type { Message, StoredMessage } from "../transcript.js";
import type { AnswerEnd, Part, Update } from "./form.js";
import { asChunk, callOf, closing, endOf, marker, ofChunk, ofMessage, said, toMessage, toWhole } from "./form.js";
import { Ended, Recorder } from "./recorder.js";
import type { Shown } from "./replay.js";
import { Replay, replayed, shown, updated } from "./replay.js";

/** What `useChat` posts, with the transport of this package or with its own. */
export interface ChatRequest<M extends UIMessage = UIMessage> {
  id: string;
  /** All messages, or the newest ones. */
  messages?: M[];
  /** In place of `messages`: the newest one. */
  message?: M;
  trigger?: "submit-message" | "regenerate-message";
  messageId?: string;
  /** The id of the message before the first of `messages`; `null` if there is none. */
  parentId?: string | null;
}

/** The chat is not what the page shows: it went on in another window, or an answer is being written. */
export class ChatConflictError extends Error {
  override name = "ChatConflictError";
}

export interface ChatStoreOptions {
  /**
   * Keeps what a regeneration or an edit replaces as a conversation of its own, with the tag `branch-of:ID`. Without it the log has
   * it, hidden.
   */
  branches?: boolean;
  generateId?: () => string;
  /** So many seconds a page that resumes waits for a store that has gone, before it is shown an error. By default 5. */
  patience?: number;
}

interface State {
  shown: Shown[];
  lastSeq: number;
  lastActivity: number;
}

const CONFLICT = "This chat went on in another window. Reload it to see what was said.";
const STOP_TAKES = 10_000;
/** So many milliseconds pass at most between a page's messages and its stream. */
const NEWS = 5_000;

export class ChatStore<M extends UIMessage = UIMessage> {
  constructor(readonly client: Client, readonly options: ChatStoreOptions = {}) {}

  /** The messages of a chat, as `useChat` takes them. */
  async load(chat: string): Promise<M[]> {
    const { shown } = await this.#read(chat);
    // A page would go on with a call's input that is half there; the stream has it from its beginning.
    return shown.map(({ message, streaming }) => {
      if (streaming === undefined) return message as M;
      return { ...message, parts: message.parts.filter((part) => !isHalfCall(part as Part)) } as M;
    });
  }

  /** Stores messages as they are, such as those of another store. */
  async append(chat: string, messages: M[]): Promise<void> {
    const all = messages.flatMap((message) => (message.role === "assistant" ? toWhole(message) : [toMessage(message)]));
    if (all.length > 0) await this.client.append(chat, all);
  }

  /** Stores what a page says, and begins the answer to it. */
  async turn(request: ChatRequest<M>): Promise<Turn<M>> {
    const { id: chat, trigger = "submit-message" } = request;
    const posted = request.messages ?? (request.message ? [request.message] : []);
    const last = posted.at(-1);
    let state = await this.#read(chat);
    const open = state.shown.at(-1);
    if (open?.streaming !== undefined) {
      if (!follows(request, posted, open.message.id, state.shown.at(-2)?.message.id)) throw new ChatConflictError(CONFLICT);
      // The page has left this answer.
      await this.stop(chat);
      await this.#ended(chat);
      state = await this.#read(chat);
    }
    let said: M[] = [];
    let keep = state.shown.length;
    let answer = this.options.generateId?.() ?? generateId();
    const updates: Message[] = [];
    const at = state.shown.findIndex(({ message }) => message.id === last?.id);
    if (!last) {
      if (keep === 0) throw new ChatConflictError("There is nothing to answer.");
    } else if (trigger === "regenerate-message") {
      if (at < 0) throw new ChatConflictError(CONFLICT);
      keep = at + 1;
    } else if (last.role === "assistant") {
      if (at < 0 || at !== keep - 1) throw new ChatConflictError(CONFLICT);
      const known = state.shown[at]!;
      answer = last.id;
      for (const update of changes(known.message, last)) {
        updates.push(toUpdate(answer, update));
        known.message = updated(known.message, update);
      }
    } else if (at >= 0) {
      const isSame = JSON.stringify(toMessage(last)) === JSON.stringify(toMessage(state.shown[at]!.message));
      keep = at + (isSame ? 1 : 0);
      if (!isSame) said = [last];
    } else {
      const isNew = (message: M) => !state.shown.some((one) => one.message.id === message.id);
      const from = posted.findLastIndex((message) => message.role !== "user" || !isNew(message)) + 1;
      said = posted.slice(from);
      const parent = from > 0 ? posted[from - 1]!.id : request.parentId;
      const isKnown = parent !== undefined;
      if (isKnown && parent !== (state.shown.at(-1)?.message.id ?? null)) throw new ChatConflictError(CONFLICT);
    }
    const recorder = new Recorder(this.client, chat, answer);
    try {
      let { lastSeq } = state;
      const cut = state.shown[keep];
      if (cut) lastSeq = await this.#branch(chat, cut);
      const messages = [...updates, ...said.map(toMessage)];
      if (messages.length > 0) lastSeq = (await this.client.append(chat, messages, { expect: lastSeq || "new" })).last_seq;
      await recorder.begin(lastSeq);
    } catch (error) {
      if (error instanceof StaleHeadError) throw new ChatConflictError(CONFLICT, { cause: error });
      throw error;
    }
    const before = state.shown.slice(0, keep).map(({ message }) => message as M);
    return new Turn(recorder, [...before, ...said]);
  }

  /**
   * The answer that is being written, from its beginning, also if it has just ended: a page may have loaded the messages before that.
   * Undefined if there is none.
   */
  async resume(chat: string): Promise<ReadableStream<UIMessageChunk> | undefined> {
    const { shown, lastActivity } = await this.#read(chat);
    const found = shown.at(-1);
    if (!found || (found.streaming === undefined && !(isReplayed(found) && Date.now() - lastActivity < NEWS))) return undefined;
    const aborted = new AbortController();
    const parts = found.streaming === undefined ? replayed(found)[Symbol.iterator]() : this.#followed(chat, found, aborted.signal);
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(asChunk(value));
      },
      cancel: () => aborted.abort(),
    });
  }

  /** Stops the answer that is being written, wherever that is. */
  async stop(chat: string): Promise<boolean> {
    const found = await this.#newest(chat);
    if (found?.streaming === undefined) return false;
    const { id } = found.message;
    await this.client.append(chat, { role: "assistant", id, chunks: [marker({ part: { type: "abort" } })], ai_sdk: { message: id } });
    await this.client.stop(chat);
    return true;
  }

  async #read(chat: string): Promise<State> {
    try {
      const { last_seq, last_activity } = await this.client.describe(chat);
      const messages = [];
      for await (const message of this.client.messages(chat)) messages.push(message);
      return { shown: await shown(messages), lastSeq: last_seq, lastActivity: Date.parse(last_activity) };
    } catch (error) {
      if (error instanceof NotFoundError) return { shown: [], lastSeq: 0, lastActivity: 0 };
      throw error;
    }
  }

  /** The newest message, if one is being written. */
  async #newest(chat: string): Promise<Shown | undefined> {
    return (await this.#isWritten(chat)) ? (await this.#read(chat)).shown.at(-1) : undefined;
  }

  async #isWritten(chat: string): Promise<boolean> {
    try {
      return (await this.client.newest(chat, 20)).some(({ state }) => state === "streaming");
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  async #ended(chat: string): Promise<void> {
    for (const until = Date.now() + STOP_TAKES; await this.#isWritten(chat); ) {
      if (Date.now() > until) throw new ChatConflictError(CONFLICT);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #branch(chat: string, from: Shown): Promise<number> {
    if (this.options.branches) {
      const { conversation } = await this.client.describe(chat);
      const fork = await this.client.fork(chat);
      await this.client.changeTags(fork.conversation, { add: [`branch-of:${conversation}`] });
    }
    return (await this.client.rewind(chat, from.first)).last_seq;
  }

  /** It is the last message: all that comes is part of it, but what a user says. */
  async *#followed(chat: string, { message, first, since, streaming = 0 }: Shown, signal: AbortSignal): AsyncGenerator<Part> {
    const replay = new Replay();
    const open = new Set<number>();
    const cut = (error: string) => closing({ state: "interrupted", error }, undefined);
    let last = streaming;
    yield { type: "start", messageId: message.id };
    try {
      const entries = this.client.follow(chat, { since, signal, patience: this.options.patience ?? 5 });
      for await (const { kind, message_index: index, chunk_index = 0, chunk, role, finish_reason } of entries) {
        if (index === undefined || index < first || role === "user" || role === "system") continue;
        if (kind === "begin") {
          open.add(index);
          last = Math.max(last, index);
        } else if (chunk && !ofChunk(chunk).update) replay.piece(index, chunk_index, chunk);
        const isEnd = kind === "finish" || kind === "interrupt";
        if (isEnd) {
          open.delete(index);
          replay.end(index, kind === "interrupt" ? "interrupted" : finish_reason);
        }
        yield* replay.take();
        if (isEnd && open.size === 0 && index >= last) return yield* replay.closing();
      }
      if (!signal.aborted) yield* cut("the chat was deleted");
    } catch (error) {
      yield* cut(error instanceof Error ? error.message : String(error));
    }
  }
}

/** A turn of a chat: what was said is stored, and the answer has begun. */
export class Turn<M extends UIMessage = UIMessage> {
  readonly chat: string;
  /** The id of the answer. */
  readonly messageId: string;
  /** The messages for the model, without system messages. Calls that have no result say so. */
  readonly messages: M[];
  /** The text of the system messages that are stored. */
  readonly system: string | undefined;
  /** Aborts when a page stops the answer, or the store fails: for the model. */
  readonly signal: AbortSignal;
  /** Resolves when the answer is stored: for functions that end with their response. */
  done: Promise<void> = Promise.resolve();
  readonly #abort = new AbortController();
  readonly #recorder: Recorder;

  constructor(recorder: Recorder, messages: M[]) {
    this.#recorder = recorder;
    this.chat = recorder.chat;
    this.messageId = recorder.id;
    this.messages = repaired(messages.filter(({ role }) => role !== "system"));
    const system = messages.filter(({ role }) => role === "system").flatMap(({ parts }) => parts);
    this.system = system.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n") || undefined;
    this.signal = this.#abort.signal;
    // A page may stop it before the model is called.
    recorder.onCut = () => this.#abort.abort();
    if (recorder.cut) this.#abort.abort();
  }

  /** Stores the model's stream, to its end, and gives it to the page. */
  stream(source: ReadableStream<UIMessageChunk>): ReadableStream<UIMessageChunk> {
    let controller: ReadableStreamDefaultController<UIMessageChunk> | undefined;
    const page = new ReadableStream<UIMessageChunk>({
      start: (own) => void (controller = own),
      cancel: () => void (controller = undefined),
    });
    this.done = this.#store(source, (part) => controller?.enqueue(asChunk(part))).finally(() => controller?.close());
    return page;
  }

  /** The answer of a route. */
  response(source: ReadableStream<UIMessageChunk>, init: ResponseInit = {}): Response {
    return createUIMessageStreamResponse({ ...init, stream: this.stream(source) } as Parameters<typeof createUIMessageStreamResponse>[0]);
  }

  /** There is no stream: the application failed before. */
  async fail(error: unknown): Promise<void> {
    await this.#recorder.take({ type: "error", errorText: textOf(error) });
    await this.#recorder.end();
  }

  async #store(source: ReadableStream<UIMessageChunk>, show: (part: Part) => void): Promise<void> {
    const recorder = this.#recorder;
    const reader = source.getReader();
    let cut: { error?: unknown } | undefined;
    let finish: Part | undefined;
    let failure: string | undefined;
    let isAborted = false;
    const leave = (error?: unknown) => {
      cut ??= { error };
      this.#abort.abort();
      reader.cancel().catch(() => {});
    };
    recorder.onCut = () => leave(recorder.cut?.error);
    if (recorder.cut) leave(recorder.cut.error);
    try {
      while (!cut) {
        const next = await reader.read().catch((error) => ({ done: false, value: { type: "error", errorText: textOf(error) } as const }));
        if (next.done) break;
        const part = next.value as Part;
        // Pages send the next message when they see an end: it is stored first.
        if (part.type === "finish") finish = part;
        else if (part.type === "error") failure = part.errorText as string;
        else if (part.type === "abort") isAborted = true;
        else show(part.type === "start" ? { ...part, messageId: this.messageId } : part);
        if (!cut) await recorder.take(part);
        if (failure !== undefined && next.done === false && part.type === "error") break;
      }
      if (!cut) await recorder.end();
    } catch (error) {
      leave(error instanceof Ended ? undefined : error);
    }
    let end: AnswerEnd | undefined = failure === undefined ? endOf(finish?.finishReason) : { state: "failed", error: failure };
    if (isAborted) end = { state: "stopped" };
    else if (cut?.error !== undefined) end = { state: "interrupted", error: textOf(cut.error) };
    else if (cut) end = { state: (await this.#isStopped()) ? "stopped" : "interrupted" };
    else if (!end && !finish) end = { state: "interrupted" };
    for (const part of [...recorder.ends(), ...closing(end, finish)]) show(part);
    if (!cut && failure !== undefined) leave();
  }

  /** Whether a page has stopped it. */
  async #isStopped(): Promise<boolean> {
    const newest = await this.#recorder.client.newest(this.chat, 20).catch((): StoredMessage[] => []);
    return newest.some(({ id, chunks }) => id === this.messageId && chunks.some((chunk) => ofChunk(chunk).part?.type === "abort"));
  }
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

const isHalfCall = (part: Part) => callOf(part)?.state === "input-streaming";

/** Whether an answer that has ended may be streamed again. */
const isReplayed = ({ message: { role, parts }, stored }: Shown) =>
  role === "assistant" && !ofMessage(stored[0]!)?.whole && !(parts as Part[]).some(isHalfCall);

/** Whether a page knows of the answer that is being written, and so has left it. */
function follows({ parentId, messageId }: ChatRequest<UIMessage>, posted: UIMessage[], open: string, asked: string | undefined): boolean {
  const isNamed = parentId === open || messageId === open || posted.some(({ id }) => id === open);
  return isNamed || (asked !== undefined && posted.at(-1)?.id === asked);
}

/** What a page did with the calls of an answer: their outputs, and approvals. */
function changes(known: UIMessage, posted: UIMessage): Update[] {
  const calls = new Map((known.parts as Part[]).map((part) => [callOf(part)?.toolCallId, part]));
  return (posted.parts as Part[]).flatMap((part): Update[] => {
    const call = callOf(part);
    const before = call && calls.get(call.toolCallId);
    if (!call || !before || before.state === call.state) return [];
    const { toolCallId, state } = call;
    if (before.state === "approval-requested" && state === "approval-responded") return [{ toolCallId, state, approval: part.approval }];
    if (before.state !== "input-available") return [];
    if (state === "output-available") return [{ toolCallId, state, output: part.output ?? null }];
    return state === "output-error" ? [{ toolCallId, state, errorText: part.errorText }] : [];
  });
}

/** A result is one for everybody; an approval is the AI SDK's own. */
function toUpdate(message: string, update: Update): Message {
  const { toolCallId, state } = update;
  const ai_sdk = { message };
  if (state === "approval-responded") return { role: "assistant", id: message, chunks: [marker({ update })], ai_sdk };
  const failed = state === "output-error";
  const { content, own } = said(failed ? String(update.errorText) : update.output);
  const part = { type: failed ? "tool-output-error" : "tool-output-available", toolCallId };
  const isError = failed ? { is_error: true } : {};
  return { role: "tool", chunks: [{ type: "tool_result", tool_call_id: toolCallId, content, ...isError, ai_sdk: { part, ...own } }], ai_sdk };
}

/** Calls without a result would be refused: they get one that says so. */
function repaired<M extends UIMessage>(messages: M[]): M[] {
  return messages.map((message) => {
    if (message.role !== "assistant") return message;
    const parts = (message.parts as Part[]).flatMap((part) => {
      if (part.type === "data-answer") return [];
      const call = callOf(part);
      const isOpen = call && ["input-streaming", "input-available", "approval-requested"].includes(call.state);
      if (!isOpen) return [part];
      if (part.providerExecuted) return [];
      const { approval, ...rest } = part;
      const isAsked = call.state === "approval-requested";
      const errorText = isAsked ? "This call was not approved." : "This call was interrupted: what came of it is not known.";
      return [{ ...rest, state: "output-error", input: part.input ?? {}, errorText }];
    });
    return { ...message, parts } as M;
  });
}
