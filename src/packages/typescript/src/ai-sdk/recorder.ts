// Stores an answer while it is streamed. Each step is a message that grows; each result of a tool is a message of its own.

import type { Client } from "../client.js";
import { keep } from "../kept.js";
import type { Chunk, StoredMessage } from "../transcript.js";
import type { OfChunk, Part } from "./form.js";
import { said } from "./form.js";

/** A server ends an answer of which it hears nothing for some minutes; a tool may take longer. */
const SIGN_OF_LIFE = 60_000;

/** Why a model stopped, in the words of the wire on which a step is sent. */
const REASONS: Record<string, string> = {
  stop: "end_turn",
  length: "max_tokens",
  "content-filter": "content_filter",
  "tool-calls": "tool_use",
};

/** The store has ended a step before the answer did: a page stopped it. */
export class Ended extends Error {}

/** A message that grows, sent as an answer on the wire of Anthropic: its blocks have a beginning and an end, and keep fields of others. */
class Step {
  readonly ended: Promise<unknown>;
  index!: number;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #blocks = 0;
  #finished = false;
  #timer: ReturnType<typeof setInterval>;

  /** `onCut`: the store has ended the step before it is finished, or has failed. */
  constructor(client: Client, chat: string, id: string, onCut: (error?: unknown) => void, expect?: number) {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#controller = controller) });
    this.ended = client.ingest(chat, body, { from: "anthropic", provider: "ai-sdk", expect }).finally(() => clearInterval(this.#timer));
    this.ended.then(() => this.#finished || onCut(), onCut);
    this.#timer = setInterval(() => this.#send({ type: "ping" }), SIGN_OF_LIFE);
    (this.#timer as { unref?: () => void }).unref?.();
    const message = { id, type: "message", role: "assistant", content: [], ai_sdk: { message: id } };
    this.#send({ type: "message_start", message });
  }

  #send(event: object) {
    try {
      this.#controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));
    } catch {
      // The request has ended: `ended` says why.
    }
  }

  start(block: object): number {
    this.#send({ type: "content_block_start", index: this.#blocks, content_block: block });
    return this.#blocks++;
  }

  delta(index: number, delta: object) {
    this.#send({ type: "content_block_delta", index, delta });
  }

  stop(index: number) {
    this.#send({ type: "content_block_stop", index });
  }

  mark(ai_sdk: OfChunk) {
    this.stop(this.start({ type: "text", text: "", ai_sdk }));
  }

  /** Without a reason it is cut off. */
  async finish(reason?: string, error?: string) {
    if (error !== undefined) this.#send({ type: "error", error: { type: "ai-sdk", message: error } });
    if (reason !== undefined) {
      this.#send({ type: "message_delta", delta: { stop_reason: reason } });
      this.#send({ type: "message_stop" });
    }
    this.#finished = true;
    try {
      this.#controller.close();
    } catch {
      // It has ended already.
    }
    await this.ended;
  }

}

interface Open {
  key: string;
  block: number;
  end: Part;
}

export class Recorder {
  #step!: Step;
  #open: Open[] = [];
  #calls = new Map<string, { name: string; text: string; block?: number }>();
  /** The calls of this step that have no result yet. */
  #waiting = new Set<string>();
  #called = 0;
  #reason: string | undefined;
  #error: string | undefined;
  #aborted = false;
  #sawFinish = false;

  /** That the store has ended the answer, or why it has failed. */
  cut: { error?: unknown } | undefined;
  onCut: () => void = () => {};

  constructor(readonly client: Client, readonly chat: string, readonly id: string) {}

  /** Begins the answer: from then on every page finds it. */
  async begin(expect: number): Promise<void> {
    this.#step = await this.#next(expect);
  }

  #leave(error?: unknown) {
    if (this.cut) return;
    this.cut = { error };
    this.onCut();
  }

  async #next(expect?: number): Promise<Step> {
    const before = this.#step?.index ?? -1;
    const step = new Step(this.client, this.chat, this.id, (error) => this.#leave(error), expect);
    const refused = step.ended.then(() => {
      throw new Ended("the answer was stopped");
    });
    refused.catch(() => {});
    const isThis = ({ id, index, state }: StoredMessage) => id === this.id && index > before && state === "streaming";
    for (;;) {
      const newest = this.client.newest(this.chat, 20);
      const found = (await Promise.race([newest, refused])).findLast(isThis);
      if (found) {
        step.index = found.index;
        return step;
      }
      await Promise.race([refused, new Promise((resolve) => setTimeout(resolve, 5))]);
    }
  }

  /** Stores a part. It resolves at once, except where the order of messages needs an answer of the store. */
  async take(chunk: object): Promise<void> {
    const part = chunk as Part;
    switch (part.type) {
      case "start":
        if (part.messageMetadata !== undefined) this.#mark({ type: "message-metadata", messageMetadata: part.messageMetadata });
        return;
      case "start-step":
        this.#called = 0;
        this.#waiting.clear();
        return this.#mark(part);
      case "text-start":
      case "reasoning-start":
        return this.#start(part);
      case "text-delta":
      case "reasoning-delta":
        return this.#grow(part);
      case "text-end":
      case "reasoning-end":
        return this.#end(part);
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-available":
      case "tool-input-error":
        return this.#call(part);
      case "tool-output-available":
      case "tool-output-error":
      case "tool-output-denied":
        return this.#result(part);
      case "file":
        return this.#file(part);
      case "finish-step":
        return this.#finishStep();
      case "finish":
        this.#sawFinish = true;
        this.#reason = part.finishReason as string | undefined;
        return this.#mark(part);
      case "error":
        this.#error = part.errorText as string;
        return this.#mark(part);
      case "abort":
        this.#aborted = true;
        return this.#mark(part);
      default:
        // What is shown once is not stored.
        if (part.transient !== true) this.#mark(part);
    }
  }

  /** The end of the stream. An answer that did not end is interrupted. */
  async end(): Promise<void> {
    const reason = this.#aborted || !this.#sawFinish ? undefined : REASONS[this.#reason ?? "stop"] ?? this.#reason;
    const isCalling = this.#waiting.size > 0 && reason === "end_turn";
    await this.#step.finish(isCalling ? "tool_use" : reason, this.#error);
  }

  /** The ends of the parts that are open. */
  ends(): Part[] {
    return this.#open.map(({ end }) => end);
  }

  #mark(part: Part) {
    this.#step.mark({ part: keep(part), ...this.#others() });
  }

  /** Parts that are open while another one begins: they have not ended by that. */
  #others(): Pick<OfChunk, "open"> {
    return this.#open.length > 0 ? { open: this.#open.map(({ key }) => key) } : {};
  }

  #start(part: Part) {
    const kind = part.type === "text-start" ? { type: "text", text: "" } : { type: "thinking", thinking: "" };
    const block = this.#step.start({ ...kind, ai_sdk: { part: keep(part), ...this.#others() } });
    const end = { type: part.type.replace("start", "end"), id: part.id };
    this.#open.push({ key: keyOf(part), block, end });
  }

  #grow(part: Part) {
    const { type, id, delta, ...rest } = part as { type: string; id: string; delta: string };
    const open = this.#open.find(({ key }) => key === keyOf(part));
    if (!open) return;
    this.#step.delta(open.block, type === "text-delta" ? { type: "text_delta", text: delta } : { type: "thinking_delta", thinking: delta });
    if (Object.keys(rest).length > 0) this.#mark({ ...part, delta: "" });
  }

  #end(part: Part) {
    const at = this.#open.findIndex(({ key }) => key === keyOf(part));
    if (at < 0) return;
    const { type, id, ...rest } = part;
    this.#step.stop(this.#open[at]!.block);
    if (Object.keys(rest).length > 0) this.#mark(part);
    this.#open.splice(at, 1);
  }

  #call(part: Part) {
    const { toolCallId, toolName } = part as unknown as { toolCallId: string; toolName: string };
    // The provider's own tools are no calls that anybody answers.
    if (part.providerExecuted) return void (part.type === "tool-input-start" || this.#mark(part));
    const known = this.#calls.get(toolCallId);
    if (part.type === "tool-input-delta") {
      if (known?.block === undefined) return;
      known.text += part.inputTextDelta as string;
      this.#step.delta(known.block, { type: "input_json_delta", partial_json: part.inputTextDelta });
      return;
    }
    const call = known ?? { name: toolName, text: "" };
    if (!known) {
      this.#calls.set(toolCallId, call);
      const begun = part.type === "tool-input-start" ? { part: keep(part) } : {};
      const ai_sdk = { ...begun, ...this.#others() };
      call.block = this.#step.start({ type: "tool_use", id: toolCallId, name: toolName, input: {}, ai_sdk });
      this.#called++;
      this.#waiting.add(toolCallId);
    }
    if (part.type === "tool-input-start" || call.block === undefined) return;
    const { input, ...rest } = part;
    const written = JSON.stringify(input) ?? "";
    if (call.text === "" && written !== "") {
      call.text = written;
      this.#step.delta(call.block, { type: "input_json_delta", partial_json: written });
    }
    this.#step.stop(call.block);
    call.block = undefined;
    this.#mark(part.type === "tool-input-available" && isSame(call.text, written) ? { ...rest, type: part.type } : part);
  }

  async #result(part: Part) {
    const { output, ...rest } = part as Part & { output?: unknown };
    const toolCallId = part.toolCallId as string;
    if (part.preliminary) return;
    if (part.providerExecuted) return this.#mark(part);
    const isError = part.type !== "tool-output-available";
    const why = part.type === "tool-output-denied" ? "This call was not approved." : (part.errorText as string | undefined);
    const { content, own } = said(isError ? (why ?? "") : output);
    const { errorText, ...others } = rest;
    const chunk: Chunk = {
      type: "tool_result",
      tool_call_id: toolCallId,
      name: this.#calls.get(toolCallId)?.name,
      content,
      ...(isError && { is_error: true }),
      ai_sdk: { part: keep(others), ...own },
    };
    await this.client.append(this.chat, { role: "tool", chunks: [chunk], ai_sdk: { message: this.id } });
    this.#waiting.delete(toolCallId);
  }

  #file(part: Part) {
    const { url, ...rest } = part as Part & { url: string };
    const [, media_type, data] = /^data:(image\/[^;,]*);base64,(.*)$/s.exec(url) ?? [];
    if (data === undefined) return this.#mark(part);
    const source = { type: "base64", media_type, data };
    this.#step.stop(this.#step.start({ type: "image", source, ai_sdk: { part: keep(rest), ...this.#others() } }));
  }

  /** Calls that have their results are followed by a step, which begins before this one ends: there is no moment without one. */
  async #finishStep() {
    this.#open = [];
    if (this.#called === 0 || this.#waiting.size > 0) return;
    const next = await this.#next();
    await this.#step.finish("tool_use");
    this.#step = next;
    this.#called = 0;
  }
}

const keyOf = ({ type, id }: Part) => `${type.slice(0, type.indexOf("-"))} ${id}`;

/** Whether two texts are the same JSON. */
function isSame(left: string, right: string): boolean {
  if (left === right) return true;
  try {
    return JSON.stringify(JSON.parse(left)) === right;
  } catch {
    return false;
  }
}

