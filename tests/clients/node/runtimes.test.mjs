// The package in Deno and Bun, if they are installed: they come from npm, where their makers have programs for this machine.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { test } from "node:test";
import { createInterface } from "node:readline";
import { Server } from "./server.mjs";

const folder = process.env.RUNTIMES ?? new URL("../runtimes/node_modules/.bin/", import.meta.url).pathname;
const RUNTIMES = { node: [process.execPath], deno: [`${folder}/deno`, "run", "--allow-all", "--quiet"], bun: [`${folder}/bun`] };

for (const [runtime, [program, ...args]] of Object.entries(RUNTIMES)) {
  let skip = false;
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
  } catch {
    skip = `${runtime} is not installed`;
  }
  test(`the client and the store of the AI SDK in ${runtime}`, { skip, timeout: 60_000 }, async () => {
    const server = await new Server().start();
    const command = [...args, "runtime.mjs", server.address, server.secret, runtime];
    const child = spawn(program, command, { cwd: import.meta.dirname, stdio: ["pipe", "pipe", "inherit"] });
    const lines = [];
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        lines.push(line);
        if (line !== "kill") continue;
        await server.kill();
        await server.start();
        child.stdin.write("started\n");
      }
    } finally {
      child.kill();
      await server.kill();
    }
    assert.deepEqual(lines, ["kill", "done"]);
  });
}
