/** A bank whose answers get lost, and a desk whose process is killed: the money moves once. */
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = await mkdtemp(join(tmpdir(), 'refunds-'));
const requests = [];
const transfers = new Map();
let desk;

const bank = createServer((request, response) => {
  const key = request.headers['idempotency-key'];
  requests.push(key);
  // The bank books each key once. A request that repeats a key gets the first transfer.
  if (!transfers.has(key)) transfers.set(key, `T-${transfers.size + 1}`);
  if (requests.length === 1) return desk.kill('SIGKILL');
  if (requests.length <= 3) return response.destroy();
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ transfer: transfers.get(key) }));
});
await new Promise((resolve) => bank.listen(0, '127.0.0.1', resolve));
const env = { ...process.env, BANK: `http://127.0.0.1:${bank.address().port}`, STORE: join(folder, 'refunds.sqlite') };

const DAYS = [
  'the bank books, and the desk is killed before it has the answer',
  'the desk starts again, and the answer of the bank is lost twice',
  'the desk starts again, and the bank answers',
];
for (const what of DAYS) {
  console.log(what);
  desk = fork(fileURLToPath(new URL('refunds.mjs', import.meta.url)), { env });
  await new Promise((resolve) => desk.once('exit', resolve));
}
const keys = new Set(requests);
console.log(
  `the bank got ${requests.length} requests with ${keys.size} idempotency key, and made ${transfers.size} transfer`,
);
bank.close();
await rm(folder, { recursive: true, force: true });
