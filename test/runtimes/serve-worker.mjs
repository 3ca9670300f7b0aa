/** Runs a bundled Worker on workerd, and prints its answer. `node serve-worker.mjs <bundle> [<compatibility flag>...]` */

import { Miniflare } from 'miniflare';

const [, , scriptPath, ...compatibilityFlags] = process.argv;
const miniflare = new Miniflare({
  modules: true,
  scriptPath,
  compatibilityDate: '2026-07-01',
  compatibilityFlags,
});
try {
  const response = await miniflare.dispatchFetch('http://smoke.example/');
  const text = await response.text();
  if (response.status !== 200) throw new Error(text);
  console.log(text);
} finally {
  await miniflare.dispose();
}
