#!/usr/bin/env bash
# Bun 1.4.5: `fetch` sends a GET, PUT or DELETE a second time when a kept connection ends without an answer, and a POST or PATCH once. On a new
# connection (here with `keepalive: false`) each is sent once. Node.js sends each once. Idempotent methods may be sent again (RFC 9110), so
# what counts calls must not rely on PUT or DELETE.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund bun@1.4.5

cat >client.mjs <<'JS'
import { createServer } from 'node:http';

const seen = {};
const server = createServer((request, response) => {
  if (request.url === '/warm') return response.end('ok');
  const key = `${request.method} ${request.url}`;
  seen[key] = (seen[key] ?? 0) + 1;
  request.resume().on('end', () => request.socket.destroy());
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
  const body = method === 'GET' ? undefined : '{"cents":1}';
  await fetch(`${origin}/new`, { method, body, keepalive: false }).catch(() => {});
  await (await fetch(`${origin}/warm`)).text();
  await fetch(`${origin}/kept`, { method, body }).catch(() => {});
}
console.log(JSON.stringify(seen));
server.closeAllConnections();
server.close();
process.exit(0);
JS

on_bun=$(npx bun run client.mjs)
on_node=$(node client.mjs)
echo "bun $(npx bun --version): $on_bun"
echo "node $(node --version): $on_node"
[ "$on_bun" = '{"GET /new":1,"GET /kept":2,"POST /new":1,"POST /kept":1,"PUT /new":1,"PUT /kept":2,"PATCH /new":1,"PATCH /kept":1,"DELETE /new":1,"DELETE /kept":2}' ]
[ "$on_node" = '{"GET /new":1,"GET /kept":1,"POST /new":1,"POST /kept":1,"PUT /new":1,"PUT /kept":1,"PATCH /new":1,"PATCH /kept":1,"DELETE /new":1,"DELETE /kept":1}' ]
