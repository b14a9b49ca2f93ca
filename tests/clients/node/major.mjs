// `AI=7 node --import ./major.mjs`: the AI SDK is the next major for every module, that of `conversation-store` too.

import { register } from "node:module";

const ALIASES = { ai: "ai7", "ai/test": "ai7/test", "@ai-sdk/react": "ai-react7" };
const hook = `
  const ALIASES = ${JSON.stringify(ALIASES)};
  export const resolve = (name, context, next) => next(ALIASES[name] ?? name, ALIASES[name] ? { ...context, parentURL: ${JSON.stringify(import.meta.url)} } : context);
`;
if (process.env.AI === "7") register(`data:text/javascript,${encodeURIComponent(hook)}`);
