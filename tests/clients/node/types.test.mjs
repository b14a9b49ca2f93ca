// The package's types, in the strict mode of TypeScript, with either major of the AI SDK.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const folder = fileURLToPath(new URL(".", import.meta.url));

for (const major of [6, 7]) {
  test(`strict, with major ${major} of the AI SDK`, async () => {
    const paths = major === 7 ? { ai: ["./node_modules/ai7"], "@ai-sdk/react": ["./node_modules/ai-react7"] } : {};
    const compilerOptions = {
      module: "NodeNext", target: "ES2022", lib: ["ES2023", "DOM"], types: [], strict: true, noEmit: true, noUncheckedIndexedAccess: true,
      skipLibCheck: true, verbatimModuleSyntax: true, paths,
    };
    const config = `${folder}tsconfig.${major}.json`;
    writeFileSync(config, JSON.stringify({ compilerOptions, files: ["types.ts"] }));
    const { stdout } = await run("node_modules/.bin/tsc", ["-p", config], { cwd: folder }).catch((error) => error);
    assert.equal(stdout, "");
  });
}
