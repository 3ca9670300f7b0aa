/** Runs a bundle of `http-worker.mjs` on workerd, and prints what failed as JSON. `node serve-http-worker.mjs <bundle> <base URL of the peer>` */

import { Miniflare } from 'miniflare';

/** How many cases run in one request. */
const BATCH = 5;
const [, , scriptPath, peer] = process.argv;

const miniflare = new Miniflare({
  modules: true,
  scriptPath,
  compatibilityDate: '2026-07-01',
  compatibilityFlags: [],
  handleRuntimeStdio() {},
});

async function ask(path) {
  const response = await miniflare.dispatchFetch(`http://cases.example${path}&peer=${encodeURIComponent(peer)}`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path}: ${text}`);
  return JSON.parse(text);
}

try {
  const count = await ask('/cases?');
  const outcomes = [];
  for (let from = 0; from < count; from += BATCH)
    outcomes.push(...(await ask(`/run?from=${from}&to=${Math.min(from + BATCH, count)}`)));
  const failures = outcomes.filter((outcome) => outcome !== null);
  console.log(JSON.stringify({ passed: count - failures.length, failures }));
} finally {
  await miniflare.dispose();
}
