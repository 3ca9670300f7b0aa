/** Live progress as a tree of the flow. */

import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { createLiveProgress } from '../../src/cli/progress/live-progress.ts';
import { readDefinition } from '../../src/cli/start.ts';
import type { EventData, EventKind, OrchestratorEvent } from '../../src/index.ts';
import { createScreen } from './screen.ts';

const step = (agent: string) => `{ agent: ${agent}, operation: code, config: { script: x } }`;

function watch(flow: string, { columns = 70, rows = 40 } = {}) {
  const screen = createScreen(columns, rows);
  let time = 0;
  const now = () => ({ monotonic: time, wall: 1_000_000 + time });
  const definition = readDefinition(`name: e\n${flow}`);
  const given = { stream: screen, colors: pc.createColors(false), now, nameWidth: 4, definition };
  const progress = createLiveProgress(given);
  const emit = <K extends EventKind>(event: K, data: Partial<EventData[K]>) =>
    progress.update({ event, timestamp: '', data: { executionId: 'e', ...data } } as unknown as OrchestratorEvent);
  return {
    screen,
    start: (agent: string, key: string) => emit('agent.started', { agent, key }),
    complete: (agent: string, key: string, duration = 5) =>
      emit('agent.completed', { agent, key, output: null, duration }),
    retry: (agent: string, key: string, ms: number) =>
      emit('agent.retrying', {
        ...{ agent, key, attempt: 1, retryAt: 1_000_000 + time + ms },
        error: { code: 'AGENT_FAILED', message: 'busy' },
      }),
    fail: (agent: string, key: string, message: string) =>
      emit('agent.failed', { agent, key, error: { code: 'AGENT_FAILED', message }, attempts: 1, duration: 5 }),
    skip: (agent: string, key: string) => emit('agent.skipped', { agent, key }),
    items: (key: string, items: number) => emit('foreach.started', { key, items }),
    wait: (key: string, ms: number) => emit('step.waiting', { key, until: 1_000_000 + time + ms }),
    waitFor: (key: string, signal: string, ms?: number) =>
      emit('step.waiting', { key, signal, ...(ms !== undefined && { until: 1_000_000 + time + ms }) }),
    goOn: (key: string, signal?: string, continues = false) => {
      const timedOut = signal !== undefined;
      emit('step.continued', { key, timedOut, failed: timedOut && !continues, ...(timedOut && { signal }) });
    },
    take: (key: string, signal: string) => emit('signal.taken', { key, signal }),
    child: (key: string, status?: EventData['child.ended']['status']) =>
      status === undefined
        ? emit('child.started', { key, ensemble: 'x', childId: 'c' })
        : emit('child.ended', { key, ensemble: 'x', childId: 'c', status }),
    /** The lines at an instant. */
    at(ms: number) {
      time = ms;
      progress.tick();
      return screen.lines();
    },
    end() {
      progress.finish();
      return screen.lines();
    },
  };
}

describe('a live tree', () => {
  it('indents the steps of a block, and shows the chosen list of a choice', () => {
    const run = watch(`flow:
  - if: input.big
    then: [${step('approve')}]
    else: [{ parallel: [${step('a')}, ${step('b')}] }]
  - ${step('last')}
`);
    run.start('a', 'flow[0].else[0].parallel[0]');
    run.start('b', 'flow[0].else[0].parallel[1]');
    expect(run.at(80)).toEqual([
      '  ⠙ if input.big   80ms  else',
      '    ⠙ parallel     80ms',
      '      ⠙ a          80ms',
      '      ⠙ b          80ms',
    ]);
    run.complete('b', 'flow[0].else[0].parallel[1]');
    run.complete('a', 'flow[0].else[0].parallel[0]', 100);
    run.at(160);
    run.start('last', 'flow[1]');
    expect(run.at(400)).toEqual([
      '  ✓ if input.big  160ms  else',
      '    ✓ parallel    160ms',
      '      ✓ a         100ms',
      '      ✓ b           5ms',
      '  ⠴ last          240ms',
    ]);
  });

  it('shows a foreach of one agent in one line, however many items it has', () => {
    const none = watch(`flow: [{ foreach: "\${input.all}", steps: [${step('send')}] }]\n`);
    none.items('flow[0]', 0);
    expect(none.end()).toEqual(['  ✓ foreach send    0ms  0 of 0 done']);
    const run = watch(`flow: [{ foreach: "\${input.all}", concurrency: 9, steps: [${step('send')}] }]\n`, {
      columns: 90,
    });
    run.items('flow[0]', 10_000);
    const key = (i: number) => `flow[0].foreach[${i}].steps[0]`;
    for (let i = 0; i < 4000; i++) run.start('send', key(i));
    for (let i = 0; i < 3000; i++) run.complete('send', key(i));
    run.fail('send', key(3000), 'gone');
    expect(run.at(1600)).toEqual(['  ⠋ foreach send   1.6s  3,001 of 10,000 done, 999 running  1 failed']);
    for (let i = 3001; i < 4000; i++) run.complete('send', key(i));
    expect(run.at(1680)).toEqual(['  ⠙ foreach send   1.7s  4,000 of 10,000 done  1 failed']);
    expect(run.end()).toEqual(['  ✗ foreach send   1.7s  4,000 of 10,000 done  1 failed  item 3,001: gone']);
  });

  it('counts items and rounds in the line of the loop, and runs in the lines of its agents', () => {
    const run = watch(`flow:
  - foreach: [1, 2, 3]
    steps: [${step('pack')}, { while: pack.output, steps: [${step('poll')}] }]
`);
    run.items('flow[0]', 3);
    // With several at once, the second item reaches its steps first.
    for (const [i, rounds] of [
      [1, 2],
      [0, 1],
    ] as const) {
      run.start('pack', `flow[0].foreach[${i}].steps[0]`);
      run.complete('pack', `flow[0].foreach[${i}].steps[0]`);
      for (let round = 0; round < rounds; round++) {
        const key = `flow[0].foreach[${i}].steps[1].while[${round}].steps[0]`;
        run.start('poll', key);
        run.complete('poll', key);
      }
    }
    expect(run.at(80)).toEqual([
      '  ⠙ foreach [1,2,3]       80ms  item 2 of 3',
      '    · pack                 0ms  2 runs',
      '    ⠙ while pack.output   80ms  round 3',
      '      · poll               0ms  3 runs',
    ]);
    expect(run.end()).toEqual([
      '  ✓ foreach [1,2,3]       80ms  2 items',
      '    ✓ pack                 0ms  2 runs',
      '    ✓ while pack.output   80ms  3 rounds',
      '      ✓ poll               0ms  3 runs',
    ]);
  });

  it('distinguishes agents of one name that run at the same time, and counts items that wait for a retry', () => {
    const loop = (list: string) => `{ foreach: "\${input.${list}}", concurrency: 3, steps: [${step('send')}] }`;
    const run = watch(`flow: [{ parallel: [${loop('a')}, ${loop('b')}] }]\n`, { columns: 90 });
    const key = (branch: number, i: number) => `flow[0].parallel[${branch}].foreach[${i}].steps[0]`;
    for (const branch of [0, 1]) {
      run.items(`flow[0].parallel[${branch}]`, 3);
      for (let i = 0; i < 3; i++) run.start('send', key(branch, i));
    }
    run.complete('send', key(1, 2));
    run.retry('send', key(1, 0), 2000);
    run.fail('send', key(0, 1), 'gone');
    expect(run.at(800).slice(1)).toEqual([
      '    ⠋ foreach send  800ms  1 of 3 done, 2 running  1 failed',
      '    ⠋ foreach send  800ms  1 of 3 done, 1 running, 1 to retry  1 retry',
    ]);
    expect(run.at(2080).at(-1)).toBe('    ⠦ foreach send   2.1s  1 of 3 done, 2 running  1 retry');
    for (const [branch, i] of [
      [0, 0],
      [0, 2],
      [1, 0],
      [1, 1],
    ] as const)
      run.complete('send', key(branch, i));
    expect(run.end().slice(1)).toEqual([
      '    ✗ foreach send   2.1s  3 of 3 done  1 failed  item 2: gone',
      '    ✓ foreach send   2.1s  3 of 3 done  1 retry',
    ]);
  });

  it('shows the remaining time of a wait, and an execution that resumes after it as the same one', () => {
    const run = watch(`flow:
  - { foreach: [1], steps: [${step('one')}] }
  - { foreach: [1, 2], steps: [${step('gift')}] }
  - sleep: 90s
  - ${step('last')}
`);
    run.items('flow[0]', 1);
    run.items('flow[1]', 2);
    for (const i of [0, 1]) run.skip('gift', `flow[1].foreach[${i}].steps[0]`);
    run.wait('flow[2]', 90_000);
    expect(run.at(30_000).at(-1)).toBe('  ⠴ sleep 90s     30.0s  1m 00s left');
    run.at(90_000);
    run.goOn('flow[2]');
    run.start('last', 'flow[3]');
    expect(run.at(90_080)).toEqual([
      '  ✓ foreach one     0ms  0 of 1 done',
      '  ✓ foreach gift    0ms  0 of 2 done  2 skipped',
      '  ✓ sleep 90s     1m 30s',
      '  ⠦ last           80ms',
    ]);
  });

  it('shows a wait as over once it took its signal, or continues after its timeout', () => {
    const wait = '{ wait: go, timeout: 1s }';
    const run = watch(`flow: [{ wait: go, name: x }, { wait: go, timeout: 1s, onTimeout: continue }, ${wait}]\n`);
    run.waitFor('flow[0]', 'go');
    expect(run.at(500)[0]).toMatch(/^ {2}[^✓•] .*500ms$/);
    run.take('flow[0]', 'go');
    expect(run.at(1000)[0]).toMatch(/^ {2}✓ .*500ms$/);
    run.waitFor('flow[1]', 'go', 1000);
    run.at(2000);
    run.goOn('flow[1]', 'go', true);
    run.waitFor('flow[2]', 'go', 3000);
    run.at(3000);
    run.goOn('flow[2]', 'go');
    expect(run.at(3500).slice(1, 3)).toEqual([
      expect.stringMatching(/^ {2}✓ .*1\.0s$/),
      expect.stringMatching(/^ {2}• .*1\.0s$/),
    ]);
  });

  it('shows an agent of another process that is retried, of which only the failed attempt is known', () => {
    const run = watch(`flow: [${step('charge')}]\n`);
    run.retry('charge', 'flow[0]', 5000);
    expect(run.at(1000)).toEqual([expect.stringMatching(/^ {2}\S charge .*attempt 2 in 4\.0s {2}busy$/)]);
    run.complete('charge', 'flow[0]', 6000);
    expect(run.at(6000)).toEqual([expect.stringMatching(/^ {2}✓ charge .*6\.0s {2}2 attempts$/)]);
  });

  it('shows a wait that the end of the execution cut off as stopped', () => {
    const run = watch('flow: [{ sleep: 1h }]\n');
    run.wait('flow[0]', 3_600_000);
    run.at(1000);
    expect(run.end()).toEqual(['  - sleep 1h  1.0s  stopped']);
  });

  it('shows the steps after a failure, and not whether the failure was handled', () => {
    const run = watch(`flow:
  - { try: [${step('charge')}], catch: [${step('alert')}], finally: [${step('close')}] }
  - { agent: choose, routes: [{ condition: input.a, member: m }, { default: true, member: n }] }
agents: [{ name: m, operation: code, config: { script: x } }, { name: n, operation: code, config: { script: x } }]
`);
    for (const [name, key] of [
      ['charge', 'flow[0].try[0]'],
      ['alert', 'flow[0].catch[0]'],
      ['close', 'flow[0].finally[0]'],
      ['n', 'flow[1].n'],
    ] as const) {
      run.start(name, key);
      if (name === 'charge') run.fail(name, key, 'card refused');
      else run.complete(name, key);
    }
    expect(run.end()).toEqual([
      '  • try          0ms',
      '    ✗ charge     5ms  card refused',
      '    ✓ catch      0ms',
      '      ✓ alert    5ms',
      '    ✓ finally    0ms',
      '      ✓ close    5ms',
      '  ✓ choose       0ms',
      '    ✓ n          5ms',
    ]);
  });

  it('leaves out finished steps when the window is too small, and shows all steps at the end', () => {
    const agents = Array.from({ length: 8 }, (_, i) => `a${i}`);
    const run = watch(`flow: [{ parallel: [${agents.map(step).join(', ')}] }]\n`, { rows: 6 });
    for (const [i, name] of agents.entries()) run.start(name, `flow[0].parallel[${i}]`);
    for (const [i, name] of agents.slice(0, 4).entries()) run.complete(name, `flow[0].parallel[${i}]`);
    expect(run.at(80)).toEqual(['  ⠙ parallel   80ms', ...agents.slice(4).map((name) => `    ⠙ ${name}       80ms`)]);
    for (const [i, name] of agents.slice(4).entries()) run.complete(name, `flow[0].parallel[${i + 4}]`);
    expect(run.end()).toEqual(['  ✓ parallel   80ms', ...agents.map((name) => `    ✓ ${name}        5ms`)]);
  });

  it('shows nothing as running without the begins of steps, as for a watched execution', () => {
    const run = watch(`flow:
  - { if: input.a, then: [${step('a')}, ${step('same')}], else: [${step('same')}] }
`);
    run.complete('a', 'flow[0].then[0]');
    expect(run.at(80)).toEqual(['  · if input.a   85ms  then', '    ✓ a           5ms']);
    // Of the two agents with this name, the one at the place of the run.
    run.complete('same', 'flow[0].then[1]');
    expect(run.at(80).at(-1)).toBe('    ✓ same        5ms');
  });

  it('shows the signal of a wait and its longest time', () => {
    const run = watch(`flow: [{ wait: approved }, { wait: paid, timeout: 1h }, ${step('a')}]`);
    run.waitFor('flow[0]', 'approved');
    expect(run.at(100)).toEqual(['  ⠙ wait for approved  100ms']);
    run.waitFor('flow[1]', 'paid', 3_600_000);
    const paid = 'wait for paid, at most 1h  100ms';
    expect(run.at(200)).toEqual(['  ✓ wait for approved          100ms', `  ⠹ ${paid}  1h 00m left`]);
    run.start('a', 'flow[2]');
    run.complete('a', 'flow[2]');
    expect(run.end().slice(1)).toEqual([`  ✓ ${paid}`, '  ✓ a                            5ms']);
  });

  it('shows a child execution while it runs, its end, and one that the end of its parent cut off', () => {
    const run = watch(`flow:
  - ensemble: pay
  - { ensemble: ship, continueOnError: true }
  - { ensemble: emit, detached: true }
  - ensemble: last`);
    run.child('flow[0]');
    expect(run.at(100)).toEqual(['  ⠙ ensemble pay  100ms']);
    run.child('flow[0]', 'completed');
    expect(run.at(200)).toEqual(['  ✓ ensemble pay  100ms']);
    run.child('flow[1]');
    run.at(300);
    run.child('flow[1]', 'failed');
    run.child('flow[2]');
    run.child('flow[3]');
    run.at(400);
    expect(run.end()).toEqual([
      '  ✓ ensemble pay             100ms',
      '  • ensemble ship            100ms',
      '  ✓ ensemble emit, detached    0ms',
      '  - ensemble last            100ms  stopped',
    ]);
  });
});
