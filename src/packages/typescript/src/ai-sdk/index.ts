// A store for the chats of the AI SDK (Vercel): `ai` 6 and 7.

export type { AnswerEnd } from "./form.js";
export { chatRoutes, type Answer, type ChatRoutes } from "./routes.js";
export { ChatConflictError, ChatStore, type ChatRequest, type ChatStoreOptions, type Turn } from "./store.js";
export { chatTransport } from "./transport.js";
