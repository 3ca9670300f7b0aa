/** The storage suite's cases of several handles on the same data: what is stored stays, and what one wrote all see. */

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
  executionId,
  type HandlesCase,
  join,
  LEASE,
  nextDueAt,
  numbers,
  OTHER,
  OWNER,
  release,
  same,
  starting,
  step,
  stepKeys,
  T0,
} from './context.ts';

/** One handle after the other. */
export function durableCases(it: HandlesCase): void {
  it('close: what was stored is there for the next handle', async (storage, reopen) => {
    for (const number of [1, 2, 3]) await accept(storage, execution(number));
    const whole = { steps: [step('flow[0]')], state: change(0, { a: 1 }), deliveries: [delivery(1)] };
    await commitOne(storage, entry(1, { ...whole, end: end() }));
    await release(storage, 2, { status: 'waiting', dueAt: T0 + 500 });
    await enqueue(storage, execution(4), T0 + 600);
    await storage.requestCancel(executionId(2), T0 + 400, end({ status: 'cancelled' }));
    await storage.leave(OWNER, T0 + 700);
    const definition = { version: execution(1).version, definition: { name: 'orders', flow: [] }, needs: ['script:a'] };
    await storage.putDefinition(definition);
    const before = await everything(storage, 1, 2, 3, 4);
    await storage.close();
    const next = await reopen();
    same(await everything(next, 1, 2, 3, 4), before, 'what is stored');
    same(await next.getDefinition(definition.version), definition, 'definition');
    await join(next, OTHER, T0 + 700);
    const claimed = await claim(next, {}, OTHER);
    same(
      claimed
        .map(({ execution: { id }, epoch, begun, cancelRequested }) => [id, epoch, begun, cancelRequested])
        .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
      [
        [executionId(2), 2, true, true],
        [executionId(3), 2, true, false],
        [executionId(4), 1, false, false],
      ],
      'claimed',
    );
  });

  it('close: what an owner held that did not leave goes to the next one', async (storage, reopen) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')] }));
    await storage.close();
    const next = await reopen();
    await join(next, OTHER, T0 + LEASE);
    await next.recover(OTHER, T0 + LEASE);
    const claimed = await claim(next, {}, OTHER);
    same(
      claimed.map(({ execution: { id }, epoch, begun }) => [id, epoch, begun]),
      [[executionId(1), 2, true]],
      'claimed',
    );
    same(await stepKeys(next, 1), ['flow[0]'], 'steps');
    const last = entry(1, { epoch: 2, steps: [step('flow[1]')], end: end({ agents: 2 }) });
    same(await commitOne(next, last, OTHER), 'stored', 'its end');
  });
}

/** Handles beside each other, for stores on which several owners may work at once. */
export function besideCases(it: HandlesCase): void {
  it('handles: each sees what the other has stored when its call returns', async (storage, reopen) => {
    const other = await reopen();
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]')], state: change(0, { a: 1 }) }));
    same(await everything(other, 1), await everything(storage, 1), 'what is stored');
    await enqueue(other, execution(2), T0 + 5);
    same(await nextDueAt(storage), T0 + 5, 'due');
  });

  it('handles: an owner is known to all of them, and its fence holds on each', async (storage, reopen) => {
    const other = await reopen();
    await accept(storage, execution(1));
    await join(other, OTHER, T0 + LEASE);
    same((await other.recover(OTHER, T0 + LEASE)).freed, 1, 'freed');
    same(await storage.renew(OWNER, T0 + 9 * LEASE), false, 'renewed');
    same(await commitOne(storage, entry(1, { steps: [step('flow[0]')] })), 'fenced', 'a late write');
    same((await claim(other, {}, OTHER))[0]?.epoch, 2, 'epoch');
    same(await commitOne(other, entry(1, { epoch: 2, end: end() }), OTHER), 'stored', "the successor's end");
    same(await storage.findEnded([executionId(1)]), [executionId(1)], 'ended');
  });

  it('handles: claims on both at the same time give each execution away once', async (storage, reopen) => {
    const other = await reopen();
    await join(storage);
    await join(other, OTHER);
    const batch = Array.from({ length: 100 }, (_, number) =>
      starting(execution(number, { ensemble: `e-${number % 3}` }), { release: { status: 'queued', dueAt: T0 } }),
    );
    await storage.commit(OWNER, batch);
    const claims = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        i % 2 === 0 ? claim(storage, { limit: 5 }) : claim(other, { limit: 5 }, OTHER),
      ),
    );
    const all = claims.flatMap(numbers);
    same([all.length, new Set(all).size], [100, 100], 'claimed, and different ones');
  });

  it('handles: changes of one state at the same time on both: one is stored', async (storage, reopen) => {
    const other = await reopen();
    for (const number of [1, 3, 5]) await accept(storage, execution(number));
    for (const number of [2, 4, 6]) await accept(other, execution(number), OTHER);
    const answers = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((by) => {
        const [handle, owner] = by % 2 === 1 ? [storage, OWNER] : [other, OTHER];
        return commitOne(handle, entry(by, { steps: [step('flow[0]')], state: change(0, { by }) }), owner);
      }),
    );
    same(answers.filter((answer) => answer === 'stored').length, 1, 'changes that were stored');
    same(answers.filter((answer) => answer === 'state-conflict').length, 5, 'changes that were refused');
    same((await storage.readState('orders'))?.value, { by: answers.indexOf('stored') + 1 }, 'state');
  });

  it('handles: a request to stop on one is heard by the owner on the other', async (storage, reopen) => {
    const other = await reopen();
    await accept(storage, execution(1));
    same(await other.requestCancel(executionId(1), T0 + 5, end({ status: 'cancelled' })), 'running', 'answer');
    same((await storage.survey(OWNER, [])).cancelRequested, [executionId(1)], 'asked to stop');
  });

  it('watch: where it is there, a handle hears of what another has queued, until it stops', async (storage, reopen) => {
    if (!storage.watch) return;
    const other = await reopen();
    let heard = () => {};
    const told = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const stop = await storage.watch(() => heard());
    await enqueue(other, execution(1));
    await told;
    await stop();
  });
}
