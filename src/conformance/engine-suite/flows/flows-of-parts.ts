/** Flows that the engine suite runs with a crash at every commit: attempts with parts whose results are stored on their own. */

import { same } from '../../storage-suite/context.ts';
import type { Flow } from '../flow.ts';
import { echo, ensemble, parts } from '../steps.ts';
import type { World } from '../world/world.ts';

const tool = (number: number, gives: unknown, fields: object = {}) => ({ kind: 'tool', number, gives, ...fields });
const send = (number: number, gives: unknown) => ({ kind: 'send', number, gives });
const model = (number: number, gives: unknown, fields: object = {}) => ({ kind: 'model', number, gives, ...fields });

/** Checks that the stored parts are these, each as `kind name`. */
const partsAre =
  (...expected: readonly string[]) =>
  async ({ reader }: World, { id }: { readonly id: string }) => {
    const records = await reader.executions.listSteps(id, { limit: 1000, notes: true });
    const found = records.flatMap(({ key, name }) => {
      const [, kind] = /\.(model|tool|send)\[\d+\]$/.exec(key) ?? [];
      return kind ? [`${kind} ${name}`] : [];
    });
    same(found.sort(), [...expected].sort(), 'the stored parts');
  };

export const PART_FLOWS: readonly Flow[] = [
  {
    title: 'parts of an attempt, one after the other: a stored part does not run again',
    ensemble: ensemble(
      [
        echo('a', 1),
        parts('p', {
          parts: [
            model(1, { text: 'use the tool' }),
            tool(1, null),
            tool(2, [1, 2]),
            send(1, { sent: true }),
            model(2, { text: 'done' }),
          ],
        }),
        echo('b', 2),
      ],
      { p: '${p.output}' },
    ),
    status: 'completed',
    output: { p: [{ text: 'use the tool' }, null, [1, 2], { sent: true }, { text: 'done' }] },
    agents: ['a', 'b', 'p'],
    inProgress: 2,
    check: partsAre('model the model', 'model the model', 'tool the tool', 'tool the tool', 'send the send'),
  },
  {
    title: 'parts of an attempt that run at once',
    ensemble: ensemble(
      [
        parts('p', { atOnce: true, parts: [tool(1, 'x', { ms: 30 }), tool(2, 'y'), tool(3, 'z', { ms: 10 })] }),
        echo('b', 2),
      ],
      { p: '${p.output}' },
    ),
    status: 'completed',
    output: { p: ['x', 'y', 'z'] },
    agents: ['b', 'p'],
    inProgress: 4,
  },
  {
    title: 'parts: the next attempt uses the stored ones, in the same run and after a long wait',
    ensemble: ensemble(
      [
        parts(
          'p',
          { parts: [tool(1, 1), tool(2, 2)], passesAt: 3 },
          { retry: { maxAttempts: 3, backoff: 'fixed', delay: 20 } },
        ),
        parts(
          'q',
          { parts: [tool(1, null)], passesAt: 2 },
          { retry: { maxAttempts: 2, backoff: 'fixed', delay: 60_000 } },
        ),
      ],
      { p: '${p.output}', q: '${q.output}' },
    ),
    status: 'completed',
    output: { p: [1, 2], q: [null] },
    agents: ['p', 'q'],
    inProgress: 2,
    check: partsAre('tool the tool', 'tool the tool', 'tool the tool'),
  },
  {
    title: 'parts in the items of a foreach, several at once',
    ensemble: ensemble(
      [
        {
          foreach: '${[0, 1, 2, 3]}',
          concurrency: 2,
          steps: [
            parts('p', { parts: [tool(1, 'a', { ms: 10 }), tool(2, 'b', { ms: 20 })] }, { input: { i: '${item}' } }),
            echo('b', { i: '${item}', got: '${p.output}' }),
          ],
          name: 'each',
        },
      ],
      { each: '${each.output}' },
    ),
    status: 'completed',
    output: { each: [0, 1, 2, 3].map((i) => ({ i, got: ['a', 'b'] })) },
    agents: ['b', 'b', 'b', 'b', 'p', 'p', 'p', 'p'],
    inProgress: 4,
  },
  {
    title: 'parts in a branch that another branch outruns',
    ensemble: ensemble(
      [
        {
          parallel: [
            parts('slow', { parts: [tool(1, 1, { ms: 10 }), tool(2, 2, { ms: 500 }), tool(3, 3)] }),
            parts('fast', { parts: [tool(1, 4, { ms: 50 })] }),
          ],
          waitFor: 'any',
          name: 'race',
        },
        echo('b', 2),
      ],
      { fast: '${fast.output}', slow: '${slow.executed}' },
    ),
    status: 'completed',
    output: { fast: [4], slow: false },
    agents: ['b', 'fast'],
    inProgress: 4,
    check: partsAre('tool the tool', 'tool the tool'),
  },
];
