/** The smoke test as a program, for Node.js, Deno and Bun: prints its answer as JSON. */

import { smoke } from './smoke.mjs';

console.log(JSON.stringify(await smoke()));
