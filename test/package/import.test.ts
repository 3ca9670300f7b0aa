/** What an import of the main entry loads and changes. `bench/` measures its time. */

import { describe, expect, it } from 'vitest';
import { runNode } from './built-package.ts';

describe('the import of the main entry', () => {
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
