/** Storage suite: an execution that is claimed by its id, whether it is due or not, and one that gets another definition. */

import {
  accept,
  claim,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  handover,
  nextDueAt,
  OTHER,
  register,
  release,
  type StorageCase,
  same,
  step,
  T0,
  WORKER,
} from '../context.ts';

export function takeCases(it: StorageCase): void {
  it('take: claims a free execution before it is due, as a claim does', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 60_000 });
    const taken = await storage.executions.take(WORKER, executionId(1), T0 + 40);
    const about = { execution: execution(1), epoch: 2, startedAt: T0 + 1, begun: true, recoveries: 0, blame: 0 };
    same(taken, { ...about, cancelRequested: false, signals: 0, resumedAt: T0 + 40 }, 'the execution');
    same((await storage.executions.getStatus(executionId(1)))?.status, 'running', 'its status');
    same(await nextDueAt(storage), undefined, 'what is due next');
    same(await claim(storage, { now: T0 + 90_000 }), [], 'what a claim finds later');
    same(await commitOne(storage, entry(1, { end: end() })), 'fenced', 'a write under the epoch before');
    same(await commitOne(storage, { ...entry(1, { end: end() }), epoch: 2 }), 'stored', 'a write under its epoch');
  });

  it('take: a queued execution begins', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    const taken = await storage.executions.take(WORKER, executionId(1), T0 + 40);
    same(
      taken && 'begun' in taken && [taken.begun, taken.startedAt, taken.epoch],
      [false, T0 + 40, 1],
      'the execution',
    );
    same(await storage.executions.countQueued(10), 0, 'how many are queued');
  });

  it('take: returns undefined for an execution that is unknown, held or ended', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await commitOne(storage, entry(2, { end: end() }));
    for (const number of [1, 2, 3])
      same(await storage.executions.take(WORKER, executionId(number), T0 + 40), undefined, `execution ${number}`);
  });

  it('repin: a free execution gets another definition and handover, and keeps when it is due', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 60_000, handover: handover() });
    const { version } = execution(1);
    const pinned = await storage.executions.getPinned(executionId(1));
    same(pinned, { version, epoch: 1, isFree: true, begun: true, handover: handover() }, 'what is read');
    const moves = [{ from: version, to: 'b'.repeat(32), at: T0 + 50 }];
    const change = { epoch: 1, from: version, to: 'b'.repeat(32), handover: { ...handover(), moves } };
    same(await storage.executions.repin(executionId(1), { ...change, from: 'c'.repeat(32) }), false, 'another version');
    same(await storage.executions.repin(executionId(1), { ...change, epoch: 2 }), false, 'another epoch');
    same(await storage.executions.repin(executionId(9), change), false, 'an unknown execution');
    same(await storage.executions.repin(executionId(1), change), true, 'the change');
    const record = await storage.executions.get(executionId(1));
    same([record?.version, record?.status, record?.moves], ['b'.repeat(32), 'waiting', moves], 'its record');
    same(await nextDueAt(storage), T0 + 60_000, 'when it is due');
    const back = { epoch: 1, from: 'b'.repeat(32), to: version, handover: handover(), dueAt: T0 + 70_000 };
    same(await storage.executions.repin(executionId(1), back), true, 'a change back');
    same(await nextDueAt(storage), T0 + 60_000, 'when it is due, with a later instant');
    const soon = { epoch: 1, from: version, to: 'b'.repeat(32), handover: change.handover, dueAt: T0 + 40 };
    same(await storage.executions.repin(executionId(1), soon), true, 'a change that wakes it');
    same(await nextDueAt(storage), T0 + 40, 'when it is due, with an earlier instant');
    const [claimed] = await claim(storage, { now: T0 + 100 });
    same([claimed?.execution.version, claimed?.handover], ['b'.repeat(32), change.handover], 'what a claim finds');
    await commitOne(storage, { ...entry(1, { end: end({ moves }) }), epoch: 2 });
    same((await storage.executions.get(executionId(1)))?.moves, moves, 'after its end');
  });

  it('repin: a step is stored with the change, replaces an attempt, and fences a second change of the same read', async (storage) => {
    await accept(storage, execution(1));
    const attempt = { ...step('flow[0]'), status: 'failed' as const, attempts: 3, retryAt: T0 + 90_000 };
    await commitOne(storage, entry(1, { steps: [attempt] }));
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 90_000, handover: handover() });
    const { version } = execution(1);
    const completions = [{ key: 'flow[0]', at: T0 + 50, by: 'Ada', reason: 'by hand' }];
    const given = { ...step('flow[0]'), attempts: 3, output: { 'by hand': ['é', null] } };
    const change = {
      from: version,
      to: version,
      handover: { ...handover(), completions },
      dueAt: T0 + 50,
      step: given,
    };
    same(await storage.executions.repin(executionId(1), { ...change, epoch: 2 }), false, 'another epoch');
    same((await storage.executions.getStep(executionId(1), 'flow[0]'))?.retryAt, T0 + 90_000, 'the step after that');
    same(await storage.executions.repin(executionId(1), { ...change, epoch: 1 }), true, 'the change');
    same(await storage.executions.getStep(executionId(1), 'flow[0]'), given, 'the step');
    same(await storage.executions.repin(executionId(1), { ...change, epoch: 1 }), false, 'a second change');
    same((await storage.executions.getPinned(executionId(1)))?.epoch, 2, 'the epoch');
    same((await storage.executions.get(executionId(1)))?.completions, completions, 'its record');
    const [claimed] = await claim(storage, { now: T0 + 60 });
    same([claimed?.epoch, claimed?.handover?.completions], [3, completions], 'what a claim finds');
    await commitOne(storage, { ...entry(1, { end: end({ completions }) }), epoch: 3 });
    same((await storage.executions.get(executionId(1)))?.completions, completions, 'after its end');
  });

  it('repin: what a start gave is replaced before it begins, with when it is due, and fences a second change', async (storage) => {
    await register(storage);
    const wait = { key: 'acme', kind: 'batch' as const, since: T0, until: T0 + 60_000 };
    const left = { waitingFor: [wait], waited: 0, recoveries: 0 };
    const start = { ...execution(1, { input: ['é'], deadlineAt: T0 + 90_000 }) };
    const queued = { status: 'queued', dueAt: T0 + 60_000, handover: left } as const;
    same(await storage.commit('', [{ ...entry(1, { start, release: queued }), epoch: 0 }]), ['stored'], 'the start');
    const { version } = start;
    const pinned = await storage.executions.getPinned(executionId(1));
    same(pinned, { version, epoch: 0, isFree: true, begun: false, handover: left }, 'what is read');
    same((await storage.executions.get(executionId(1)))?.waitingFor, [wait], 'what it waits for');
    const later = { input: ['é', { b: null }], deadlineAt: T0 + 99_000, dueAt: T0 + 70_000 };
    const moved = { ...left, waitingFor: [{ ...wait, until: T0 + 70_000 }] };
    const note = { ...step('run.start[1]'), note: true as const };
    const change = { epoch: 0, from: version, to: version, handover: moved, start: later, step: note };
    same(await storage.executions.repin(executionId(1), change), true, 'the change');
    same(await storage.executions.repin(executionId(1), change), false, 'a second change of the same read');
    same(await nextDueAt(storage), T0 + 70_000, 'when it is due');
    same(await storage.executions.getStep(executionId(1), 'run.start[1]'), note, 'the step');
    const accepted = await storage.executions.getAccepted(executionId(1));
    same([accepted?.input, accepted?.deadlineAt], [later.input, T0 + 99_000], 'what was accepted');
    same(await claim(storage, { now: T0 + 69_999 }), [], 'what is claimed before it is due');
    const { deadlineAt: _none, ...soon } = { ...later, input: 'c', dueAt: T0 + 30_000 };
    const { step: _step, ...again } = { ...change, epoch: 1, start: soon };
    same(await storage.executions.repin(executionId(1), again), true, 'a change to an earlier instant');
    const [claimed] = await claim(storage, { now: T0 + 30_000 });
    same([claimed?.execution.input, claimed?.epoch, claimed?.begun], ['c', 3, false], 'what a claim finds');
    same(await storage.executions.repin(executionId(1), { ...again, epoch: 3 }), false, 'a change while it is held');
    await commitOne(storage, {
      ...entry(1, { steps: [], release: { status: 'waiting', dueAt: T0 + 80_000 } }),
      epoch: 3,
    });
    same((await storage.executions.getPinned(executionId(1)))?.begun, true, 'whether it has begun after that');
  });

  it('getPinned, repin: an execution that is held or has ended is not free, and nothing of it changes', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    await commitOne(storage, entry(2, { end: end() }));
    for (const number of [1, 2]) {
      const { version } = execution(number);
      const id = executionId(number);
      same((await storage.executions.getPinned(id))?.isFree, false, `whether execution ${number} is free`);
      const change = { epoch: 1, from: version, to: 'b'.repeat(32), handover: handover() };
      same(await storage.executions.repin(id, change), false, `execution ${number}`);
      same((await storage.executions.get(id))?.version, version, `its version`);
    }
    same(await storage.executions.getPinned(executionId(9)), undefined, 'an unknown execution');
  });

  it('take: an unknown worker claims nothing', async (storage) => {
    await register(storage);
    await enqueue(storage, execution(1));
    same(await storage.executions.take('own_nobody', executionId(1), T0 + 40), undefined, 'what it takes');
    same((await claim(storage)).length, 1, 'what a registered worker claims');
  });
}

/** For stores on which several workers may work at the same time. */
export function sharedTakeCases(it: StorageCase): void {
  it('take: of concurrent takes and claims, one has the execution', async (storage) => {
    await register(storage);
    await register(storage, OTHER);
    for (let number = 1; number <= 10; number++) {
      await enqueue(storage, execution(number));
      const answers = await Promise.all([
        storage.executions.take(WORKER, executionId(number), T0 + 40),
        storage.executions.take(OTHER, executionId(number), T0 + 40),
        claim(storage, { now: T0 + 40 }),
      ]);
      const owners = answers.flat().filter((taken) => taken !== undefined).length;
      // All three may meet the row while another one changes it, and leave it.
      const left = (await claim(storage, { now: T0 + 40 })).length;
      same(owners + left, 1, `how many workers have execution ${number}`);
    }
  });
}
