// How a chat of the AI SDK is written in a conversation: what a chunk has no field for is in its field `ai_sdk`.

import type { UIMessage, UIMessageChunk } from "ai";
import { keep, kept, readable } from "../kept.js";
import type { Chunk, Message, StoredMessage } from "../transcript.js";

/** A part of a stream, with fields that a type for all of them does not know. */
export type Part = { type: string; [field: string]: unknown };

export const asChunk = (part: Part) => part as unknown as UIMessageChunk;

/** The field of a chunk. */
export interface OfChunk {
  /** What the stream said, without what the chunk itself says. It is a text where JSON has no room for it. */
  part?: Part | string;
  /** The parts of the stream that are still open while this one begins. */
  open?: string[];
  /** Fields of a whole message's part. */
  rest?: Record<string, unknown> | string;
  /** A tool's output, where it differs from what others read. */
  output?: string;
  /** What a page said of a call. */
  update?: Update;
}

/** The field of a message. */
export interface OfMessage {
  /** The id of the message that the page shows. Steps and results of an answer have the same. */
  message: string;
  /** A message that was stored as a whole; `true` on what others read of it. */
  whole?: UIMessage | string | true;
  /** Fields that have no place of their own, such as `metadata`. */
  rest?: Record<string, unknown> | string;
}

/** A call whose result or approval comes from a page. */
export type Update = { toolCallId: string; state: string; [field: string]: unknown };

export function ofChunk(chunk: Chunk): Omit<OfChunk, "part" | "rest"> & { part?: Part; rest?: Record<string, unknown> } {
  const { part, rest, ...others } = (chunk.ai_sdk ?? {}) as OfChunk;
  return { ...others, ...(part !== undefined && { part: kept(part) }), ...(rest !== undefined && { rest: kept(rest) }) };
}

export function ofMessage(message: Message) {
  const of = message.ai_sdk as OfMessage | undefined;
  if (of === undefined) return undefined;
  const { whole, rest, ...others } = of;
  return {
    ...others,
    ...(whole !== undefined && { whole: kept<UIMessage | true>(whole) }),
    ...(rest !== undefined && { rest: kept(rest) }),
  };
}

/** How an answer ended that did not end by itself. */
export interface AnswerEnd {
  /** `stopped` by a page; `interrupted`: its process or its store failed; `failed`: the model did. Else why the model stopped. */
  state: "stopped" | "interrupted" | "failed" | "length" | "content-filter" | "error";
  error?: string;
}

/** The part that says so, at the end of a message and of a stream. */
export const ended = (data: AnswerEnd) => ({ type: "data-answer", data }) as Part;

/** What a stream ends with. */
export function closing(end: AnswerEnd | undefined, finish: Part | undefined): Part[] {
  const parts = [...(end ? [ended(end)] : []), ...(finish ? [finish] : [])];
  if (end?.state === "stopped") parts.push({ type: "abort" });
  if (end?.state === "failed") parts.push({ type: "error", errorText: end.error });
  if (end?.state === "interrupted") {
    parts.push({ type: "error", errorText: `The answer was interrupted${end.error ? `: ${end.error}` : ""}.` });
  }
  return parts;
}

/** How an answer ended that the model finished, in the words of the stream. */
export function endOf(reason: unknown): AnswerEnd | undefined {
  return reason === "length" || reason === "content-filter" || reason === "error" ? { state: reason } : undefined;
}

/** A chunk without content, for what has no other place. Prompts leave it out. */
export const marker = (ai_sdk: OfChunk): Chunk => ({ type: "text", text: "", ai_sdk });

const filled = (fields: Record<string, unknown>) => (Object.keys(fields).length > 0 ? fields : undefined);

/** A tool's output, as the content of a result; and itself, where the store has no room for it as it is. */
export function said(output: unknown): { content: string | { type: "json"; json: unknown }[]; own?: { output: string } } {
  const own = keep(output);
  const read = own === output ? output : readable(output);
  const content = typeof read === "string" ? read : [{ type: "json" as const, json: read ?? null }];
  return { content, ...(own !== output && { own: { output: own as string } }) };
}

/** The output of a result. Text that another program stored may be JSON. */
export function output(chunk: Extract<Chunk, { type: "tool_result" }>): unknown {
  const { content } = chunk;
  const own = ofChunk(chunk).output;
  if (own !== undefined) return kept(own);
  if (typeof content === "string") return chunk.ai_sdk === undefined ? parsed(content) : content;
  const [first] = content;
  return content.length === 1 && first?.type === "json" ? first.json : content;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const DATA = /^data:([^;,]*);base64,(.*)$/s;

function fileChunk(part: Record<string, unknown>): Chunk {
  const { type, url, mediaType, filename, ...rest } = part as { type: string; url: string; mediaType: string; filename?: string };
  const [, kind, data] = DATA.exec(url) ?? [];
  if (!/^(https?|data):/.test(url)) return { type: "opaque", provider: "ai-sdk", kind: type, json: part };
  if (mediaType.startsWith("image/")) {
    return { type: "image", url, mime_type: mediaType, ai_sdk: { rest: { ...rest, ...(filename === undefined ? {} : { filename }) } } };
  }
  const place = data !== undefined && kind === mediaType ? { data } : { url };
  return { type: "file", ...(filename === undefined ? {} : { name: filename }), ...place, mime_type: mediaType, ai_sdk: { rest } };
}

function chunkOf(part: UIMessage["parts"][number]): Chunk {
  if (part.type === "text") {
    const { type, text, ...rest } = part;
    const more = filled(rest);
    return { type: "text", text, ...(more && { ai_sdk: { rest: more } }) };
  }
  if (part.type === "file") return fileChunk({ ...part });
  return { type: "opaque", provider: "ai-sdk", kind: part.type, json: part };
}

/** A message of a page that is no answer, as it is stored. */
export function toMessage(message: UIMessage): Message {
  const { id, role, parts, ...others } = message;
  const chunks = parts.map((part): Chunk => {
    const own = keep(part);
    const chunk = chunkOf(part);
    // Where the store has no room for a part as it is, others read what it has room for.
    return own === part ? chunk : { ...readable(chunk), ai_sdk: { rest: own as string } };
  });
  const rest = filled(others);
  return { role, id, chunks, ai_sdk: { message: id, ...(rest && { rest: keep(rest) }) } };
}

/** The parts of a message that is no answer. */
export function toParts(chunks: Chunk[]): Part[] {
  return chunks.flatMap((chunk): Part[] => {
    const { rest } = ofChunk(chunk);
    switch (chunk.type) {
      case "text":
        return [{ type: "text", text: chunk.text, ...rest }];
      case "image":
        return [{ type: "file", mediaType: chunk.mime_type ?? DATA.exec(chunk.url)?.[1] ?? "image/*", url: chunk.url, ...rest }];
      case "file": {
        const mediaType = chunk.mime_type ?? "application/octet-stream";
        const url = chunk.url ?? `data:${mediaType};base64,${chunk.data ?? ""}`;
        return [{ type: "file", mediaType, url, ...(chunk.name === undefined ? {} : { filename: chunk.name }), ...rest }];
      }
      case "opaque":
        return chunk.provider === "ai-sdk" ? [(rest ?? chunk.json) as Part] : [];
      default:
        return [];
    }
  });
}

export const toUser = (message: StoredMessage): UIMessage =>
  ({
    id: ofMessage(message)?.message ?? message.id ?? `message-${message.index}`,
    role: message.role,
    ...ofMessage(message)?.rest,
    parts: toParts(message.chunks),
  }) as UIMessage;

const isCall = (type: string) => type.startsWith("tool-") || type === "dynamic-tool";

/** The call of a part: its name is in its type, or beside it. */
export function callOf(part: Part): { toolCallId: string; toolName: string; state: string } | undefined {
  if (!isCall(part.type)) return undefined;
  const toolName = part.type === "dynamic-tool" ? (part.toolName as string) : part.type.slice("tool-".length);
  return { toolCallId: part.toolCallId as string, toolName, state: part.state as string };
}

/** An answer that comes whole: what others can read of it, and itself. */
export function toWhole(message: UIMessage): Message[] {
  const messages: Message[] = [];
  let chunks: Chunk[] = [];
  let results: Chunk[] = [];
  const ai_sdk = { message: message.id, whole: true };
  const end = () => {
    if (chunks.length > 0) messages.push({ role: "assistant", id: message.id, chunks: readable(chunks), ai_sdk });
    for (const result of results) messages.push({ role: "tool", chunks: [readable(result)], ai_sdk });
    [chunks, results] = [[], []];
  };
  for (const part of message.parts as Part[]) {
    const call = callOf(part);
    if (part.type === "step-start") end();
    else if (part.type === "text") chunks.push({ type: "text", text: part.text as string });
    else if (part.type === "reasoning") chunks.push({ type: "thinking", text: part.text as string });
    else if (part.type === "file") chunks.push(fileChunk(part));
    else if (call && !part.providerExecuted) {
      const { toolCallId: id, toolName: name, state } = call;
      chunks.push({ type: "tool_call", id, name, arguments: JSON.stringify(part.input ?? {}) });
      const failed = state === "output-error" || state === "output-denied";
      const content = failed ? String(part.errorText ?? "This call was not approved.") : said(part.output).content;
      if (failed || state === "output-available") {
        results.push({ type: "tool_result", tool_call_id: id, name, content, ...(failed && { is_error: true }), ai_sdk: {} });
      }
    }
  }
  end();
  if (messages[0]?.role !== "assistant") messages.unshift({ role: "assistant", id: message.id, chunks: [marker({})], ai_sdk });
  messages[0]!.ai_sdk = { ...ai_sdk, whole: keep(message) };
  return messages;
}
