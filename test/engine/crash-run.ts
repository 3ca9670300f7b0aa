/** Runs a flow of the property tests by processes that die at given commits, each followed by another one on the same store. */

import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import type { Ledger } from '../../src/adapters/testing/engine-suite/ledger.ts';
import type { SuiteScript } from '../../src/adapters/testing/engine-suite/subject.ts';
import { inWorld } from '../../src/adapters/testing/engine-suite/world.ts';
import { hostTurn, type ManualClock } from '../../src/adapters/testing/manual-clock.ts';
import { type Execution, isFinal } from '../../src/engine/model/execution.ts';
import { createOrchestrator } from '../../src/orchestrator.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { SIGNAL, SIGNALLED_EVERY, toDefinition } from './flow-definition.ts';
import { type Step, some } from './flow-model.ts';
import { TOLD } from './reference-evaluator.ts';

/** Where a process dies: at its n-th commit, before or after that is applied. */
export interface Death {
  readonly at: number;
  readonly when: 'before' | 'after';
}

export interface CrashRun {
  /** Undefined when the first process died before the run was accepted. */
  readonly record: Execution | undefined;
  readonly ledger: Ledger;
  /** How many processes died. */
  readonly deaths: number;
}

export interface CrashOptions {
  /** The store answers a turn later. */
  readonly later: boolean;
  /** How long the scripts take: nothing, a turn, or up to 800 ms, and one in seven of them whatever its signal says. */
  readonly pace: 'at once' | 'a turn' | 'long';
  readonly durability?: 'step' | 'none';
  /** Asked for so many ms behind the start. */
  readonly cancelAt?: number | undefined;
  readonly timeout?: number | undefined;
}

const MOST_MS = 60_000;

/** @throws Error when one of the ledger's invariants does not hold */
export function runWithCrashes(
  flow: readonly Step[],
  deaths: readonly Death[],
  options: CrashOptions,
): Promise<CrashRun> {
  const { later, pace, durability, cancelAt, timeout } = options;
  const scriptsOn = (clock: ManualClock): Record<string, SuiteScript> => ({
    async ok({ execution, signal }) {
      const { agent } = execution;
      const number = Number(agent.slice(1));
      if (pace === 'a turn') await hostTurn();
      if (pace === 'long') await clock.sleep((number % 5) * 200, number % 7 === 0 ? undefined : signal);
      return agent;
    },
    flaky({ execution }) {
      if (execution.attempt > 1) return execution.agent;
      throw new Error('not yet');
    },
    ...(pace === 'at once' && { ok: ({ execution }) => execution.agent }),
  });
  const ensemble = {
    name: 'e',
    ...toDefinition(flow),
    ...(durability && { execution: { durability } }),
    ...(timeout !== undefined && { timeout }),
  };
  const create = () => {
    const storage = memoryStorage({ shared: true });
    return { connect: () => (later ? laterStorage(storage) : storage) };
  };
  return inWorld({ create, engine: embeddedEngine, createSubject: createOrchestrator as never }, async (world) => {
    const scripts = scriptsOn(world.clock);
    let died = 0;
    const find = async () => {
      const [found] = await world.reader.listExecutions({ limit: 1 });
      return found && world.reader.getExecution(found.id);
    };
    const isOver = async () => isFinal((await find())?.status ?? 'running');
    // Whoever runs it by then: some come before they are waited for, some while nobody runs it, and each comes twice.
    const tell = (number: number) => {
      world.later(number === 0 ? 1 : SIGNALLED_EVERY, async () => {
        const { id: executionId, status } = (await find()) ?? {};
        if (status && isFinal(status)) return;
        const signal = { id: `sig_${number}`, name: SIGNAL, payload: TOLD, createdAt: world.clock.now() };
        for (const _ of [1, 2]) {
          if (executionId) await world.reader.putSignal({ ...signal, executionId });
        }
        tell(number + 1);
      });
    };
    if (some(flow, ({ kind }) => kind === 'wait')) tell(0);
    let isAsked = cancelAt === undefined;
    for (const death of [...deaths, undefined]) {
      const fate = death && { method: 'commit' as const, ...death, then: 'dies' as const };
      const { subject, life } = await world.open({ ensembles: [ensemble], scripts, ...(fate && { fate }) });
      if (died === 0) void subject.start('e').catch(() => undefined);
      // One that dies meanwhile never answers.
      void subject.ready().catch(() => undefined);
      const cancel = async () => {
        const found = await find();
        if (!found) return;
        isAsked = true;
        void subject.executions.cancel(found.id).catch(() => undefined);
      };
      if (!isAsked) {
        await world.until('the cancel', () => life.struck || world.clock.monotonic() >= (cancelAt ?? 0), cancelAt);
        if (!life.struck) await cancel();
      }
      await world.until('its end, or a death', async () => life.struck || (await isOver()), MOST_MS);
      if (await isOver()) break;
      if (!(await find())) break;
      died += 1;
    }
    return { record: (await find()) ?? undefined, ledger: world.ledger, deaths: died };
  });
}
