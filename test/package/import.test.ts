/** The cost of importing the main entry, compared with the packages that it can't do without. */

import { describe, expect, it } from 'vitest';
import { runNode } from './built-package.ts';

const ROUNDS = 9;
/** Measured: 1.3 on a quiet machine, up to 1.55 on a busy one; `bench/` has the figure. */
const MAX_RATIO = 2;

/** The processor time of an import in a fresh process, in ms. Other processes make it longer, but not as much as the passed time. */
async function importTime(specifiers: readonly string[]): Promise<number> {
  const program = `
    const before = process.cpuUsage();
    for (const specifier of ${JSON.stringify(specifiers)}) await import(specifier);
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / 1000);`;
  return (await runNode(program)) as number;
}

describe('the import of the main entry', () => {
  it(`takes at most ${MAX_RATIO} times the processor time of zod and yaml alone`, async () => {
    let [own, packages] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let i = 0; i < ROUNDS; i++) {
      packages = Math.min(packages, await importTime(['zod/mini', 'yaml']));
      own = Math.min(own, await importTime(['ensemble-orchestrator']));
    }
    expect(own / packages).toBeLessThan(MAX_RATIO);
  });

  // Node.js 20 needs as long for one small CommonJS file among many modules as for 50 modules.
  it('loads no CommonJS except yaml and eventemitter3', async () => {
    const program = `
      import { createRequire } from 'node:module';
      await import('ensemble-orchestrator');
      const files = Object.keys(createRequire(import.meta.url).cache);
      console.log(JSON.stringify(files.map((file) => /node_modules\\/([^/]+)/.exec(file)?.[1] ?? file)));`;
    expect(new Set((await runNode(program)) as string[])).toEqual(new Set(['yaml', 'eventemitter3']));
  });

  it('configures nothing of the zod that a program uses too', async () => {
    const program = `
      import { createOrchestrator, parseEnsemble } from 'ensemble-orchestrator';
      import * as z from 'zod/mini';
      createOrchestrator({ ensembles: ['name: a\\nflow:\\n  - { agent: b, operation: code, config: { script: s } }'], scripts: { s: () => 1 } });
      try { parseEnsemble('name: 5'); } catch {}
      console.log(JSON.stringify([z.config(), z.string().safeParse(1).error.issues[0].message]));`;
    expect(await runNode(program)).toEqual([{}, 'Invalid input']);
  });
});
