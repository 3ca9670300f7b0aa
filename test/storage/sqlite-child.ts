/**
 * A process of its own that uses a store until it is killed, and says each thing that was stored, once it was:
 * `sqlite-child open|write FILE ROUND`. `open` opens the store, accepts one execution, and ends.
 */

import { writeSync } from 'node:fs';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { change, end, entry, execution, executionId, step } from '../../src/adapters/testing/storage-suite/context.ts';

const [, , mode, path = '', round = '0'] = process.argv;
const storage = sqliteStorage({ path });
/** So many that a kill finds the process in the midst of storing them. */
const PARTS = Array.from({ length: 30 }, (_, i) => step(`p${i}`));
const say = (...words: readonly (string | number)[]) => writeSync(1, `${words.join(' ')}\n`);

if (mode === 'open') {
  await storage.accept(execution(Number(round)));
  await storage.close();
} else {
  await write(Number(round) * 1_000_000);
}

/** Executions one after the other, with every way of writing that there is. */
async function write(first: number): Promise<never> {
  let version = (await storage.readState('orders'))?.version ?? 0;
  for (let number = first; ; number++) {
    await storage.accept(execution(number));
    say('accepted', number);
    for (const key of ['a', 'b']) {
      await storage.commit([entry(number, { steps: [step(key)] })]);
      say('step', number, key);
    }
    await storage.accept(execution(number + 500_000));
    const batch = [number, number + 500_000].map((each) => entry(each, { steps: [step('c'), ...PARTS] }));
    await storage.commit(batch);
    for (const { executionId: id } of batch) say('step', Number(id.slice(5)), 'c');
    await storage.commit([
      entry(number, { steps: [step('e')], state: change(version, { last: executionId(number) }) }),
    ]);
    version += 1;
    say('step', number, 'e');
    say('state', version);
    await storage.kv.put(`key-${number}`, number);
    say('value', number);
    await storage.commit([entry(number, { steps: [step('f')], end: end({ output: number }) })]);
    say('step', number, 'f');
    say('ended', number);
  }
}
