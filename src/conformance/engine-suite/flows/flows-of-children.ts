/** Flows that the engine suite runs with a crash at every commit: child executions that are started, awaited and cancelled. */

import { type Execution, isFinal } from '../../../engine/execution/execution.ts';
import { same } from '../../storage-suite/context.ts';
import type { Flow } from '../flow.ts';
import { code, echo, ensemble } from '../steps.ts';
import type { Subject } from '../world/subject.ts';
import type { World } from '../world/world.ts';

/** Two steps, with a sleep between them that suspends the run. */
const WORK = {
  name: 'work',
  flow: [echo('a', { i: '${input.i}' }), { sleep: '${input.ms}' }, echo('b', { i: '${input.i}', a: '${a.output.i}' })],
  outputs: { i: '${b.output.a * 10}' },
};
const QUICK = { name: 'quick', flow: [echo('q', { i: '${input.i}' })], outputs: { i: '${q.output.i}' } };
const BROKEN = { name: 'broken', flow: [echo('before', 1), code('x', 'boom')] };
const NAP = { name: 'nap', flow: [{ sleep: '5h' }, echo('never', 1)] };

/** The child executions that must exist once everything has ended, as `name depth status`. */
function children(...expected: readonly string[]): Flow['check'] {
  return (world) => childrenAre(world, expected);
}

async function childrenAre(world: World, expected: readonly string[]): Promise<void> {
  const look = async () => (await world.reader.executions.list({ limit: 250 })).every(({ status }) => isFinal(status));
  await world.until('the end of all', look, 86_400_000);
  const all = await world.reader.executions.list({ limit: 250 });
  const found = all.filter(({ parentId }) => parentId !== undefined);
  const rows = found.map(({ ensemble: name, trigger, status }) => `${name} ${trigger.depth} ${status}`);
  same(rows.sort(), [...expected].sort(), 'the children');
}

/** Runs `e`, and waits for the end of all executions. */
async function withChildren(subject: Subject): Promise<Execution<unknown>> {
  const record = await subject.execute('e', { n: 1 });
  for (const { id } of (await subject.executions.list()).executions)
    for await (const _event of subject.executions.events(id));
  return record;
}

export const CHILD_FLOWS: readonly Flow[] = [
  {
    title: 'ensemble: two in sequence, the second with the output of the first',
    ensemble: ensemble(
      [
        echo('start', 1),
        { ensemble: 'work', input: { i: 1, ms: 2000 } },
        { ensemble: 'quick', input: { i: '${work.output.i + 1}' } },
        echo('end', { i: '${quick.output.i}' }),
      ],
      { end: '${end.output.i}' },
    ),
    options: { ensembles: [WORK, QUICK] },
    status: 'completed',
    output: { end: 11 },
    agents: ['start', 'end'],
    check: children('work 1 completed', 'quick 1 completed'),
  },
  {
    title: 'ensemble: in items of a foreach, two at once',
    ensemble: ensemble(
      [
        {
          foreach: [1, 2, 3],
          concurrency: 2,
          steps: [{ ensemble: 'work', input: { i: '${item}', ms: '${item * 1000}' } }],
          name: 'all',
        },
        echo('end', '${all.output}'),
      ],
      { end: '${end.output}' },
    ),
    options: { ensembles: [WORK] },
    status: 'completed',
    output: { end: [{ i: 10 }, { i: 20 }, { i: 30 }] },
    agents: ['end'],
    inProgress: 2,
    check: children('work 1 completed', 'work 1 completed', 'work 1 completed'),
  },
  {
    title: 'ensemble: three levels with a concurrency of 1',
    ensemble: ensemble([{ ensemble: 'middle' }, echo('end', '${middle.output.i}')], { end: '${end.output}' }),
    options: {
      ensembles: [
        {
          name: 'middle',
          flow: [
            echo('m', 1),
            { ensemble: 'quick', input: { i: 4 } },
            { ensemble: 'work', input: { i: '${quick.output.i}', ms: 1500 } },
          ],
          outputs: { i: '${work.output.i}' },
        },
        QUICK,
        WORK,
      ],
      engine: { concurrency: 1 },
    },
    status: 'completed',
    output: { end: 40 },
    agents: ['end'],
    check: children('middle 1 completed', 'quick 2 completed', 'work 2 completed'),
  },
  {
    title: 'ensemble: handled and unhandled failures',
    ensemble: ensemble(
      [
        { try: [{ ensemble: 'broken' }], catch: [echo('caught', '${error.code}')] },
        { ensemble: 'nap', timeout: '3s' },
        echo('late', '${nap.error.code}', { condition: '${nap.failed}' }),
        // A literal of the wrong type would be refused when it is loaded.
        { ensemble: 'strict', input: { n: '${parseJson(json("x"))}' }, continueOnError: true },
        { ensemble: 'broken', name: 'last' },
        echo('unseen', 1),
      ],
      { caught: '${caught.output}', late: '${late.output}', strict: '${strict.error.code != null}' },
    ),
    options: {
      ensembles: [BROKEN, NAP, { name: 'strict', inputs: { n: { type: 'number' } }, flow: [echo('unseen2', 1)] }],
    },
    status: 'failed',
    output: { caught: 'EXECUTION_FAILED', late: 'EXECUTION_TIMEOUT', strict: true },
    error: { code: 'EXECUTION_FAILED', agent: 'last' },
    agents: ['caught', 'late'],
    check: children('broken 1 failed', 'nap 1 timed_out', 'broken 1 failed'),
  },
  {
    title: 'ensemble: detached, so the parent does not wait',
    ensemble: ensemble(
      [
        { ensemble: 'work', input: { i: 7, ms: 10_000 }, detached: true, name: 'one' },
        echo('end', '${one.output.executionId != null}'),
      ],
      { end: '${end.output}' },
      { timeout: 8000 },
    ),
    run: withChildren,
    options: { ensembles: [WORK] },
    status: 'completed',
    output: { end: true },
    agents: ['end'],
    inProgress: 2,
    check: children('work 1 completed'),
  },
  {
    title: 'ensemble: the child of a branch that loses a race is cancelled',
    ensemble: ensemble(
      [
        {
          parallel: [{ ensemble: 'nap' }, { ensemble: 'work', input: { i: 1, ms: 2000 } }],
          waitFor: 'first',
          name: 'race',
        },
        { sleep: '3s' },
        echo('end', { winner: '${race.output.winner}', nap: '${nap.executed}' }),
      ],
      { end: '${end.output}' },
    ),
    options: { ensembles: [NAP, WORK] },
    status: 'completed',
    output: { end: { winner: 'work', nap: false } },
    agents: ['end'],
    check: children('nap 1 cancelled', 'work 1 completed'),
  },
  {
    title: 'ensemble: the deadline of the parent also ends its child',
    ensemble: ensemble(
      [{ try: [{ ensemble: 'outer' }], finally: [echo('closed', 1)] }, echo('unseen', 1)],
      { closed: '${closed.output}' },
      { timeout: 7000 },
    ),
    run: withChildren,
    options: { ensembles: [{ name: 'outer', flow: [echo('o', 1), { ensemble: 'nap' }] }, NAP] },
    status: 'timed_out',
    output: { closed: 1 },
    error: { code: 'TIMEOUT' },
    agents: ['closed'],
    check: children('outer 1 timed_out', 'nap 2 timed_out'),
  },
  {
    // The grandchild that was started before the crash then has no parent that waits, and runs to its end.
    title: 'ensemble: a child with durability none starts its own children again',
    isRandom: true,
    ensemble: ensemble([{ ensemble: 'hasty' }, echo('end', '${hasty.output.b}')], { end: '${end.output}' }),
    options: {
      ensembles: [
        {
          name: 'hasty',
          execution: { durability: 'none' },
          flow: [echo('a', 1), { ensemble: 'quick', input: { i: '${a.output}' } }, echo('b', '${quick.output.i + 1}')],
          outputs: { b: '${b.output}' },
        },
        QUICK,
      ],
    },
    status: 'completed',
    output: { end: 2 },
    agents: ['end'],
    inProgress: 2,
    async check(world) {
      const quick = await world.reader.executions.list({ ensemble: 'quick', limit: 10 });
      await childrenAre(world, ['hasty 1 completed', ...quick.map(() => 'quick 2 completed')]);
    },
  },
];
