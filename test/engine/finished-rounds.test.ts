/** A resumed execution does not read the records of rounds and items that are over, and goes on as if it had. */

import { describe, expect, it } from 'vitest';
import type { ClaimedExecution, StepRecord } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { memoryStorage } from '../../src/index.ts';
import { code, echo, ok, type Scene, scene, turns } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;

/** @param folds - false: every run reads all records @returns how many records each resume has read */
function watched(folds = true): { readonly storage: Storage; readonly read: number[] } {
  const memory = memoryStorage();
  const read: number[] = [];
  const parts = createParts((part, method) => (...args) => {
    const answer = callPart(memory, part, method, args);
    if (part === 'executions' && method === 'claim') {
      const claimed = answer as ClaimedExecution[];
      if (claimed.length > 0) read.push(0);
      return folds ? answer : claimed.map((one) => ({ ...one, handover: { ...one.handover, fold: undefined } }));
    }
    if ((method === 'listSteps' || method === 'getSteps') && read.length > 0)
      read[read.length - 1] = (read.at(-1) ?? 0) + (answer as StepRecord[]).length;
    return answer;
  });
  return { storage: { ...memory, ...parts }, read };
}

/** Runs a definition to its end, an hour at a time, with folds and without. */
async function runBoth(definition: Fields, drive?: (made: Scene, id: string) => Promise<unknown>, input?: unknown) {
  const results = [];
  for (const folds of [true, false]) {
    const { storage, read } = watched(folds);
    const made = scene(definition, { storage });
    const { id } = await made.start(input);
    for (let hour = 0; hour < 400; hour++) {
      await turns(6);
      const { status } = await made.orchestrator.executions.get(id);
      if (status === 'completed' || status === 'failed') break;
      await drive?.(made, id);
      await made.clock.advance(3_600_000);
    }
    const reads = [...read];
    const { id: _, ...record } = await made.orchestrator.executions.get(id);
    const { steps } = await made.orchestrator.executions.steps(id, { limit: 1000 });
    // Items that wake up at the same instant have no order.
    const agents = [...record.agents].sort(byKey);
    results.push({ record: { ...record, agents }, steps: [...steps].sort(byKey), ran: made.ran.sort(), read: reads });
  }
  const [folded, whole] = results as [(typeof results)[0], (typeof results)[0]];
  const { read: few, ...with_ } = folded;
  const { read: all, ...without } = whole;
  expect(with_).toEqual(without);
  return { record: folded.record, few, all };
}

function byKey(a: { readonly key: string }, b: { readonly key: string }): number {
  return a.key < b.key ? -1 : 1;
}

const poll = (rounds: number, steps: readonly Fields[] = []): Fields => ({
  while: `\${(ask.output ?? 0) < ${rounds}}`,
  steps: [{ sleep: '1h' }, echo('ask', '${(ask.output ?? 0) + 1}'), ...steps],
});

describe('rounds and items that are over', () => {
  it.each<[string, Fields, number]>([
    ['a `while`', { flow: [ok('before'), poll(60), ok('after')] }, 6],
    ['a `while` in a `foreach`', { flow: [{ foreach: [1, 2], concurrency: 2, steps: [poll(60)], name: 'both' }] }, 12],
    ['a `while` in a branch', { flow: [{ parallel: [poll(60), ok('beside'), { sleep: '100h' }] }] }, 12],
    [
      'a `while` in a round',
      {
        flow: [
          {
            while: '${(n.output ?? 0) < 6}',
            steps: [
              {
                while: '${(ask.output ?? 0) < 10 * ((n.output ?? 0) + 1)}',
                steps: [{ sleep: '1h' }, echo('ask', '${(ask.output ?? 0) + 1}')],
              },
              echo('n', '${(n.output ?? 0) + 1}'),
            ],
          },
        ],
      },
      10,
    ],
    ['a `while` in a `try`', { flow: [{ try: [poll(60)], catch: [ok('caught')] }] }, 8],
    [
      'items, one after the other',
      {
        flow: [
          {
            foreach: Array.from({ length: 60 }, (_, i) => i),
            name: 'all',
            steps: [{ sleep: '1h' }, echo('it', '${item * 2}')],
          },
        ],
      },
      6,
    ],
    [
      'items, five at a time',
      {
        flow: [
          {
            foreach: Array.from({ length: 60 }, (_, i) => i),
            name: 'all',
            concurrency: 5,
            steps: [{ sleep: '${(item % 3 + 1) * 3600000}' }, echo('it', '${item * 2}')],
          },
        ],
        outputs: { all: '${all.output}' },
      },
      25,
    ],
  ])('%s: a resume reads the same number of records in its 10th and in its 50th round', async (_, definition, most) => {
    const { few, all, record } = await runBoth(definition);
    expect(record.status).toBe('completed');
    expect(Math.max(...few)).toBeLessThanOrEqual(most);
    expect(Math.max(...all)).toBeGreaterThan(100);
  });

  it('a round reads names, failures and the last output of the rounds before', async () => {
    const { record } = await runBoth({
      flow: [
        ok('first'),
        {
          while: '${(n.output ?? 0) < 8}',
          steps: [
            { sleep: '2h', name: 'slept' },
            echo('n', '${(n.output ?? 0) + 1}'),
            code('odd', 'boom', { condition: '${n.output % 2 == 1}', continueOnError: true }),
            echo('sum', '${append(sum.output ?? [], [odd.failed, odd.executed, first.output, slept.output > 0])}'),
            { if: '${n.output == 3}', then: [echo('only', '${n.output}')] },
          ],
        },
        echo('end', '${[sum.output, only.output, odd.executed]}'),
      ],
      outputs: { end: '${end.output}', only: '${only.output}' },
    });
    expect(record.output).toMatchObject({ only: 3 });
  });

  it('signals are taken in order, once each, and a resume does not read those that were taken', async () => {
    let sent = 0;
    const { record, few } = await runBoth(
      {
        flow: [
          {
            while: '${length(sum.output ?? []) < 30}',
            steps: [
              { wait: 'go', name: 'go', timeout: '9000h' },
              echo('sum', '${append(sum.output ?? [], go.output)}'),
            ],
          },
        ],
        outputs: { sum: '${sum.output}' },
      },
      (made, id) => made.orchestrator.executions.signal(id, 'go', sent++ % 30),
    );
    expect(record.output).toEqual({ sum: Array.from({ length: 30 }, (_, i) => i) });
    expect(Math.max(...few)).toBeLessThan(12);
  });

  it('a result of more than 64 KB is read from its records', async () => {
    const { record, few } = await runBoth(
      {
        flow: [
          {
            while: '${(n.output.at ?? 0) < 5}',
            steps: [{ sleep: '1h' }, echo('n', '${{ at: (n.output.at ?? 0) + 1, text: input.text }}')],
          },
        ],
        outputs: { at: '${n.output.at}' },
      },
      undefined,
      { text: 'x'.repeat(70_000) },
    );
    expect(record.output).toEqual({ at: 5 });
    expect(few.at(-1)).toBeGreaterThan(10);
  });

  it('an item that breaks the loop, and one that fails and is handled, count as before', async () => {
    const { record } = await runBoth({
      flow: [
        {
          foreach: [1, 2, 3, 4, 5, 6],
          name: 'all',
          breakWhen: '${index >= 4}',
          steps: [
            { sleep: '1h' },
            code('bad', 'boom', { condition: '${item == 2}', continueOnError: true }),
            echo('it', '${item}'),
          ],
        },
        { sleep: '1h' },
        ok('after'),
      ],
      outputs: { all: '${all.output}' },
    });
    expect(record).toMatchObject({ status: 'completed', output: { all: [1, 2, 3, 4, 5] } });
  });

  it.each<[string, readonly Fields[]]>([
    [
      'a branch that never began, because another one failed',
      [{ parallel: [code('x', 'boom'), ok('y')], concurrency: 1, name: 'p', continueOnError: true }],
    ],
    ['a child that could not begin', [{ ensemble: 'e', name: 'k', timeout: "${'abc' + item}", continueOnError: true }]],
    [
      'a wait without a valid timeout',
      [{ wait: 'go', name: 'w', timeout: "${'abc' + item}" }, ok('w2', { condition: '${w.failed}' })],
    ],
    [
      'a race that nobody won',
      [
        { parallel: [code('x', 'boom'), code('y', 'boom')], waitFor: 'any', name: 'p' },
        ok('x2', { condition: '${x.failed}' }),
      ],
    ],
  ])('an item with %s is over like any other', async (_, steps) => {
    const { record } = await runBoth({
      flow: [{ foreach: [1, 2, 3, 4, 5], name: 'all', steps: [{ sleep: '1h' }, ...steps, echo('z', '${item}')] }],
      outputs: { all: '${all.output}' },
    });
    expect(record).toMatchObject({ status: 'completed', output: { all: [1, 2, 3, 4, 5] } });
  });

  it('an agent is counted once, also by runs that stored nothing new', async () => {
    const items = { foreach: [1, 2, 3, 4], concurrency: 4, collect: false };
    const { record } = await runBoth({
      flow: [{ ...items, steps: [{ sleep: '${item * 3600000}' }, ok('it', { condition: '${item == 1}' })] }],
    });
    expect(record.metrics.agents).toBe(1);
  });

  it('outputs of more than 64 KB are read from their records', async () => {
    const { record } = await runBoth(
      {
        flow: [{ foreach: [1, 2, 3, 4], name: 'all', steps: [{ sleep: '1h' }, echo('it', '${input.text}')] }],
        outputs: { count: '${length(all.output)}' },
      },
      undefined,
      { text: 'x'.repeat(30_000) },
    );
    expect(record.output).toEqual({ count: 4 });
  });

  it('counts the steps of all rounds: the metrics and the usage of the record are those of the whole execution', async () => {
    const { record } = await runBoth({ flow: [poll(20)] });
    expect(record.metrics.agents).toBe(20);
  });
});
