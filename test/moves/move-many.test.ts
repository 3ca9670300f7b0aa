/** Moves over HTTP, on the command line, and as a job that another process continues. */

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createHandler, createOrchestrator } from '../../src/index.ts';
import { ensureBuilt, makeFolder } from '../cli/cli-process.ts';
import { ensemble } from '../cli/in-process.ts';

beforeAll(ensureBuilt, 60_000);

const BEFORE =
  'name: order\nflow:\n  - { agent: price, operation: code, config: { script: price } }\n  - { wait: paid }\n';
const AFTER = `${BEFORE}  - { agent: ship, operation: code, config: { script: price } }\n`;
const OTHER = BEFORE.replace('agent: price', 'agent: cost');

/** A store with executions that wait. */
async function stored(count: number) {
  const path = join(mkdtempSync(join(tmpdir(), 'moves-')), 'store.db');
  const open = (definition: string) =>
    createOrchestrator({
      ensembles: [definition],
      scripts: { price: () => 1 },
      storage: sqliteStorage({ path }),
      logger: false,
    });
  const first = open(BEFORE);
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await first.start('order', {}, { events: false })).id);
  for (let i = 0; i < 500 && (await first.executions.open()).waiting.count < count; i++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  await first.close();
  return { path, open, ids };
}

describe('moves', () => {
  it('over HTTP: says what is refused to a caller that may read executions, and keeps who did it', async () => {
    const { open, ids } = await stored(2);
    const orchestrator = open(AFTER);
    const handler = createHandler(orchestrator);
    const ask = async (body: object, ...scopes: string[]) => {
      const { token } = await orchestrator.tokens.create({ name: 'ops', scopes: scopes as never });
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const request = new Request('http://x.example/api/v1/moves', {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      const response = await handler.fetch(request);
      return { status: response.status, body: (await response.json()) as Record<string, never> };
    };
    const scopes = ['execute:ensembles', 'read:executions'];
    expect(await ask({ ensemble: 'order' }, ...scopes)).toMatchObject({ status: 400 });
    expect(await ask({ ensemble: 'order', to: 'latest', dryRun: true }, ...scopes)).toMatchObject({
      body: { moved: 2 },
    });
    expect(await ask({ id: ids[0], to: 'latest' }, ...scopes)).toMatchObject({
      status: 200,
      body: { matched: 1, moved: 1 },
    });
    expect((await orchestrator.executions.get(ids[0] as string)).moves).toMatchObject([{ by: 'ops' }]);
    await orchestrator.close();
    const other = open(OTHER);
    const { refusals } = await other.executions.move({ ensemble: 'order', to: 'latest' });
    expect(refusals.map(({ at }) => at)).toEqual(['flow[0]', 'flow[0]']);
    const { fetch } = createHandler(other);
    const { token } = await other.tokens.create({ name: 'blind', scopes: ['execute:ensembles'] });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ ensemble: 'order', to: 'latest' });
    const blind = await fetch(new Request('http://x.example/api/v1/moves', { method: 'POST', headers, body }));
    expect(await blind.json()).toMatchObject({ refused: 2, refusals: [] });
    await other.close();
  });

  it('on the command line: lists what is refused, and ends with 1', async () => {
    const { path } = await stored(2);
    const project = (definition: string) =>
      makeFolder({ 'ensembles/order.yaml': definition, 'scripts/price.mjs': 'export default () => 1;\n' });
    const move = (definition: string, ...args: string[]) =>
      ensemble(['execution', 'move', '--dir', project(definition), '--storage', `sqlite:${path}`, ...args]);
    const dry = await move(AFTER, '--ensemble', 'order', '--dry');
    expect([dry.code, dry.stderr]).toEqual([0, '✓ of 2 executions: 2 can be moved, 0 unchanged, 0 refused\n']);
    const refused = await move(OTHER, '--ensemble', 'order');
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(
      /^exec_\w{26} {2}flow\[0\]: the execution has come to `price` at flow\[0\], and the definition has `cost` there\n/,
    );
    const mapped = await move(OTHER, '--ensemble', 'order', '--map', 'price=cost', '--json');
    expect([mapped.code, JSON.parse(mapped.stdout)]).toMatchObject([0, { moved: 2 }]);
    expect((await move(AFTER)).stderr).toContain('name the executions');
    expect((await move(AFTER, '--ensemble', 'order', '--map', 'x')).stderr).toContain('--map takes OLD=NEW');
  });

  it('as a job that another process continues: each execution is moved once', async () => {
    const { open, ids } = await stored(300);
    const first = open(AFTER);
    const { id } = await first.jobs.create({ action: 'move', filter: { ensemble: 'order' }, to: 'latest' });
    while ((await first.jobs.get(id)).seen === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await first.close({ grace: 0 });
    const second = open(AFTER);
    await second.ready();
    for (let i = 0; i < 1_000 && (await second.jobs.get(id)).status === 'running'; i++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    const job = await second.jobs.get(id);
    expect(job).toMatchObject({ status: 'completed', failed: 0, to: 'latest' });
    const { version } = await second.ensembles.get('order');
    for (const one of ids) {
      const record = await second.executions.get(one);
      expect([record.version, record.moves?.length]).toEqual([version, 1]);
    }
    await second.close();
  }, 60_000);

  it('a job refuses a move without a target, and a target without a move', async () => {
    const { open } = await stored(1);
    const { jobs, close } = open(AFTER);
    await expect(jobs.create({ action: 'move', filter: { ensemble: 'order' } })).rejects.toThrow(/`to` must be/);
    const wrong = { action: 'cancel', filter: { ensemble: 'order' }, to: 'latest' } as const;
    await expect(jobs.create(wrong)).rejects.toThrow(/for the action `move`/);
    await close();
  });
});
