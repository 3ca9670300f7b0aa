/**
 * Runs a bundle of `cloudflare-stores-worker.mjs` on workerd, with the KV, R2 and D1 of Miniflare, and prints as JSON how many cases of each
 * suite passed, and what failed. `node serve-cloudflare-stores.mjs <bundle>`
 */

import { Miniflare } from 'miniflare';

/** How many cases run in one request. */
const BATCH = 5;

const miniflare = new Miniflare({
  modules: true,
  scriptPath: process.argv[2],
  compatibilityDate: '2026-07-01',
  compatibilityFlags: [],
  kvNamespaces: ['KV'],
  r2Buckets: ['BUCKET'],
  d1Databases: ['DB'],
});

async function ask(path) {
  const response = await miniflare.dispatchFetch(`http://suites.example${path}`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path}: ${text}`);
  return JSON.parse(text);
}

try {
  const cases = await ask('/cases');
  const passed = {};
  const failures = [];
  for (let from = 0; from < cases.length; from += BATCH) {
    const outcomes = await ask(`/run?from=${from}&to=${Math.min(from + BATCH, cases.length)}`);
    for (const [i, failure] of outcomes.entries()) {
      const { suite, title } = cases[from + i];
      passed[suite] ??= 0;
      if (failure === null) passed[suite] += 1;
      else failures.push(`${suite}: ${title}\n${failure}`);
    }
  }
  console.log(JSON.stringify({ passed, failures }));
} finally {
  await miniflare.dispose();
}
