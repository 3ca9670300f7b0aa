/** `ensemble execution cancel`, `retry` and `signal`, and how the other commands show executions that wait or are queued. */

import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, makeFolder, startEnsemble } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import {
  begin,
  GATED,
  makeProject,
  recordOf,
  type Served,
  serveProject,
  startGate,
  stop,
  until,
} from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

/** The second step fails while the file `refused` exists; the first step writes a line each time that it runs. */
const ORDER = {
  'ensembles/order.yaml': `name: order
flow:
  - { agent: first, operation: code, config: { script: first } }
  - { agent: charge, operation: code, config: { script: charge } }
outputs: { charged: "\${charge.output}" }
`,
  'ensembles/patient.yaml': `name: patient
flow:
  - agent: charge
    operation: code
    config: { script: charge }
    retry: { maxAttempts: 2, backoff: fixed, delay: 60000 }
  - if: "\${false}"
    then: [{ wait: go }]
`,
  'scripts/first.mjs': `import { appendFileSync } from 'node:fs';
export default () => appendFileSync(new URL('../ran.txt', import.meta.url), 'first\\n');
`,
  'scripts/charge.mjs': `import { existsSync } from 'node:fs';
export default () => {
  if (existsSync(new URL('../refused', import.meta.url))) throw new Error('card refused');
  return 'charged';
};
`,
  refused: '',
};

const GATED_BY_SIGNAL = {
  ...GATED,
  'scripts/gated.mjs': 'export default async ({ input, signal }) => (await fetch(input.gate, { signal })).json();\n',
};

/** The two ways to the same executions. */
const ways = ({ cwd, url, token }: Served) =>
  [
    ['the store', [], { cwd }],
    ['the server', ['--url', url, '--token', token], {}],
  ] as const;

describe('ensemble execution cancel', () => {
  it('cancels a running execution, through its store and through its server', async () => {
    const served = await serveProject(makeProject(GATED_BY_SIGNAL));
    for (const [, where, options] of ways(served)) {
      const gate = await startGate();
      const id = await begin(served, 'gated', { gate: gate.url });
      await gate.reached;
      const { code, stdout, stderr } = await ensemble(['execution', 'cancel', id, ...where], options);
      expect([code, stdout]).toEqual([0, '']);
      expect(stderr).toMatch(
        new RegExp(`^✓ execution ${id} (is cancelled|is being cancelled; it is still running)\n$`),
      );
      await recordOf(served, id, 'cancelled');
      const again = await ensemble(['execution', 'cancel', id, '--json', ...where], options);
      expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { id, status: 'cancelled' }]);
    }
  });

  it('cancels an execution that waits, after the other commands showed it', async () => {
    const served = await serveProject(makeProject(ORDER));
    const { cwd } = served;
    const id = await begin(served, 'patient');
    await recordOf(served, id, 'waiting');
    const listed = await ensemble(['execution', 'list', '--status', 'waiting'], { cwd });
    expect(listed.stdout.split('\n')[1]).toMatch(
      new RegExp(`^${id}  patient   waiting  (now|\\d+s ago) +the next attempt of charge, .+$`),
    );
    const shown = (await ensemble(['execution', 'show', id], { cwd })).stdout;
    expect(shown).toContain('  status    waiting\n');
    expect(shown).toMatch(/ {2}… charge {2} +\d+ms {2}will be retried\n {6}AGENT_FAILED: card refused\n/);
    const watching = startEnsemble(['execution', 'watch', id], { cwd });
    await watching.saw(`patient ${id}`);
    expect((await ensemble(['execution', 'cancel', id], { cwd })).code).toBe(0);
    const { code, stderr } = await watching.ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(/\n✗ cancelled after \d+(ms|\.\d+s|s)\n$/)]);
    expect((await recordOf(served, id, 'cancelled')).agents).toMatchObject([{ name: 'charge', attempts: 1 }]);
  });

  it('with a token that may only execute, prints the id and the status that the server returned', async () => {
    const served = await serveProject(makeProject(ORDER));
    const made = await served.api('/tokens', { name: 'ci', scopes: ['execute:ensembles'] });
    const { token } = (await made.json()) as { token: string };
    const where = ['--url', served.url, '--token', token];
    const waiting = await begin(served, 'patient');
    await recordOf(served, waiting, 'waiting');
    const signalled = await ensemble(['execution', 'signal', waiting, 'go', ...where]);
    expect([signalled.code, signalled.stderr]).toEqual([
      0,
      expect.stringContaining(`execution ${waiting}; it is waiting`),
    ]);
    const cancelled = await ensemble(['execution', 'cancel', waiting, '--json', ...where]);
    expect(JSON.parse(cancelled.stdout)).toEqual({ executionId: waiting, status: expect.any(String) });
    const failed = await begin(served, 'order');
    await recordOf(served, failed, 'failed');
    const again = await ensemble(['execution', 'retry', failed, ...where]);
    expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/^exec_\w{26}\n$/)]);
    expect(again.stderr).toContain(`${again.stdout.trim()} retries ${failed}`);
  });

  it('an execution that has ended is not cancelled, and one that waits is not retried; an unknown id ends with exit code 1', async () => {
    const served = await serveProject(makeProject(ORDER));
    const [ended, waiting] = [await begin(served, 'order'), await begin(served, 'patient')];
    await recordOf(served, ended, 'failed');
    await recordOf(served, waiting, 'waiting');
    const nobody = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';
    for (const [, where, options] of ways(served)) {
      const refused = await ensemble(['execution', 'cancel', ended, ...where], options);
      expect([refused.code, refused.stdout, refused.stderr.split('\n').length]).toEqual([1, '', 2]);
      expect(refused.stderr).toContain(`execution ${ended} has ended: it is failed`);
      const same = await ensemble(['execution', 'retry', waiting, ...where], options);
      expect([same.code, same.stdout]).toEqual([0, `${waiting}\n`]);
      expect(same.stderr).toContain(`execution ${waiting} is waiting: there is nothing to retry`);
      for (const verb of ['cancel', 'retry']) {
        const unknown = await ensemble(['execution', verb, nobody, ...where], options);
        expect([unknown.code, unknown.stdout]).toEqual([1, '']);
        expect(unknown.stderr).toMatch(/^error: there is no (such )?execution/);
      }
    }
  });
});

describe('ensemble execution pause and resume', () => {
  it('pauses an execution, an ensemble and everything, through the store and through the server', async () => {
    const served = await serveProject(makeProject(ORDER));
    for (const [, where, options] of ways(served)) {
      const id = await begin(served, 'patient');
      await recordOf(served, id, 'waiting');
      const run = async (...args: readonly string[]) => {
        const { code, stderr } = await ensemble(['execution', ...args, ...where], options);
        return [code, stderr.trim()];
      };
      expect(await run('pause', id)).toEqual([0, `✓ execution ${id} is paused`]);
      expect(await run('resume', id)).toEqual([0, `✓ execution ${id} is waiting`]);
      expect(await run('pause', '--ensemble', 'patient')).toEqual([
        0,
        '✓ ensemble patient is paused, with what is started later; 1 execution changed',
      ]);
      await recordOf(served, id, 'paused');
      expect(await run('resume', id)).toEqual([0, `✓ execution ${id} is still paused, with its ensemble`]);
      expect(await run('resume', '--ensemble', 'patient')).toEqual([
        0,
        '✓ ensemble patient is not paused any more; 1 execution changed',
      ]);
      expect((await run('pause', '--all'))[0]).toBe(0);
      expect((await run('resume', '--all'))[0]).toBe(0);
      expect(await run('pause')).toEqual([
        2,
        expect.stringContaining('name what is meant: an id, --ensemble NAME, or --all'),
      ]);
      await ensemble(['execution', 'cancel', id, ...where], options);
    }
  });
});

describe('ensemble execution retry', () => {
  it('creates an execution on the server, which runs only the steps that did not succeed; prints only its id on stdout', async () => {
    const served = await serveProject(makeProject(ORDER));
    const { cwd } = served;
    const failed = await begin(served, 'order');
    await recordOf(served, failed, 'failed');
    rmSync(join(cwd, 'refused'));
    for (const [, where, options] of ways(served)) {
      const { code, stdout, stderr } = await ensemble(['execution', 'retry', failed, ...where], options);
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^exec_[0-9A-Z]{26}\n$/)]);
      const id = stdout.trim();
      expect(stderr).toContain(`✓ execution ${id} retries ${failed}`);
      expect(await recordOf(served, id, 'completed')).toMatchObject({
        output: { charged: 'charged' },
        retryOf: failed,
        agents: [{ name: 'first' }, { name: 'charge' }],
      });
      const shown = await ensemble(['execution', 'show', id, ...where], options);
      expect(shown.stdout).toContain(`  retry of  ${failed}\n`);
    }
    expect(readFileSync(join(cwd, 'ran.txt'), 'utf8')).toBe('first\n');
  });

  it('without a server the execution is queued in the store, and the next server starts it', async () => {
    const cwd = makeProject(ORDER);
    const first = await serveProject(cwd);
    const failed = await begin(first, 'order');
    await recordOf(first, failed, 'failed');
    await stop(first);
    rmSync(join(cwd, 'refused'));
    const { stdout } = await ensemble(['execution', 'retry', failed, '--json'], { cwd });
    const queued = JSON.parse(stdout);
    expect(queued).toMatchObject({ ensemble: 'order', status: 'queued', retryOf: failed });
    expect(queued).not.toHaveProperty('startedAt');
    const listed = await ensemble(['execution', 'list', '--status', 'queued'], { cwd });
    expect(listed.stdout.split('\n')[1]).toMatch(new RegExp(`^${queued.id}  order     queued *$`));
    const shown = (await ensemble(['execution', 'show', queued.id], { cwd })).stdout;
    expect(shown).toMatch(/\n {2}status {4}queued\n {2}created {3}[\d-]{10} [\d:]{8} \((now|\d+s ago)\)\n {2}trigger/);
    const watching = startEnsemble(['execution', 'watch', queued.id], { cwd });
    await watching.saw(`order ${queued.id}`);
    const second = await serveProject(cwd);
    const { code, stdout: output } = await watching.ended;
    expect([code, JSON.parse(output)]).toEqual([0, { charged: 'charged' }]);
    const record = await recordOf(second, queued.id, 'completed', first.token);
    expect(record.startedAt).toBeGreaterThan(record.createdAt);
    const done = (await ensemble(['execution', 'show', queued.id], { cwd })).stdout;
    expect(done).toMatch(/\n {2}created {3}.*\n {2}started {3}.*\n {2}finished {2}/);
    expect(readFileSync(join(cwd, 'ran.txt'), 'utf8')).toBe('first\n');
  });

  it('names the missing option when the store is named and the project is not', async () => {
    const served = await serveProject(makeProject(ORDER));
    const failed = await begin(served, 'order');
    await recordOf(served, failed, 'failed');
    const store = `sqlite:${join(served.cwd, '.ensemble/data.sqlite')}`;
    const elsewhere = await ensemble(['execution', 'retry', failed, '--storage', store], { cwd: makeFolder({}) });
    expect([elsewhere.code, elsewhere.stdout]).toEqual([1, '']);
    expect(elsewhere.stderr).toMatch(/^error: execution exec_\w+ can't be retried here: [\s\S]*script `first`/);
    expect(elsewhere.stderr).toMatch(/\nhelp: name the project of the execution with --dir, or a server .* --url\n$/);
    const named = ['execution', 'retry', failed, '--storage', store, '--dir', served.cwd];
    expect((await ensemble(named, { cwd: makeFolder({}) })).code).toBe(0);
  });

  it('works for an execution that started another ensemble, with the project and without it', async () => {
    const starter = `name: starter\nflow:\n  - ensemble: patient-child\n`;
    const child = `name: patient-child\nflow:\n  - { wait: never, timeout: 1 }\n`;
    const files = { 'ensembles/starter.yaml': starter, 'ensembles/patient-child.yaml': child };
    const served = await serveProject(makeProject(files));
    const first = await begin(served, 'starter');
    await recordOf(served, first, 'failed');
    let newest = first;
    const store = ['--storage', `sqlite:${join(served.cwd, '.ensemble/data.sqlite')}`];
    for (const where of [['--dir', served.cwd], [...store, '--dir', served.cwd], store]) {
      const { code, stdout, stderr } = await ensemble(['execution', 'retry', first, ...where], {
        cwd: makeFolder({}),
      });
      expect([code, stderr]).toEqual([0, expect.stringContaining(`retries ${newest}`)]);
      expect(await recordOf(served, stdout.trim(), 'failed')).toMatchObject({ retryOf: newest });
      newest = stdout.trim();
    }
  });

  it('works although other definitions of the project have problems', async () => {
    const served = await serveProject(makeProject(ORDER));
    const failed = await begin(served, 'order');
    await recordOf(served, failed, 'failed');
    appendFileSync(join(served.cwd, 'ensembles/order.yaml'), 'nonsense: [');
    const { code, stdout } = await ensemble(['execution', 'retry', failed], { cwd: served.cwd });
    expect(code).toBe(0);
    await until(async () => (await recordOf(served, stdout.trim(), 'failed')).retryOf === failed);
  });
});

/** Waits for two signals. */
const ASKS = {
  'ensembles/ask.yaml': `name: ask
flow:
  - { wait: approved, name: first }
  - { wait: approved, name: second }
outputs: { both: ["\${first.output}", "\${second.output}"] }
`,
};

describe('ensemble execution signal', () => {
  it('sends a signal through the store and through its server, and the execution resumes', async () => {
    const served = await serveProject(makeProject(ASKS));
    const id = await begin(served, 'ask');
    await recordOf(served, id, 'waiting');
    const [[, here, inStore], [, there, onServer]] = ways(served);
    const first = await ensemble(
      ['execution', 'signal', id, 'approved', '--payload', '{"by": "Ada"}', ...here],
      inStore,
    );
    expect([first.code, first.stdout]).toEqual([0, '']);
    expect(first.stderr).toMatch(
      new RegExp(`^✓ signal approved is stored for execution ${id}; it is (waiting|running)\n$`),
    );
    const again = ['execution', 'signal', id, 'approved', '--idempotency-key', 'k1', '--json', ...there];
    for (let times = 0; times < 2; times++) {
      const second = await ensemble(again, onServer);
      expect([second.code, JSON.parse(second.stdout)]).toMatchObject([0, { id, ensemble: 'ask' }]);
    }
    expect((await recordOf(served, id, 'completed')).output).toEqual({ both: [{ by: 'Ada' }, null] });
    for (const [, where, options] of ways(served)) {
      const refused = await ensemble(['execution', 'signal', id, 'approved', ...where], options);
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toContain(`error: execution ${id} accepts no more signals: it is completed`);
    }
  });

  it('refuses a payload that is not JSON, with exit code 2', async () => {
    const { code, stderr } = await ensemble(['execution', 'signal', 'exec_0', 'approved', '--payload', 'yes']);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`--payload is not JSON`)]);
  });
});
