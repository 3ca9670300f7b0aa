/** `ensemble definition` and `ensemble diff`: in a store, and on a running server. */

import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/entries/node.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createHandler, createOrchestrator } from '../../src/index.ts';
import { ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';

beforeAll(ensureBuilt, 60_000);

const order = (n: number, more = '') => `# the order
name: order
flow:
  - { agent: fee, operation: code, config: { script: fee }, input: { n: ${n} } }
  - { wait: paid }
${more}`;
const scripts = { 'scripts/fee.mjs': 'export default ({ input }) => input.n;\n' };

function project(files: Readonly<Record<string, string>> = {}) {
  const cwd = makeFolder({ 'ensembles/other.yaml': 'name: other\nflow: []\n', ...scripts, ...files });
  const storage = `sqlite:${join(mkdtempSync(join(tmpdir(), 'definition-')), 'store.db')}`;
  const run = (line: string, ...more: string[]) =>
    ensemble([...line.split(' '), ...more, '--storage', storage], { cwd });
  const write = (path: string, text: string) => writeFileSync(join(cwd, path), text);
  return { cwd, storage, run, write };
}

describe('ensemble definition', () => {
  it('stores a file, replaces it, lists and shows its versions, and rolls back', async () => {
    const { run, write } = project({ 'order.yaml': order(1) });
    const put = await run('definition put order.yaml --label v1 --commit 4f1c -m', 'the first');
    expect([put.code, put.stderr]).toEqual([
      0,
      expect.stringMatching(/^✓ order was created: version v1 \([0-9a-f]{32}\)\n$/),
    ]);
    write('order.yaml', order(2));
    expect((await run('definition put order.yaml --label v2')).code).toBe(0);
    const { versions } = JSON.parse((await run('definition versions order --json')).stdout);
    expect(versions).toMatchObject([{ label: 'v2' }, { label: 'v1', commit: '4f1c', message: 'the first' }]);
    expect(versions[0].by).toEqual(expect.any(String));
    const table = (await run('definition versions order')).stdout.split('\n');
    expect(table[0]).toMatch(/^LABEL +VERSION +STORED +BY +COMMIT +MESSAGE/);
    expect(table[2]).toMatch(/^v1 +[0-9a-f]{32} .*4f1c +the first/);
    expect((await run('definition show order v1')).stdout).toBe(order(1));
    const back = await run('definition rollback order --to v1');
    expect(back.stderr).toMatch(/^✓ new executions of order run version v1 /);
    expect((await run('definition show order')).stdout).toBe(order(1));
    const unknown = await run('definition rollback order --to v7');
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('it has v1, v2\n')]);
  });

  it('stores nothing if one of several files has a problem', async () => {
    const { run } = project({ 'order.yaml': order(1), 'bad.yaml': 'name: bad\nflow: [{ wiat: paid }]\n' });
    const put = await run('definition put order.yaml bad.yaml');
    expect([put.code, put.stderr]).toEqual([1, expect.stringContaining('wiat')]);
    expect((await run('definition versions order')).code).toBe(1);
    expect(await run('definition put .')).toMatchObject({ code: 2, stderr: expect.stringContaining('. is a project') });
  });
});

describe('what can go wrong with ensemble definition', () => {
  it('says that nothing has changed, what was stored before an error, and that two files define one ensemble', async () => {
    const { run, write } = project({
      'order.yaml': order(1),
      'bad.yaml': order(1, 'fee: 1\n'),
      'more.yaml': 'name: more\nflow: []\n',
    });
    await run('definition put order.yaml --label v1');
    expect((await run('definition put order.yaml')).stderr).toMatch(/^= order is unchanged at version v1 /);
    write('bad.yaml', 'name: bad\nflow: [{ agent: a, operation: code, config: { script: none } }]\n');
    const half = await run('definition put more.yaml bad.yaml');
    expect([half.code, half.stderr]).toEqual([
      1,
      expect.stringMatching(/^! stored before the error: more\nbad\.yaml:\n.*there is no script `none`/s),
    ]);
    write('twin.yaml', order(2));
    expect(await run('definition put order.yaml twin.yaml')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('order.yaml and twin.yaml both define ensemble `order`'),
    });
    const list = (await run('definition list')).stdout.split('\n');
    expect(list[0]).toMatch(/^ENSEMBLE +LABEL +VERSION +FROM +ACTIVE +CHANGED/);
    expect(list[2]).toMatch(/^order +v1 +[0-9a-f]{32} +store +yes/);
  });

  it("refuses to put an ensemble of the project into the project's own store, which would never be used", async () => {
    const { cwd } = project({ 'ensembles/order.yaml': order(1) });
    const put = await ensemble(['definition', 'put', 'ensembles/order.yaml'], { cwd });
    expect([put.code, put.stderr]).toEqual([2, expect.stringContaining('would never use a stored one')]);
  });

  it('a rollback says that the traffic has ended', async () => {
    const { run, write } = project({ 'order.yaml': order(1) });
    await run('definition put order.yaml --label v1');
    await run('definition traffic order v1');
    write('order.yaml', order(2));
    await run('definition put order.yaml --label v2');
    expect((await run('definition rollback order --to v1')).stderr).toMatch(
      /run version v1 .*\n {2}its traffic has ended\n$/,
    );
  });
});

describe('ensemble diff', () => {
  it('compares a file outside of the folder `ensembles`, and without a file the newest version', async () => {
    const { run, write, storage } = project({ 'flows/order.yaml': order(1) });
    await run('definition put flows/order.yaml --label v1');
    expect((await run('diff flows/order.yaml')).code).toBe(0);
    write('flows/order.yaml', order(2));
    const changed = await run('diff flows/order.yaml');
    expect([changed.code, changed.stdout]).toEqual([1, expect.stringContaining('+++ order flows/order.yaml\n')]);
    await run('definition put flows/order.yaml --label v2');
    const older = await run('diff order v1');
    expect(older.stdout).toMatch(/^--- order v1 .*\n\+\+\+ order v2 /);
    expect((await run('diff order')).stderr).toContain('name its file, or what to compare');
    // In a folder without a project, too.
    const elsewhere = await ensemble(['diff', 'order', 'v1', '--storage', storage], {
      cwd: makeFolder({ 'a.txt': '' }),
    });
    expect(elsewhere.stdout).toBe(older.stdout);
  });

  it('compares two versions, a version with the file, and all of a project with a store', async () => {
    const { run, write } = project({ 'order.yaml': order(1) });
    await run('definition put order.yaml --label v1');
    write('order.yaml', order(2));
    await run('definition put order.yaml --label v2');
    const two = await run('diff order v1 v2');
    expect(two.code).toBe(1);
    expect(two.stdout).toMatch(/^--- order v1 \(\w+\)\n\+\+\+ order v2 \(\w+\)\n@@/);
    expect(two.stdout).toContain('\n-      n: 1\n+      n: 2\n');
    // Where the project has the ensemble too: other spaces, comments and orders of keys are no difference.
    const spaced =
      'flow:\n  - operation: code\n    agent: fee\n    input: { n: 2 }\n    config: { script: fee }\n  - wait: paid\nname: order\n';
    write('ensembles/order.yaml', spaced);
    expect(await run('diff order')).toMatchObject({ code: 0, stderr: '= order: no difference\n', stdout: '' });
    expect((await run('diff order v1')).stdout).toContain('+++ order ensembles/order.yaml\n');
    write('ensembles/order.yaml', order(3));
    const all = await run('diff');
    expect([all.code, all.stderr]).toEqual([1, '+ other: is new\n']);
    expect(all.stdout).toContain('\n-      n: 2\n+      n: 3\n');
    expect((await run('diff ensembles/order.yaml')).stdout).toBe(all.stdout);
    const { ensembles } = JSON.parse((await run('diff order --json')).stdout);
    expect(ensembles).toMatchObject([
      { ensemble: 'order', same: false, from: { label: 'v2' }, to: { version: expect.any(String) }, running: [] },
    ]);
    expect((await run('diff order v9')).stderr).toContain('it has v2, v1');
    expect(await run('diff ordr')).toMatchObject({ code: 1, stderr: expect.stringContaining('no ensemble `ordr`') });
  });

  it('names the versions that run on a server, and compares the definition of an execution with the file', async () => {
    const orchestrator = createOrchestrator({ scripts: { fee: () => 1 }, logger: false });
    const v1 = await orchestrator.ensembles.create(order(1), { label: 'v1' });
    const { id } = await orchestrator.start('order');
    await orchestrator.ensembles.update('order', order(2), { label: 'v2' });
    await orchestrator.start('order');
    await orchestrator.start('order');
    const server = createServer(toNodeListener(createHandler(orchestrator)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { token } = await orchestrator.tokens.create({ name: 'ci', scopes: ['admin'] });
    const { cwd } = project({ 'ensembles/order.yaml': order(2) });
    const run = (line: string) => ensemble([...line.split(' '), '--url', url, '--token', token], { cwd });
    try {
      const { code, stderr } = await run('diff order');
      expect([code, stderr]).toEqual([
        0,
        expect.stringMatching(
          /^= order: no difference\n {2}2 executions run v2 \(\w+\)\n {2}1 execution runs v1 \(\w+\), another version\n$/,
        ),
      ]);
      const one = await run(`diff order ${id}`);
      expect([one.code, one.stdout]).toEqual([1, expect.stringContaining(`--- order ${v1.version} of ${id}\n`)]);
      expect(one.stdout).toContain('\n-      n: 1\n+      n: 2\n');
      expect((await run(`diff other ${id}`)).stderr).toContain('is an execution of `order`, not of `other`');
      expect((await run('definition put ensembles/order.yaml --label v3')).code).toBe(0);
      expect((await orchestrator.ensembles.versions('order'))[0]).toMatchObject({ label: 'v3', by: 'ci' });
      expect((await orchestrator.ensembles.version('order', 'v3')).text).toBe(order(2));
      expect((await run('definition rollback order --to v1')).code).toBe(0);
      expect((await orchestrator.ensembles.get('order')).label).toBe('v1');
    } finally {
      server.close();
      await orchestrator.close({ grace: 0 });
    }
  });

  it('says that only a shared agent differs, and what new executions run', async () => {
    const agent = (script: string) => ({ name: 'fee', operation: 'code', config: { script } });
    const flow = 'name: order\nflow: [{ agent: fee, input: { n: 1 } }, { wait: paid }]\n';
    const { run, write, storage } = project({ 'order.yaml': flow, 'agents/fee.yaml': JSON.stringify(agent('fee')) });
    write('scripts/other.mjs', 'export default () => 1;\n');
    const served = createOrchestrator({
      ...{ agents: [agent('other')] as never, scripts: { fee: () => 1, other: () => 1 }, logger: false },
      storage: sqliteStorage({ path: storage.slice('sqlite:'.length) }),
    });
    await served.ensembles.create(flow, { label: 'v1' });
    await served.ensembles.traffic('order', { version: 'v1' });
    await served.close({ grace: 0 });
    write('ensembles/order.yaml', flow);
    const { code, stdout, stderr } = await run('diff order');
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      '~ order: only a shared agent that it uses differs\n  new executions run v1\n',
    ]);
    const { ensembles } = JSON.parse((await run('diff order --json')).stdout);
    expect(ensembles).toMatchObject([{ onlyAgents: true, traffic: { version: 'v1' } }]);
  });

  it('does not show shared agents as a difference where only one of the two can have them', async () => {
    const agent = 'name: fee\noperation: code\nconfig: { script: fee }\n';
    const flow = 'name: order\nflow: [{ agent: fee, input: { n: 1 } }, { wait: paid }]\n';
    const { run, write, storage } = project({ 'ensembles/order.yaml': flow, 'agents/fee.yaml': agent });
    const served = createOrchestrator({
      ...{
        ensembles: [flow],
        agents: [{ name: 'fee', operation: 'code', config: { script: 'fee' } }],
        scripts: { fee: () => 1 },
        logger: false,
      },
      storage: sqliteStorage({ path: storage.slice('sqlite:'.length) }),
    });
    const { id } = await served.start('order');
    await served.close({ grace: 0 });
    expect((await run(`diff order ${id}`)).code).toBe(0);
    write('ensembles/order.yaml', flow.replace('n: 1', 'n: 2'));
    const { stdout } = await run(`diff order ${id}`);
    expect(stdout).toContain('n: 2');
    expect(stdout).not.toContain('script: fee');
  });
});

describe('ensemble definition traffic', () => {
  it('sets and shows which versions run, in a store and on a server, and says so when a stored version does not run', async () => {
    const { run, write } = project({ 'order.yaml': order(1) });
    await run('definition put order.yaml --label v1');
    expect((await run('definition traffic order')).stdout).toBe('new executions of order run the newest version\n');
    const set = await run('definition traffic order v1 -m', 'wait for v2');
    expect([set.code, set.stderr]).toEqual([
      0,
      expect.stringMatching(/^new executions of order run v1\nset by .+: wait for v2\n$/),
    ]);
    write('order.yaml', order(2));
    const put = await run('definition put order.yaml --label v2');
    expect(put.stderr).toMatch(
      /^✓ order was replaced: version v2 .*\n {2}its traffic is set: see ensemble definition traffic order\n$/,
    );
    const split = await run(
      'definition traffic order --split v1=90,v2=10 --shadow v2 --json --by',
      '${input.userId}',
      '--guard',
      'failureRate < 2%',
    );
    expect(JSON.parse(split.stdout)).toMatchObject({
      ...{ version: 'v1', split: { v1: 90, v2: 10 }, splitBy: '${input.userId}', guard: 'failureRate < 2%' },
      ...{ shadow: 'v2', shadowed: { runs: 0 }, counts: { v2: { runs: 0, failures: 0 } } },
    });
    const shown = (await run('definition traffic order')).stdout;
    expect(shown).toContain('new executions of order run v2 10 %, v1 90 %, by ${input.userId}\n');
    expect(shown).toContain('guard: failureRate < 2%\n  v2: 0 of 0 failed\nshadow: v2: 0 of 0 differ, 0 left\n');
    const wrong = await run('definition traffic order --split v1=90,v2=11');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('must add up to 100, not 101')]);
    expect((await run('definition traffic order latest')).stderr).toContain('run the newest version\n');
    expect((await run('definition traffic nobody v1')).code).toBe(1);
  });
});
