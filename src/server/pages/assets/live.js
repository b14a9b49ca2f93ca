// The live view: what is written to the conversation appears while it is written. The server makes all HTML; this file asks for
// the messages that have changed, and puts them in their places. Without it the page is as it was when it was loaded.
'use strict';

const list = document.getElementById('messages');
const status = document.getElementById('live');
// Milliseconds between two looks, so that a fast model costs no more than a slow one.
const PAUSE = 250;

let source = null;
let last = null;
let wanted = Infinity;
let whole = false;
let looking = false;
let ended = false;

function say(text, on) {
  status.textContent = text;
  status.classList.toggle('on', Boolean(on));
}

function end(text) {
  ended = true;
  source?.close();
  say(text);
}

function follow() {
  if (ended || source || document.visibilityState === 'hidden') return;
  const since = last ?? list.dataset.cursor;
  source = new EventSource(`${location.pathname}/events?since=${encodeURIComponent(since)}`);
  source.onopen = () => say('Live: new messages appear here.', true);
  source.onmessage = (event) => {
    const entry = JSON.parse(event.data);
    last = since.includes('-') ? `${entry.seq}${since.slice(since.indexOf('-'))}` : String(entry.seq);
    const concerned = ['chunk', 'begin', 'finish', 'interrupt'].includes(entry.kind);
    if (concerned) wanted = Math.min(wanted, entry.message_index);
    else whole = true;
    look();
  };
  source.addEventListener('close', (event) => {
    const { reason } = JSON.parse(event.data);
    if (reason === 'deleted') end('This conversation was deleted.');
    else if (reason === 'unauthorized') end('Your session has ended. Reload the page to log in.');
    else say('Not live: the server is not there. It will be tried again.');
  });
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      end('Not live any more. Reload the page to see what is new.');
    } else {
      say('Not live: the connection is gone. It will be tried again.');
    }
  };
}

// A page that nobody sees needs no connection: browsers have few of them for one server.
function rest() {
  if (document.visibilityState === 'hidden') {
    source?.close();
    source = null;
  } else {
    follow();
  }
}

async function look() {
  if (looking) return;
  looking = true;
  while (!ended && (wanted !== Infinity || whole)) {
    const all = whole;
    const address = new URL(location.href);
    address.hash = '';
    address.searchParams.set('from', all ? shownFrom() : Math.max(shownFrom(), Math.min(wanted, Number(list.dataset.settled))));
    wanted = Infinity;
    whole = false;
    try {
      const answer = await fetch(address, { cache: 'no-store', redirect: 'error' });
      if (answer.status === 401 || answer.status === 404) return end('This page cannot be read any more. Reload it.');
      if (answer.ok) {
        show(new DOMParser().parseFromString(await answer.text(), 'text/html'), all);
      } else {
        whole = true;
        await new Promise((done) => setTimeout(done, 2000));
      }
    } catch {
      whole = true;
      await new Promise((done) => setTimeout(done, 2000));
    }
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  looking = false;
}

// What a reader has opened stays open, and what has the focus keeps it.
function replace(before, after) {
  for (const open of before.querySelectorAll('details[open][id]')) {
    const same = after.querySelector(`#${CSS.escape(open.id)}`);
    if (same) same.open = true;
  }
  const active = document.activeElement;
  const path = [];
  for (let at = active; at && at !== before; at = at.parentElement) {
    path.unshift([...(at.parentElement?.children ?? [])].indexOf(at));
  }
  const had = before !== active && before.contains(active);
  before.replaceWith(after);
  if (had) path.reduce((at, child) => at?.children[child], after)?.focus({ preventScroll: true });
}

const indexOf = (article) => Number(article.dataset.index);
const shownFrom = () => (list.children.length > 0 ? indexOf(list.children[0]) : 0);

function show(page, all) {
  const news = page.getElementById('messages');
  if (!news) return;
  const edge = document.documentElement;
  const follows = edge.scrollHeight - edge.scrollTop - edge.clientHeight < 120;
  window.localTimes(page);
  const arrived = [...news.children].map((article) => document.adoptNode(article));
  const stays = new Set(arrived.map((article) => article.id));
  const first = arrived.length > 0 ? indexOf(arrived[0]) : Infinity;
  const isEnd = Boolean(news.dataset.cursor);
  const next = arrived.length > 0 ? indexOf(arrived[arrived.length - 1]) + 1 : Infinity;
  for (const article of [...list.children]) {
    const index = indexOf(article);
    const isAsked = index < first ? all : isEnd || index < next;
    if (!stays.has(article.id) && isAsked) article.remove();
  }
  for (const article of arrived) {
    const before = document.getElementById(article.id);
    if (!before) {
      list.insertBefore(article, [...list.children].find((other) => indexOf(other) > indexOf(article)) ?? null);
    } else if (before.dataset.mark !== article.dataset.mark || before.innerHTML !== article.innerHTML) {
      replace(before, article);
    }
  }
  // More has come than one answer holds.
  if (!isEnd && next !== Infinity) wanted = Math.min(wanted, next);
  if (isEnd) list.dataset.settled = news.dataset.settled;
  const heading = document.getElementById('heading');
  replace(heading, document.adoptNode(page.getElementById('heading')));
  document.getElementById('empty')?.remove();
  if (follows) edge.scrollTop = edge.scrollHeight;
}

if (list?.dataset.cursor) {
  document.addEventListener('visibilitychange', rest);
  follow();
}
