/**
 * A process of its own that uses a store, and says each thing that was stored, once it was: `sqlite-child MODE FILE NUMBER`.
 *
 * | mode | what it does |
 * |---|---|
 * | open | opens the store, queues one execution as a guest, and ends |
 * | write | joins, and stores executions in every way that there is, until it is killed |
 * | own | joins, accepts one execution, and holds it until it is killed; ends with the code of the error when it may not join |
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
  join,
  OWNER,
  starting,
  step,
} from '../../src/adapters/testing/storage-suite/context.ts';
import { isOrchestratorError } from '../../src/engine/errors.ts';

const [, , mode, path = '', round = '0'] = process.argv;
const storage = sqliteStorage({ path });
/** So many that a kill finds the process in the midst of storing them. */
const PARTS = Array.from({ length: 30 }, (_, i) => step(`p${i}`));
const say = (...words: readonly (string | number)[]) => writeSync(1, `${words.join(' ')}\n`);

if (mode === 'open') {
  await enqueue(storage, execution(Number(round)));
  await storage.close();
} else if (mode === 'write') await write(Number(round) * 1_000_000);
else await own(Number(round));

async function own(number: number): Promise<void> {
  try {
    await join(storage);
  } catch (error) {
    say(isOrchestratorError(error) ? error.code : String(error));
    await storage.close();
    return;
  }
  await accept(storage, execution(number));
  await storage.commit(OWNER, [entry(number, { steps: [step('flow[0]')] })]);
  say('joined');
  setInterval(() => {}, 1000);
}

/** Executions one after the other, with every way of writing that there is. */
async function write(first: number): Promise<never> {
  await join(storage);
  let version = (await storage.readState('orders'))?.version ?? 0;
  const commit = async (...batch: Parameters<typeof storage.commit>[1]) => {
    const answers = await storage.commit(OWNER, batch);
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
