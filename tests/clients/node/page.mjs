// A page with the real `useChat`, in a document of jsdom.

import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html><div></div>", { url: "http://127.0.0.1/" });
Object.assign(globalThis, { window, document: window.document });
// Node 21 has its own.
globalThis.navigator ??= window.navigator;
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import("@ai-sdk/react");
const { chatTransport } = await import("conversation-store/ai-sdk");

export class Page {
  #root = createRoot(window.document.createElement("div"));
  #gone = new AbortController();
  #waiting = new Set();
  #renders = 0;

  /** Opens a chat as a page does: what is stored, and then what is being written. */
  static async open(url, id, options = {}) {
    const page = new Page();
    const own = (input, init) => fetch(input, { ...init, signal: AbortSignal.any([page.#gone.signal, ...(init?.signal ? [init.signal] : [])]) });
    const messages = await (await own(`${url}/${encodeURIComponent(id)}`)).json();
    const transport = options.transport?.(own) ?? chatTransport({ api: url, fetch: own });
    page.#root.render(createElement(() => {
      page.chat = useChat({ id, messages, resume: true, ...options, transport });
      page.#renders++;
      queueMicrotask(() => page.#waiting.forEach((look) => look()));
      return null;
    }));
    await page.until(() => page.chat && page.#renders > 1 || page.chat?.status === "ready");
    return page;
  }

  get messages() {
    return this.chat.messages;
  }

  get last() {
    return this.chat.messages.at(-1);
  }

  /** The text of each message. */
  get texts() {
    return this.messages.map(({ parts }) => parts.filter(({ type }) => type === "text").map(({ text }) => text).join("|"));
  }

  /** Waits for a state of the page. */
  until(condition, what = condition.toString()) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${what} did not come: ${JSON.stringify({ ...this.chat, error: String(this.chat?.error) })}`)), 10_000);
      const holds = () => {
        try {
          return condition();
        } catch {
          return false;
        }
      };
      const look = () => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Says something, and waits for the answer's end. */
  async say(text, options) {
    await this.chat.sendMessage({ text }, options);
    await this.until(() => ["ready", "error"].includes(this.chat.status));
  }

  saw(text) {
    return this.until(() => this.last?.parts.some((part) => part.text?.includes(text)), text);
  }

  /** What is under way fails; what comes later does not. */
  breakNetwork() {
    this.#gone.abort(new TypeError("network error"));
    this.#gone = new AbortController();
  }

  /** The window is closed. */
  leave() {
    this.#gone.abort();
    this.#root.unmount();
  }
}
