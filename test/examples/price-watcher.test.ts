/** The price watcher does what its README says. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadProject } from '../../src/entries/node.ts';
import { createTestOrchestrator, stubHttp } from '../../src/entries/testing.ts';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';

const EXAMPLE = join(ROOT, 'examples/price-watcher');

describe('the price watcher', () => {
  it('compares with the last known price of each shop, and asks the shop with its token for every page', async () => {
    const http = stubHttp({
      'https://shops.example/north/offers': [
        { json: [{ sku: 'lamp', price: 45 }] },
        { json: [{ sku: 'lamp', price: 40 }] },
      ],
      'https://shops.example/south/offers': { json: { data: [{ sku: 'lamp', price: 41 }], meta: { next: null } } },
      'https://shops.example/west/offers': { status: 503 },
    });
    const project = await loadProject(pathToFileURL(`${EXAMPLE}/`), {
      env: { SHOPS_URL: 'https://shops.example' },
      secrets: { WEST_TOKEN: 'token-of-the-west-shop' },
    });
    const orchestrator = createTestOrchestrator({ ...project, http });
    const outputs = [];
    for (let day = 0; day < 2; day++) outputs.push((await orchestrator.execute('watch-prices')).output);
    expect(outputs).toEqual([
      { offers: 2, drops: [], silent: ['west'] },
      { offers: 2, drops: [{ shop: 'north', sku: 'lamp', from: 45, to: 40 }], silent: ['west'] },
    ]);
    const [west] = http.calls.filter(({ url }) => url.includes('/west/'));
    expect(west?.headers?.Authorization).toBe('Bearer token-of-the-west-shop');
  });

  describe('as a program', () => {
    beforeAll(ensureBuilt, 60_000);

    it('prints what its README shows', async () => {
      const [, shown] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
      const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', join(EXAMPLE, 'start.mjs')]);
      expect(stdout.trim()).toBe(shown?.trim());
    });

    it('is a project without problems for `ensemble validate`', async () => {
      const { stdout, code } = await ensemble(['validate', EXAMPLE]);
      expect([code, stdout]).toEqual([0, '✓ 3 files, no problems\n']);
    });
  });
});
