// Server-sent events.

export interface ServerSentEvent {
  name?: string;
  id?: string;
  data: string;
}

/** The events of a body, each once it is whole. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const event: ServerSentEvent = { data: "" };
        const lines = [];
        for (const line of block.split("\n")) {
          const [, field, value = ""] = /^(event|id|data): ?(.*)$/.exec(line) ?? [];
          if (field === "event") event.name = value;
          else if (field === "id") event.id = value;
          else if (field === "data") lines.push(value);
        }
        // Comments keep the connection alive.
        if (lines.length > 0) yield { ...event, data: lines.join("\n") };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
