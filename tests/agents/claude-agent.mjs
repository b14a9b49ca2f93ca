// A turn of Claude Code by the Claude Agent SDK, which keeps its session in a server: what is asked comes as JSON, and so goes the result,
// with the lines that the SDK gave the store, and those that the store gives back.

import { query } from "@anthropic-ai/claude-agent-sdk";
import { Client } from "conversation-store";
import { ConvoSessionStore } from "conversation-store/claude-agent";

const { url, options } = JSON.parse(process.argv[2]);
const store = new ConvoSessionStore(new Client({ url }));
const given = [];
const append = store.append.bind(store);
store.append = (key, entries) => {
  given.push([key, structuredClone(entries)]);
  return append(key, entries);
};
let result;
for await (const message of query({ prompt: process.argv[3], options: { ...options, sessionStore: store } })) {
  if (message.type === "result") result = message;
}
const keys = [...new Map(given.map(([key]) => [JSON.stringify(key), key])).values()];
const loaded = await Promise.all(keys.map(async (key) => [key, await store.load(key)]));
console.log(JSON.stringify({ result, given, loaded }));
