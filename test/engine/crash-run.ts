/** Runs a flow of the property tests with processes that die at given commits; after each, another process uses the same storage. */

import { hostTurn, type ManualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { History } from '../../src/conformance/engine-suite/world/history.ts';
import { openStorageWorld } from '../../src/conformance/engine-suite/world/storage-world.ts';
import type { SuiteScript } from '../../src/conformance/engine-suite/world/subject.ts';
import { inWorld } from '../../src/conformance/engine-suite/world/world.ts';
import { type Execution, isFinal } from '../../src/engine/execution/execution.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { laterStorage } from '../storage/later-storage.ts';
import { SIGNAL, SIGNALLED_EVERY, toDefinition } from './flow-definition.ts';
import { type Step, some } from './flow-model.ts';
import { PAYLOAD } from './reference-evaluator.ts';

/** Where a process dies: at its n-th commit, before or after the commit is applied. */
export interface Death {
  readonly at: number;
  readonly when: 'before' | 'after';
}

export interface CrashRun {
  /** Undefined when the first process died before the execution was accepted. */
  readonly record: Execution | undefined;
  readonly ledger: History;
  /** How many processes died. */
  readonly deaths: number;
}

export interface CrashOptions {
  /** The storage answers one turn later. */
  readonly later: boolean;
  /** How long the scripts take: no time, a turn, or up to 800 ms; one in seven ignores its signal. */
  readonly pace: 'at once' | 'a turn' | 'long';
  readonly durability?: 'step' | 'none';
  /** When the cancellation is requested, ms after the start. */
  readonly cancelAt?: number | undefined;
  readonly timeout?: number | undefined;
  /** How many times as long all waits take. From 100 on, each wait suspends its execution. Default 1. */
  readonly stretch?: number;
}

const MAX_MS = 60_000;

/** @throws Error when one of the ledger's invariants does not hold */
export function runWithCrashes(
  flow: readonly Step[],
  deaths: readonly Death[],
  options: CrashOptions,
): Promise<CrashRun> {
  const { later, pace, durability, cancelAt, timeout, stretch = 1 } = options;
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
    ...toDefinition(flow, stretch),
    ...(durability && { execution: { durability } }),
    ...(timeout !== undefined && { timeout }),
  };
  const create = () => {
    const storage = memoryStorage({ shared: true });
    return { connect: () => (later ? laterStorage(storage) : storage) };
  };
  const openWorld = () => openStorageWorld({ create, engine: embeddedEngine });
  return inWorld({ openWorld, createSubject: createOrchestrator as never }, async (world) => {
    const scripts = scriptsOn(world.clock);
    let died = 0;
    const find = async () => {
      const [found] = await world.reader.executions.list({ limit: 1 });
      return found && world.reader.executions.get(found.id);
    };
    const isOver = async () => isFinal((await find())?.status ?? 'running');
    // Some signals come before a wait begins, some while no process runs the execution, and each comes twice.
    const send = (number: number) => {
      world.later(number === 0 ? 1 : SIGNALLED_EVERY * stretch, async () => {
        const { id: executionId, status } = (await find()) ?? {};
        if (status && isFinal(status)) return;
        const signal = { id: `sig_${number}`, name: SIGNAL, payload: PAYLOAD, createdAt: world.clock.now() };
        for (const _ of [1, 2]) {
          if (executionId) await world.reader.signals.put({ ...signal, executionId });
        }
        send(number + 1);
      });
    };
    if (some(flow, ({ kind }) => kind === 'wait')) send(0);
    let isAsked = cancelAt === undefined;
    for (const death of [...deaths, undefined]) {
      const fault = death && { method: 'commit' as const, ...death, then: 'kill' as const };
      const { subject, control } = await world.open({ ensembles: [ensemble], scripts, ...(fault && { fault }) });
      if (died === 0) void subject.start('e').catch(() => undefined);
      // A process that dies meanwhile never answers.
      void subject.ready().catch(() => undefined);
      const cancel = async () => {
        const found = await find();
        if (!found) return;
        isAsked = true;
        void subject.executions.cancel(found.id).catch(() => undefined);
      };
      if (!isAsked) {
        await world.until(
          'the cancel',
          () => control.triggered || world.clock.monotonic() >= (cancelAt ?? 0),
          cancelAt,
        );
        if (!control.triggered) await cancel();
      }
      await world.until('its end, or a death', async () => control.triggered || (await isOver()), MAX_MS * stretch);
      if (await isOver()) break;
      if (!(await find())) break;
      died += 1;
    }
    return { record: (await find()) ?? undefined, ledger: world.history, deaths: died };
  });
}
