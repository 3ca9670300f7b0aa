/** What becomes of the executions of `ensemble serve` when it ends, and who may work on its store meanwhile. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensemble, ensureBuilt } from './cli-process.ts';
import { begin, GATED, GREET, makeProject, recordOf, serveProject, startGate, stop } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

/** The first step writes a line each time that it runs; the second one stands before the gate. */
const PROJECT = {
  ...GATED,
  'scripts/pass.mjs': `import { appendFileSync } from 'node:fs';
export default () => appendFileSync(new URL('../ran.txt', import.meta.url), 'before\\n');
`,
};
const timesRun = (cwd: string) => readFileSync(join(cwd, 'ran.txt'), 'utf8').split('\n').length - 1;

describe('ensemble serve and the executions of the one before', () => {
  it('T3: goes on at once with what a server that was killed was running, behind its last stored result', async () => {
    const cwd = makeProject(PROJECT);
    const first = await serveProject(cwd);
    const before = await startGate();
    const id = await begin(first, 'gated', { gate: before.url });
    await before.reached;
    first.child.kill('SIGKILL');
    await first.ended;
    const left = await ensemble(['execution', 'show', id, '--json'], { cwd });
    expect(JSON.parse(left.stdout)).toMatchObject({ status: 'running', agents: [{ name: 'before' }] });

    before.open();
    const second = await serveProject(cwd);
    const began = performance.now();
    const record = await recordOf(second, id, 'completed', first.token);
    expect(record).toMatchObject({
      output: { passed: 'passed' },
      agents: [
        { name: 'before', attempts: 1 },
        { name: 'pass', attempts: 1 },
      ],
    });
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(timesRun(cwd)).toBe(1);
  });

  it('goes on with what a server was running that was told twice to stop', async () => {
    const cwd = makeProject(PROJECT);
    const first = await serveProject(cwd);
    const gate = await startGate();
    const id = await begin(first, 'gated', { gate: gate.url });
    await gate.reached;
    first.child.kill('SIGTERM');
    await first.saw('stopping');
    first.child.kill('SIGTERM');
    expect((await first.ended).code).toBe(143);
    gate.open();
    const second = await serveProject(cwd);
    expect(await recordOf(second, id, 'completed', first.token)).toMatchObject({ output: { passed: 'passed' } });
    expect(timesRun(cwd)).toBe(1);
  });

  it('stops at once where all that is left waits, though somebody watches it, and the next one has it', async () => {
    const cwd = makeProject({
      'ensembles/patient.yaml': `name: patient
flow:
  - { agent: a, operation: code, config: { script: fails }, retry: { maxAttempts: 2, backoff: fixed, delay: 60000 } }
`,
      'scripts/fails.mjs': "export default () => { throw new Error('busy'); };\n",
    });
    const first = await serveProject(cwd);
    const id = await begin(first, 'patient');
    await recordOf(first, id, 'waiting');
    const stream = await first.api(`/executions/${id}/events`);
    const broken = stream.text().catch(() => 'broken off');
    const began = performance.now();
    await stop(first);
    expect(performance.now() - began).toBeLessThan(3_500);
    expect(await broken).toBe('broken off');
    const second = await serveProject(cwd);
    expect(await recordOf(second, id, 'waiting', first.token)).toMatchObject({ agents: [{ status: 'retrying' }] });
  });
});

describe('a store that a server works on', () => {
  it('is refused to a second server, in one line, with exit code 1; the first one goes on', async () => {
    const cwd = makeProject();
    const served = await serveProject(cwd);
    const { code, stdout, stderr } = await ensemble(['serve', '--port', '0'], { cwd });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      'error: another process works on the store (.ensemble/data.sqlite), which takes one alone; stop that one first, or name another store with --storage\n',
    );
    expect((await served.api('/execute/ensemble/greet', { input: { who: 'Ada' } })).status).toBe(200);
  });

  it("is left alone by `ensemble run`, which keeps its run in memory and shares the store's values", async () => {
    const cwd = makeProject({
      ...GREET,
      'ensembles/put.yaml': `name: put
flow:
  - { agent: put, operation: storage, config: { type: kv, action: put, key: city, value: Lyon } }
`,
      'ensembles/get.yaml': `name: get
flow:
  - { agent: get, operation: storage, config: { type: kv, action: get, key: city } }
outputs: { city: "\${get.output.value}" }
`,
      'ensemble.config.mjs': `import { sqliteStorage } from 'ensemble-orchestrator/sqlite';
export default { storage: sqliteStorage({ path: new URL('own.db', import.meta.url).pathname }) };\n`,
    });
    const served = await serveProject(cwd);
    const { code, stdout } = await ensemble(['run', 'put'], { cwd });
    expect([code, stdout]).toEqual([0, '{}\n']);
    const answer = await served.api('/execute/ensemble/get', {});
    expect(await answer.json()).toMatchObject({ output: { city: 'Lyon' } });
    const { stdout: listed } = await ensemble(['execution', 'list', '--json'], { cwd });
    expect(JSON.parse(listed).executions).toMatchObject([{ ensemble: 'get' }]);
  });
});
