/** The HTTP cases as a program for Node.js, Deno and Bun: `http-program.mjs <base URL of the peer>`. It prints what failed as JSON. */

import { fetchHttp } from 'ensemble-orchestrator';
import { httpCases, outcomeOf } from './http-cases.mjs';

const clients = { fetchHttp };
// Deno and Bun have a `process` too.
const isNode = !('Deno' in globalThis) && !('Bun' in globalThis);
if (isNode) clients.nodeHttp = (await import('ensemble-orchestrator/node')).nodeHttp;

const cases = httpCases(globalThis.process.argv[2], clients);
const failures = [];
for (const one of cases) {
  const failure = await outcomeOf(one);
  if (failure !== null) failures.push(failure);
}
console.log(JSON.stringify({ passed: cases.length - failures.length, failures }));
