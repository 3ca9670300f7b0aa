#!/usr/bin/env bash
# Deno 2.9.5: `fetch` sends a POST with a text body a second time when the server closes the connection without an answer, on a new
# connection and on one that was kept. A `ReadableStream` of the caller's own is sent once;
# the stream of a `Response` with text is not. `connection: close` does not help. Node.js sends it once.
# Who pays by POST needs an idempotency key there, or a stream.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund deno@2.9.5

cat >client.mjs <<'JS'
import { createServer } from 'node:http';

const seen = {};
const server = createServer((request, response) => {
  if (request.url === '/warm') return response.end('ok');
  seen[request.url] = (seen[request.url] ?? 0) + 1;
  request.resume().on('end', () => request.socket.destroy());
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
const stream = () =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"cents":1}'));
      controller.close();
    },
  });
const ways = {
  '/text-new': { body: '{"cents":1}' },
  '/text-kept': { body: '{"cents":1}', kept: true },
  '/text-close': { body: '{"cents":1}', headers: { connection: 'close' } },
  '/stream-new': { body: stream(), duplex: 'half' },
  '/stream-kept': { body: stream(), duplex: 'half', kept: true },
  '/response-stream': { body: new Response('{"cents":1}').body, duplex: 'half' },
};
for (const [path, { kept, ...init }] of Object.entries(ways)) {
  if (kept) await (await fetch(`${origin}/warm`)).text();
  await fetch(origin + path, { method: 'POST', ...init }).catch(() => {});
}
console.log(JSON.stringify(seen));
server.closeAllConnections();
server.close();
JS

on_deno=$(npx deno run --allow-net --allow-env client.mjs)
on_node=$(node client.mjs)
echo "deno $(npx deno --version | head -n 1 | cut -d' ' -f2): $on_deno"
echo "node $(node --version): $on_node"
[ "$on_deno" = '{"/text-new":2,"/text-kept":2,"/text-close":2,"/stream-new":1,"/stream-kept":1,"/response-stream":2}' ]
[ "$on_node" = '{"/text-new":1,"/text-kept":1,"/text-close":1,"/stream-new":1,"/stream-kept":1,"/response-stream":1}' ]
