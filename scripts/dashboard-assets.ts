/**
 * Builds the page of the dashboard: `src/dashboard/` -> the texts of a script and a style, as the module `dashboard:assets`.
 * tsup and vitest use it as a plugin.
 */

import { fileURLToPath } from 'node:url';
import { build, type Plugin as EsbuildPlugin } from 'esbuild';
import type { Plugin as VitePlugin } from 'vite';

const MODULE = 'dashboard:assets';
const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** @returns the source of the module */
async function buildAssets(): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: { app: 'src/dashboard/main.tsx', style: 'src/dashboard/style.css' },
    outdir: 'dashboard',
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
  });
  const textOf = (ending: string) => outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? '';
  return `export const SCRIPT = ${JSON.stringify(textOf('.js'))};\nexport const STYLE = ${JSON.stringify(textOf('.css'))};\n`;
}

export const forEsbuild: EsbuildPlugin = {
  name: MODULE,
  setup(esbuild) {
    esbuild.onResolve({ filter: /^dashboard:assets$/ }, ({ path }) => ({ path, namespace: MODULE }));
    esbuild.onLoad({ filter: /.*/, namespace: MODULE }, async () => ({ contents: await buildAssets() }));
  },
};

export const forVite: VitePlugin = {
  name: MODULE,
  enforce: 'pre',
  resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
  load: (id) => (id === `\0${MODULE}` ? buildAssets() : undefined),
};
