/** Storage suite: repeated entries. The answer to a stored entry is `stored` again, and nothing changes. */

import type { CommitEntry } from '../../../engine/execution/stored-execution.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
  execution,
  register,
  release,
  retrying,
  type StorageCase,
  same,
  starting,
  step,
  T0,
  WORKER,
} from '../context.ts';

interface Repeated {
  /** Prepares execution 1. Default: the worker holds it. */
  readonly prepare?: (storage: Storage) => Promise<void>;
  readonly entry: CommitEntry;
}

const decision = step('flow[1]', { name: '', note: true });
const failed = { code: 'AGENT_FAILED', message: 'boom' };

const REPEATED: Readonly<Record<string, Repeated>> = {
  'a start': { prepare: (storage) => register(storage), entry: starting(execution(1)) },
  'a start that queues': {
    prepare: (storage) => register(storage),
    entry: starting(execution(1), { release: { status: 'queued', dueAt: T0 + 1 } }),
  },
  'a start with steps': {
    prepare: (storage) => register(storage),
    entry: starting(execution(1), { steps: [step('flow[0]'), decision] }),
  },
  'an entry without content': { entry: entry(1) },
  'a step': { entry: entry(1, { steps: [step('flow[0]')] }) },
  'several steps': { entry: entry(1, { steps: [step('flow[0]'), step('flow[1]'), retrying('flow[2]', 1)] }) },
  'an attempt': { entry: entry(1, { steps: [retrying('flow[0]', 1)] }) },
  'a result that replaced an attempt': {
    async prepare(storage) {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    },
    entry: entry(1, { steps: [step('flow[0]', { attempts: 2 })] }),
  },
  'a decision': { entry: entry(1, { steps: [decision] }) },
  'a step and a state': { entry: entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }) },
  'a result of a second attempt and a state': {
    async prepare(storage) {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { a: 0 }) }));
    },
    entry: entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(1, { a: 1 }) }),
  },
  'steps and a state': {
    entry: entry(1, {
      steps: [step('flow[0]'), decision, step('flow[2]')],
      state: change(0, { a: 1 }),
    }),
  },
  'an end': { entry: entry(1, { end: end() }) },
  'an end with an error': { entry: entry(1, { end: end({ status: 'failed', error: failed, output: null }) }) },
  'a step and an end': { entry: entry(1, { steps: [step('flow[0]')], end: end() }) },
  'steps, a state and an end': {
    entry: entry(1, {
      steps: [step('flow[0]'), step('flow[1]')],
      state: change(0, { a: 1 }),
      end: end({ agents: 2 }),
    }),
  },
  'a release as waiting': { entry: entry(1, { release: { status: 'waiting', dueAt: T0 + 100 } }) },
  'a release as running': { entry: entry(1, { release: { status: 'running', dueAt: T0 + 100 } }) },
  'a release as queued': {
    async prepare(storage) {
      await register(storage);
      await enqueue(storage, execution(1));
      await claim(storage);
    },
    entry: entry(1, { release: { status: 'queued', dueAt: T0 + 100 } }),
  },
  'steps and a release': {
    entry: entry(1, {
      steps: [step('flow[0]'), retrying('flow[1]', 1)],
      release: { status: 'waiting', dueAt: T0 + 100 },
    }),
  },
};

const hold = (storage: Storage) => accept(storage, execution(1));

export function repeatCases(it: StorageCase): void {
  for (const [what, { prepare = hold, entry: repeated }] of Object.entries(REPEATED)) {
    it(`commit: a repeated entry is answered \`stored\` and changes nothing: ${what}`, async (storage) => {
      await prepare(storage);
      same(await commitOne(storage, repeated), 'stored', 'answer');
      const before = await everything(storage, 1);
      for (const time of ['second', 'third']) {
        same(await commitOne(storage, repeated), 'stored', `answer to the ${time} call`);
        same(await everything(storage, 1), before, `what is stored after the ${time} call`);
      }
    });

    it(`commit: an entry that is sent twice at the same time is stored once: ${what}`, async (storage) => {
      await prepare(storage);
      const answers = await Promise.all([commitOne(storage, repeated), commitOne(storage, repeated)]);
      same(answers, ['stored', 'stored'], 'answers');
      const before = await everything(storage, 1);
      same(await commitOne(storage, repeated), 'stored', 'answer to the third call');
      same(await everything(storage, 1), before, 'what is stored');
    });
  }
}

export function lateRepeatCases(it: StorageCase): void {
  it('start: repeated after its steps and its end were stored, the answer is `stored`, and nothing changes', async (storage) => {
    await accept(storage, execution(1));
    for (const fields of [{ steps: [step('flow[0]')] }, { end: end() }]) {
      await commitOne(storage, entry(1, fields));
      const before = await everything(storage, 1);
      same(await commitOne(storage, starting(execution(1))), 'stored', 'answer');
      same(await everything(storage, 1), before, 'what is stored');
    }
  });

  it('start: a queued start that is repeated after the claim is not queued a second time', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    const before = await everything(storage, 1);
    await enqueue(storage, execution(1));
    same(await everything(storage, 1), before, 'what is stored');
    same(await claim(storage), [], 'claimed again');
    same(await commitOne(storage, entry(1)), 'stored', "its worker's commit");
  });

  it('start: a queued start that another process repeats later changes nothing', async (storage) => {
    const queued = (createdAt: number, version: string) =>
      starting(execution(1, { createdAt, version }), { release: { status: 'queued', dueAt: createdAt } });
    const again = queued(T0 + 9000, 'f'.repeat(32));
    same(await commitOne(storage, queued(T0, '0'.repeat(32)), ''), 'stored', 'the first');
    await register(storage);
    const unclaimed = await everything(storage, 1);
    same(await commitOne(storage, again, ''), 'stored', 'while it is queued');
    same(await everything(storage, 1), unclaimed, 'still queued');
    await claim(storage);
    const running = await everything(storage, 1);
    same(await commitOne(storage, again, ''), 'stored', 'while it runs');
    same(await everything(storage, 1), running, 'still running');
    await commitOne(storage, entry(1, { end: end() }));
    const ended = await everything(storage, 1);
    same(await commitOne(storage, again, ''), 'stored', 'when it has ended');
    same(await everything(storage, 1), ended, 'still ended');
    same(await claim(storage), [], 'nothing to claim');
  });

  it('commit: a repeated state change does not undo later changes', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const first = entry(1, { steps: [step('flow[0]')], state: change(0, { by: 1 }) });
    await commitOne(storage, first);
    await commitOne(storage, entry(2, { steps: [step('flow[0]')], state: change(1, { by: 2 }) }));
    const before = await everything(storage, 1, 2);
    same(await commitOne(storage, first), 'stored', 'answer');
    same(await everything(storage, 1, 2), before, 'what is stored');
  });

  it('commit: a state change with another result under a stored key is not a repetition but a state conflict', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { a: 1 }) }));
    const before = await everything(storage, 1);
    const another = entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(0, { a: 2 }) });
    same(await commitOne(storage, another), 'state-conflict', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: an end that differs from the stored end is fenced', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    const before = await everything(storage, 1);
    for (const other of [{ status: 'failed' }, { finishedAt: T0 + 501 }, { duration: 401 }] as const)
      same(await commitOne(storage, entry(1, { end: end(other) })), 'fenced', JSON.stringify(other));
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: a release that differs from the stored release is fenced', async (storage) => {
    await accept(storage, execution(1));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 100 });
    const before = await everything(storage, 1);
    for (const other of [
      { status: 'running', dueAt: T0 + 100 },
      { status: 'waiting', dueAt: T0 + 99 },
    ] as const)
      same(await commitOne(storage, entry(1, { release: other })), 'fenced', JSON.stringify(other));
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: a release that arrives again late does not affect the worker that has claimed since', async (storage) => {
    await accept(storage, execution(1));
    const given = { status: 'waiting', dueAt: T0 + 100 } as const;
    await release(storage, 1, given);
    same((await claim(storage)).length, 1, 'claimed');
    await commitOne(storage, entry(1, { release: given }));
    same(await commitOne(storage, entry(1, { epoch: 2 })), 'stored', 'the commit of the worker that holds it');
  });

  it('commit: an attempt that arrives again after a later attempt changes nothing', async (storage) => {
    await accept(storage, execution(1));
    const first = entry(1, { steps: [retrying('flow[0]', 1)] });
    await commitOne(storage, first);
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 2)] }));
    const before = await everything(storage, 1);
    same(await commitOne(storage, first), 'stored', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: a repeated batch has the same answers, and nothing changes', async (storage) => {
    await register(storage);
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    const batch = [
      entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }),
      starting(execution(5)),
      entry(2, { steps: [step('flow[0]')], end: end() }),
      entry(9, { steps: [step('flow[0]')] }),
      starting(execution(6), { release: { status: 'queued', dueAt: T0 + 5 } }),
      entry(3, { release: { status: 'waiting', dueAt: T0 + 100 } }),
      entry(4, { steps: [step('flow[0]')], state: change(7, { a: 2 }) }),
    ];
    const expected = ['stored', 'stored', 'stored', 'fenced', 'stored', 'stored', 'state-conflict'];
    same(await storage.commit(WORKER, batch), expected, 'answers');
    const before = await everything(storage, 1, 2, 3, 4, 5, 6, 9);
    same(await storage.commit(WORKER, batch), expected, 'answers to the repeated batch');
    same(await everything(storage, 1, 2, 3, 4, 5, 6, 9), before, 'what is stored');
  });
}
