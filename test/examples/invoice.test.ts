/** The example that makes an invoice: what it prints, and the document that it stores. */

import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';
import { readPdf } from '../pdf/read-pdf.ts';

const EXAMPLE = join(ROOT, 'examples/invoice');

beforeAll(ensureBuilt, 60_000);

it('the example prints what its README shows, and the PDF has every line', { timeout: 60_000 }, async () => {
  const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
  const file = join(tmpdir(), `invoice-${process.pid}.pdf`);
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(EXAMPLE, 'start.mjs'), file]);
    expect([stdout, stderr]).toEqual([shown, '']);
    const { pages } = await readPdf(readFileSync(file));
    expect(pages).toHaveLength(1);
    expect(pages[0]).toMatch(
      /Invoice 2026-0042 For Zażółć & Synowie <Łódź> Text Amount Consulting, September € ?960\.00 Hosting of the shop, a year € ?240\.00 Total € ?1200\.00 Thank you ✓ 1 \/ 1/,
    );
  } finally {
    rmSync(file, { force: true });
  }
});

it('the example is a project without problems for `ensemble validate`', { timeout: 60_000 }, async () => {
  const { stdout, code } = await ensemble(['validate', EXAMPLE]);
  expect([code, stdout]).toEqual([0, '✓ 3 files, no problems\n']);
});
