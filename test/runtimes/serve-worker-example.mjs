/** Serves a bundled Worker on workerd at a free loopback port, as `wrangler dev` does with its configuration. `node serve-worker-example.mjs <bundle> <wrangler.json>` */

import { readFileSync } from 'node:fs';
import { Miniflare } from 'miniflare';

const [bundle, configuration] = process.argv.slice(2);
const { compatibility_date, vars } = JSON.parse(readFileSync(configuration, 'utf8'));
const miniflare = new Miniflare({
  host: '127.0.0.1',
  port: 0,
  modules: true,
  scriptPath: bundle,
  compatibilityDate: compatibility_date,
  compatibilityFlags: [],
  bindings: vars,
});
process.once('SIGTERM', () => miniflare.dispose());
const { origin } = await miniflare.ready;
console.log(`Ready on ${origin}`);
