/** Bundles the built library and its imports into one file. The tests start hundreds of processes, and one file loads quickly. */

import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The environment variable that holds the path of the file. */
const FILE = 'CRASH_LIBRARY';
const ENTRIES = {
  'index.js': '*',
  'node.js': '{ nodeHttp }',
  'sqlite.js': '{ sqliteStorage }',
  'postgres.js': '{ postgresStorage }',
};
const BANNER = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/**
 * Creates the file for this process and its child processes, and removes it when this process ends. `CRASH_DIST` names a folder
 * other than `dist/`.
 * @throws Error when the library is not built
 */
export async function bundleLibrary() {
  const dist = resolve(process.env.CRASH_DIST ?? join(ROOT, 'dist'));
  const built = Object.keys(ENTRIES).filter((entry) => existsSync(join(dist, entry)));
  if (!built.includes('index.js')) throw new Error(`${dist} holds no built library: run \`npm run build\` first`);
  // From this folder Node.js finds the packages, and Git ignores it.
  const folder = join(ROOT, 'node_modules/.cache/ensemble-orchestrator', `crash-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, 'library.mjs');
  const contents = built.map((entry) => `export ${ENTRIES[entry]} from './${entry}';`).join('\n');
  const { build } = await import('esbuild');
  await build({
    stdin: { contents, resolveDir: dist },
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    banner: { js: BANNER },
    external: ['#dashboard', 'libsql', 'pg', 'pg-native', 'postgres', '@electric-sql/pglite'],
    logLevel: 'error',
  });
  process.env[FILE] = outfile;
}

/** Imports the library: the public names, and `sqliteStorage` and `postgresStorage`. */
export const loadLibrary = () => import(pathToFileURL(process.env[FILE]).href);
