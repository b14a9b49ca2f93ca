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
  // Of an event that is not whole. Texts are put together once: an event may be large.
  let pieces: string[] = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const piece = decoder.decode(value, { stream: true });
      if (piece === "") continue;
      const isSplit = piece.startsWith("\n") && pieces.at(-1)?.endsWith("\n");
      pieces.push(piece);
      if (!isSplit && !piece.includes("\n\n")) continue;
      const blocks = pieces.join("").split("\n\n");
      pieces = [blocks.pop() ?? ""];
      for (const block of blocks) {
        const event: ServerSentEvent = { data: "" };
        const lines = [];
        for (const line of block.split("\n")) {
          const [, field, value = ""] = /^(event|id|data): ?(.*)$/s.exec(line) ?? [];
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
