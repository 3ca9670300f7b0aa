/** The embedded PDF renderer on Deno and Bun: what it printed, read back. */

import { execFile } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { bun, deno, HERE } from './programs.mjs';

const PACKAGES = ['pdfmake', 'html-to-pdfmake', 'linkedom', 'parse5', 'juice', 'dejavu-fonts-ttf'];
const TIMEOUT_MS = 60_000;
const EXPECTED = {
  text: 'Invoice for Zażółć & <Łódź> Lamp ✓ 40 € 1 / 1',
  // A character without a font, a document that takes too long, and one after that.
  codes: ['INVALID_INPUT', 'TIMEOUT', 'completed'],
};
const run = promisify(execFile);

/** @param work - a folder with the installed package @returns the checks, whose `check()` returns the differences */
export function pdf(work) {
  let isInstalled = false;
  const check = (name, version, program, flags) => ({
    name: `PDF, ${name}`,
    version,
    async check() {
      if (!isInstalled) install(work);
      isInstalled = true;
      const env = { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' };
      const { stdout } = await run(program(), ['run', ...flags, 'pdf-program.mjs'], {
        ...{ cwd: work, timeout: TIMEOUT_MS, maxBuffer: 10_000_000, env },
      });
      const { pdf, codes } = JSON.parse(stdout);
      const found = { text: pdf.content ? await readText(Buffer.from(pdf.content, 'base64')) : pdf.message, codes };
      return Object.entries(EXPECTED)
        .filter(([key, expected]) => JSON.stringify(found[key]) !== JSON.stringify(expected))
        .map(([key, expected]) => `${key}: ${JSON.stringify(found[key])} instead of ${JSON.stringify(expected)}`);
    },
  });
  // The renderer reads its packages and fonts, and has no other right.
  const denoFlags = ['--no-prompt', '--quiet', '--node-modules-dir=manual', '--allow-read'];
  return [
    check('Deno', deno().version, deno().program, [...denoFlags, '--allow-env=LOG_TOKENS,LOG_STREAM']),
    check('Bun', bun().version, bun().program, []),
  ];
}

function install(work) {
  cpSync(join(HERE, 'pdf-program.mjs'), join(work, 'pdf-program.mjs'));
  for (const name of PACKAGES)
    symlinkSync(join(HERE, '../../node_modules', name), join(work, 'node_modules', name), 'dir');
}

async function readText(bytes) {
  const task = getDocument({ data: new Uint8Array(bytes), verbosity: 0, isEvalSupported: false });
  const document = await task.promise;
  const { items } = await (await document.getPage(1)).getTextContent();
  await task.destroy();
  return items
    .map(({ str, hasEOL }) => (hasEOL ? `${str} ` : str))
    .join('')
    .replace(/\s+/g, ' ')
    .trim();
}
