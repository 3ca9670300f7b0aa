/** The entry `pdf` as it is built, for tests: its threads start from a file next to it. */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');

type Library = typeof import('../../src/entries/pdf.ts');

/** @returns the entry, and a function that removes its files. The folder is inside of node_modules, so that packages are found */
export async function buildPdf(): Promise<{ readonly library: Library; readonly folder: string; remove(): void }> {
  const folder = join(ROOT, 'node_modules/.cache/ensemble-orchestrator', `pdf-${process.pid}-${Date.now()}`);
  mkdirSync(folder, { recursive: true });
  await build({
    entryPoints: { pdf: join(ROOT, 'src/entries/pdf.ts'), 'pdf-thread': join(ROOT, 'src/adapters/pdf/pdf-thread.ts') },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    packages: 'external',
    logLevel: 'silent',
  });
  const library: Library = await import(/* @vite-ignore */ pathToFileURL(join(folder, 'pdf.js')).href);
  return { library, folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
