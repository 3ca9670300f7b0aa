/** `ensemble execution list`, `show` and `watch`: from a store and from a running server. */

import { createServer } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { readEventStream } from '../../src/engine/base/bytes/read-event-stream.ts';
import { ensureBuilt, startEnsemble } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { GATED, GREET, listen, makeProject, type Served, serveProject, startGate } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const FLAKY = {
  'ensembles/flaky.yaml': `name: flaky
flow:
  - agent: charge
    operation: code
    config: { script: charge }
    retry: { maxAttempts: 2, backoff: fixed, delay: 1 }
outputs: { paid: "\${charge.success}" }
`,
  'scripts/charge.mjs': "export default () => { throw new Error('card\\nrefused \\u001b[31m'); };\n",
};

async function begin(served: Served, name: string, input: object): Promise<string> {
  const response = await served.api(`/execute/ensemble/${name}`, { input, async: true });
  return ((await response.json()) as { executionId: string }).executionId;
}

/** Runs to its end. */
async function execute(served: Served, name: string, input: object = {}): Promise<string> {
  const body = (await (await served.api(`/execute/ensemble/${name}`, { input })).json()) as {
    executionId?: string;
    error?: { executionId: string };
  };
  return body.executionId ?? (body.error?.executionId as string);
}

/** The two ways to the same records. */
const ways = ({ cwd, url, token }: Served) =>
  [
    ['the store', [], { cwd }],
    ['the server', ['--url', url, '--token', token], {}],
  ] as const;

describe('ensemble execution list', () => {
  it('lists executions newest first, from the store and from the server', async () => {
    const served = await serveProject(makeProject({ ...GREET, ...FLAKY }));
    const first = await execute(served, 'greet', { who: 'Ada' });
    const second = await execute(served, 'flaky');
    for (const [, where, options] of ways(served)) {
      const { code, stdout } = await ensemble(['execution', 'list', ...where], options);
      const [head, ...rows] = stdout.trimEnd().split('\n');
      expect([code, head]).toEqual([0, `ID${' '.repeat(31)}ENSEMBLE  STATUS     STARTED  DURATION`]);
      expect(rows).toEqual([
        expect.stringMatching(new RegExp(`^${second}  flaky     failed     (now|\\d+s ago) +\\d+ms$`)),
        expect.stringMatching(new RegExp(`^${first}  greet     completed  (now|\\d+s ago) +\\d+ms$`)),
      ]);
    }
  });

  it('--json prints the body of the API; filters and limit apply; a message says when there are more', async () => {
    const served = await serveProject(makeProject({ ...GREET, ...FLAKY }));
    const ids = [await execute(served, 'greet', { who: 'Ada' }), await execute(served, 'greet', { who: 'Bo' })];
    await execute(served, 'flaky');
    for (const [, where, options] of ways(served)) {
      const list = (...more: readonly string[]) => ensemble(['execution', 'list', ...where, ...more], options);
      const mine = JSON.parse((await list('--ensemble', 'greet', '--status', 'completed', '--json')).stdout);
      expect(Object.keys(mine)).toEqual(['executions']);
      expect(mine.executions.map((one: { id: string }) => one.id)).toEqual([ids[1], ids[0]]);
      const page = await list('--limit', '2');
      expect([page.stdout.trimEnd().split('\n').length, page.stderr]).toEqual([
        3,
        'there are more; show them with --limit 10\n',
      ]);
      expect((await list('--status', 'cancelled')).stderr).toBe('no matching executions\n');
    }
  });

  it('--parent lists the child executions of an execution, and `show` names the parent', async () => {
    const family = 'name: family\nflow: [{ ensemble: greet, input: { who: Ada } }]\n';
    const served = await serveProject(makeProject({ ...GREET, 'ensembles/family.yaml': family }));
    const parent = await execute(served, 'family');
    for (const [, where, options] of ways(served)) {
      const list = (id: string) => ensemble(['execution', 'list', '--parent', id, '--json', ...where], options);
      const [child, ...more] = JSON.parse((await list(parent)).stdout).executions;
      expect([child.ensemble, child.parentId, more]).toEqual(['greet', parent, []]);
      expect(JSON.parse((await list(child.id)).stdout)).toEqual({ executions: [] });
      const { stdout } = await ensemble(['execution', 'show', child.id, ...where], options);
      expect(stdout).toMatch(new RegExp(`^ {2}parent +${parent}$`, 'm'));
    }
  });

  it('reads several pages for a large --limit', async () => {
    const asked: string[] = [];
    const one = (n: number) => ({ id: `exec_${n}`, ensemble: 'e', status: 'completed', createdAt: 1, duration: 1 });
    const pages = await listen(
      createServer((request, response) => {
        asked.push(request.url ?? '');
        const executions = Array.from({ length: asked.length === 1 ? 250 : 50 }, (_, i) => one(i));
        response.end(JSON.stringify({ executions, nextCursor: `c${asked.length}` }));
      }),
    );
    const { stdout } = await ensemble(['execution', 'list', '--limit', '300', '--url', pages, '--token', 'x']);
    expect(stdout.trimEnd().split('\n')).toHaveLength(301);
    expect(asked).toEqual(['/api/v1/executions?limit=250', '/api/v1/executions?limit=50&cursor=c1']);
  });

  it.each([
    [['--status', 'faild'], 'there is no status "faild"; did you mean failed?'],
    [['--limit', '0'], '--limit must be a whole number from 1 to 10000, not "0"'],
  ])('wrong usage ends with 2: %s', async (args, message) => {
    const { code, stderr } = await ensemble(['execution', 'list', ...args], { cwd: makeProject() });
    expect([code, stderr]).toEqual([2, `error: ${message}\n`]);
  });
});

describe('ensemble execution show', () => {
  it('shows status, times, agents with attempts, errors and outputs, and the output', async () => {
    const served = await serveProject(makeProject({ ...GREET, ...FLAKY }));
    const good = await execute(served, 'greet', { who: 'Ada' });
    const bad = await execute(served, 'flaky');
    const shown: string[] = [];
    for (const [, where, options] of ways(served)) {
      const ok = await ensemble(['execution', 'show', good, ...where], options);
      expect(ok.stdout.split('\n')).toEqual([
        good,
        '  ensemble  greet',
        '  status    completed',
        expect.stringMatching(/^ {2}started {3}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((now|\d+s ago)\)$/),
        expect.stringMatching(/^ {2}finished {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
        expect.stringMatching(/^ {2}duration {2}\d+ms$/),
        '  trigger   http',
        expect.stringMatching(/^ {2}version {3}[0-9a-f]{32}$/),
        '',
        'agents',
        expect.stringMatching(/^ {2}✓ hello {2} +\d+ms$/),
        '      "Hello Ada"',
        '',
        'input',
        '  {',
        '    "who": "Ada"',
        '  }',
        '',
        'output',
        '  {',
        '    "text": "Hello Ada"',
        '  }',
        '',
      ]);
      const failed = (await ensemble(['execution', 'show', bad, ...where], options)).stdout;
      expect(failed).toContain('  status    failed\n');
      expect(failed).toContain('  error     AGENT_FAILED at charge: card refused \ufffd[31m\n');
      expect(failed).toMatch(/ {2}✗ charge {2} +\d+ms {2}2 attempts\n {6}AGENT_FAILED: card refused \ufffd\[31m\n/);
      // The frames follow, that of the script first.
      expect(failed).toMatch(/refused \ufffd\[31m\n {8}at .*scripts\/charge\.mjs:\d+:\d+\)?\n/);
      shown.push((await ensemble(['execution', 'show', bad, '--json', ...where], options)).stdout);
    }
    expect(JSON.parse(shown[0] as string)).toMatchObject({ id: bad, status: 'failed', agents: [{ attempts: 2 }] });
    expect(shown[1]).toBe(shown[0]);
  });

  it('shows the key of each run of a loop, and cuts long outputs at 80 columns, but not errors', async () => {
    const served = await serveProject(
      makeProject({
        'ensembles/loop.yaml': `name: loop
flow:
  - foreach: [1, 2]
    steps:
      - { agent: one, operation: code, config: { script: one }, input: { n: "\${item}" } }
`,
        'scripts/one.mjs':
          "export default ({ input }) => { if (input.n === 2) throw new Error('bad '.repeat(40)); return 'x'.repeat(200); };\n",
      }),
    );
    const id = await execute(served, 'loop');
    const { stdout } = await ensemble(['execution', 'show', id], { cwd: served.cwd, env: { COLUMNS: '80' } });
    expect(stdout).toMatch(/\n {2}error {5}AGENT_FAILED at one: (bad ){39}bad/);
    expect(stdout).toMatch(/ {2}✓ one {2} +\d+ms {2}flow\[0\]\.foreach\[0\]\.steps\[0\]\n {6}"x{72}…\n/);
    expect(stdout).toMatch(
      / {2}✗ one {2} +\d+ms {2}flow\[0\]\.foreach\[1\]\.steps\[0\]\n {6}AGENT_FAILED: (bad ){39}bad/,
    );
  });

  it('an unknown id ends with 1', async () => {
    const served = await serveProject(makeProject());
    const [store, server] = ways(served);
    const asked = await ensemble(['execution', 'show', 'exec_nobody', ...store[1]], store[2]);
    expect([asked.code, asked.stderr]).toEqual([1, 'error: there is no execution exec_nobody\n']);
    const remote = await ensemble(['execution', 'show', 'exec_nobody', ...server[1]], server[2]);
    expect([remote.code, remote.stderr]).toEqual([1, 'error: there is no such execution\n']);
  });
});

describe('ensemble execution watch', () => {
  it('follows an execution of another process until it ends, and prints its output', async () => {
    const served = await serveProject(makeProject(GATED));
    for (const [, where, options] of ways(served)) {
      const gate = await startGate();
      const id = await begin(served, 'gated', { gate: gate.url });
      const watching = startEnsemble(['execution', 'watch', id, ...where], options);
      await gate.reached;
      await watching.saw('before');
      gate.open();
      const { code, stdout, stderr } = await watching.ended;
      expect([code, JSON.parse(stdout)]).toEqual([0, { passed: 'passed' }]);
      expect(stderr.split('\n')).toEqual([
        `gated ${id}`,
        expect.stringMatching(/^ {2}before +completed in \d+ms$/),
        expect.stringMatching(/^ {2}pass +completed in [\d.]+m?s$/),
        expect.stringMatching(/^✓ completed in [\d.]+m?s$/),
        '',
      ]);
    }
  });

  it('ends with 1 when the execution failed; --json prints each event as a line', async () => {
    const served = await serveProject(makeProject(FLAKY));
    const id = await execute(served, 'flaky');
    for (const [, where, options] of ways(served)) {
      const text = await ensemble(['execution', 'watch', id, ...where], options);
      expect([text.code, text.stdout]).toEqual([1, '']);
      expect(text.stderr).toMatch(
        / {2}charge +failed in \d+ms, 2 attempts: card refused \ufffd\[31m\n✗ failed after \d+ms: card/,
      );
      const { code, stdout, stderr } = await ensemble(['execution', 'watch', id, '--json', ...where], options);
      expect([code, stderr]).toEqual([1, '']);
      const events = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(events.map(({ event }) => event)).toEqual([
        ...['execution.started', 'agent.retrying', 'agent.failed', 'execution.failed'],
      ]);
      expect(stdout).not.toContain('\u001b');
    }
  });

  it('Ctrl-C ends only the watching', async () => {
    const served = await serveProject(makeProject(GATED));
    for (const [, where, options] of ways(served)) {
      const gate = await startGate();
      const id = await begin(served, 'gated', { gate: gate.url });
      const watching = startEnsemble(['execution', 'watch', id, ...where], options);
      await watching.saw('before');
      watching.child.kill('SIGINT');
      const { code, stderr } = await watching.ended;
      expect([code, stderr.endsWith('stopped watching; the execution continues\n')]).toEqual([130, true]);
      gate.open();
      const end = await ensemble(['execution', 'watch', id, ...where], options);
      expect([end.code, JSON.parse(end.stdout)]).toEqual([0, { passed: 'passed' }]);
    }
  });

  it('resumes a broken event stream after the last event', async () => {
    const after: (string | undefined)[] = [];
    const send = (id: number, event: string, data: object) =>
      `id: ${id}\r\nevent: ${event}\r\ndata: ${JSON.stringify({ event, timestamp: '', data })}\r\n\r\n`;
    const url = await listen(
      createServer((request, response) => {
        after.push(request.headers['last-event-id'] as string | undefined);
        response.setHeader('content-type', 'text/event-stream');
        if (after.length === 1) {
          // The chunk ends within a line end, and the connection within an event.
          response.write(send(1, 'execution.started', { id: 'exec_1', ensemble: 'far' }).slice(0, -1), () => {
            response.write('\n: alive\n\nid: 2\ndata: {"ev', () => response.destroy());
          });
          return;
        }
        response.write(
          send(2, 'agent.completed', { executionId: 'exec_1', agent: 'a', key: 'flow[0]', output: 1, duration: 5 }),
        );
        response.end(send(3, 'execution.completed', { id: 'exec_1', output: { ok: true }, duration: 9 }));
      }),
    );
    const { code, stdout, stderr } = await ensemble(['execution', 'watch', 'exec_1', '--url', url, '--token', 'x']);
    expect([code, JSON.parse(stdout), after]).toEqual([0, { ok: true }, [undefined, '1']]);
    expect(stderr).toBe('far exec_1\n  a               completed in 5ms\n✓ completed in 9ms\n');
  });
});

describe('an event stream', () => {
  it('is read completely, wherever its chunks are cut', async () => {
    const text =
      ': hi\n\nid: 1\r\nevent: a\r\ndata: {"é":\r\ndata: "\u{1f600}"}\r\n\r\nid:2\ndata\n\nretry: 5\n\ndata: x: y\n\ndata: lost';
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 7, bytes.length]) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      });
      const events: unknown[] = [];
      for await (const event of readEventStream(body)) events.push(event);
      expect(events).toEqual([
        { id: '1', data: '{"é":\n"\u{1f600}"}' },
        { id: '2', data: '' },
        { id: '2', data: 'x: y' },
      ]);
    }
  });
});
