// The transcript format: what is appended and read. Fields that are not named here are kept as they are.

export type Role = "system" | "user" | "assistant" | "tool";

interface Any {
  /** The provider's item id. */
  id?: string;
  [field: string]: unknown;
}

export interface TextChunk extends Any {
  type: "text";
  text: string;
}
export interface ThinkingChunk extends Any {
  type: "thinking";
  text?: string;
  signature?: string;
  redacted?: string;
}
export interface RefusalChunk extends Any {
  type: "refusal";
  text: string;
}
export interface ToolCallChunk extends Any {
  type: "tool_call";
  id: string;
  name?: string;
  /** As the model wrote them, JSON or not. */
  arguments: string;
  signature?: string;
  server?: boolean;
}
export interface ToolResultChunk extends Any {
  type: "tool_result";
  tool_call_id?: string;
  name?: string;
  content: string | Array<{ type: string; [field: string]: unknown }>;
  is_error?: boolean;
}
export interface ImageChunk extends Any {
  type: "image";
  url: string;
  mime_type?: string;
}
export interface AudioChunk extends Any {
  type: "audio";
  url?: string;
  data?: string;
  mime_type?: string;
  transcript?: string;
}
export interface FileChunk extends Any {
  type: "file";
  name?: string;
  url?: string;
  data?: string;
  mime_type?: string;
}
export interface ErrorChunk extends Any {
  type: "error";
  message: string;
  code?: string;
}
export interface OpaqueChunk extends Any {
  type: "opaque";
  provider: string;
  kind: string;
  json: unknown;
}

export type Chunk =
  | TextChunk
  | ThinkingChunk
  | RefusalChunk
  | ToolCallChunk
  | ToolResultChunk
  | ImageChunk
  | AudioChunk
  | FileChunk
  | ErrorChunk
  | OpaqueChunk;

/** A message, as it is appended. */
export interface Message {
  role: Role;
  chunks: Chunk[];
  finish_reason?: string;
  model?: string;
  provider?: string;
  /** RFC 3339. */
  created_at?: string;
  turn_id?: string;
  step_id?: string;
  usage?: unknown;
  id?: string;
  native?: { wire: string; json: unknown };
  [field: string]: unknown;
}

/** A message in its place. */
export interface StoredMessage extends Message {
  /** Its index in the conversation: never reused; visible ones may have gaps. */
  index: number;
  state: "complete" | "streaming" | "interrupted" | "synthetic";
  first_seq: number;
  last_seq: number;
  /** For each chunk its index in the log: never reused; visible ones may have gaps. */
  chunk_indexes: number[];
}

/** An entry of the log: `begin`, `chunk`, `finish`, `interrupt`, and what changes a conversation. */
export interface Entry {
  seq: number;
  kind: string;
  created_at: string;
  message_index?: number;
  chunk_index?: number;
  role?: Role;
  chunk?: Chunk;
  finish_reason?: string;
  id?: string;
  [field: string]: unknown;
}
