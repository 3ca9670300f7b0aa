/** Live progress: one line for each agent, updated in place. */

import { spawnSync } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import { beforeAll, describe, expect, it } from 'vitest';
import { createLiveProgress } from '../../src/cli/progress/live-progress.ts';
import type { EventData, EventKind, OrchestratorEvent } from '../../src/index.ts';
import { CLI, ensureBuilt, makeFolder } from './cli-process.ts';
import { createScreen } from './screen.ts';

beforeAll(ensureBuilt, 60_000);

function setUp({ columns = 60, rows = 20, nameWidth = 6 } = {}) {
  const screen = createScreen(columns, rows);
  let time = 0;
  const now = () => ({ monotonic: time, wall: 1_000_000 + time });
  const progress = createLiveProgress({ stream: screen, colors: pc.createColors(true), now, nameWidth });
  const emit = <K extends EventKind>(event: K, data: Partial<EventData[K]>) =>
    progress.update({ event, timestamp: '', data: { executionId: 'e', ...data } } as unknown as OrchestratorEvent);
  return {
    screen,
    progress,
    start: (agent: string) => emit('agent.started', { agent, key: agent }),
    complete: (agent: string, duration = 5) => emit('agent.completed', { agent, key: agent, output: null, duration }),
    fail: (agent: string, message: string, attempts = 1) =>
      emit('agent.failed', { agent, key: agent, error: { code: 'AGENT_FAILED', message }, attempts, duration: 5 }),
    retry: (agent: string, attempt: number, message: string, waitMs: number) =>
      emit('agent.retrying', {
        agent,
        key: agent,
        error: { code: 'AGENT_FAILED', message },
        attempt,
        retryAt: 1_000_000 + time + waitMs,
      }),
    skip: (agent: string) => emit('agent.skipped', { agent, key: agent }),
    tick(at: number) {
      time = at;
      progress.tick();
    },
  };
}

describe('live progress', () => {
  it('shows the elapsed time and the attempts of an agent, and its result', () => {
    const run = setUp();
    run.start('fetch');
    run.tick(80);
    expect(run.screen.lines()).toEqual(['  ⠙ fetch    80ms']);
    run.tick(1240);
    expect(run.screen.lines()).toEqual(['  ⠴ fetch    1.2s']);
    run.complete('fetch', 1250);
    run.skip('gift');
    run.start('charge');
    run.retry('charge', 1, 'busy', 1000);
    run.tick(1440);
    expect(run.screen.lines()).toEqual([
      '  ✓ fetch    1.3s',
      '  - gift    skipped',
      '  ⠇ charge  200ms  attempt 2 in 800ms  busy',
    ]);
    run.tick(2400);
    expect(run.screen.lines().at(-1)).toBe('  ⠋ charge   1.2s  attempt 2');
    run.fail('charge', 'card refused', 2);
    run.progress.finish();
    expect(run.screen.lines()).toEqual([
      '  ✓ fetch    1.3s',
      '  - gift    skipped',
      '  ✗ charge    5ms  2 attempts  card refused',
    ]);
  });

  it('shows the agents of a foreach in one line', () => {
    const run = setUp();
    for (let i = 0; i < 3; i++) run.start('send');
    run.complete('send');
    run.retry('send', 1, 'busy', 2000);
    run.tick(800);
    expect(run.screen.lines()).toEqual(['  ⠋ send    800ms  1 done, 1 running, 1 to retry  1 retry']);
    run.complete('send');
    run.fail('send', 'gone');
    run.tick(880);
    expect(run.screen.lines()).toEqual(['  ✗ send    800ms  3 runs  1 failed  1 retry  gone']);
  });

  it('shows an agent that was running at the end of the execution as stopped', () => {
    const run = setUp();
    run.start('slow');
    run.tick(500);
    run.progress.finish();
    expect(run.screen.lines()).toEqual(['  - slow    500ms  stopped']);
  });

  it('hides the cursor while it draws, and shows it again at the end', () => {
    const run = setUp();
    run.tick(80);
    expect(run.screen.cursor()).toBe(false);
    run.progress.finish();
    expect(run.screen.cursor()).toBe(true);
  });

  it('keeps the text of scripts above the progress, also a line without an end', () => {
    const run = setUp();
    const print = (text: string) => {
      run.progress.foreign?.before();
      run.screen.write(text);
      run.progress.foreign?.after(text);
    };
    run.start('a');
    run.tick(80);
    print('one\n');
    expect(run.screen.lines()).toEqual(['one', '  ⠙ a        80ms']);
    print('two, ');
    print('three');
    run.tick(160);
    print('four\n');
    expect(run.screen.lines()).toEqual(['one', 'two, three', 'four', '  ⠹ a       160ms']);
  });

  it('never draws more lines than the window has: finished rows move up and stay', () => {
    const run = setUp({ rows: 5 });
    for (let i = 0; i < 12; i++) {
      run.start(`a${i}`);
      run.tick(i * 80);
      run.complete(`a${i}`);
    }
    run.progress.finish();
    expect(run.screen.lines()).toEqual(Array.from({ length: 12 }, (_, i) => `  ✓ ${`a${i}`.padEnd(6)}    5ms`));
  });

  it('cuts lines to the window, and redraws correctly after the window became narrower', () => {
    const run = setUp({ columns: 40 });
    run.start('a');
    run.retry('a', 1, 'a message that is much longer than the window, 漢字漢字', 60_000);
    run.tick(80);
    expect(run.screen.lines()).toEqual(['  ⠙ a        80ms  attempt 2 in 59.9s …']);
    expect(run.screen.lines().every((line) => line.length < 40)).toBe(true);
    // A line of 40 columns is now two lines of 20.
    const narrow = createScreen(20);
    narrow.write(`${run.screen.lines()[0]}\n`);
    run.screen.columns = 20;
    run.screen.write = narrow.write;
    run.tick(160);
    expect(narrow.lines()).toEqual(['  ⠹ a       160ms …']);
  });

  it('removes control characters from the text of scripts and peers', () => {
    const run = setUp();
    run.start('a');
    run.fail('a', 'red \u001b[31m\u009b2J\nnext\u202e');
    run.progress.finish();
    expect(run.screen.lines()).toEqual(['  ✗ a         5ms  red \ufffd[31m\ufffd2J next\ufffd']);
  });

  const pty = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') ?? false;
  it.skipIf(!pty)('is what a terminal gets, and a log does not', () => {
    const cwd = makeFolder({
      'ensembles/e.yaml':
        'name: e\nflow:\n  - { agent: wait, operation: code, config: { script: wait } }\noutputs: { x: "${wait.output}" }\n',
      'scripts/wait.mjs':
        "export default () => new Promise((resolve) => setTimeout(() => { console.log('from the script'); resolve(7); }, 300));\n",
    });
    const { TERM: _term, NO_COLOR: _plain, FORCE_COLOR: _forced, ...env } = process.env;
    const command = `"${process.execPath}" "${CLI}" run e`;
    const { stdout, status } = spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd,
      env: { ...env, TERM: 'xterm' },
      encoding: 'utf8',
    });
    expect(status).toBe(0);
    expect(stdout).toContain('\u001b[?25l');
    expect(stripVTControlCharacters(stdout)).toMatch(/^ {2}[⠀-⣿] wait {2} ?\d+ms\r?$/m);
    const screen = createScreen(80);
    screen.write(stdout.replaceAll('\r\n', '\n'));
    const lines = screen.lines();
    expect(lines[0]).toBe('from the script');
    expect(lines[1]).toMatch(/^ {2}✓ wait {2}\d+ms$/);
    expect(lines[2]).toMatch(/^✓ e completed in \d+ms, 1 agent$/);
    expect(lines.slice(3)).toEqual(['{', '  "x": 7', '}']);
    const dumb = spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd,
      env: { ...env, TERM: 'dumb' },
      encoding: 'utf8',
    });
    expect(dumb.stdout).not.toContain('\u001b');
  });
});
