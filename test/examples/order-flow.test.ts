/** The order flow does what its README says, on a manual clock. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadProject } from '../../src/entries/node.ts';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import type { JsonObject } from '../../src/index.ts';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';

const EXAMPLE = join(ROOT, 'examples/order-flow');
const EVENING = Date.UTC(2030, 0, 31, 17, 40);

async function open() {
  const clock = manualClock({ now: EVENING });
  const project = await loadProject(pathToFileURL(`${EXAMPLE}/`));
  return createTestOrchestrator({ ...project, clock });
}

async function settle(input: JsonObject) {
  const orchestrator = await open();
  const { status, output, agents, duration } = await orchestrator.execute('settle-order', input);
  return { status, output, duration, ran: agents.map(({ name, status }) => `${name} ${status}`) };
}

describe('the order flow', () => {
  it('express: the first carrier that accepts the order wins, and the refusal of the other is not a failure', async () => {
    expect(await settle({ order: '1', card: 'visa', shipping: 'express' })).toMatchObject({
      status: 'completed',
      duration: 90_000,
      output: { sent: { tracking: 'steady-1' }, carrier: 'steady', polls: 3, sentAt: null, released: false },
    });
  });

  it('a parcel leaves at six in the morning', async () => {
    const { status, output, duration } = await settle({ order: '2', card: 'visa' });
    expect([status, output]).toMatchObject([
      'completed',
      { sent: { tracking: 'post-2' }, sentAt: '2030-02-01T06:00:00.000Z', released: false },
    ]);
    expect(duration).toBe(Date.UTC(2030, 1, 1, 6) - EVENING);
  });

  it('an order for pickup goes to the shelf', async () => {
    const { output, ran } = await settle({ order: '3', card: 'visa', shipping: 'pickup' });
    expect(output).toMatchObject({ sent: { tracking: 'shelf-3' }, apology: null, released: false });
    expect(ran.slice(2)).toEqual([
      'charge completed',
      'payment completed',
      'payment completed',
      'payment completed',
      'shelve completed',
    ]);
  });

  it('with an expired card the buyer is informed, and the goods are released', async () => {
    expect(await settle({ order: '4', card: 'expired' })).toMatchObject({
      status: 'completed',
      output: { sent: null, apology: 'Order 4: we are sorry, the card has expired (check-card).', released: true },
      ran: ['reserve completed', 'check-card failed', 'apologise completed', 'release completed'],
    });
  });

  it('an order that is cancelled while the bank is polled releases its goods', async () => {
    const orchestrator = await open();
    const handle = await orchestrator.start('settle-order', { order: '5', card: 'visa' });
    await orchestrator.clock.advance(45_000);
    await handle.cancel();
    const { status, partialOutput } = await handle.result();
    expect([status, partialOutput]).toMatchObject(['cancelled', { released: true, apology: null, polls: 1 }]);
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
      expect([code, stdout]).toEqual([0, '✓ 8 files, no problems\n']);
    });
  });
});
