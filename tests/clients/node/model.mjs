// A model with a script: `run: COMMAND` in the last user's text calls a tool with it, anything else gets a sentence. It speaks
// Messages, Chat Completions and Responses.

import { createServer } from "node:http";

const halves = (text) => [text.slice(0, text.length / 2), text.slice(text.length / 2)];

/** What it says: the arguments of a call, or a text. */
function said(texts, hasResults, number) {
  const command = hasResults ? null : /run: (.*)/.exec(texts.at(-1) ?? "")?.[1];
  return command ? { id: `call_${number}`, input: { command } } : { text: `I see it. (${number})` };
}

function messages(request, number) {
  const last = request.messages.at(-1);
  const parts = typeof last.content === "string" ? [{ type: "text", text: last.content }] : last.content;
  const { id, input, text } = said(parts.map((part) => part.text ?? ""), parts.some((part) => part.type === "tool_result"), number);
  const block = id ? { type: "tool_use", id, name: "shell", input } : { type: "text", text };
  const usage = { input_tokens: 9, output_tokens: 3 };
  const whole = { id: `msg_${number}`, type: "message", role: "assistant", model: request.model, content: [block], usage,
    stop_reason: id ? "tool_use" : "end_turn", stop_sequence: null };
  const empty = id ? { ...block, input: {} } : { ...block, text: "" };
  const delta = (half) => (id ? { type: "input_json_delta", partial_json: half } : { type: "text_delta", text: half });
  const events = [
    { type: "message_start", message: { ...whole, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: empty },
    ...halves(id ? JSON.stringify(input) : text).map((half) => ({ type: "content_block_delta", index: 0, delta: delta(half) })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: whole.stop_reason, stop_sequence: null }, usage: { output_tokens: 3 } },
    { type: "message_stop" },
  ];
  return { whole, events };
}

function chat(request, number) {
  const last = request.messages.at(-1);
  const texts = typeof last.content === "string" ? [last.content] : last.content.map((part) => part.text ?? "");
  const { id, input, text } = said(texts, last.role === "tool", number);
  const written = JSON.stringify(input);
  const calls = id ? [{ id, type: "function", function: { name: "shell", arguments: written } }] : undefined;
  const made = { id: `chatcmpl_${number}`, created: 1, model: request.model };
  const reason = id ? "tool_calls" : "stop";
  const choice = (delta, finish_reason = null) => ({ ...made, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  const events = id
    ? [choice({ role: "assistant", content: null, tool_calls: [{ index: 0, ...calls[0], function: { name: "shell", arguments: "" } }] }),
      ...halves(written).map((half) => choice({ tool_calls: [{ index: 0, function: { arguments: half } }] }))]
    : [choice({ role: "assistant", content: "" }), ...halves(text).map((half) => choice({ content: half }))];
  const message = { role: "assistant", content: text ?? null, tool_calls: calls };
  const whole = { ...made, object: "chat.completion", choices: [{ index: 0, message, finish_reason: reason }] };
  return { whole, events: [...events, choice({}, reason)] };
}

function responses(request, number) {
  const items = typeof request.input === "string" ? [{ role: "user", content: request.input }] : request.input;
  const at = items.findLastIndex((item) => item.role === "user");
  const content = items[at]?.content ?? "";
  const texts = typeof content === "string" ? [content] : content.map((part) => part.text ?? "");
  const hasResults = items.slice(at + 1).some((item) => item.type === "function_call_output");
  const { id, input, text } = said(texts, hasResults, number);
  const part = { type: "output_text", text, annotations: [] };
  const item = id
    ? { type: "function_call", id: `fc_${number}`, call_id: id, name: "shell", arguments: JSON.stringify(input), status: "completed" }
    : { type: "message", id: `msg_${number}`, role: "assistant", status: "completed", content: [part] };
  const usage = { input_tokens: 9, input_tokens_details: { cached_tokens: 0 }, output_tokens: 3,
    output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 12 };
  const begun = { id: `resp_${number}`, object: "response", created_at: 1, model: request.model, status: "in_progress", output: [] };
  const whole = { ...begun, status: "completed", output: [item], usage };
  const where = { item_id: item.id, output_index: 0 };
  const inside = { ...where, content_index: 0 };
  const middle = id
    ? [...halves(item.arguments).map((delta) => ({ type: "response.function_call_arguments.delta", ...where, delta })),
      { type: "response.function_call_arguments.done", ...where, arguments: item.arguments }]
    : [{ type: "response.content_part.added", ...inside, part: { ...part, text: "" } },
      ...halves(text).map((delta) => ({ type: "response.output_text.delta", ...inside, delta })),
      { type: "response.output_text.done", ...inside, text }, { type: "response.content_part.done", ...inside, part }];
  const open = { ...item, status: "in_progress", ...(id ? { arguments: "" } : { content: [] }) };
  const events = [{ type: "response.created", response: begun }, { type: "response.output_item.added", output_index: 0, item: open },
    ...middle, { type: "response.output_item.done", output_index: 0, item }, { type: "response.completed", response: whole }];
  return { whole, events: events.map((event, sequence_number) => ({ ...event, sequence_number })) };
}

const SPOKEN = { "/v1/messages": messages, "/v1/chat/completions": chat, "/v1/responses": responses };

export class Model {
  /** The requests that came, as they came. */
  bodies = [];

  async start() {
    this.server = createServer(async (asked, answer) => {
      const pieces = [];
      for await (const piece of asked) pieces.push(piece);
      const body = Buffer.concat(pieces).toString();
      const speak = SPOKEN[asked.url.split("?")[0]];
      if (!speak) return answer.writeHead(404, { "content-type": "application/json" }).end("{}");
      this.bodies.push(body);
      const request = JSON.parse(body);
      const { whole, events } = speak(request, this.bodies.length);
      if (!request.stream) return answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(whole));
      answer.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of events) answer.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
      answer.end(asked.url.includes("chat") ? "data: [DONE]\n\n" : "");
    });
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  end() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
