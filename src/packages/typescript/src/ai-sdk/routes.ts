// The routes of a chat server, over the requests and responses of the web.

import { createUIMessageStreamResponse } from "ai";
import type { UIMessage, UIMessageChunk } from "ai";
import { ConvoError } from "../errors.js";
import type { ChatRequest, Turn } from "./store.js";
import { ChatConflictError, ChatStore } from "./store.js";

/** What `streamText` gives, or a stream that was made of it. */
export type Answer = ReadableStream<UIMessageChunk> | { toUIMessageStream(): ReadableStream<UIMessageChunk> };

export interface ChatRoutes {
  /** `POST /api/chat`: a turn. */
  post(request: Request): Promise<Response>;
  /** `GET /api/chat/ID/stream`: the answer that is being written, or 204. */
  stream(chat: string): Promise<Response>;
  /** `POST /api/chat/ID/stop`. */
  stop(chat: string): Promise<Response>;
  /** `GET /api/chat/ID`: the messages. */
  messages(chat: string): Promise<Response>;
  /** All of them, by the path. */
  handle(request: Request): Promise<Response>;
}

/** The routes that `chatTransport` calls. `answer` calls the model with `turn.messages` and `turn.signal`. */
export function chatRoutes<M extends UIMessage = UIMessage>(
  store: ChatStore<M>, answer: (turn: Turn<M>) => Answer | Promise<Answer>,
): ChatRoutes {
  const routes: ChatRoutes = {
    post: (request) =>
      answered(async () => {
        const turn = await store.turn((await request.json()) as ChatRequest<M>);
        try {
          const source = await answer(turn);
          return turn.response(source instanceof ReadableStream ? source : source.toUIMessageStream());
        } catch (error) {
          // If the store is what fails, the application's error is the one to see.
          await turn.fail(error).catch(() => {});
          throw error;
        }
      }),
    stream: (chat) =>
      answered(async () => {
        const stream = await store.resume(chat);
        return stream ? createUIMessageStreamResponse({ stream }) : new Response(null, { status: 204 });
      }),
    stop: (chat) => answered(async () => Response.json({ stopped: await store.stop(chat) })),
    messages: (chat) => answered(async () => Response.json(await store.load(chat))),
    handle(request) {
      const [, id, what] = /\/api\/chat(?:\/([^/]+))?(?:\/(stream|stop))?$/.exec(new URL(request.url).pathname) ?? [];
      const chat = id === undefined ? undefined : decodeURIComponent(id);
      const key = `${request.method} ${what ?? ""}`;
      if (chat === undefined && key === "POST ") return routes.post(request);
      if (chat !== undefined && key === "GET stream") return routes.stream(chat);
      if (chat !== undefined && key === "POST stop") return routes.stop(chat);
      if (chat !== undefined && key === "GET ") return routes.messages(chat);
      return Promise.resolve(new Response("There is nothing here.", { status: 404 }));
    },
  };
  return routes;
}

/** `useChat` shows the text of a refusal. */
async function answered(what: () => Promise<Response>): Promise<Response> {
  try {
    return await what();
  } catch (error) {
    if (error instanceof ChatConflictError) return new Response(error.message, { status: 409 });
    if (error instanceof ConvoError) return new Response(`The chat could not be stored: ${error.message}`, { status: 503 });
    throw error;
  }
}
