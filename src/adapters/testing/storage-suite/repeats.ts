/** The storage suite's cases of repeating: an entry that was stored is answered `stored` again, and changes nothing. */

import type { CommitEntry } from '../../../engine/model/stored-execution.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import {
  accept,
  change,
  claim,
  commitOne,
  delivery,
  end,
  enqueue,
  entry,
  everything,
  execution,
  join,
  OWNER,
  release,
  retrying,
  type StorageCase,
  same,
  starting,
  step,
  T0,
} from './context.ts';

interface Repeated {
  /** Brings execution 1 about; by default, it is held. */
  readonly prepare?: (storage: Storage) => Promise<void>;
  readonly entry: CommitEntry;
}

const note = step('flow[1]', { name: '', note: true });
const failed = { code: 'AGENT_FAILED', message: 'boom' };

const REPEATED: Readonly<Record<string, Repeated>> = {
  'a start': { prepare: (storage) => join(storage), entry: starting(execution(1)) },
  'a start that queues': {
    prepare: (storage) => join(storage),
    entry: starting(execution(1), { release: { status: 'queued', dueAt: T0 + 1 } }),
  },
  'a start with steps and deliveries': {
    prepare: (storage) => join(storage),
    entry: starting(execution(1), { steps: [step('flow[0]'), note], deliveries: [delivery(1), delivery(2)] }),
  },
  'an entry that holds nothing': { entry: entry(1) },
  'a step': { entry: entry(1, { steps: [step('flow[0]')] }) },
  'several steps': { entry: entry(1, { steps: [step('flow[0]'), step('flow[1]'), retrying('flow[2]', 1)] }) },
  'an attempt': { entry: entry(1, { steps: [retrying('flow[0]', 1)] }) },
  'a result that took the place of an attempt': {
    async prepare(storage) {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)] }));
    },
    entry: entry(1, { steps: [step('flow[0]', { attempts: 2 })] }),
  },
  'a note': { entry: entry(1, { steps: [note] }) },
  'a delivery': { entry: entry(1, { deliveries: [delivery(1)] }) },
  'a step and deliveries': {
    entry: entry(1, { steps: [step('flow[0]')], deliveries: [delivery(1), delivery(2)] }),
  },
  'a step and a state': { entry: entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }) },
  'a result of a second attempt and a state': {
    async prepare(storage) {
      await accept(storage, execution(1));
      await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { a: 0 }) }));
    },
    entry: entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(1, { a: 1 }) }),
  },
  'steps, a state and deliveries': {
    entry: entry(1, {
      steps: [step('flow[0]'), note, step('flow[2]')],
      state: change(0, { a: 1 }),
      deliveries: [delivery(1)],
    }),
  },
  'an end': { entry: entry(1, { end: end() }) },
  'an end with an error': { entry: entry(1, { end: end({ status: 'failed', error: failed, output: null }) }) },
  'a step and an end': { entry: entry(1, { steps: [step('flow[0]')], end: end() }) },
  'steps, a state, deliveries and an end': {
    entry: entry(1, {
      steps: [step('flow[0]'), step('flow[1]')],
      state: change(0, { a: 1 }),
      deliveries: [delivery(1)],
      end: end({ agents: 2 }),
    }),
  },
  'a release to wait': { entry: entry(1, { release: { status: 'waiting', dueAt: T0 + 100 } }) },
  'a release for another to go on': { entry: entry(1, { release: { status: 'running', dueAt: T0 + 100 } }) },
  'a release into the queue': {
    async prepare(storage) {
      await join(storage);
      await enqueue(storage, execution(1));
      await claim(storage);
    },
    entry: entry(1, { release: { status: 'queued', dueAt: T0 + 100 } }),
  },
  'steps, deliveries and a release': {
    entry: entry(1, {
      steps: [step('flow[0]'), retrying('flow[1]', 1)],
      deliveries: [delivery(1)],
      release: { status: 'waiting', dueAt: T0 + 100 },
    }),
  },
};

const hold = (storage: Storage) => accept(storage, execution(1));

export function repeatCases(it: StorageCase): void {
  for (const [what, { prepare = hold, entry: repeated }] of Object.entries(REPEATED)) {
    it(`commit: ${what} again is answered \`stored\` and changes nothing`, async (storage) => {
      await prepare(storage);
      same(await commitOne(storage, repeated), 'stored', 'answer');
      const before = await everything(storage, 1);
      for (const time of ['second', 'third']) {
        same(await commitOne(storage, repeated), 'stored', `answer to the ${time}`);
        same(await everything(storage, 1), before, `what is stored after the ${time}`);
      }
    });

    it(`commit: ${what}, twice at the same time, is stored once`, async (storage) => {
      await prepare(storage);
      const answers = await Promise.all([commitOne(storage, repeated), commitOne(storage, repeated)]);
      same(answers, ['stored', 'stored'], 'answers');
      const before = await everything(storage, 1);
      same(await commitOne(storage, repeated), 'stored', 'answer to a third');
      same(await everything(storage, 1), before, 'what is stored');
    });
  }
}

export function lateRepeatCases(it: StorageCase): void {
  it('start: again after its steps and its end were stored, it is answered `stored` and changes nothing', async (storage) => {
    await accept(storage, execution(1));
    for (const fields of [{ steps: [step('flow[0]')] }, { end: end() }]) {
      await commitOne(storage, entry(1, fields));
      const before = await everything(storage, 1);
      same(await commitOne(storage, starting(execution(1))), 'stored', 'answer');
      same(await everything(storage, 1), before, 'what is stored');
    }
  });

  it('start: a queued one again, after it was claimed, is not queued a second time', async (storage) => {
    await join(storage);
    await enqueue(storage, execution(1));
    await claim(storage);
    const before = await everything(storage, 1);
    await enqueue(storage, execution(1));
    same(await everything(storage, 1), before, 'what is stored');
    same(await claim(storage), [], 'claimed again');
    same(await commitOne(storage, entry(1)), 'stored', "its owner's commit");
  });

  it('commit: a state again, after others have changed it further, stays as they left it', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const first = entry(1, { steps: [step('flow[0]')], state: change(0, { by: 1 }) });
    await commitOne(storage, first);
    await commitOne(storage, entry(2, { steps: [step('flow[0]')], state: change(1, { by: 2 }) }));
    const before = await everything(storage, 1, 2);
    same(await commitOne(storage, first), 'stored', 'answer');
    same(await everything(storage, 1, 2), before, 'what is stored');
  });

  it('commit: a state of another result under a key that is stored is no repeat but a state conflict', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 1)], state: change(0, { a: 1 }) }));
    const before = await everything(storage, 1);
    const another = entry(1, { steps: [step('flow[0]', { attempts: 2 })], state: change(0, { a: 2 }) });
    same(await commitOne(storage, another), 'state-conflict', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: another end than the one that is stored is fenced', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { end: end() }));
    const before = await everything(storage, 1);
    for (const other of [{ status: 'failed' }, { finishedAt: T0 + 501 }, { duration: 401 }] as const)
      same(await commitOne(storage, entry(1, { end: end(other) })), 'fenced', JSON.stringify(other));
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: another release than the one that is stored is fenced', async (storage) => {
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

  it('commit: a release that arrives again late takes nothing from whoever has claimed since', async (storage) => {
    await accept(storage, execution(1));
    const given = { status: 'waiting', dueAt: T0 + 100 } as const;
    await release(storage, 1, given);
    same((await claim(storage)).length, 1, 'claimed');
    await commitOne(storage, entry(1, { release: given }));
    same(await commitOne(storage, entry(1, { epoch: 2 })), 'stored', 'the commit of who holds it');
  });

  it('commit: an attempt that arrives again late, behind a later one, changes nothing', async (storage) => {
    await accept(storage, execution(1));
    const first = entry(1, { steps: [retrying('flow[0]', 1)] });
    await commitOne(storage, first);
    await commitOne(storage, entry(1, { steps: [retrying('flow[0]', 2)] }));
    const before = await everything(storage, 1);
    same(await commitOne(storage, first), 'stored', 'answer');
    same(await everything(storage, 1), before, 'what is stored');
  });

  it('commit: a whole batch again is answered as the first time, and changes nothing', async (storage) => {
    await join(storage);
    for (const number of [1, 2, 3, 4]) await accept(storage, execution(number));
    const batch = [
      entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }),
      starting(execution(5)),
      entry(2, { steps: [step('flow[0]')], end: end() }),
      entry(9, { steps: [step('flow[0]')] }),
      starting(execution(6), { release: { status: 'queued', dueAt: T0 + 5 } }),
      entry(3, { deliveries: [delivery(1)], release: { status: 'waiting', dueAt: T0 + 100 } }),
      entry(4, { steps: [step('flow[0]')], state: change(7, { a: 2 }) }),
    ];
    const expected = ['stored', 'stored', 'stored', 'fenced', 'stored', 'stored', 'state-conflict'];
    same(await storage.commit(OWNER, batch), expected, 'answers');
    const before = await everything(storage, 1, 2, 3, 4, 5, 6, 9);
    same(await storage.commit(OWNER, batch), expected, 'answers to the second');
    same(await everything(storage, 1, 2, 3, 4, 5, 6, 9), before, 'what is stored');
  });
}
