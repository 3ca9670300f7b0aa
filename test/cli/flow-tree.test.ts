/** Live progress as a tree that follows the flow (issue 5: a live tree). */

import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { createLiveProgress } from '../../src/cli/live-progress.ts';
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
  const tell = <K extends EventKind>(event: K, data: Partial<EventData[K]>) =>
    progress.update({ event, timestamp: '', data: { executionId: 'e', ...data } } as unknown as OrchestratorEvent);
  return {
    screen,
    start: (agent: string, key: string) => tell('agent.started', { agent, key }),
    complete: (agent: string, key: string, duration = 5) =>
      tell('agent.completed', { agent, key, output: null, duration }),
    retry: (agent: string, key: string, ms: number) =>
      tell('agent.retrying', {
        ...{ agent, key, attempt: 1, retryAt: 1_000_000 + time + ms },
        error: { code: 'AGENT_FAILED', message: 'busy' },
      }),
    fail: (agent: string, key: string, message: string) =>
      tell('agent.failed', { agent, key, error: { code: 'AGENT_FAILED', message }, attempts: 1, duration: 5 }),
    skip: (agent: string, key: string) => tell('agent.skipped', { agent, key }),
    items: (key: string, items: number) => tell('foreach.started', { key, items }),
    wait: (key: string, ms: number) => tell('step.waiting', { key, until: 1_000_000 + time + ms }),
    waitFor: (key: string, signal: string, ms?: number) =>
      tell('step.waiting', { key, signal, ...(ms !== undefined && { until: 1_000_000 + time + ms }) }),
    child: (key: string, status?: EventData['child.ended']['status']) =>
      status === undefined
        ? tell('child.started', { key, ensemble: 'x', childId: 'c' })
        : tell('child.ended', { key, ensemble: 'x', childId: 'c', status }),
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

describe('issue 5: a live tree', () => {
  it('indents what stands inside of a block, and says which way a choice went', () => {
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

  it('keeps a foreach of one agent in one line, however many items it has', () => {
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

  it('counts items and rounds in the line of their loop, runs in those of its agents', () => {
    const run = watch(`flow:
  - foreach: [1, 2, 3]
    steps: [${step('pack')}, { while: pack.output, steps: [${step('poll')}] }]
`);
    run.items('flow[0]', 3);
    // Several at once: the second item comes to its steps first.
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

  it('tells apart what runs at the same time under one name, and the items of which some wait to be tried again', () => {
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

  it('shows the time that is left of a wait, and a run that goes on behind it as one', () => {
    const run = watch(`flow:
  - { foreach: [1], steps: [${step('one')}] }
  - { foreach: [1, 2], steps: [${step('gift')}] }
  - sleep: 90s
  - ${step('last')}
`);
    const walk = () => {
      run.items('flow[0]', 1);
      run.items('flow[1]', 2);
      for (const i of [0, 1]) run.skip('gift', `flow[1].foreach[${i}].steps[0]`);
    };
    walk();
    run.wait('flow[2]', 90_000);
    expect(run.at(30_000).at(-1)).toBe('  ⠴ sleep 90s     30.0s  1m 00s left');
    run.at(90_000);
    // Given up for the wait, the flow is walked again up to where it stood.
    walk();
    run.start('last', 'flow[3]');
    expect(run.at(90_080)).toEqual([
      '  ✓ foreach one     0ms  0 of 1 done',
      '  ✓ foreach gift    0ms  0 of 2 done  2 skipped',
      '  ✓ sleep 90s     1m 30s',
      '  ⠦ last           80ms',
    ]);
  });

  it('shows a wait that the end of the run cut off as stopped', () => {
    const run = watch('flow: [{ sleep: 1h }]\n');
    run.wait('flow[0]', 3_600_000);
    run.at(1000);
    expect(run.end()).toEqual(['  - sleep 1h  1.0s  stopped']);
  });

  it('shows what a failure led to, and does not judge whether it was handled', () => {
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

  it('leaves out what is done where the window is too small, and shows all of it at the end', () => {
    const agents = Array.from({ length: 8 }, (_, i) => `a${i}`);
    const run = watch(`flow: [{ parallel: [${agents.map(step).join(', ')}] }]\n`, { rows: 6 });
    for (const [i, name] of agents.entries()) run.start(name, `flow[0].parallel[${i}]`);
    for (const [i, name] of agents.slice(0, 4).entries()) run.complete(name, `flow[0].parallel[${i}]`);
    expect(run.at(80)).toEqual(['  ⠙ parallel   80ms', ...agents.slice(4).map((name) => `    ⠙ ${name}       80ms`)]);
    for (const [i, name] of agents.slice(4).entries()) run.complete(name, `flow[0].parallel[${i + 4}]`);
    expect(run.end()).toEqual(['  ✓ parallel   80ms', ...agents.map((name) => `    ✓ ${name}        5ms`)]);
  });

  it('without the begins of steps, as a watched execution has them, nothing is shown as running', () => {
    const run = watch(`flow:
  - { if: input.a, then: [${step('a')}, ${step('same')}], else: [${step('same')}] }
`);
    run.complete('a', 'flow[0].then[0]');
    expect(run.at(80)).toEqual(['  · if input.a   85ms  then', '    ✓ a           5ms']);
    // Of the two that have this name, the one in whose place it ran.
    run.complete('same', 'flow[0].then[1]');
    expect(run.at(80).at(-1)).toBe('    ✓ same        5ms');
  });

  it('shows what a wait waits for, and how long at most', () => {
    const run = watch(`flow: [{ wait: approved }, { wait: paid, timeout: 1h }, ${step('a')}]`);
    run.waitFor('flow[0]', 'approved');
    expect(run.at(100)).toEqual(['  ⠙ wait for approved  100ms']);
    run.waitFor('flow[1]', 'paid', 3_600_000);
    const paid = 'wait for paid, at most 1h  100ms';
    expect(run.at(200)).toEqual(['  ✓ wait for approved          100ms', `  ⠹ ${paid}  60m 00s left`]);
    run.start('a', 'flow[2]');
    run.complete('a', 'flow[2]');
    expect(run.end().slice(1)).toEqual([`  ✓ ${paid}`, '  ✓ a                            5ms']);
  });

  it('shows a child while it goes on, how it ended, and one that the end of the run cut off', () => {
    const run = watch(`flow:
  - ensemble: pay
  - { ensemble: ship, continueOnError: true }
  - { ensemble: tell, detached: true }
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
      '  ✓ ensemble tell, detached    0ms',
      '  - ensemble last            100ms  stopped',
    ]);
  });
});
