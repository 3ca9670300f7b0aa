/**
 * A separate process that uses a store and prints each item after it was stored: `sqlite-child MODE FILE NUMBER`.
 *
 * | mode | what it does |
 * |---|---|
 * | open | opens the store, queues one execution without registering a worker, and ends |
 * | write | registers a worker, and stores executions in every possible way until it is killed |
 * | own | registers a worker, accepts one execution, and holds it until it is killed; when it can't register, prints the error's code and ends |
 */

import { writeSync } from 'node:fs';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import {
  accept,
  change,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  register,
  starting,
  step,
  WORKER,
} from '../../src/conformance/storage-suite/context.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';

const [, , mode, path = '', round = '0'] = process.argv;
const storage = sqliteStorage({ path });
/** So many steps that a kill hits the process while it stores them. */
const PARTS = Array.from({ length: 30 }, (_, i) => step(`p${i}`));
const say = (...words: readonly (string | number)[]) => writeSync(1, `${words.join(' ')}\n`);

if (mode === 'open') {
  await enqueue(storage, execution(Number(round)));
  await storage.close();
} else if (mode === 'write') await write(Number(round) * 1_000_000);
else await own(Number(round));

async function own(number: number): Promise<void> {
  try {
    await register(storage);
  } catch (error) {
    say(isOrchestratorError(error) ? error.code : String(error));
    await storage.close();
    return;
  }
  await accept(storage, execution(number));
  await storage.commit(WORKER, [entry(number, { steps: [step('flow[0]')] })]);
  say('joined');
  setInterval(() => {}, 1000);
}

/** Writes executions one after the other, in every possible way. */
async function write(first: number): Promise<never> {
  await register(storage);
  let version = (await storage.state.read('orders'))?.version ?? 0;
  const commit = async (...batch: Parameters<typeof storage.commit>[1]) => {
    const answers = await storage.commit(WORKER, batch);
    if (answers.some((answer) => answer !== 'stored')) throw new Error(`answers: ${answers}`);
  };
  for (let number = first; ; number++) {
    await commit(starting(execution(number)));
    say('accepted', number);
    for (const key of ['a', 'b']) {
      await commit(entry(number, { steps: [step(key)] }));
      say('step', number, key);
    }
    await commit(starting(execution(number + 500_000)));
    const both = [number, number + 500_000];
    await commit(...both.map((each) => entry(each, { steps: [step('c'), ...PARTS] })));
    for (const each of both) say('step', each, 'c');
    await commit(entry(number, { steps: [step('e')], state: change(version, { last: executionId(number) }) }));
    version += 1;
    say('step', number, 'e');
    say('state', version);
    await storage.kv.put(`key-${number}`, number);
    say('value', number);
    await commit(entry(number, { steps: [step('f')], end: end({ output: number }) }));
    say('step', number, 'f');
    say('ended', number);
  }
}
