// What is stored: a conversation as people have it, one that is hostile, one that providers would refuse, and many.
import { deflateSync } from 'node:zlib';

const text = (value) => ({ type: 'text', text: value });
const call = (id, name, args) => ({ type: 'tool_call', id, name, arguments: args });
const result = (id, content, more = {}) => ({ type: 'tool_result', tool_call_id: id, content, ...more });

export const HOSTILE = '<script>window.broken = 1</script><img src=x onerror="window.broken = 2"><a href="javascript:window.broken=3">x</a>';

// A picture of two colours, as PNG.
function picture(width, height) {
  const crc = (bytes) => {
    let value = ~0;
    for (const byte of bytes) {
      value ^= byte;
      for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (0xedb88320 & -(value & 1));
    }
    return ~value >>> 0;
  };
  const part = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(data.length, 0);
    frame.writeUInt32BE(crc(body), 4);
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const rows = [];
  for (let y = 0; y < height; y++) {
    const row = Buffer.alloc(1 + width * 3);
    for (let x = 0; x < width; x++) row.set(y > height * 0.6 ? [72, 120, 84] : [140, 186, 222], 1 + x * 3);
    rows.push(row);
  }
  const png = Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    part('IHDR', head),
    part('IDAT', deflateSync(Buffer.concat(rows))),
    part('IEND', Buffer.alloc(0)),
  ]);
  return `data:image/png;base64,${png.toString('base64')}`;
}

export async function fill(server) {
  const { api } = server;
  const append = (key, messages, owner) => api('POST', `/conversations/${key}/messages`, messages, owner);

  for (let at = 1; at <= 60; at++) {
    await append(`notes-${at}`, { role: 'user', chunks: [text(`Note ${at}: remember the milk`)] });
  }
  const long = [];
  for (let at = 0; at < 120; at++) {
    long.push({ role: at % 2 ? 'assistant' : 'user', chunks: [text(`${at % 2 ? 'Answer' : 'Question'} ${at}`)] });
  }
  await append('long', long);
  await append('secret', { role: 'user', chunks: [text('the words of grace')] }, 'grace');

  await append('hidden', [
    { role: 'user', chunks: [text('My card is 4000 1234')] },
    { role: 'assistant', chunks: [text('Never share that.')] },
    { role: 'user', chunks: [text('removed question')] },
    { role: 'assistant', chunks: [text('rewound answer')] },
  ]);
  await api('POST', '/conversations/hidden/messages/0/redact');
  await api('DELETE', '/conversations/hidden/messages/2');
  await api('POST', '/conversations/hidden/rewind', { to: 3 });

  await append('hostile', [
    { role: 'user', chunks: [text(HOSTILE), text('invoice\u202Egpj.exe and \u0007 bell')] },
    {
      role: 'assistant',
      model: HOSTILE,
      provider: HOSTILE,
      chunks: [
        { type: 'thinking', text: HOSTILE },
        call(HOSTILE, HOSTILE, HOSTILE),
        { type: 'image', url: 'https://tracker.invalid/pixel.png' },
        { type: 'image', url: 'data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9Indpbmdvdy5icm9rZW49NCIvPg==' },
        { type: 'image', url: 'javascript:window.broken=5' },
        { type: 'file', name: HOSTILE, url: 'data:text/html,<script>window.broken=6</script>' },
        { type: 'opaque', provider: HOSTILE, kind: HOSTILE, json: { a: HOSTILE } },
        { type: 'error', message: HOSTILE, code: HOSTILE },
        text(`[x](javascript:window.broken=9) ![p](https://tracker.invalid/p.png) [d](data:text/html,x) ${HOSTILE}\n\n${HOSTILE}\u202E`),
        text('x'.repeat(20_000)),
      ],
    },
    { role: 'tool', chunks: [result(HOSTILE, HOSTILE)] },
  ]);
  await api('PUT', '/conversations/hostile/title', { title: `${HOSTILE}\u202E` });
  await api('PUT', '/conversations/hostile/metadata', { a: HOSTILE });
  await api('POST', '/conversations/hostile/tags', { add: ['"><script>window.broken=7</script>'] });

  await append('broken', [
    { role: 'user', chunks: [text('Which files are there?')] },
    { role: 'assistant', model: 'gpt-5.2', provider: 'openai', finish_reason: 'tool_calls', chunks: [call('call_1', 'list files', '{"path": "/tmp"'), call('call_2', 'read', '{"path":"a.txt"}')] },
    { role: 'tool', chunks: [result('call_1', 'a.txt\nb.txt')] },
    { role: 'tool', chunks: [result('call_9', 'a result without a call')] },
    { role: 'assistant', chunks: [{ type: 'error', message: 'overloaded', code: '529' }] },
    { role: 'user', chunks: [text('Are you still there?')] },
  ]);

  await append('weekend', [
    { role: 'system', chunks: [text('You plan trips. Answer briefly, and look things up before you promise anything.')], created_at: '2026-11-21T08:59:58Z' },
    { role: 'user', chunks: [text('Where could we walk this Saturday? Two adults, a child of six, and we come by train from Bern. Last time it was like this:'), { type: 'image', url: picture(320, 120) }], created_at: '2026-11-21T09:00:00Z' },
    {
      role: 'assistant',
      model: 'claude-sonnet-4-5',
      provider: 'anthropic',
      finish_reason: 'tool_calls',
      usage: { input_tokens: 1834, output_tokens: 212, cache_read_input_tokens: 1024 },
      created_at: '2026-11-21T09:00:04Z',
      chunks: [
        { type: 'thinking', text: 'A child of six walks two hours at most. The weather decides between the Gantrisch and the lake.\n\nI should look at the forecast and at the trains before I name a place.', signature: 'c2lnbmF0dXJl' },
        text('I look at the forecast and at the trains first.'),
        call('toolu_01A', 'forecast', '{"place": "Gantrisch", "day": "2026-11-21"}'),
        call('toolu_01B', 'trains', '{"from": "Bern", "to": "Thun", "day": "2026-11-21", "after": "08:30"}'),
      ],
    },
    { role: 'tool', created_at: '2026-11-21T09:00:05Z', chunks: [result('toolu_01A', 'Sunny above 900 m, fog below. 4 °C at noon.'), result('toolu_01B', 'connection refused', { is_error: true })] },
    {
      role: 'assistant',
      model: 'claude-sonnet-4-5',
      provider: 'anthropic',
      finish_reason: 'stop',
      usage: { input_tokens: 2122, output_tokens: 148 },
      created_at: '2026-11-21T09:00:11Z',
      chunks: [text('Go above the fog. From Thun a bus reaches the Gurnigel, and the panorama path there takes an hour and a half with a child:\n\n1. Gurnigel, bus stop\n2. Selibüel, with a fire place\n3. back by the forest road\n\nI could not reach the timetable, so check the train yourself.')],
    },
    { role: 'user', created_at: '2026-11-21T09:02:30Z', chunks: [text('Lovely. Is there a picture of the path?')] },
    { role: 'assistant', model: 'claude-sonnet-4-5', provider: 'anthropic', created_at: '2026-11-21T09:02:33Z', finish_reason: 'length', chunks: [{ type: 'image', url: 'https://pictures.invalid/panorama.jpg' }, text('This is the view from the Selibüel, looking'), { type: 'file', name: 'path.gpx', data: 'PGdweC8+' }] },
  ]);
  await api('PUT', '/conversations/weekend/title', { title: 'A walk above the fog' });
  await api('POST', '/conversations/weekend/tags', { add: ['family', 'walks'] });
  await api('PUT', '/conversations/weekend/metadata', { project: 'trips', season: 'autumn' });
  await api('POST', '/conversations/weekend/fork', { key: 'weekend-rain', at_seq: 6 });
  await append('weekend-rain', { role: 'user', chunks: [text('And if it rains?')] });
}
