// The package for TypeScript, asked by a program: a file has `[what, ...arguments]` for each call, the answers go as JSON.

import { readFileSync } from "node:fs";
import { Client } from "conversation-store";
import { ConvoSessionStore } from "conversation-store/claude-agent";
import { ConvoSession } from "conversation-store/openai-agents";

const [url, file] = process.argv.slice(2);
const client = new Client({ url });
const sessions = new ConvoSessionStore(client);
const all = async (messages) => {
  const found = [];
  for await (const message of messages) found.push(message);
  return found;
};
const operations = {
  append: (key, messages, options) => client.append(key, messages, options),
  messages: (key) => all(client.messages(key)),
  write: (key, lines) => sessions.append(key, lines),
  load: (key) => sessions.load(key),
  summaries: (project) => sessions.listSessionSummaries(project),
  add: (key, items) => new ConvoSession(client, key).addItems(items),
  items: (key) => new ConvoSession(client, key).getItems(),
  pop: (key) => new ConvoSession(client, key).popItem(),
};
const answers = [];
for (const [what, ...given] of JSON.parse(readFileSync(file, "utf8"))) answers.push((await operations[what](...given)) ?? null);
process.stdout.write(JSON.stringify(answers));
