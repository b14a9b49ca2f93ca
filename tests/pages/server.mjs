// A server in a process of its own, with keys, and what is stored in it.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const CONVO = process.env.CONVO ?? 'target/debug/convo';

export async function serve({ keys = true, config = '' } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'convo-pages-'));
  const file = join(dir, 'keys.json');
  const create = (owner, scopes) =>
    execFileSync(CONVO, ['keys', 'create', '--keys', file, '--owner', owner, '--scopes', scopes], {
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString().trim();
  const secrets = keys ? { ada: create('ada', 'read,append,delete,admin'), grace: create('grace', 'read,append') } : {};
  const settings = join(dir, 'convo.toml');
  writeFileSync(settings, config);
  const args = ['--store', `sled:${join(dir, 'store')}?cache_mb=1`, '--json', 'serve', '--listen', '127.0.0.1:0', '--config', settings];
  const child = spawn(CONVO, keys ? [...args, '--keys', file] : args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    new Promise((done) => lines.once('line', (text) => done([text]))),
    new Promise((_, fail) => child.once('exit', (code) => fail(new Error(`the server ended: ${code}`)))),
  ]);
  const url = JSON.parse(line).listening;
  const headers = (owner) => (keys ? { authorization: `Bearer ${secrets[owner]}` } : {});
  return {
    url,
    secrets,
    async api(method, path, body, owner = 'ada') {
      const answer = await fetch(`${url}/api/v1${path}`, {
        method,
        headers: { ...headers(owner), 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return JSON.parse(text);
    },
    // A provider's answer that streams in as the test writes it.
    ingest(conversation, owner = 'ada') {
      const address = new URL(`${url}/api/v1/conversations/${conversation}/ingest?from=openai-chat&model=gpt-5.2`);
      const open = request(address, { method: 'POST', headers: headers(owner) });
      const done = new Promise((ok, fail) => {
        open.on('response', (answer) => answer.resume().on('end', () => ok(answer.statusCode)));
        open.on('error', fail);
      });
      const send = (delta, finish = null) =>
        open.write(`data: ${JSON.stringify({ model: 'gpt-5.2', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
      return {
        say: (content) => send({ content }),
        think: (reasoning_content) => send({ reasoning_content }),
        end() {
          send({}, 'stop');
          open.end('data: [DONE]\n\n');
          return done;
        },
      };
    },
    async stop() {
      const ended = new Promise((done) => child.once('exit', done));
      child.kill('SIGTERM');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
