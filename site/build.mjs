/**
 * `npm run site`: builds the documentation as a static site in site/dist. It needs `npm ci` and `npm --prefix site ci`.
 *
 * `npm run site -- --base /docs/` builds it for a folder of a server.
 */

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { DIST, PAGES, ROOT, SITE } from './folders.mjs';
import { brokenLinks } from './broken-links.mjs';
import { FILES, readPages } from './read-pages.mjs';
import { docsSidebar } from './sidebar.mjs';

const { base } = parseArgs({ options: { base: { type: 'string', default: '/' } } }).values;
if (!/^\/([\w.~-]+\/)*$/.test(base)) throw new Error(`--base ${base}: it begins and ends with /, such as /docs/`);

for (const [folder, command] of [
  [join(ROOT, 'node_modules'), 'npm ci'],
  [join(SITE, 'node_modules'), 'npm --prefix site ci'],
])
  if (!existsSync(folder)) fail(`${folder} is missing: run \`${command}\` first`);

rmSync(PAGES, { recursive: true, force: true });
rmSync(DIST, { recursive: true, force: true });
for (const { path, text } of readAll()) {
  const file = join(PAGES, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
for (const path of FILES) cpSync(join(ROOT, path), join(PAGES, 'public', path), { recursive: true });
runBin(ROOT, 'typedoc', ['--options', 'site/typedoc.json', '--logLevel', 'Warn']);
runBin(SITE, 'vitepress', ['build', '--base', base]);

const broken = brokenLinks(DIST, base);
if (broken.length > 0) fail(`links of the built site that lead nowhere:\n  ${broken.join('\n  ')}`);
console.log('site/dist: every link leads to a page and a heading');

/** The pages, when every link leads somewhere and docs/README.md lists every page. */
function readAll() {
  try {
    docsSidebar();
    return readPages();
  } catch (error) {
    return fail(error.message);
  }
}

function runBin(cwd, name, args) {
  const { status } = spawnSync(join(cwd, 'node_modules/.bin', name), args, {
    cwd,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) fail(`${name} failed`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
