/** The HTTP cases as a program for Node.js, Deno and Bun: `http-program.mjs <base URL of the peer>`. It prints what failed as JSON. */

import { fetchHttp } from 'ensemble-orchestrator';
import { httpCases, outcomeOf } from './http-cases.mjs';

const clients = { fetchHttp };
clients.nodeHttp = (await import('ensemble-orchestrator/node')).nodeHttp;
// What the fetch of a runtime may send twice, as docs/operations/api.md says.
const resent = {
  ...('Deno' in globalThis && { fetchHttp: ['GET', 'HEAD', 'PUT', 'DELETE'] }),
  ...('Bun' in globalThis && { fetchHttp: ['GET', 'HEAD'] }),
};

const cases = httpCases(globalThis.process.argv[2], clients, resent);
const failures = [];
for (const one of cases) {
  const failure = await outcomeOf(one);
  if (failure !== null) failures.push(failure);
}
console.log(JSON.stringify({ passed: cases.length - failures.length, failures }));
