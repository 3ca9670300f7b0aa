/** `ensemble check --against`: what a deploy would do to the executions that have not ended. */

import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/entries/node.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createHandler, createOrchestrator, type Orchestrator } from '../../src/index.ts';
import { ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';

beforeAll(ensureBuilt, 60_000);

const order = (script: string, more = '') =>
  `name: order\nflow:\n  - { agent: price, operation: code, config: { script: ${script} } }\n  - { wait: paid }\n${more}`;
const refund = 'name: refund\nflow: [{ wait: agreed }]\n';
const scripts = { price: () => 1, cost: () => 2 };

async function stored(definitions: readonly string[], counts: Readonly<Record<string, number>>) {
  const path = join(mkdtempSync(join(tmpdir(), 'check-')), 'store.db');
  const open = () =>
    createOrchestrator({ ensembles: definitions, scripts, storage: sqliteStorage({ path }), logger: false });
  const first = open();
  const ids: Record<string, string[]> = {};
  let all = 0;
  for (const [name, count] of Object.entries(counts)) {
    ids[name] = [];
    for (let i = 0; i < count; i++) ids[name].push((await first.start(name, {}, { events: false })).id);
    all += count;
  }
  await settled(first, all);
  await first.close();
  return { storage: `sqlite:${path}`, ids, open };
}

async function settled({ executions }: Orchestrator, count: number): Promise<void> {
  for (let i = 0; i < 3_000 && (await executions.open()).waiting.count < count; i++)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

const project = (files: Readonly<Record<string, string>>, ...names: string[]) =>
  makeFolder({
    ...Object.fromEntries(names.map((name) => [`scripts/${name}.mjs`, 'export default () => 1;\n'])),
    ...files,
  });

describe('ensemble check', () => {
  it('names the 500 of 1,000 waiting executions that a deploy without their script would strand, and ends with 1', async () => {
    const { storage, ids } = await stored([order('price'), refund], { order: 500, refund: 500 });
    // `order` calls another script now, and the old one is not deployed any more.
    const cwd = project({ 'ensembles/order.yaml': order('cost'), 'ensembles/refund.yaml': refund }, 'cost');
    const { code, stdout, stderr } = await ensemble(['check', '--against', storage], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain(
      "✗ 1,000 executions: 500 continue as they are, 500 would be stranded; with another definition: 500 can be moved, 0 can't\n",
    );
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => line.split(' ')[0]).sort()).toEqual([...(ids.order ?? [])].sort());
    expect(lines[0]).toMatch(/ {2}order \w{8} waiting {2}is stranded: .*there is no script `price`.*; can be moved$/);
  }, 120_000);

  it('says that executions continue, and which of them could not be moved, and where; and changes nothing', async () => {
    const { storage, ids, open } = await stored([order('price'), refund], { order: 2, refund: 1 });
    const before = open();
    const records = await before.executions.list();
    await before.close();
    const changed = order('price').replace('agent: price', 'agent: cost');
    const cwd = project({ 'ensembles/order.yaml': changed, 'ensembles/refund.yaml': refund }, 'price');
    const { code, stdout, stderr } = await ensemble(['check', '--against', storage], { cwd });
    expect([code, stderr]).toEqual([
      0,
      "✓ 3 executions: 3 continue as they are, 0 would be stranded; with another definition: 0 can be moved, 2 can't\n",
    ]);
    expect(stdout).toContain(`${ids.order?.[0]}  order `);
    expect(stdout).toContain(
      "continues; can't be moved: flow[0]: the execution has come to `price` at flow[0], and the definition has `cost` there",
    );
    const only = await ensemble(['check', '--against', storage, '--ensemble', 'refund', '--json'], { cwd });
    expect(JSON.parse(only.stdout)).toEqual({
      ...{ checked: 1, continues: 1, stranded: 0, canMove: 0, cannotMove: 0, executions: [] },
    });
    const after = open();
    expect(await after.executions.list()).toEqual(records);
    await after.close();
  });

  it('checks against a running server with a token that may only read', async () => {
    const orchestrator = createOrchestrator({
      ensembles: [order('price')],
      scripts: { ...scripts, price: () => ({ said: 'a-very-secret-key' }) },
      secrets: { KEY: 'a-very-secret-key' },
      logger: false,
    });
    const { id } = await orchestrator.start('order', {});
    await settled(orchestrator, 1);
    const server = createServer(toNodeListener(createHandler(orchestrator)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { token } = await orchestrator.tokens.create({ name: 'ci', scopes: ['read:executions', 'read:ensembles'] });
    try {
      const headers = { authorization: `Bearer ${token}` };
      const history = await (await fetch(`${url}/api/v1/executions/${id}/history`, { headers })).json();
      expect(history).toMatchObject({ format: 1, steps: [{ key: 'flow[0]', output: { said: '***' } }] });
      const cwd = project({ 'ensembles/order.yaml': order('cost') }, 'cost');
      const { code, stdout } = await ensemble(['check', '--against', url, '--token', token, '--json'], { cwd });
      expect([code, JSON.parse(stdout)]).toMatchObject([
        1,
        { checked: 1, stranded: 1, canMove: 1, executions: [{ executionId: id, verdict: 'stranded', move: 'can' }] },
      ]);
    } finally {
      server.close();
      await orchestrator.close({ grace: 0 });
    }
  });

  it('leaves ensembles of the store alone, and names variables and ensembles that are gone', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'check-')), 'store.db');
    const gone = 'name: gone\nflow: [{ wait: x }, { agent: a, operation: api, config: { url: "${env.SHOP}" } }]\n';
    const first = createOrchestrator({
      ensembles: [gone],
      env: { SHOP: 'https://shop.example/' },
      storage: sqliteStorage({ path }),
      logger: false,
    });
    await first.ensembles.create('name: live\nflow: [{ wait: y }]\n');
    await first.start('gone', {});
    await first.start('live', {});
    await settled(first, 2);
    await first.close();
    const cwd = project({ 'ensembles/other.yaml': 'name: other\nflow: []\n' });
    const { code, stdout } = await ensemble(['check', '--against', `sqlite:${path}`, '--json'], { cwd });
    const { executions, ...counts } = JSON.parse(stdout);
    expect([code, counts]).toEqual([1, { checked: 2, continues: 1, stranded: 1, canMove: 0, cannotMove: 1 }]);
    expect(executions).toMatchObject([
      {
        ensemble: 'gone',
        lacks: expect.stringContaining('SHOP'),
        difference: { reason: 'there is no ensemble `gone` any more' },
      },
    ]);
  });

  it('names a component that the store does not have', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'check-')), 'store.db');
    const uses = (ref: string) =>
      `name: order\nflow: [{ wait: x }, { agent: a, operation: code, config: { script: price, "<<": "config://rates@${ref}" } }]\n`;
    const first = createOrchestrator({
      ensembles: [uses('v1.0.0')],
      scripts,
      storage: sqliteStorage({ path }),
      logger: false,
    });
    await first.components.register({ name: 'rates', kind: 'config' });
    await first.components.createVersion('rates', { version: 'v1.0.0', content: '{ "a": 1 }' });
    await first.start('order', {});
    await settled(first, 1);
    await first.close();
    const has = project({ 'ensembles/order.yaml': uses('v1.0.0') }, 'price');
    expect((await ensemble(['check', '--against', `sqlite:${path}`], { cwd: has })).code).toBe(0);
    const lacks = createOrchestrator({
      ensembles: [uses('v2.0.0')],
      scripts,
      storage: sqliteStorage({ path }),
      logger: false,
    });
    await lacks.start('order', {});
    await settled(lacks, 2);
    await lacks.close();
    const cwd = project({ 'ensembles/order.yaml': uses('v2.0.0') }, 'price');
    const { code, stdout } = await ensemble(['check', '--against', `sqlite:${path}`], { cwd });
    expect([code, stdout.trim().split('\n').length]).toEqual([1, 1]);
    expect(stdout).toMatch(/is stranded: agent `a` uses config:\/\/rates@v2.0.0: .*leads to no version/);
  });

  it('refuses a project with problems, and a call without a place', async () => {
    const cwd = project({ 'ensembles/order.yaml': order('price') });
    const broken = await ensemble(['check', '--against', 'sqlite:none.db'], { cwd });
    expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining('no execution was checked')]);
    expect(await ensemble(['check'], { cwd })).toMatchObject({ code: 2, stderr: expect.stringContaining('--against') });
  });
});
