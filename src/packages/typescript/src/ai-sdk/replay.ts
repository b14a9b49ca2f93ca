// What is stored, as the parts of the stream that it came in, and as the messages that a page makes of them.

import { readUIMessageStream } from "ai";
import type { UIMessage, UIMessageChunk } from "ai";
import { kept } from "../kept.js";
import type { Chunk, StoredMessage } from "../transcript.js";
import type { AnswerEnd, Part, Update } from "./form.js";
import { asChunk, callOf, closing, endOf, ofChunk, ofMessage, output, parsed, toParts, toUser } from "./form.js";

interface Call {
  toolCallId: string;
  toolName: string;
  text: string;
  /** Its input is complete, and was said. */
  isSaid: boolean;
  /** Its input is said while it comes. */
  isStreamed: boolean;
}

/** An answer: its messages are said piece by piece, and come out as parts of a stream. */
export class Replay {
  #parts: Part[] = [];
  /** The open parts, by the place of their chunk. */
  #open = new Map<string, { key: string; end: Part }>();
  #seen = new Set<string>();
  #calls = new Map<string, Call>();
  #byId = new Map<string, Call>();
  /** Results that came before their calls were complete. Those without a call are no part of a message. */
  #early = new Map<string, Part[]>();
  #inStep = false;
  #finish: Part | undefined;
  #isAborted = false;
  #error: string | undefined;
  #reason: string | undefined;

  /** The parts since the last time. */
  take(): Part[] {
    return this.#parts.splice(0);
  }

  /** A chunk of a message, or a piece of it. `index` is that of the message. */
  piece(index: number, chunkIndex: number, chunk: Chunk) {
    const place = `${index} ${chunkIndex}`;
    const { part, open, output: own } = ofChunk(chunk);
    const isNew = !this.#seen.has(place);
    this.#seen.add(place);
    if (isNew && chunk.type !== "tool_result") {
      this.#closeAll(open ?? []);
      // What another program stored has no steps.
      if (chunk.ai_sdk === undefined && chunk.type !== "error" && !this.#inStep) this.#startStep({ type: "start-step" });
    }
    switch (chunk.type) {
      case "text":
        if (isNew && part && part.type !== "text-start") return this.#marked(part);
        if (isNew && !part && chunk.text === "") return;
        return this.#grow(place, "text", chunk.text, isNew ? (part ?? { type: "text-start", id: place }) : undefined);
      case "thinking":
        return this.#grow(place, "reasoning", chunk.text ?? "", isNew ? (part ?? { type: "reasoning-start", id: place }) : undefined);
      case "tool_call":
        return this.#call(place, chunk, part);
      case "tool_result": {
        const { tool_call_id = "", is_error, content } = chunk;
        const denied = part?.type === "tool-output-denied";
        const errorText = own !== undefined ? kept(own) : typeof content === "string" ? content : JSON.stringify(content);
        const said = is_error
          ? { type: "tool-output-error", ...(denied ? {} : { errorText }) }
          : { type: "tool-output-available", output: output(chunk) };
        return this.#result(tool_call_id, { toolCallId: tool_call_id, ...said, ...part });
      }
      case "image":
      case "file":
        if (part) return void this.#parts.push({ ...part, url: (chunk.url ?? "") as string });
        return void this.#parts.push(...toParts([chunk]));
      case "error":
        this.#error ??= chunk.message;
    }
  }

  /** The end of a message. */
  end(index: number, reason: string | undefined) {
    for (const [place, call] of this.#calls) if (place.startsWith(`${index} `) && reason !== "interrupted") this.#said(call);
    this.#closeAll([]);
    this.#finishStep();
    this.#reason = reason ?? this.#reason;
  }

  /** What the stream ends with, once all its messages have ended. */
  closing(): Part[] {
    return closing(this.#outcome(), this.#finish);
  }

  /** A call of a message that is not said piece by piece. */
  knows(toolCallId: string, toolName: string) {
    this.#byId.set(toolCallId, { toolCallId, toolName, text: "", isSaid: true, isStreamed: false });
  }

  #outcome(): AnswerEnd | undefined {
    if (this.#error !== undefined) return { state: "failed", error: this.#error };
    if (this.#finish) return endOf(this.#finish.finishReason);
    if (this.#reason === "interrupted") return { state: this.#isAborted ? "stopped" : "interrupted" };
    return endOf(this.#reason === "content_filter" ? "content-filter" : this.#reason);
  }

  #marked(part: Part) {
    switch (part.type) {
      case "start-step":
        return this.#startStep(part);
      case "finish":
        this.#finish = part;
        return this.#finishStep();
      case "error":
        this.#error = part.errorText as string;
        return;
      case "abort":
        this.#isAborted = true;
        return;
      case "text-end":
      case "reasoning-end": {
        const key = keyOf(part);
        for (const [place, open] of this.#open) if (open.key === key) this.#open.delete(place);
        return void this.#parts.push(part);
      }
      case "tool-input-available": {
        const call = this.#byId.get(part.toolCallId as string);
        if (call) return this.#said(call, part);
        return void this.#parts.push(part);
      }
      case "tool-input-error": {
        const call = this.#byId.get(part.toolCallId as string);
        if (call) call.isSaid = true;
        this.#parts.push(part);
        return this.#late(part.toolCallId as string);
      }
      default:
        this.#parts.push(part);
    }
  }

  #startStep(part: Part) {
    this.#finishStep();
    this.#inStep = true;
    this.#parts.push(part);
  }

  #finishStep() {
    if (this.#inStep) this.#parts.push({ type: "finish-step" });
    this.#inStep = false;
  }

  #grow(place: string, kind: "text" | "reasoning", text: string, start: Part | undefined) {
    if (start) {
      this.#parts.push(start);
      this.#open.set(place, { key: keyOf(start), end: { type: `${kind}-end`, id: start.id } });
    }
    const open = this.#open.get(place);
    if (open && text !== "") this.#parts.push({ type: `${kind}-delta`, id: open.end.id, delta: text });
  }

  #call(place: string, chunk: Extract<Chunk, { type: "tool_call" }>, part: Part | undefined) {
    let call = this.#calls.get(place);
    if (!call) {
      call = { toolCallId: chunk.id, toolName: chunk.name ?? "", text: "", isSaid: false, isStreamed: part !== undefined };
      this.#calls.set(place, call);
      this.#byId.set(call.toolCallId, call);
      if (part) this.#parts.push(part);
    }
    call.text += chunk.arguments;
    if (!call.isStreamed || chunk.arguments === "") return;
    this.#parts.push({ type: "tool-input-delta", toolCallId: call.toolCallId, inputTextDelta: chunk.arguments });
  }

  /** The input of a call is complete. */
  #said(call: Call, part: Part = { type: "tool-input-available", toolCallId: call.toolCallId, toolName: call.toolName }) {
    if (call.isSaid) return;
    call.isSaid = true;
    const input = "input" in part ? {} : { input: call.text === "" ? {} : parsed(call.text) };
    this.#parts.push({ ...part, ...input });
    this.#late(call.toolCallId);
  }

  #result(id: string, part: Part) {
    if (this.#byId.get(id)?.isSaid) this.#parts.push(part);
    else this.#early.set(id, [...(this.#early.get(id) ?? []), part]);
  }

  #late(id: string) {
    this.#parts.push(...(this.#early.get(id) ?? []));
    this.#early.delete(id);
  }

  #closeAll(but: string[]) {
    for (const [place, { key, end }] of this.#open) {
      if (but.includes(key)) continue;
      this.#parts.push(end);
      this.#open.delete(place);
    }
  }
}

const keyOf = ({ type, id }: Part) => `${type.slice(0, type.indexOf("-"))} ${id}`;

/** A message that a page shows, and where it is stored. */
export interface Shown {
  message: UIMessage;
  /** The index of its first message in the conversation. */
  first: number;
  /** The seq before it. */
  since: number;
  /** The index of the last message that is being written. */
  streaming?: number;
  stored: StoredMessage[];
}

/** Puts the messages of a conversation together as a page shows them. */
export async function shown(messages: StoredMessage[]): Promise<Shown[]> {
  const found: Shown[] = [];
  for (const message of messages) {
    const of = ofMessage(message)?.message;
    const last = found.at(-1);
    const isResult = message.role === "tool" || (message.role === "user" && message.chunks.some(({ type }) => type === "tool_result"));
    const isSame = message.role === "assistant" && (of === undefined || of === last?.message.id);
    if (last?.message.role === "assistant" && (isResult || isSame)) last.stored.push(message);
    else if (!isResult) {
      const own = message.role === "assistant" ? undefined : toUser(message);
      const id = of ?? message.id ?? `message-${message.index}`;
      const shown = own ?? ({ id, role: "assistant", parts: [] } as UIMessage);
      found.push({ message: shown, first: message.index, since: message.first_seq - 1, stored: [message] });
    }
    if (message.state === "streaming") found.at(-1)!.streaming = message.index;
  }
  for (const one of found) if (one.message.role === "assistant") one.message = await answer(one);
  return found;
}

/** The stream of an answer that has ended. */
export function replayed({ message: { id }, stored }: Shown): Part[] {
  const replay = new Replay();
  for (const { index, chunks, finish_reason, role, state } of stored) {
    for (const [at, chunk] of chunks.entries()) if (!ofChunk(chunk).update) replay.piece(index, at, chunk);
    if (role === "assistant") replay.end(index, state === "interrupted" ? "interrupted" : finish_reason);
  }
  return [{ type: "start", messageId: id }, ...replay.take(), ...settled(replay)];
}

/** The end of an answer that is not news any more. */
const settled = (replay: Replay) => replay.closing().filter(({ type }) => type !== "error" && type !== "abort");

async function answer({ message: { id }, stored, streaming }: Shown): Promise<UIMessage> {
  let message = { id, role: "assistant", parts: [] } as UIMessage;
  const replay = new Replay();
  const whole = ofMessage(stored[0]!)?.whole;
  if (whole && whole !== true) {
    message = structuredClone(whole);
    for (const call of (whole.parts as Part[]).map(callOf)) if (call) replay.knows(call.toolCallId, call.toolName);
  }
  for (const one of stored) {
    if (ofMessage(one)?.whole) continue;
    const { index, chunks, finish_reason, role, state } = one;
    for (const [at, chunk] of chunks.entries()) {
      const { update } = ofChunk(chunk);
      if (update) message = updated(await applied(message, replay.take()), update);
      else replay.piece(index, at, chunk);
    }
    if (role === "assistant" && state !== "streaming") replay.end(index, state === "interrupted" ? "interrupted" : finish_reason);
  }
  const parts = replay.take();
  if (streaming === undefined) parts.push(...settled(replay));
  return applied(message, parts);
}

async function applied(message: UIMessage, parts: Part[]): Promise<UIMessage> {
  if (parts.length === 0) return message;
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const part of parts) controller.enqueue(asChunk(part));
      controller.close();
    },
  });
  let last = message;
  for await (const next of readUIMessageStream({ message, stream })) last = next;
  return last;
}

/** What a page said of a call. */
export function updated(message: UIMessage, { toolCallId, ...fields }: Update): UIMessage {
  const parts = (message.parts as Part[]).map((part) => (callOf(part)?.toolCallId === toolCallId ? { ...part, ...fields } : part));
  return { ...message, parts } as UIMessage;
}
