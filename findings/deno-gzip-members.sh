#!/usr/bin/env bash
# Deno 2.9.5: `fetch` reads only the first member of a gzip body, and ends it as complete. RFC 1952 (2.2) lets a file have several
# members, and `cat a.gz b.gz` makes one. Node.js reads all of them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund deno@2.9.5

cat >client.mjs <<'JS'
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

const server = createServer((_request, response) => {
  response.setHeader('content-encoding', 'gzip');
  response.end(Buffer.concat([gzipSync('first,'), gzipSync('second')]));
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { 'accept-encoding': 'gzip' } });
console.log(response.status, JSON.stringify(await response.text()));
server.closeAllConnections();
server.close();
JS

on_deno=$(npx deno run --allow-net --allow-env client.mjs)
on_node=$(node client.mjs)
echo "deno $(npx deno --version | head -n 1 | cut -d' ' -f2): $on_deno"
echo "node $(node --version): $on_node"
[ "$on_deno" = '200 "first,"' ]
[ "$on_node" = '200 "first,second"' ]
