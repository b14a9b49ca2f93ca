// A real server process, with keys, on a store of its own.

import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { mkdtempSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = process.env.CONVO;

export class Server {
  /** `store`: on disk, unless it is given. */
  constructor(store) {
    this.folder = mkdtempSync(join(tmpdir(), "convo-clients-"));
    this.store = store ?? `sled:${join(this.folder, "store")}`;
    this.keys = join(this.folder, "keys.json");
    const create = ["keys", "create", "--keys", this.keys, "--owner", "ada"];
    this.secret = execFileSync(PROGRAM, create, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }

  async start() {
    const args = ["--store", this.store, "--json", "serve", "--keys", this.keys];
    if (this.config) args.push("--config", this.config);
    const log = openSync(join(this.folder, "log"), "a");
    const listen = this.address ? new URL(this.address).host : "127.0.0.1:0";
    this.process = spawn(PROGRAM, [...args, "--listen", listen], { stdio: ["ignore", "pipe", log] });
    for await (const line of createInterface({ input: this.process.stdout })) {
      this.address = JSON.parse(line).listening;
      return this;
    }
    throw new Error(`the server did not start: see ${this.folder}/log`);
  }

  kill() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    return ended;
  }

  /** What the native API answers. */
  async native(path) {
    const headers = { authorization: `Bearer ${this.secret}` };
    const response = await fetch(`${this.address}/api/v1/conversations/${path}`, { headers });
    return response.json();
  }
}
