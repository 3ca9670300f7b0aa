/** `--storage postgres://...`: servers that share a database, and commands on the same database. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { scaled } from '../slowdown.ts';
import { createDatabase, findServer } from '../storage/postgres-server.ts';
import { ensemble, ensureBuilt, makeFolder } from './cli-process.ts';
import { begin, GATED, GREET, makeProject, recordOf, serveProject, startGate, stop } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const isThere = await findServer();

async function makeDatabase(): Promise<string> {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  return database.connectionString;
}

describe.skipIf(!isThere)('a store in Postgres', () => {
  it('is shared by servers: one resumes the executions of a killed server at once', async () => {
    const cwd = makeProject({ ...GREET, ...GATED });
    const store = ['--storage', await makeDatabase()];
    const first = await serveProject(cwd, store);
    const second = await serveProject(cwd, store);
    expect(second.printed).toMatch(/\n {2}store {6}postgres:\/\/[^@/]+\/ensemble_test_\w+\n {2}tokens {5}1;/);
    const gate = await startGate();
    const id = await begin(first, 'gated', { gate: gate.url });
    await gate.reached;
    first.child.kill('SIGKILL');
    const began = performance.now();
    gate.open();
    const record = await recordOf(second, id, 'completed', first.token);
    expect(record).toMatchObject({ output: { passed: 'passed' }, agents: [{ name: 'before' }, { name: 'pass' }] });
    // The library promises 2 s; the rest is for a busy machine.
    expect(performance.now() - began).toBeLessThan(scaled(5_000));
  });

  it('gets one first token from several servers that start at the same time', async () => {
    const cwd = makeProject();
    const store = ['--storage', await makeDatabase()];
    const served = await Promise.all([1, 2, 3].map(() => serveProject(cwd, store)));
    const [token, ...others] = served.map((one) => one.token).filter((one) => one !== '');
    expect(others).toEqual([]);
    for (const one of served) {
      const { tokens } = (await (await one.api('/tokens', undefined, token)).json()) as { tokens: object[] };
      expect(tokens).toMatchObject([{ name: 'admin', plan: 'enterprise' }]);
    }
  });

  it('is open to other commands while a server uses it: they list, cancel and retry', async () => {
    const cwd = makeProject({
      'ensembles/order.yaml': `name: order
flow:
  - { agent: charge, operation: code, config: { script: charge } }
outputs: { charged: "\${charge.output}" }
`,
      'scripts/charge.mjs': `import { existsSync } from 'node:fs';
export default () => {
  if (existsSync(new URL('../refused', import.meta.url))) throw new Error('card refused');
  return 'charged';
};
`,
      refused: '',
    });
    const store = ['--storage', await makeDatabase()];
    const served = await serveProject(cwd, store);
    const [failed, other] = [await begin(served, 'order'), await begin(served, 'order')];
    for (const id of [failed, other]) await recordOf(served, id, 'failed');
    rmSync(join(cwd, 'refused'));
    const { code, stdout } = await ensemble(['execution', 'retry', failed, ...store], { cwd });
    expect(code).toBe(0);
    await recordOf(served, stdout.trim(), 'completed');
    const listed = await ensemble(['execution', 'list', '--json', ...store], { cwd: makeFolder({}) });
    expect(JSON.parse(listed.stdout).executions).toMatchObject([
      { id: stdout.trim(), retryOf: failed },
      { id: other },
      { id: failed, retriedBy: stdout.trim() },
    ]);
    await stop(served);
    const again = (await ensemble(['execution', 'retry', other, ...store], { cwd })).stdout.trim();
    const cancelled = await ensemble(['execution', 'cancel', again, ...store], { cwd: makeFolder({}) });
    expect([cancelled.code, cancelled.stderr]).toEqual([0, `✓ execution ${again} is cancelled\n`]);
  });

  it('is closed after the last response: an event stream reads its end from it while the server stops', async () => {
    const served = await serveProject(makeProject(GATED), ['--storage', await makeDatabase()]);
    const gate = await startGate();
    const id = await begin(served, 'gated', { gate: gate.url });
    const stream = await served.api(`/executions/${id}/events`);
    await gate.reached;
    served.child.kill('SIGTERM');
    await served.saw('stopping');
    gate.open();
    expect((await stream.text()).trimEnd().split('\n\n').at(-1)).toMatch(/^id: 4\nevent: execution\.completed\n/);
    expect((await served.ended).code).toBe(0);
  });
});

describe('a store in Postgres that can not be used', () => {
  it('names the package that is missing', async () => {
    const cwd = makeProject({
      ...GREET,
      'without-pg.mjs': `import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(\`export async function resolve(name, context, next) {
  if (name === 'pg') throw new Error("Cannot find package 'pg'");
  return next(name, context);
}\`));
`,
    });
    const env = { NODE_OPTIONS: `--import=${join(cwd, 'without-pg.mjs')}` };
    const store = ['--storage', 'postgres://me:secret@127.0.0.1:1/x'];
    for (const command of [
      ['serve', '--port', '0'],
      ['token', 'list'],
      ['execution', 'list'],
    ]) {
      const { code, stdout, stderr } = await ensemble([...command, ...store], { cwd, env });
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^error: .*the package pg is not installed; `npm install pg`.*\n$/);
    }
  });

  it('names the address that does not respond, and never the password', async () => {
    const store = ['--storage', 'postgres://me:secret@127.0.0.1:1/x'];
    const { code, stderr } = await ensemble(['token', 'list', ...store], { cwd: makeFolder({}) });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^error: .* at 127\.0\.0\.1:1 within 2 s \(connect ECONNREFUSED 127\.0\.0\.1:1\); .*\n$/),
    ]);
    expect(stderr).not.toContain('secret');
  });
});
