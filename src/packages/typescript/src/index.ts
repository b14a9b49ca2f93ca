export * from "./client.js";
export * from "./errors.js";
export type * from "./transcript.js";
export type { components, operations } from "./openapi.js";
