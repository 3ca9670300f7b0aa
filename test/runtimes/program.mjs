/** The smoke test as a program for Node.js, Deno and Bun. It prints its result as JSON. */

import { smoke } from './smoke.mjs';

console.log(JSON.stringify(await smoke()));
