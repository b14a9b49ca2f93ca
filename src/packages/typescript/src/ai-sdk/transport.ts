// What a page needs: `useChat({ transport: chatTransport() })`.

import { DefaultChatTransport } from "ai";
import type { ChatTransport, HttpChatTransportInitOptions, UIMessage, UIMessageChunk } from "ai";

type Options<M extends UIMessage> = Omit<HttpChatTransportInitOptions<M>, "prepareSendMessagesRequest" | "prepareReconnectToStreamRequest">;
type Fields = { headers?: unknown; credentials?: unknown; fetch?: typeof fetch };

const given = (value: unknown) => (typeof value === "function" ? value() : value);

/** Sends only what is new, and stops the model when the page's `stop` is called. */
class StoreTransport<M extends UIMessage> extends DefaultChatTransport<M> {
  /** A resumed stream has the answer from its beginning. */
  readonly resumeStreamIsReplay = true;
  #resumes = 0;

  constructor(options: Options<M>) {
    super({
      ...options,
      prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body, headers, credentials }) => ({
        body: { ...body, id, trigger, messageId, ...newest(messages) },
        headers,
        credentials,
      }),
    });
  }

  override sendMessages(options: Parameters<ChatTransport<M>["sendMessages"]>[0]): Promise<ReadableStream<UIMessageChunk>> {
    options.abortSignal?.addEventListener("abort", () => void this.#stop(options.chatId), { once: true });
    return super.sendMessages(options);
  }

  override async reconnectToStream(
    options: Parameters<ChatTransport<M>["reconnectToStream"]>[0],
  ): Promise<ReadableStream<UIMessageChunk> | null> {
    const resume = ++this.#resumes;
    const { abortSignal } = options as { abortSignal?: AbortSignal };
    // A page that resumes again gives up the first stream, not the answer.
    const end = () => setTimeout(() => resume === this.#resumes && void this.#stop(options.chatId));
    // The page may stop what it shows of the answer before the stream is there.
    abortSignal?.addEventListener("abort", end, { once: true });
    const stream = await super.reconnectToStream(options);
    if (!stream) abortSignal?.removeEventListener("abort", end);
    return stream;
  }

  async #stop(chat: string): Promise<void> {
    const { headers, credentials, fetch: own = fetch } = this as unknown as Fields;
    const init = { method: "POST", headers: await given(headers), credentials: await given(credentials), keepalive: true };
    const [, path, rest] = /^([^?#]*)(.*)$/s.exec(this.api)!;
    await own(`${path}/${encodeURIComponent(chat)}/stop${rest}`, init).catch(() => {});
  }
}

/** The user's messages since the last answer, or that answer, with what the page did with its calls. */
function newest<M extends UIMessage>(messages: M[]): { messages: M[]; parentId: string | null } {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const from = last === messages.length - 1 ? Math.max(last, 0) : last + 1;
  return { messages: messages.slice(from), parentId: messages[from - 1]?.id ?? null };
}

export function chatTransport<M extends UIMessage = UIMessage>(options: Options<M> = {}): ChatTransport<M> {
  return new StoreTransport<M>(options);
}
