/**
 * A process of its own that reads and writes damaged files, each by every verb: `sqlite-damage-child NUMBERS FILE...`.
 *
 * It says the name of a file before it opens it, and after it what each verb threw that is no error of the library.
 */

import { writeSync } from 'node:fs';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { end, entry, executionId, LEASE, OWNER, step, T0 } from '../../src/adapters/testing/storage-suite/context.ts';
import { isOrchestratorError } from '../../src/engine/errors.ts';

const [, , executions = '0', ...paths] = process.argv;
const say = (text: string) => writeSync(1, `${text}\n`);
const page = { limit: 100 };

for (const path of paths) {
  say(path);
  const storage = sqliteStorage({ path, busyTimeoutMs: 0, synchronous: 'normal' });
  const of = (id: string, number: number): readonly (() => unknown)[] => [
    () => storage.getExecution(id),
    () => storage.getAccepted(id),
    () => storage.listSteps(id, { limit: 100, notes: true }),
    () => storage.listSignals(id, { name: 'go', after: 0, limit: 100 }),
    () => storage.listDeliveries(id),
    () => storage.commit(OWNER, [entry(number, { steps: [step('late')] })]),
    () => storage.requestCancel(id, T0, end()),
  ];
  const now = T0 + 1_000_000;
  const verbs: (() => unknown)[] = [
    () => storage.join(OWNER, { now: T0, leaseUntil: T0 + LEASE }),
    () => storage.claim(OWNER, { now, limit: 100, except: [] }),
    () => storage.claim(OWNER, { now, limit: 100, except: ['x'] }),
    () => storage.survey(OWNER, []),
    () => storage.listHeld(OWNER),
    () => storage.listExecutions(page),
    () => storage.listExecutions({ ...page, status: 'failed' }),
    ...Array.from({ length: Number(executions) }, (_, number) => of(executionId(number), number)).flat(),
    () => storage.findEnded([executionId(1)]),
    () => storage.countQueued(100),
    () => storage.readState('orders'),
    () => storage.getDefinition('v'),
    () => storage.readSchedule('hourly'),
    () => storage.kv.get('k', 1),
    () => storage.kv.list({ ...page, prefix: '', now: 1 }),
    () => storage.objects.get('k'),
    () => storage.objects.list({ ...page, prefix: '', now: 1 }),
    () => storage.tokens.list(),
    () => storage.tokens.findByDigest('d'),
    () => storage.purge({ owner: OWNER, before: now, limit: 10 }),
    () => storage.leave(OWNER, T0),
    () => storage.close(),
  ];
  for (const verb of verbs) {
    try {
      await verb();
    } catch (error) {
      if (!isOrchestratorError(error)) say(`${verb}: ${error}`);
    }
  }
}
say('done');
