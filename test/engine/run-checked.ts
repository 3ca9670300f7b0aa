/** Runs a random flow, and checks what holds of every run. */

import { expect } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { isFinal } from '../../src/engine/execution/execution.ts';
import type { CommitEntry } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { SIGNAL, SIGNALLED_EVERY, toDefinition } from './flow-definition.ts';
import { type Step, some } from './flow-model.ts';
import { PAYLOAD } from './reference-evaluator.ts';
import { scene, turns } from './scene.ts';

export interface Ran {
  readonly result: Awaited<ReturnType<ReturnType<typeof scene>['run']>>;
  readonly ran: readonly string[];
}

/** Runs a flow and checks what must hold of every run. */
export async function runChecked(
  flow: readonly Step[],
  options: { durability?: 'step' | 'none'; later?: boolean; slow?: boolean } = {},
): Promise<Ran> {
  const inner = options.later ? laterStorage(memoryStorage()) : memoryStorage();
  const entries: CommitEntry[] = [];
  const storage: Storage = {
    ...inner,
    async commit(worker, batch) {
      const answers = await inner.commit(worker, batch);
      entries.push(...batch.filter((_entry, i) => answers[i] === 'stored'));
      return answers;
    },
  };
  const definition = {
    ...toDefinition(flow),
    ...(options.durability && { execution: { durability: options.durability } }),
  };
  const flaky = new Set<string>();
  const made = scene(definition, {
    storage,
    scripts: {
      ...(options.slow && { ok: async ({ execution }) => turns(1).then(() => execution.agent) }),
      flaky: ({ execution, idempotencyKey }) => {
        if (flaky.has(idempotencyKey)) return execution.agent;
        flaky.add(idempotencyKey);
        throw new Error('not yet');
      },
    },
  });
  const ends: string[] = [];
  for (const kind of ['execution.completed', 'execution.failed', 'execution.timeout', 'execution.cancelled'] as const) {
    made.orchestrator.on(kind, ({ event }) => ends.push(event));
  }
  const stopTelling = some(flow, ({ kind }) => kind === 'wait') ? tellAgainAndAgain(made) : async () => {};
  const result = await made.run();
  await stopTelling();
  await turns(1);

  // One terminal state, reported once, and nothing is written after it.
  expect(isFinal(result.status)).toBe(true);
  expect(ends).toEqual([`execution.${result.status}`]);
  expect(entries.filter(({ end }) => end).length).toBe(1);
  expect(entries.at(-1)?.end?.status).toBe(result.status);
  // One result for each step, and no attempt after it.
  const stored = entries.flatMap(({ steps }) => steps).filter(({ retryAt }) => retryAt === undefined);
  expect(new Set(stored.map(({ key }) => key)).size).toBe(stored.length);
  const finals = stored.filter(({ note }) => !note);
  const attempts = finals.reduce((sum, step) => sum + step.attempts, 0);
  expect(made.ran.length).toBeGreaterThanOrEqual(attempts);
  // The returned record is the stored record, and its metrics match its agents.
  expect(byKey(await made.orchestrator.executions.get(result.id))).toEqual(byKey(result));
  // An agent that was between two attempts when its block ended stays in the record, and does not count.
  const ended = result.agents.filter(({ status }) => status !== 'retrying');
  const { waited } = result.metrics;
  expect(result.metrics).toEqual({ totalDuration: result.duration, agents: ended.length, queued: 0, waited });
  expect(waited).toBeGreaterThanOrEqual(0);
  expect(waited).toBeLessThanOrEqual(result.duration ?? 0);
  expect(ended.length).toBe(finals.length);
  expect(made.clock.nextIn).toBeUndefined();
  return { result, ran: made.ran };
}

/** Sends signals before the run waits for them and while it waits, each twice. @returns a function that stops it after the current signal */
function tellAgainAndAgain({ orchestrator, clock }: ReturnType<typeof scene>): () => Promise<void> {
  let cancel: () => void = () => {};
  let sent = 0;
  let sending = Promise.resolve();
  let isOver = false;
  const sendTwice = async (id: string, idempotencyKey: string) => {
    for (let times = 0; times < 2 && !isOver; times++) {
      await orchestrator.executions.signal(id, SIGNAL, PAYLOAD, { idempotencyKey }).catch(() => undefined);
    }
  };
  const send = (id: string) => {
    cancel = clock.setTimer(SIGNALLED_EVERY, () => send(id));
    sent += 1;
    sending = sending.then(() => sendTwice(id, `k${sent}`));
  };
  orchestrator.on('execution.started', ({ data }) => send(data.id));
  return async () => {
    isOver = true;
    cancel();
    await sending;
  };
}

// The order of runs has a test of its own, in retry.test.ts.
function byKey(record: Ran['result']): Ran['result'] {
  return { ...record, agents: [...record.agents].sort((a, b) => (a.key < b.key ? -1 : 1)) };
}
