// Writes src/openapi.ts from the server's own document: `node scripts/generate.mjs PATH/TO/convo [--check]`.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const [program = "convo", check] = process.argv.slice(2);
const document = JSON.parse(execFileSync(program, ["openapi"], { encoding: "utf8", maxBuffer: 1 << 26 }));

// The client speaks the native API. Refusals are all of one shape, and are read by hand.
for (const [path, methods] of Object.entries(document.paths)) {
  if (!path.startsWith("/api/v1/") || path.startsWith("/api/v1/admin/")) delete document.paths[path];
  for (const { responses } of Object.values(methods)) {
    for (const status of Object.keys(responses ?? {})) if (status !== "200") delete responses[status];
  }
}
const used = new Set();
const find = (value) => {
  if (typeof value !== "object" || value === null) return;
  const name = value.$ref?.match(/^#\/components\/schemas\/(.*)$/)?.[1];
  if (name && !used.has(name)) {
    used.add(name);
    find(document.components.schemas[name]);
  }
  Object.values(value).forEach(find);
};
find(document.paths);
for (const name of Object.keys(document.components.schemas)) if (!used.has(name)) delete document.components.schemas[name];

const head = "// Made by scripts/generate.mjs from `convo openapi`: not edited by hand.\n\n";
const text = head + astToString(await openapiTS(document, { emptyObjectsUnknown: true }));
const file = new URL("../src/openapi.ts", import.meta.url);
if (check !== "--check") writeFileSync(file, text);
else if (readFileSync(file, "utf8") !== text) throw new Error("src/openapi.ts is not what `convo openapi` says: `bash .ci/package PROGRAM --write` writes it");
