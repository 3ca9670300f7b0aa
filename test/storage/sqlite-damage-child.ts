/**
 * A separate process that reads and writes damaged files, each by every method: `sqlite-damage-child NUMBERS FILE...`.
 *
 * It prints the name of a file before it opens the file, and after it each error of a method that is not an error of the library, and
 * the methods that it did not call.
 */

import { writeSync } from 'node:fs';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { end, entry, executionId, LEASE, step, T0, WORKER } from '../../src/conformance/storage-suite/context.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import { calledMethods } from './called-methods.ts';
import { TOKEN } from './stored-token.ts';

const [, , executions = '0', ...paths] = process.argv;
const say = (text: string) => writeSync(1, `${text}\n`);
const page = { limit: 100 };
const SETTLED = { id: 'dlv_1', expectedAttempts: 0, status: 'failed', attempts: 1, log: [] } as const;
const HOUR = { key: 'token:tok_1', limit: 1, windowMs: 3_600_000 };

for (const path of paths) {
  say(path);
  const opened = sqliteStorage({ path, timeout: 1, synchronous: 'normal' });
  const { parts, left } = calledMethods(opened);
  const storage = { ...opened, ...parts };
  const now = T0 + 1_000_000;
  const of = (id: string, number: number): readonly (() => unknown)[] => [
    () => storage.executions.get(id),
    () => storage.executions.getAccepted(id),
    () => storage.executions.getStatus(id),
    () => storage.executions.listSteps(id, { limit: 100, notes: true }),
    () => storage.executions.listSteps(id, { limit: 100, after: 'flow[0]' }),
    () => storage.executions.getStep(id, 'flow[0]'),
    () => storage.executions.getSteps(id, ['flow[0]']),
    () => storage.executions.skipSteps(id, 1),
    () => storage.executions.listEndedWaits(id, 'go', 0),
    () => storage.executions.countDescendants(id, 100),
    () => storage.signals.list(id, { name: 'go', after: 0, limit: 100 }),
    () => storage.signals.find(id, 'sig_1'),
    () => storage.signals.put({ id: 'sig_late', executionId: id, name: 'go', payload: 1, createdAt: T0 }),
    () => storage.commit(WORKER, [entry(number, { steps: [step('late')] })]),
    () => storage.executions.requestCancel(id, T0, end()),
    () => storage.executions.getPinned(id),
    () => storage.executions.pause(id, 'execution'),
    () => storage.executions.resume(id, 'execution'),
    () => storage.executions.limitWaits(id, T0),
    () => storage.executions.closeLimits([{ name: 'rate/orders', key: '', max: 1, since: 1, period: 1000 }], T0),
    () => storage.executions.takeSlot({ name: 'a', key: '', max: 1, since: 1 }, { executionId: id, key: 'k' }, T0),
    () => storage.executions.freeSlot({ name: 'a', key: '', max: 1, since: 1 }, { executionId: id, key: 'k' }),
    () =>
      storage.executions.repin(id, {
        epoch: 1,
        from: 'a',
        to: 'b',
        handover: { waitingFor: [], waited: 0, recoveries: 0 },
      }),
  ];
  const verbs: (() => unknown)[] = [
    () => storage.workers.register(WORKER, { now: T0, leaseUntil: T0 + LEASE }),
    () => storage.workers.renew(WORKER, now + LEASE),
    () => storage.workers.reclaimFromDead(WORKER, now),
    () => storage.executions.take(WORKER, executionId(Number(executions) - 1), now),
    () => storage.executions.claim(WORKER, { now, limit: 100, excludeVersions: [] }),
    () => storage.executions.claim(WORKER, { now, limit: 100, excludeVersions: ['x'] }),
    () => storage.executions.poll(WORKER, []),
    () => storage.workers.listHeld(WORKER),
    () => storage.executions.list(page),
    () => storage.executions.list({ ...page, status: 'failed' }),
    () => storage.executions.list({ ...page, tag: 'ä' }),
    () => storage.executions.list({ ...page, search: 'e' }),
    () => storage.executions.findByKey('once'),
    ...Array.from({ length: Number(executions) }, (_, number) => of(executionId(number), number)).flat(),
    () => storage.executions.findEnded([executionId(1)]),
    () => storage.executions.countQueued(100),
    () => storage.executions.pauseAll('all', undefined, 100),
    () => storage.executions.resumeAll('all', [], 100),
    () => storage.executions.putLimits([{ name: 'orders', key: '', max: 1, since: 1 }]),
    () => storage.executions.countOpen(100),
    () => storage.executions.countAccepted(0, 100),
    () => storage.state.read('orders'),
    () => storage.state.write('bills', { expectedVersion: 0, value: {}, updatedAt: 1 }),
    () => storage.documents.read('ensemble', 'orders', 1),
    () => storage.documents.list('ensemble', { limit: 10, now: 1 }),
    () =>
      storage.documents.write('ensemble', 'bills', {
        expectedVersion: 0,
        document: { value: {}, tag: 'a', updatedAt: 1 },
        now: 1,
      }),
    () => storage.deliveries.receivers('', 10),
    () => storage.deliveries.claim('shop', { now, until: now + 10, limit: 10 }),
    () => storage.deliveries.get('dlv_1'),
    () => storage.deliveries.list({ limit: 10 }),
    () => storage.deliveries.settle([SETTLED]),
    () => storage.deliveries.requeue(['dlv_1'], now),
    () => storage.deliveries.purge(now, 10),
    () => storage.usage.running('tok_1'),
    () => storage.usage.charged('tok_1', '2026-01'),
    () => storage.rates.take([HOUR], 1),
    () => storage.rates.peek([HOUR], 1),
    () => storage.tallies.read({ since: 0, until: now + 1 }),
    () => storage.tallies.read({ since: 0, until: now + 1, ensemble: 'e' }),
    () => storage.tallies.fold(now),
    () => storage.definitions.get('v'),
    () => storage.definitions.put({ version: 'w', definition: {}, needs: [] }),
    () => storage.schedules.read('hourly'),
    () => storage.schedules.advance('hourly', { expectedVersion: 1, value: {}, updatedAt: now }),
    () => storage.kv.get('k', 1),
    () => storage.kv.list({ ...page, prefix: '', now: 1 }),
    () => storage.kv.put('k', 1),
    () => storage.kv.delete('k'),
    () => storage.objects.get('k'),
    () => storage.objects.list({ ...page, prefix: '', now: 1 }),
    () => storage.objects.put('k', { content: new Uint8Array([4]), contentType: 'text/plain', updatedAt: now }),
    () => storage.objects.delete('k'),
    () => storage.tokens.list(),
    () => storage.tokens.findByDigest('d'),
    () => storage.tokens.get('tok_1'),
    () => storage.tokens.touch('tok_1', now),
    () => storage.tokens.put({ ...TOKEN, id: 'tok_2', digest: 'e' }),
    () => storage.tokens.delete('tok_1'),
    () => storage.executions.delete(['exec_00000000000000000000000009']),
    () => storage.executions.purge({ worker: WORKER, before: now, limit: 10 }),
    () => storage.workers.unregister(WORKER, T0),
    () => storage.close(),
  ];
  for (const verb of verbs) {
    try {
      await verb();
    } catch (error) {
      if (!isOrchestratorError(error)) say(`${verb}: ${error}`);
    }
  }
  if (left.size > 0) say(`not called: ${[...left].join(', ')}`);
}
say('done');
