/** Storage suite: starts under an idempotency key. A key, like an id, is accepted once. */

import type { NewExecution } from '../../../engine/execution/stored-execution.ts';
import {
  accept,
  change,
  commitOne,
  end,
  enqueue,
  entry,
  everything,
  execution,
  executionId,
  register,
  type StorageCase,
  same,
  starting,
  step,
  T0,
  WORKER,
} from '../context.ts';

/** An execution with the key `ä key`, and with a seed of its own. */
const keyed = (number: number, fields: Partial<NewExecution> = {}) =>
  execution(number, { idempotencyKey: 'ä key', seed: String(number).padStart(32, '0'), ...fields });
const QUEUED = { release: { status: 'queued', dueAt: T0 } } as const;

export function keyCases(it: StorageCase): void {
  it('start: under the key of another execution, the answer is `exists`, and nothing is stored', async (storage) => {
    await accept(storage, keyed(1));
    const starts = [{}, QUEUED, { steps: [step('flow[0]')] }, { state: change(0, { a: 1 }) }];
    const refuseAll = async (when: string) => {
      const before = await everything(storage, 1, 2);
      for (const fields of starts)
        same(await commitOne(storage, starting(keyed(2, { tags: ['late'] }), fields)), 'exists', `answer ${when}`);
      same(await everything(storage, 1, 2), before, `what is stored ${when}`);
      same(await storage.executions.list({ tag: 'late', limit: 10 }), [], `executions with its tag ${when}`);
    };
    await refuseAll('while the first one is held');
    await commitOne(storage, entry(1, { end: end() }));
    await refuseAll('after the end of the first one');
    same(await storage.executions.findByKey('ä key'), executionId(1), 'the execution with the key');
  });

  it('start: under the key of a queued execution, the answer is `exists`', async (storage) => {
    await register(storage);
    await enqueue(storage, keyed(1));
    for (const fields of [{}, QUEUED]) same(await commitOne(storage, starting(keyed(2), fields)), 'exists', 'answer');
    same(await storage.executions.getStatus(executionId(2)), undefined, 'the second execution');
  });

  it('start: with the key of its own earlier call, the answer is `stored`', async (storage) => {
    await register(storage);
    for (const fields of [{}, QUEUED]) {
      const number = 'release' in fields ? 2 : 1;
      const start = starting(keyed(number, { idempotencyKey: `key ${number}`, tags: ['a', 'b'] }), fields);
      for (let times = 0; times < 3; times++) same(await commitOne(storage, start), 'stored', 'answer');
    }
    const listed = (await storage.executions.list({ tag: 'a', limit: 10 })).map(({ id }) => id);
    same(listed, [2, 1].map(executionId), 'executions');
  });

  it('start: the id of one execution with the key of another one is refused', async (storage) => {
    await accept(storage, keyed(1));
    await accept(storage, keyed(2, { idempotencyKey: 'other' }));
    const before = await everything(storage, 1, 2);
    same(await commitOne(storage, starting(keyed(2, { seed: 'f'.repeat(32) }))), 'exists', 'answer');
    same(await everything(storage, 1, 2), before, 'what is stored');
  });

  it('start: of the entries of a batch with one key, exactly one is stored', async (storage) => {
    await register(storage);
    const batch = [1, 2, 3, 4].map((number) => starting(keyed(number, { tags: [`tag ${number}`] })));
    const answers = await storage.commit(WORKER, [starting(execution(5)), ...batch, starting(execution(6))]);
    same(answers.filter((answer) => answer === 'stored').length, 3, 'starts that were stored');
    same(answers.filter((answer) => answer === 'exists').length, 3, 'starts that were refused');
    const id = await storage.executions.findByKey('ä key');
    const first = answers.indexOf('stored', 1);
    same(id, executionId(first), 'the execution with the key');
    for (const number of [1, 2, 3, 4])
      same(
        (await storage.executions.list({ tag: `tag ${number}`, limit: 10 })).length,
        number === first ? 1 : 0,
        `executions with the tag of start ${number}`,
      );
  });

  it('start: of concurrent starts with one key, exactly one is stored', async (storage) => {
    await register(storage);
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, number) => commitOne(storage, starting(keyed(number)))),
    );
    same(answers.filter((answer) => answer === 'stored').length, 1, 'starts that were stored');
    same(answers.filter((answer) => answer === 'exists').length, 9, 'starts that were refused');
    same(await storage.executions.findByKey('ä key'), executionId(answers.indexOf('stored')), 'with the key');
  });
}
