// assistant-ui: the history of a thread, with its branches, and the list of threads.

import type {
  ExportedMessageRepositoryItem,
  GenericThreadHistoryAdapter,
  MessageFormatAdapter,
  MessageFormatItem,
  RemoteThreadListAdapter,
  ThreadHistoryAdapter,
} from "@assistant-ui/react";
import type { UIMessage } from "ai";
import { toMessage, toWhole } from "./ai-sdk/form.js";
import type { Client, Described } from "./client.js";
import { NotFoundError, StaleHeadError } from "./errors.js";
import { keep, kept, readable } from "./kept.js";
import type { Chunk, Message, StoredMessage } from "./transcript.js";
import { uuid } from "./uuid.js";

type ThreadMessage = ExportedMessageRepositoryItem["message"];
type Fields = Record<string, unknown>;

/** A message of a thread, as the field `assistant_ui` of the first of the messages that it is stored as has it. */
interface Kept {
  id: string;
  parentId: string | null;
  /** Its number in the thread, by which branches are ordered. */
  order: number;
  format: string;
  content: unknown;
  runConfig?: unknown;
  /** It is of a branch that is not shown: nobody but assistant-ui sees it. */
  isHidden?: boolean;
}

/** The field of a message. */
interface Field {
  kept?: Kept;
  /** Messages in whose place these are. */
  replaces?: number[];
}

interface Stored extends Kept {
  indexes: number[];
}

interface State {
  shown: Stored[];
  hidden: Stored[];
  expect: number | "new";
}

/** The format of the messages that assistant-ui has by itself. */
const OWN = "thread-message";

class Thread {
  #last: Promise<unknown> = Promise.resolve();

  constructor(readonly client: Client, readonly name: () => string | Promise<string>) {}

  async read(): Promise<State> {
    const conversation = await this.name();
    try {
      const { last_seq } = await this.client.describe(conversation);
      const messages: StoredMessage[] = [];
      for await (const message of this.client.messages(conversation, { limit: 1000 })) messages.push(message);
      return { ...read(messages), expect: last_seq };
    } catch (error) {
      if (error instanceof NotFoundError) return { shown: [], hidden: [], expect: "new" };
      throw error;
    }
  }

  /** Changes what is stored, one change after the other. */
  change(next: (state: State) => { shown: Kept[]; hidden: Kept[] }): Promise<void> {
    const work = async () => {
      for (;;) {
        const state = await this.read();
        try {
          return await this.#write(state, next(state));
        } catch (error) {
          // Another window wrote to it.
          if (!(error instanceof StaleHeadError)) throw error;
        }
      }
    };
    const turn = this.#last.catch(() => {}).then(work);
    this.#last = turn;
    return turn;
  }

  async #write(state: State, next: { shown: Kept[]; hidden: Kept[] }): Promise<void> {
    const conversation = await this.name();
    const isStored = (one: Kept, among: Stored | undefined) => among !== undefined && text(one) === text(among);
    let common = 0;
    while (common < next.shown.length && isStored(next.shown[common]!, state.shown[common])) common++;
    const hidden = next.hidden.filter((one) => !state.hidden.some((other) => isStored(one, other)));
    const stays = [...state.shown.slice(0, common), ...state.hidden.filter((one) => next.hidden.some((other) => isStored(other, one)))];
    const replaces = [...state.shown, ...state.hidden].filter((one) => !stays.includes(one)).flatMap(({ indexes }) => indexes);
    const messages = [...hidden.map((one) => hiddenMessage(one)), ...next.shown.slice(common).flatMap(shownMessages)];
    const [first] = messages;
    if (first) {
      if (replaces.length > 0) first.assistant_ui = { ...(first.assistant_ui as Field), replaces };
      await this.client.append(conversation, messages, { expect: state.expect });
    }
    // They are replaced already: now people do not see them any more, either.
    await Promise.all(replaces.map((index) => this.client.remove(conversation, index)));
  }
}

const text = ({ id, parentId, order, format, content, runConfig }: Kept) =>
  JSON.stringify([id, parentId, order, format, content, runConfig ?? null]);

const fieldOf = (message: Message) => message.assistant_ui as Field | undefined;

function read(messages: StoredMessage[]): Pick<State, "shown" | "hidden"> {
  const replaced = new Set(messages.flatMap((message) => fieldOf(message)?.replaces ?? []));
  const [shown, hidden]: [Stored[], Stored[]] = [[], []];
  let order = 0;
  for (const message of messages) {
    const { index, state } = message;
    if (replaced.has(index) || state === "streaming") continue;
    const field = fieldOf(message);
    const before = shown.at(-1);
    if (field?.kept) {
      (field.kept.isHidden ? hidden : shown).push({ ...field.kept, content: kept(field.kept.content), indexes: [index] });
      order = Math.max(order, field.kept.order + 1);
    } else if (field || message.role === "tool") before?.indexes.push(index);
    else {
      const id = message.id ?? `message-${index}`;
      shown.push({ id, parentId: before?.id ?? null, order: order++, format: OWN, content: toThread(id, message), indexes: [index] });
    }
  }
  return { shown, hidden };
}

function hiddenMessage(one: Kept): Message {
  const role = (one.content as Fields).role === "user" ? "user" : "assistant";
  return { role, chunks: [], assistant_ui: { kept: { ...written(one), isHidden: true } } };
}

const written = ({ id, parentId, order, format, content, runConfig }: Kept): Kept => ({
  id, parentId, order, format, content: keep(content), ...(runConfig === undefined ? {} : { runConfig }),
});

function shownMessages(one: Kept): Message[] {
  const [first = { role: "assistant", chunks: [] } as Message, ...others] = readable(toMessages(one.content as Fields));
  return [{ ...first, id: one.id, assistant_ui: { kept: written(one) } }, ...others.map((message) => ({ ...message, assistant_ui: {} }))];
}

/** Why a message ended. */
const REASONS: Record<string, string> = {
  stop: "stop",
  length: "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls",
  cancelled: "interrupted",
  error: "error",
};

/** The messages that others see. */
function toMessages(content: Fields): Message[] {
  const plain = ({ ai_sdk: _, ...message }: Message): Message => message;
  if (Array.isArray(content.parts)) {
    const message = content as unknown as UIMessage;
    return (message.role === "assistant" ? toWhole(message) : [toMessage(message)]).map(plain);
  }
  const role = content.role === "user" || content.role === "system" ? content.role : "assistant";
  const parts = [content.content, ...((content.attachments ?? []) as Fields[]).map((attachment) => attachment.content)];
  const messages: Message[] = [{ role, chunks: [] }];
  for (const part of parts.flatMap((list) => (Array.isArray(list) ? (list as Fields[]) : []))) {
    const last = messages.at(-1)!;
    if (last.role === "tool" && part.type !== "tool-call") messages.push({ role, chunks: [] });
    const chunk = toChunk(part);
    if (!chunk) continue;
    // Results come after all the calls of their message.
    messages.findLast((message) => message.role === role)!.chunks.push(chunk);
    if (part.type !== "tool-call" || part.result === undefined || part.isPreliminary) continue;
    const said = typeof part.result === "string" ? part.result : [{ type: "json", json: part.result }];
    const result: Chunk = { type: "tool_result", tool_call_id: String(part.toolCallId), name: String(part.toolName), content: said };
    messages.push({ role: "tool", chunks: [part.isError ? { ...result, is_error: true } : result] });
  }
  const { type, reason } = (content.status ?? {}) as Fields;
  const finish_reason = type === "running" ? undefined : REASONS[String(reason)];
  const answer = messages.findLast((message) => message.role === "assistant");
  if (answer && finish_reason) answer.finish_reason = finish_reason;
  return messages.filter(({ chunks }, at) => at === 0 || chunks.length > 0);
}

function toChunk(part: Fields): Chunk | undefined {
  const said = (name: string) => String(part[name] ?? "");
  switch (part.type) {
    case "text":
      return { type: "text", text: said("text") };
    case "reasoning":
      return { type: "thinking", text: said("text") };
    case "image":
      return /^(https?|data):/.test(said("image")) ? { type: "image", url: said("image") } : undefined;
    case "file": {
      const name = typeof part.filename === "string" ? { name: part.filename } : {};
      const place = /^(https?|data):/.test(said("data")) ? { url: said("data") } : { data: said("data") };
      return { type: "file", ...name, ...place, mime_type: said("mimeType") };
    }
    case "tool-call":
      return {
        type: "tool_call",
        id: said("toolCallId"),
        name: said("toolName"),
        arguments: said("argsText") || JSON.stringify(part.args ?? {}),
      };
    default:
      return undefined;
  }
}

/** A message that another program stored. */
function toThread(id: string, { role, chunks, created_at }: StoredMessage): Fields {
  const content = chunks.flatMap((chunk): Fields[] => {
    if (chunk.type === "text") return [{ type: "text", text: chunk.text }];
    if (chunk.type === "thinking") return [{ type: "reasoning", text: chunk.text ?? "" }];
    if (chunk.type === "image") return [{ type: "image", image: chunk.url }];
    if (chunk.type !== "tool_call") return [];
    return [{ type: "tool-call", toolCallId: chunk.id, toolName: chunk.name ?? "", args: {}, argsText: chunk.arguments }];
  });
  const common = { id, createdAt: created_at ?? new Date(0).toISOString(), content };
  if (role !== "assistant") return { ...common, role, attachments: [], metadata: { custom: {} } };
  const metadata = { unstable_state: null, unstable_annotations: [], unstable_data: [], steps: [], custom: {} };
  return { ...common, role, status: { type: "complete", reason: "unknown" }, metadata };
}

const revived = (content: unknown) => {
  const message = content as Fields;
  return { ...message, createdAt: new Date(message.createdAt as string) } as unknown as ThreadMessage;
};

interface Item {
  id: string;
  parentId: string | null;
  format: string;
  content: unknown;
  runConfig?: unknown;
}

/** What is done with the messages of a thread, whatever their format. */
function operations(thread: Thread) {
  const asStored = (content: unknown) => JSON.parse(JSON.stringify(content)) as unknown;
  const put = (item: Item) =>
    thread.change(({ shown, hidden }) => {
      const all = [...shown, ...hidden];
      const before = all.find(({ id }) => id === item.id);
      const order = before?.order ?? Math.max(-1, ...all.map(({ order }) => order)) + 1;
      const kept: Kept = { ...item, order, content: asStored(item.content) };
      const swapped = (list: Kept[]) => list.map((one) => (one.id === item.id ? kept : one));
      if (before) return { shown: swapped(shown), hidden: swapped(hidden) };
      // The branch that goes on is the one that people see.
      const branch: Kept[] = [kept];
      for (let parent = item.parentId; parent !== null; ) {
        const one = all.find(({ id }) => id === parent);
        if (!one) return { shown: [...shown, kept], hidden };
        branch.unshift(one);
        parent = one.parentId;
      }
      return { shown: branch, hidden: all.filter((one) => !branch.includes(one)) };
    });
  const remove = (ids: string[]) =>
    thread.change(({ shown, hidden }) => {
      const gone = new Map([...shown, ...hidden].filter(({ id }) => ids.includes(id)).map(({ id, parentId }) => [id, parentId]));
      const left = (list: Kept[]) =>
        list
          .filter(({ id }) => !gone.has(id))
          .map((one) => {
            let { parentId } = one;
            while (parentId !== null && gone.has(parentId)) parentId = gone.get(parentId)!;
            return parentId === one.parentId ? one : { ...one, parentId };
          });
      return { shown: left(shown), hidden: left(hidden) };
    });
  const load = async (format: string) => {
    const { shown, hidden } = await thread.read();
    const all = [...shown, ...hidden].filter((one) => one.format === format).sort((a, b) => a.order - b.order);
    return { headId: shown.findLast((one) => one.format === format)?.id ?? null, all };
  };
  return { put, remove, load };
}

/**
 * The history of a thread: `useLocalRuntime(model, { adapters: { history: historyAdapter(client, thread) } })`. All branches are
 * kept. What people see, and what prompts have, is the branch that went on last.
 */
export function historyAdapter(client: Client, thread: string | (() => string | Promise<string>)): ThreadHistoryAdapter {
  const { put, remove, load } = operations(new Thread(client, typeof thread === "string" ? () => thread : thread));
  const own = ({ message, parentId, runConfig }: ExportedMessageRepositoryItem): Item => {
    return { id: message.id, parentId, format: OWN, content: message, runConfig };
  };
  return {
    load: async () => {
      const { headId, all } = await load(OWN);
      const item = ({ parentId, content, runConfig }: Kept) => ({ parentId, message: revived(content), ...(runConfig ? { runConfig } : {}) });
      return { headId, messages: all.map(item) };
    },
    append: (item) => put(own(item)),
    update: (item) => put(own(item)),
    delete: (items) => remove(items.map(({ message }) => message.id)),
    withFormat<M, F extends Record<string, unknown>>(adapter: MessageFormatAdapter<M, F>): GenericThreadHistoryAdapter<M> {
      const { format } = adapter;
      const item = (item: MessageFormatItem<M>): Item => {
        return { id: adapter.getId(item.message), parentId: item.parentId, format, content: adapter.encode(item) };
      };
      return {
        load: async () => {
          const { headId, all } = await load(format);
          const decoded = ({ id, parentId, content }: Kept) => adapter.decode({ id, parent_id: parentId, format, content: content as F });
          return { headId, messages: all.map(decoded) };
        },
        append: (one) => put(item(one)),
        update: (one) => put(item(one)),
        delete: (items) => remove(items.map(({ message }) => adapter.getId(message))),
      };
    },
  } as ThreadHistoryAdapter;
}

/** The tags of a thread. */
const THREAD = "assistant-ui";
const ARCHIVED = "assistant-ui:archived";

type Metadata = Awaited<ReturnType<RemoteThreadListAdapter["fetch"]>>;

function toMetadata({ conversation, key, title, tags, last_activity, metadata }: Described): Metadata {
  const custom = (metadata?.assistant_ui as { custom?: Fields } | undefined)?.custom;
  return {
    status: tags?.includes(ARCHIVED) ? "archived" : "regular",
    remoteId: key ?? conversation,
    ...(title === undefined ? {} : { title }),
    lastMessageAt: new Date(last_activity),
    ...(custom && { custom }),
  };
}

/** The first line of the first thing that was said. */
function firstLine(messages: readonly ThreadMessage[]): string {
  const said = messages.find(({ role }) => role === "user")?.content.find((part) => part.type === "text");
  return (said?.type === "text" ? said.text.trim().split("\n")[0]! : "").slice(0, 80) || "New chat";
}

/** The threads of the key's owner: `useRemoteThreadListRuntime({ adapter: threadListAdapter(client), runtimeHook })`. */
export function threadListAdapter(
  client: Client, { title = firstLine }: { title?: (messages: readonly ThreadMessage[]) => string | Promise<string> } = {},
): RemoteThreadListAdapter {
  const adapter: RemoteThreadListAdapter = {
    async list({ after } = {}) {
      const { items, next } = await client.listPage({ tags: [THREAD], after });
      const described = await Promise.all(items.map((item) => client.describe(item.conversation).catch(() => item)));
      return { threads: described.map(toMetadata), ...(next === undefined ? {} : { nextCursor: next }) };
    },
    async fetch(threadId) {
      return toMetadata(await client.describe(threadId));
    },
    async initialize(threadId, options) {
      const custom = options?.custom;
      const key = `thread-${uuid()}`;
      await client.create({ key, tags: [THREAD], metadata: { assistant_ui: { threadId, ...(custom && { custom }) } } });
      return { remoteId: key };
    },
    async rename(remoteId, newTitle) {
      await client.setTitle(remoteId, newTitle);
    },
    async updateCustom(remoteId, custom) {
      const { metadata = {} } = await client.describe(remoteId);
      const { custom: _, ...others } = (metadata.assistant_ui ?? {}) as Fields;
      await client.setMetadata(remoteId, { ...metadata, assistant_ui: { ...others, ...(custom && { custom }) } });
    },
    async archive(remoteId) {
      await client.changeTags(remoteId, { add: [ARCHIVED] });
    },
    async unarchive(remoteId) {
      await client.changeTags(remoteId, { remove: [ARCHIVED] });
    },
    async delete(remoteId) {
      await client.delete(remoteId).catch((error: unknown) => {
        if (!(error instanceof NotFoundError)) throw error;
      });
    },
    async generateTitle(remoteId, messages) {
      const textDelta = await title(messages);
      await client.setTitle(remoteId, textDelta);
      return new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "part-start", part: { type: "text" }, path: [] });
          controller.enqueue({ type: "text-delta", textDelta, path: [0] });
          controller.enqueue({ type: "part-finish", path: [0] });
          controller.close();
        },
      });
    },
  };
  return adapter;
}
