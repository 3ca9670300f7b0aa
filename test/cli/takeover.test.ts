/** The executions of `ensemble serve` after it ends, and other processes on its store while it runs. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { scaled } from '../slowdown.ts';
import { ensemble, ensureBuilt } from './cli-process.ts';
import { begin, GATED, GREET, makeProject, recordOf, serveProject, startGate, stop } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

/** The first step writes a line each time that it runs; the second one waits at the gate. */
const PROJECT = {
  ...GATED,
  'scripts/pass.mjs': `import { appendFileSync } from 'node:fs';
export default () => appendFileSync(new URL('../ran.txt', import.meta.url), 'before\\n');
`,
};
const timesRun = (cwd: string) => readFileSync(join(cwd, 'ran.txt'), 'utf8').split('\n').length - 1;

describe('ensemble serve and the executions of an earlier server', () => {
  it('resumes the executions of a killed server at once, after their last stored result', async () => {
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
        // The killed server had begun the first one.
        { name: 'pass', attempts: 2 },
      ],
    });
    expect(performance.now() - began).toBeLessThan(scaled(2_000));
    expect(timesRun(cwd)).toBe(1);
  });

  it('resumes the executions of a server that received two signals', async () => {
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

  it('stops at once when all unfinished executions wait, also while one is watched, and the next server has them', async () => {
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
    expect(performance.now() - began).toBeLessThan(scaled(3_500));
    expect(await broken).toBe('broken off');
    const second = await serveProject(cwd);
    expect(await recordOf(second, id, 'waiting', first.token)).toMatchObject({ agents: [{ status: 'retrying' }] });
  });
});

describe('a store that a server uses', () => {
  it('is refused to a second server, in one line, with exit code 1; the first server continues', async () => {
    const cwd = makeProject();
    const served = await serveProject(cwd);
    const { code, stdout, stderr } = await ensemble(['serve', '--port', '0'], { cwd });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      'error: another process uses the store (.ensemble/data.sqlite), which takes only one process; stop that process first, or name another store with --storage\n',
    );
    expect((await served.api('/execute/ensemble/greet', { input: { who: 'Ada' } })).status).toBe(200);
  });

  it("is not used for executions by `ensemble run`, which keeps them in memory and shares the store's values", async () => {
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
    const response = await served.api('/execute/ensemble/get', {});
    expect(await response.json()).toMatchObject({ output: { city: 'Lyon' } });
    const { stdout: listed } = await ensemble(['execution', 'list', '--json'], { cwd });
    expect(JSON.parse(listed).executions).toMatchObject([{ ensemble: 'get' }]);
  });
});
