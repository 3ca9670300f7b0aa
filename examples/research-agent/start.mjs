/** Kills the process that does the research in the middle of a call of a tool, and starts it again. */
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startLocalServer } from './local-server.mjs';

const folder = await mkdtemp(join(tmpdir(), 'research-'));
let process1;
const local = await startLocalServer(({ what }) => {
  if (what !== 'read_page moon' || process1.killed) return undefined;
  console.log(`killed the process in the middle of: ${what}`);
  process1.kill('SIGKILL');
  return new Promise(() => {}); // this call is never answered
});
const env = { ...process.env, LOCAL_SERVER: local.url, STORE: join(folder, 'research.sqlite') };
const start = () => fork(fileURLToPath(new URL('researcher.mjs', import.meta.url)), { env });
const ended = (child) => new Promise((resolve) => child.once('exit', resolve));

process1 = start();
await ended(process1);
if (!process1.killed) {
  console.error('the first process ended before it was killed; its error is above');
  process.exit(1);
}
console.log(`it had made ${local.calls.length} calls; the next process continues:\n`);
const code = await ended(start());

console.log('\nhow often the servers were called:');
const counts = new Map();
for (const { what, key = '' } of local.calls) {
  const call = counts.get(what) ?? { times: 0, keys: new Set() };
  counts.set(what, { times: call.times + 1, keys: call.keys.add(key) });
}
for (const [what, { times, keys }] of counts) {
  // Its result was not stored when the process was killed. The service recognises the repeated call by its key.
  const repeated = what === 'read_page moon' ? `, with ${keys.size} idempotency key` : '';
  console.log(`  ${what.padEnd(26)} ${times}${repeated}`);
}
await local.close();
await rm(folder, { recursive: true, force: true });
process.exitCode = code;
