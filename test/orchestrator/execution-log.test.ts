/** The lines of the log about executions: their levels, their fields, and the loggers that scripts get. */

import { Writable } from 'node:stream';
import fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { Logger } from '../../src/engine/host/logger.port.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { boom, code, ok, scene, turns } from '../engine/scene.ts';

interface Line extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly message: string | undefined;
}

/** A logger like console, and what it received. */
function recorded(): { lines: Line[]; logger: Logger; find(message: string): Line | undefined } {
  const lines: Line[] = [];
  const write = (level: string) => (fields: object, message?: string) =>
    void lines.push({ level, message, ...(typeof fields === 'object' ? fields : { text: fields }) });
  const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  return { lines, logger, find: (message) => lines.find((line) => line.message === message) };
}

const levels = (lines: readonly Line[]) => lines.map(({ level, message }) => `${level} ${message}`);
const WORKER = expect.stringMatching(/^own_/);

describe('the log', () => {
  it('has a line for the start and the end of an execution, and none for an agent that completed', async () => {
    const { logger, lines } = recorded();
    const { run } = scene([ok('a'), ok('b')], { logger });
    const { id: executionId } = await run();
    const about = { executionId, ensemble: 'e', worker: WORKER };
    expect(lines).toEqual([
      { level: 'info', message: 'execution started', ...about, trigger: 'call' },
      { level: 'info', message: 'execution completed', ...about, duration: 0, agents: 2 },
    ]);
  });

  it('has a line for each failed attempt, with the error of the script and the instant of the next attempt', async () => {
    const { logger, lines } = recorded();
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    const { run, clock } = scene([code('a', 'fail', { retry: { maxAttempts: 2 } })], {
      logger,
      scripts: {
        fail: () => {
          throw Object.assign(new TypeError('no answer', { cause }), { code: 'E1' });
        },
      },
    });
    const startedAt = clock.now();
    const { id: executionId } = await run();
    const shown = lines.filter(({ level }) => level !== 'debug');
    expect(levels(shown).slice(1)).toEqual(['warn attempt failed', 'warn attempt failed', 'warn execution failed']);
    const about = { executionId, ensemble: 'e', worker: WORKER, agent: 'a', key: 'flow[0]', code: 'AGENT_FAILED' };
    const [, first, second, ended] = shown;
    expect(first).toMatchObject({ ...about, attempt: 1, retryAt: startedAt + 1000, details: { code: 'E1' } });
    expect(second).toMatchObject({ ...about, attempt: 2 });
    expect(second).not.toHaveProperty('retryAt');
    const err = first?.err as Error & { code: string };
    expect(err).toBeInstanceOf(Error);
    expect(err).toMatchObject({ name: 'TypeError', message: 'no answer', code: 'E1' });
    expect(err.stack).toMatch(/^TypeError: no answer\n {4}at .*execution-log\.test\.ts/);
    expect(err.cause).toBeInstanceOf(Error);
    expect(err.cause).toMatchObject({
      message: 'refused',
      code: 'ECONNREFUSED',
      stack: expect.stringContaining('at '),
    });
    expect(ended).toMatchObject({ agent: 'a', duration: 1000, err: { message: 'no answer', code: 'AGENT_FAILED' } });
  });

  it('has one line for an attempt that ran out of time, also when its script rejects because of that', async () => {
    const { logger, lines } = recorded();
    const { start, clock } = scene([code('a', 'obedient', { timeout: 1000 }), code('b', 'obedient')], {
      logger,
      scripts: {
        obedient: ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      },
    });
    const { result } = await start();
    await clock.advance(1000);
    await result();
    const failed = lines.filter(({ message }) => message === 'attempt failed');
    expect(failed).toMatchObject([{ agent: 'a', attempt: 1, code: 'TIMEOUT' }]);
  });

  it('names the level of each end', async () => {
    const { logger, lines } = recorded();
    const { start, clock, orchestrator } = scene(
      { timeout: 1000, flow: [code('a', 'hang')] },
      { logger, scripts: { hang: () => new Promise(() => {}) } },
    );
    const late = await start();
    await clock.advance(1000);
    await late.result();
    const { id } = await start({}, { timeout: 100_000 });
    const cancelled = orchestrator.executions.cancel(id);
    await clock.advance(30_000);
    await cancelled;
    expect(levels(lines).filter((line) => !line.endsWith('started'))).toEqual([
      'warn execution timed out',
      'info execution cancelled',
    ]);
    expect(lines.at(-1)).not.toHaveProperty('err');
  });

  it('masks secrets in errors, their causes and their details', async () => {
    const { logger, lines } = recorded();
    const { run } = scene([code('a', 'leak')], {
      logger,
      secrets: { KEY: 'correct-horse-battery' },
      scripts: {
        leak: ({ env }) => {
          const cause = new Error(`inner ${env.KEY}`);
          throw new OrchestratorError('AGENT_FAILED', `outer ${env.KEY}`, { details: { body: env.KEY }, cause });
        },
      },
    });
    await run();
    const { err, details } = lines[1] as Line;
    const shown = [(err as Error).message, (err as Error).stack, ((err as Error).cause as Error).stack, details];
    expect(JSON.stringify(shown)).not.toContain('correct');
    expect(details).toEqual({ body: '***' });
  });

  it('says that an execution was suspended (debug), and that it was resumed after a crash (warn)', async () => {
    const storage = memoryStorage({ shared: true });
    const clock = manualClock();
    const ensemble = { name: 'e', flow: [ok('a'), { sleep: '10m' }, code('b', 'hang'), { sleep: '2s' }] } as never;
    const open = (log: ReturnType<typeof recorded>, hang: () => unknown) =>
      createOrchestrator({
        ...{ storage, clock, logger: log.logger, ensembles: [ensemble], scripts: { ok: () => 1, hang } },
        engine: embeddedEngine({ leaseMs: 3000, renewMs: 1000, sweepMs: 500 }),
      });
    const first = recorded();
    const dying = open(first, () => new Promise(() => {}));
    const startedAt = clock.now();
    const { id: executionId } = await dying.start('e');
    await clock.advance(1000);
    const about = { executionId, ensemble: 'e', worker: WORKER };
    expect(first.find('execution suspended')).toEqual({
      ...{ level: 'debug', message: 'execution suspended', until: startedAt + 600_000 },
      ...about,
    });
    await clock.advance(600_000);
    // The process is stopped: it renews no lease.
    const { workers } = storage;
    const renew = workers.renew.bind(workers);
    const [worker] = [first.find('execution started')?.worker];
    workers.renew = (id, until) => (id === worker ? new Promise(() => {}) : renew(id, until));
    const second = recorded();
    const next = open(second, () => 1);
    await next.ready();
    for (let i = 0; i < 20; i++) {
      await clock.advance(500);
      await turns();
    }
    // Once, although the execution was resumed again after its next wait.
    expect(levels(second.lines)).toEqual([
      ...['warn execution resumed after a crash', 'debug execution suspended', 'info execution completed'],
    ]);
    expect(second.lines[0]).toMatchObject({ ...about, recoveries: 1 });
    expect(second.lines[0]?.worker).not.toBe(worker);
  });

  it('reports no crash when an execution is resumed after a wait', async () => {
    const made = recorded();
    const { orchestrator, run } = scene([{ sleep: '1h' }, { sleep: '1h' }], { logger: made.logger });
    await run();
    expect(made.find('execution resumed after a crash')).toBeUndefined();
    expect(levels(made.lines).filter((line) => line.includes('suspended'))).toHaveLength(2);
    await orchestrator.close();
  });
});

describe("a script's logger", () => {
  const about = { executionId: expect.stringMatching(/^exec_/), ensemble: 'e', worker: WORKER, agent: 'a' };
  const script = { log: ({ logger }: { logger: Logger }) => logger.info({ own: 1 }, 'hello') };

  it('adds the execution, the agent, the attempt and the key to each line', async () => {
    const { logger, find } = recorded();
    const flow = [{ foreach: '${[1]}', steps: [code('a', 'log')] }];
    await scene(flow, { logger, scripts: script }).run();
    expect(find('hello')).toEqual({
      ...{ level: 'info', message: 'hello', ...about, attempt: 1, key: 'flow[0].foreach[0].steps[0]', own: 1 },
    });
  });

  it('takes a text, or an error, in place of fields', async () => {
    const { logger, lines } = recorded();
    const log = ({ logger: own }: { logger: Logger }) => {
      own.warn('only text' as never);
      own.error(new Error('broke'));
      own.child?.({ part: 'x' }).info({}, 'inner');
    };
    await scene([code('a', 'log')], { logger, scripts: { log } }).run();
    expect(lines.slice(1, 4)).toMatchObject([
      { level: 'warn', message: 'only text', ...about },
      { level: 'error', message: 'broke', ...about, err: { message: 'broke' } },
      { level: 'info', message: 'inner', ...about, part: 'x' },
    ]);
  });

  it('is a child of the logger, if the logger has children, as that of pino', async () => {
    const written: string[] = [];
    const stream = new Writable({
      write(chunk, _encoding, done) {
        written.push(String(chunk));
        done();
      },
    });
    const { log: pino } = fastify({ logger: { level: 'debug', stream } });
    const { run } = scene([code('a', 'log'), boom('b')], {
      logger: pino,
      secrets: { KEY: 'correct-horse-battery' },
      scripts: { log: ({ logger, env }) => logger.info({ own: env.KEY }, 'hello') },
    });
    await run();
    const lines = written.map((text) => JSON.parse(text));
    expect(lines.map(({ level, msg }) => `${level} ${msg}`)).toEqual([
      ...['30 execution started', '30 hello', '40 attempt failed', '40 execution failed'],
    ]);
    expect(lines[1]).toMatchObject({ ...about, attempt: 1, key: 'flow[0]', own: '***' });
    // No field is written twice.
    expect(written[1]?.match(/"executionId"/g)).toHaveLength(1);
    expect(lines[2].err).toMatchObject({ message: 'boom in b', stack: expect.stringContaining('scene.ts') });
  });

  it('works when the logger breaks, also when it makes a child', async () => {
    const broken = () => {
      throw new Error('the disk is full');
    };
    const logger = { debug: broken, info: broken, warn: broken, error: broken, child: broken };
    expect((await scene([code('a', 'log')], { logger, scripts: script }).run()).status).toBe('completed');
  });

  it('without a logger it writes nothing', async () => {
    expect((await scene([code('a', 'log')], { scripts: script }).run()).status).toBe('completed');
  });
});
