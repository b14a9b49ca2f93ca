// The pages in a real browser, as a person uses them. One promise a test.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';

import { fill } from './conversations.mjs';
import { serve } from './server.mjs';

const WORK = resolve('target/pages');
const require = createRequire(join(WORK, 'package.json'));
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const SHOTS = join(WORK, 'screenshots');
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const WIDE = { width: 1280, height: 860 };
const PHONE = { width: 360, height: 740 };

let server;
let browser;
const HOSTILE_RESULT = '</textarea><script>window.broken = 8</script>';

// What no page may do: what each of them did is looked at after each test.
let complaints = [];

before(async () => {
  mkdirSync(SHOTS, { recursive: true });
  server = await serve();
  await fill(server);
  // With a new profile each time.
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS, headless: true });
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

// A page whose requests and complaints are watched.
async function open(options = {}, on = server) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  const page = await context.newPage();
  const complain = (what) => complaints.push(what);
  context.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && origin !== on.url) complain(`it asks ${request.url()}`);
  });
  page.on('console', (message) => {
    const expected = /status of (401|403|404|400|422|429)/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !expected) complain(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complain(`script: ${error}`));
  page.on('dialog', (dialog) => complain(`dialog: ${dialog.message()}`));
  page.go = (path) => page.goto(on.url + path);
  return page;
}

async function enter(page, owner = 'ada') {
  await page.go('/pages/login');
  await page.getByLabel('Key').fill(server.secrets[owner]);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL('**/pages');
}

// A page of somebody who is logged in.
async function inside(options = {}, owner = 'ada') {
  const page = await open(options);
  await enter(page, owner);
  return page;
}

function it(name, run) {
  test(name, { timeout: 60_000 }, async () => {
    complaints = [];
    const pages = [];
    const kept = (page) => (pages.push(page), page);
    try {
      await run(kept);
    } finally {
      for (const page of pages) await page.context().close();
    }
    assert.deepEqual(complaints, []);
  });
}

const id = async (key) => (await server.api('GET', `/conversations/${key}`)).conversation;

it('a person logs in by key, and out again', async (kept) => {
  const page = kept(await open());
  await page.go('/pages?q=fog');
  assert.match(page.url(), /\/pages\/login\?next=/);
  await page.getByLabel('Key').fill('convo_wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('wrong').waitFor();
  await page.getByLabel('Key').fill(server.secrets.ada);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/pages?q=fog');
  await page.getByRole('link', { name: 'A walk above the fog' }).first().waitFor();
  const [cookie] = await page.context().cookies(`${server.url}/pages`);
  assert.equal(cookie.httpOnly && cookie.sameSite === 'Strict' && cookie.path === '/pages', true, JSON.stringify(cookie));
  assert.equal(cookie.value.includes(server.secrets.ada.slice(8)), false);
  assert.equal(await page.evaluate(() => document.cookie), '');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await page.context().addCookies([cookie]);
  await page.go('/pages');
  assert.match(page.url(), /login/, 'the session itself has ended');
});

it('the list has the newest first, older pages, tags, and what a search finds', async (kept) => {
  const page = kept(await inside());
  const titles = () => page.locator('.conversations .name > a:first-child').allTextContents();
  assert.equal((await titles()).length, 50);
  assert.equal((await titles()).includes('A walk above the fog'), true);
  await page.getByRole('link', { name: 'Older' }).click();
  await page.getByRole('link', { name: 'Newest' }).waitFor();
  assert.equal((await titles()).includes('Note 1: remember the milk'), true);
  await page.go('/pages');
  await page.getByRole('link', { name: 'Tag family' }).click();
  assert.deepEqual(await titles(), ['A walk above the fog']);
  await page.go('/pages');
  await page.getByRole('searchbox').fill('panorama path');
  await page.keyboard.press('Enter');
  await page.getByText('1 hit').waitFor();
  await page.getByRole('link', { name: 'A walk above the fog' }).click();
  await page.locator('#m4:target').waitFor();
  await page.go('/pages?q=%22');
  await page.getByRole('alert').waitFor();
  const other = kept(await inside({}, 'grace'));
  assert.deepEqual(await other.locator('.conversations .name > a:first-child').allTextContents(), ['the words of grace']);
  await other.go(`/pages/conversations/${await id('weekend')}`);
  await other.getByRole('heading', { name: 'Not found' }).waitFor();
});

it('a conversation shows thinking folded, calls beside results, and loads nothing from elsewhere', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/conversations/weekend');
  const thinking = page.locator('details.thinking');
  assert.equal(await thinking.evaluate((details) => details.open), false);
  assert.equal(await page.getByText('A child of six walks two hours').isVisible(), false);
  // By keyboard alone.
  await page.locator('#m2 .number').focus();
  for (let at = 0; at < 20 && !(await thinking.locator('summary').evaluate((summary) => summary === document.activeElement)); at++) {
    await page.keyboard.press('Tab');
  }
  await page.keyboard.press('Enter');
  await page.getByText('A child of six walks two hours').waitFor();
  const forecast = page.locator('.call').filter({ hasText: 'forecast' });
  await forecast.getByText('Sunny above 900 m').waitFor();
  await page.locator('.call').filter({ hasText: 'trains' }).getByText('Failed').waitFor();
  await page.locator('#m3').getByRole('link', { name: 'message 2' }).waitFor();
  await page.getByText('1,834 tokens in, 212 out').waitFor();
  assert.equal(await page.locator('img').evaluateAll((images) => images.every((image) => image.complete && image.naturalWidth > 0)), true);
  await page.getByRole('link', { name: 'https://pictures.invalid/panorama.jpg' }).waitFor();
  await page.go('/pages/conversations/weekend-rain');
  await page.getByText('Forked from').getByRole('link', { name: 'A walk above the fog' }).click();
  await page.getByRole('heading', { name: 'A walk above the fog' }).waitFor();
});

it('long conversations have pages', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/conversations/long');
  assert.equal(await page.locator('article').count(), 50);
  await page.getByText('Answer 119').waitFor();
  await page.getByRole('link', { name: 'Earlier messages' }).click();
  await page.locator('#m20').waitFor();
  await page.getByRole('link', { name: 'Earlier messages' }).click();
  await page.locator('#m0').getByText('Question 0').waitFor();
  assert.equal(await page.getByRole('link', { name: 'Earlier messages' }).count(), 0);
  await page.getByRole('link', { name: 'Newest' }).click();
  await page.getByText('Answer 119').waitFor();
});

it('what a model writes is Markdown, and what programs say is JSON; long ones are folded', async (kept) => {
  const page = kept(await inside());
  const lines = Array.from({ length: 40 }, (_, at) => `line ${at} of a file`);
  const written = ['# Plan', '', '- [x] *look*', '- `run`', '', '```sh', 'make  <all>', '```', '', '| a | b |', '|---|---|', '| 1 | 2 |'].join('\n');
  await server.api('POST', '/conversations/prose/messages', [
    { role: 'user', chunks: [{ type: 'text', text: '# as typed' }] },
    { role: 'assistant', chunks: [{ type: 'text', text: written }, { type: 'tool_call', id: 'c1', name: 'read', arguments: '{"path":"a","deep":{"x":[1.0]}}' }] },
    { role: 'tool', chunks: [{ type: 'tool_result', tool_call_id: 'c1', content: lines.join('\n') }] },
  ]);
  await page.go('/pages/conversations/prose');
  assert.equal(await page.locator('#m0 .text').textContent(), '# as typed');
  const prose = page.locator('#m1 .prose');
  assert.deepEqual(await prose.locator('> *').evaluateAll((all) => all.map((one) => one.tagName)), ['P', 'UL', 'PRE', 'TABLE']);
  assert.equal(await prose.locator('pre code').textContent(), 'make  <all>\n');
  assert.equal(await page.locator('#m1 .ask .json > div').count(), 8);
  await page.getByText('1.0', { exact: true }).waitFor();
  assert.equal(await page.getByText('line 39 of a file').isVisible(), false);
  await page.getByText('40 lines: line 0 of a file').click();
  await page.getByText('line 39 of a file').waitFor();
  await page.getByRole('link', { name: 'As written' }).click();
  assert.equal(await page.locator('#m1 .piece > .text').first().textContent(), written);
});

it('people change what they may, after they were asked', async (kept) => {
  const page = kept(await inside());
  await server.api('POST', '/conversations/changed/messages', [
    { role: 'user', chunks: [{ type: 'text', text: 'the first question' }] },
    { role: 'assistant', chunks: [{ type: 'text', text: 'the first answer' }] },
    { role: 'user', chunks: [{ type: 'text', text: 'my secret' }] },
    { role: 'assistant', chunks: [{ type: 'text', text: 'the second answer' }] },
  ]);
  await server.api('POST', '/conversations/changed/summaries', { through: 2, text: 'It was about a secret.' });
  const change = async (message, label) => {
    await page.go('/pages/conversations/changed');
    if (message !== null) await page.locator(`#m${message}`).getByText('Change').click();
    await (message === null ? page.locator('main') : page.locator(`#m${message}`)).getByRole('link', { name: label }).click();
    return page.getByRole('button', { name: label });
  };
  const title = await change(null, 'Title');
  await page.getByLabel('Title').fill('A new name');
  await title.click();
  await page.getByRole('heading', { name: 'A new name' }).waitFor();
  const tags = await change(null, 'Tags');
  await page.getByLabel('Tags').fill('one, two');
  await tags.click();
  assert.deepEqual((await server.api('GET', '/conversations/changed')).tags, ['one', 'two']);
  await (await change(1, 'Fork')).click();
  await page.getByText('Forked from').waitFor();
  assert.equal(await page.locator('article').count(), 2);
  await (await change(2, 'Redact')).click();
  await page.getByRole('heading', { name: 'Message 2 is redacted' }).waitFor();
  await page.getByRole('link', { name: 'a summary' }).click();
  await page.getByText('It was about a secret.').waitFor();
  await change(3, 'Hide');
  await page.getByRole('link', { name: 'Leave it as it is' }).click();
  await page.getByText('the second answer').waitFor();
  await (await change(3, 'Hide')).click();
  await page.getByText('the second answer').waitFor({ state: 'detached' });
  await (await change(1, 'Rewind')).click();
  assert.equal(await page.locator('article').count(), 1);
  await (await change(null, 'Delete')).click();
  await page.getByRole('heading', { name: 'Conversations' }).waitFor();
  await page.go('/pages/conversations/changed');
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  // Who may not delete is not asked, and cannot.
  const other = kept(await inside({}, 'grace'));
  await other.go('/pages/conversations/secret');
  await other.locator('#m0').getByText('Change').click();
  assert.deepEqual(await other.locator('#m0 .changes a').evaluateAll((all) => all.map((one) => one.firstChild.textContent)), ['Fork']);
  const answer = await other.evaluate(async () => (await fetch(location.pathname + '/change', { method: 'POST', body: new URLSearchParams({ do: 'delete' }) })).status);
  assert.equal(answer, 403);
});

it('times are those of the reader', async (kept) => {
  const page = kept(await inside({ timezoneId: 'Asia/Tokyo' }));
  await page.go('/pages/conversations/weekend');
  const time = page.locator('#m1 time');
  assert.deepEqual([await time.textContent(), await time.getAttribute('title')], ['2026-11-21 18:00:00', '2026-11-21T09:00:00Z']);
});

it('what was rewound, removed or redacted is shown on request alone', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/conversations/hidden');
  assert.equal(await page.getByText('removed question').count(), 0);
  await page.getByRole('link', { name: 'Show what is hidden' }).click();
  await page.getByText('removed question').waitFor();
  await page.getByText('rewound answer').waitFor();
  for (const state of ['removed at seq', 'rewound at seq', 'redacted at seq']) await page.getByText(state).first().waitFor();
  assert.equal((await page.content()).includes('4000 1234'), false);
});

it('a conversation grows while an answer streams in', async (kept) => {
  const page = kept(await inside());
  await server.api('POST', '/conversations/live/messages', { role: 'user', chunks: [{ type: 'text', text: 'Count, please.' }] });
  await page.go('/pages/conversations/live');
  await page.getByText('Live: new messages appear here.').waitFor();
  const answer = server.ingest('live');
  answer.think('They want numbers.');
  answer.say('one ');
  const written = page.locator('#m1 .piece > .prose');
  await written.getByText('one').waitFor();
  await page.locator('#m1 .state.streaming').waitFor();
  await page.locator('#m1 details.thinking summary').click();
  const lengths = [];
  for (const word of ['two ', 'three ', 'four ', '<b>five</b> ']) {
    answer.say(word);
    await written.getByText(word.trim()).waitFor();
    lengths.push((await written.textContent()).length);
  }
  assert.deepEqual(lengths, [...lengths].sort((a, b) => a - b));
  assert.equal(await page.locator('#m1 details.thinking').evaluate((details) => details.open), true, 'it stays open');
  assert.equal(await answer.end(), 200);
  await page.locator('#m1 .state.streaming').waitFor({ state: 'detached' });
  assert.equal((await written.textContent()).trim(), 'one two three four <b>five</b>');
  // Other changes come too: a title, a removal, and the end of the conversation.
  await server.api('PUT', '/conversations/live/title', { title: 'Numbers' });
  await page.getByRole('heading', { name: 'Numbers' }).waitFor();
  await server.api('DELETE', '/conversations/live/messages/0');
  await page.getByText('Count, please.').waitFor({ state: 'detached' });
  await server.api('DELETE', '/conversations/live');
  await page.getByText('This conversation was deleted.').waitFor();
});

it('the log has every entry, in pages', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/conversations/hidden/log');
  assert.equal(await page.locator('tbody tr').count(), 7);
  for (const kind of ['chunk', 'redact', 'remove', 'rewind']) assert.equal((await page.locator(`td.is-${kind}`).count()) > 0, true, kind);
  const many = Array.from({ length: 250 }, (_, at) => ({ role: 'user', chunks: [{ type: 'text', text: `line ${at}` }] }));
  await server.api('POST', '/conversations/lines/messages', many);
  await page.go('/pages/conversations/lines/log');
  await page.getByRole('link', { name: 'Later entries' }).click();
  await page.getByText('line 249').waitFor();
});

it('the inspector shows the request beside what is stored, and each report line at its place', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/conversations/broken/prompt');
  await page.getByLabel('Target').selectOption('anthropic');
  await page.getByLabel('Model').fill('claude-sonnet-4-5');
  await page.getByRole('button', { name: 'Render' }).click();
  await page.waitForURL('**for=anthropic**');
  assert.equal(await page.getByLabel('Target').inputValue(), 'anthropic');
  await page.locator('.json').getByText('"tool_use"').first().waitFor();
  const { report } = await server.api('GET', '/conversations/broken/prompt?for=anthropic&model=claude-sonnet-4-5');
  assert.equal(await page.locator('.note').count(), report.length, 'each line once');
  for (const line of report.filter((line) => line.message_index !== undefined && line.chunk_index !== undefined)) {
    const place = page.locator(`article .note`).filter({ hasText: line.detail });
    assert.equal((await place.count()) > 0, true, line.detail);
  }
  // From the first change to the last one, and back.
  await page.getByRole('link', { name: 'The first' }).click();
  for (let at = 1; at < report.length; at++) await page.locator(`#r${at}`).getByRole('link', { name: 'Next' }).click();
  assert.match(page.url(), new RegExp(`#r${report.length}$`));
  await page.locator(`#r${report.length}`).getByRole('link', { name: 'Previous' }).click();
  await page.getByLabel('Most messages').fill('1');
  await page.getByRole('button', { name: 'Render' }).click();
  await page.waitForURL('**last=1**');
  assert.equal(await page.locator('.json').getByText('tool_use').count(), 0);
  await page.go('/pages/conversations/broken/prompt?for=nonsense');
  await page.getByRole('alert').waitFor();
});

it('the request is marked where it is not as it is stored, with a way there and back', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/conversations/broken/prompt?for=anthropic&model=claude-sonnet-4-5');
  const marks = page.locator('.json .mark');
  const words = await marks.evaluateAll((all) => all.map((mark) => mark.firstChild.textContent));
  for (const word of ['added', 'removed', 'altered']) assert.equal(words.includes(word), true, `${word}: ${words}`);
  await page.locator('.json del').getByText('overloaded').waitFor();
  const first = marks.first();
  const [here, there] = [await first.getAttribute('id'), await first.getAttribute('href')];
  await first.click();
  assert.equal(new URL(page.url()).hash, there);
  await page.locator(there).getByRole('link', { name: 'Where it is sent' }).click();
  assert.equal(new URL(page.url()).hash, `#${here}`);
  // The lines of what was added are of one colour, and not that of what was removed.
  const colour = (name) => page.locator(`.json > .${name}`).first().evaluate((line) => getComputedStyle(line).backgroundColor);
  assert.notEqual(await colour('added'), await colour('removed'));
});

it('charts show what the tables beside them say', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/usage');
  for (const name of ['Tokens by day', 'Answers by day']) {
    const bars = page.getByRole('img', { name }).locator('rect');
    assert.equal(await bars.count(), 30);
    const heights = await bars.evaluateAll((all) => all.map((bar) => bar.getBoundingClientRect().height));
    assert.equal(Math.max(...heights) > 50, true, `${name}: ${heights}`);
  }
  await page.getByText('The days as a table').click();
  const days = page.getByRole('region', { name: 'The days' }).getByRole('row');
  assert.equal((await days.count()) > 1, true);
  const errors = page.getByRole('region', { name: 'Errors by kind' });
  await errors.getByRole('row', { name: '529' }).waitFor();
  // The longest bar is that of the largest count.
  const sizes = await page.getByRole('region', { name: 'Sizes of conversations' }).locator('tbody tr').evaluateAll((rows) =>
    rows.map((row) => [Number(row.cells[1].textContent.replace(',', '')), row.querySelector('rect').getBoundingClientRect().width]));
  const longest = sizes.reduce((most, size) => (size[1] > most[1] ? size : most));
  assert.equal(longest[0], Math.max(...sizes.map(([count]) => count)), JSON.stringify(sizes));
});

it('the API is described without a login, and tried with a key', async (kept) => {
  const page = kept(await open({ colorScheme: 'dark' }));
  await page.go('/pages/login');
  await page.getByRole('link', { name: 'The API' }).click();
  const operation = page.locator('#operations-native-listTargets');
  await operation.waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.classList.contains('dark-mode')), true);
  await page.screenshot({ path: join(SHOTS, 'api-wide-dark.png') });
  await operation.locator('.opblock-summary-control').click();
  const run = async () => {
    const answer = page.waitForResponse('**/api/v1/targets');
    await operation.getByRole('button', { name: 'Execute' }).click();
    return (await answer).status();
  };
  await operation.getByRole('button', { name: 'Try it out' }).click();
  assert.equal(await run(), 401);
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  await page.locator('.auth-container input').fill(server.secrets.ada);
  await page.locator('.auth-container').getByRole('button', { name: 'Apply credentials' }).click();
  await page.locator('.auth-container').getByRole('button', { name: 'Close' }).click();
  assert.equal(await run(), 200);
  // The key is gone with the page.
  assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
  await page.setViewportSize(PHONE);
  assert.equal((await page.evaluate(() => document.documentElement.scrollWidth)) <= PHONE.width, true);
});

it('a refused request is pasted and repaired', async (kept) => {
  const page = kept(await inside());
  await page.go('/pages/repair');
  const request = { messages: [{ role: 'user', content: 'hi' }, { role: 'tool', tool_call_id: 'call_x', content: HOSTILE_RESULT }] };
  await page.getByLabel('The request, JSON').fill(JSON.stringify(request));
  await page.getByRole('button', { name: 'Repair' }).click();
  await page.getByRole('heading', { name: 'Repaired' }).waitFor();
  await page.locator('.note.refused').first().waitFor();
  const copy = JSON.parse(await page.getByLabel('to copy').inputValue());
  assert.equal(copy.messages.some((message) => message.role === 'tool'), false);
  await page.getByLabel('The request, JSON').fill('{"messages": [');
  await page.getByRole('button', { name: 'Repair' }).click();
  await page.getByRole('alert').waitFor();
  assert.equal(await page.getByLabel('The request, JSON').inputValue(), '{"messages": [');
  await page.getByLabel('The request, JSON').fill('{"messages":[{"role":"user","content":"hi"}]}');
  await page.getByRole('button', { name: 'Repair' }).click();
  await page.getByText('It is accepted as it is.').waitFor();
});

it('nothing that was said is obeyed', async (kept) => {
  const page = kept(await inside());
  for (const path of ['', '?hidden=1', '/log', '/prompt?for=anthropic', '/prompt?for=gemini']) {
    await page.go(`/pages/conversations/hostile${path}`);
    assert.equal(await page.evaluate(() => window.broken), undefined, path);
    assert.equal(await page.locator('main script, main iframe, main a[href^="javascript:"], main img:not([src^="data:image/png"])').count(), 0, path);
    assert.equal((await page.content()).includes('\u202E'), false, path);
  }
  await page.go('/pages/conversations/hostile');
  await page.getByText('invoice\\u{202e}gpj.exe').waitFor();
  // The policy holds: even a script that somebody put into a page does not run.
  complaints = [];
  await page.addScriptTag({ content: 'window.broken = 9' }).catch(() => {});
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(complaints.some((complaint) => complaint.includes('Content Security Policy')), true);
  complaints = [];
});

it('a form of another site is refused', async (kept) => {
  const page = kept(await inside());
  const answer = await page.evaluate(async () => {
    const reply = await fetch('/pages/repair', { method: 'POST', body: new URLSearchParams({ request: '{}' }) });
    return reply.status;
  });
  assert.notEqual(answer, 403, 'the same origin is not refused');
  // Another port is another origin, of the same site: a strict cookie alone would go along.
  const other = await serve({ keys: false });
  await other.api('POST', '/conversations/x/messages', { role: 'user', chunks: [{ type: 'text', text: 'x' }] });
  const [cookie] = await page.context().cookies(`${server.url}/pages`);
  const reply = await fetch(`${server.url}/pages/repair`, {
    method: 'POST',
    headers: { cookie: `${cookie.name}=${cookie.value}`, origin: other.url, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'request={}',
  });
  assert.equal(reply.status, 403);
  await other.stop();
});

it('without keys there is no login, and without a script every page is useful', async (kept) => {
  const free = await serve({ keys: false });
  await free.api('POST', '/conversations/plain/messages', [{ role: 'user', chunks: [{ type: 'text', text: 'Hello.' }] }]);
  const page = kept(await open({ javaScriptEnabled: false }, free));
  await page.go('/');
  await page.getByRole('link', { name: 'Hello.' }).click();
  assert.equal(await page.locator('#m0').getByText('Hello.').count(), 1);
  for (const tab of ['Log', 'Prompt']) {
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: tab }).click();
    assert.equal((await page.locator('main').textContent()).includes('Hello.'), true, tab);
  }
  assert.equal(await page.getByRole('button', { name: 'Log out' }).count(), 0);
  await free.stop();
});

const LOOKS = [
  ['list', '/pages'],
  ['search', '/pages?q=fog'],
  ['conversation', '/pages/conversations/weekend'],
  ['hidden', '/pages/conversations/hidden?hidden=1'],
  ['hostile', '/pages/conversations/hostile'],
  ['log', '/pages/conversations/weekend/log'],
  ['change', '/pages/conversations/weekend/change?do=title'],
  ['prompt', '/pages/conversations/broken/prompt?for=anthropic&model=claude-sonnet-4-5'],
  ['missing', '/pages/conversations/nothing-here'],
  ['usage', '/pages/usage'],
  ['repair', '/pages/repair'],
  ['docs', '/docs'],
];

// What Swagger UI does not do, in its own part of the page, by color scheme. None of it is in files of ours: its badges and verbs are
// pale, its tags are headings of the third rank below the first, each call is a button with buttons in it, its heading is outside
// of its landmark, and its list of servers has no label.
const SWAGGER = {
  light: ['color-contrast', 'heading-order', 'nested-interactive', 'region', 'select-name'],
  dark: ['heading-order', 'nested-interactive', 'region', 'select-name'],
};

// What axe finds on a page, but for what is named and is within an element.
async function violations(page, named = [], within = 'none') {
  await page.evaluate(AXE);
  return page.evaluate(async ([named, within]) => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    const isNamed = (id, { target }) => named.includes(id) && document.querySelector(target[0])?.closest(within);
    const left = violations.map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => !isNamed(id, node)) }));
    const found = left.filter(({ nodes }) => nodes.length > 0);
    return {
      ids: violations.map(({ id }) => id),
      found: found.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join(' | ')}`),
    };
  }, [named, within]);
}

for (const colorScheme of ['light', 'dark']) {
  it(`every page is accessible and fits: ${colorScheme}`, async (kept) => {
    const page = kept(await inside({ colorScheme, reducedMotion: 'reduce' }));
    const look = async (name) => {
      for (const [size, viewport] of [['wide', WIDE], ['phone', PHONE]]) {
        await page.setViewportSize(viewport);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.equal(width <= viewport.width, true, `${name} is ${width} wide on ${size}`);
        await page.screenshot({ path: join(SHOTS, `${name}-${size}-${colorScheme}.png`), fullPage: name !== 'hostile' });
        const known = name === 'docs' ? SWAGGER[colorScheme] : [];
        const { ids, found } = await violations(page, known, '#viewer');
        assert.deepEqual(found, [], `${name}, ${size}, ${colorScheme}`);
        assert.deepEqual(known.filter((id) => !ids.includes(id)), [], 'what is named is still so');
      }
    };
    for (const [name, path] of LOOKS) {
      await page.setViewportSize(WIDE);
      await page.go(path);
      if (name === 'conversation') await page.locator('details.thinking summary').click();
      if (name === 'docs') await page.locator('.opblock').first().waitFor();
      if (name === 'usage') await page.getByText('The days as a table').click();
      if (name === 'repair') {
        const request = { messages: [{ role: 'user', content: 'hi' }, { role: 'assistant', content: '', tool_calls: [{ id: 'a', type: 'function', function: { name: 'ls', arguments: '{' } }] }, { role: 'user', content: 'go on' }] };
        await page.getByLabel('The request, JSON').fill(JSON.stringify(request, null, 2));
        await page.getByRole('button', { name: 'Repair' }).click();
        await page.getByRole('heading', { name: 'Repaired' }).waitFor();
      }
      await look(name);
    }
    await page.go('/pages');
    await page.getByRole('button', { name: 'Log out' }).click();
    await look('login');
    if (colorScheme === 'light') {
      await enter(page);
      await page.go('/pages/conversations/weekend');
      await page.setViewportSize(WIDE);
      await page.emulateMedia({ media: 'print' });
      await page.screenshot({ path: join(SHOTS, 'conversation-print.png'), fullPage: true });
    }
  });
}
