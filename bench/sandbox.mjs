/** The time of one call of a trivial sandboxed script, with and without a thread. Needs a build. `node bench/sandbox.mjs [calls]` */

import { sandbox } from '../dist/sandbox.js';

const calls = Number(process.argv[2] ?? 500);
const silent = () => {};
const context = {
  input: { n: 2 },
  config: {},
  env: {},
  signal: new AbortController().signal,
  idempotencyKey: 'key',
  execution: { id: 'exec_1', ensemble: 'e', agent: 'a', attempt: 1 },
  logger: { debug: silent, info: silent, warn: silent, error: silent },
};

for (const threads of [0, 1]) {
  const script = sandbox({ threads }).script('export default ({ input }) => ({ double: input.n * 2 })');
  for (let i = 0; i < 20; i++) await script(context);
  const times = [];
  for (let i = 0; i < calls; i++) {
    const began = performance.now();
    await script(context);
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  const at = (part) => times[Math.floor(times.length * part)].toFixed(2);
  console.log(`threads: ${threads}  median ${at(0.5)} ms  p99 ${at(0.99)} ms`);
}
