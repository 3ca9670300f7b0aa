/** The shared parts of the tests of schedules: one or several processes on one storage and one clock. */

import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import type { ScheduleTrigger } from '../../src/engine/ensemble/ensemble.ts';
import type { Execution } from '../../src/engine/execution/execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { memoryStorage, type Orchestrator } from '../../src/index.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Unix ms at which each world begins. */
export const T0 = Date.UTC(2026, 0, 1);

export interface World {
  readonly clock: ManualClock;
  readonly storage: Storage;
  /** The runs of the script, in order. */
  readonly ran: { readonly process: string; readonly at: number; readonly scheduledAt: number }[];
  readonly logged: { readonly level: string; readonly message: string }[];
  /** The promise that the script waits for before its end. Undefined: none. */
  hold: Promise<void> | undefined;
  /** Opens a process on the storage that serves the given schedules. */
  open(
    process: string,
    triggers: readonly Partial<ScheduleTrigger>[],
    more?: OrchestratorOptions,
  ): Promise<Orchestrator>;
}

/** A world with its own storage. Default: a shared storage in memory. */
export function createWorld(storage: Storage = memoryStorage({ shared: true })): World {
  const clock = manualClock({ now: T0 });
  const ran: World['ran'] = [];
  const logged: World['logged'] = [];
  const log =
    (level: string) =>
    (...args: readonly unknown[]) => {
      logged.push({ level, message: args.filter((arg) => typeof arg === 'string').join(' ') });
    };
  const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
  const world: World = {
    ...{ clock, storage, ran, logged, hold: undefined },
    async open(process, triggers, more = {}) {
      const orchestrator = createOrchestrator({
        ...{ clock, storage, logger },
        ensembles: [
          {
            name: 'report',
            trigger: triggers.map((trigger) => ({ type: 'schedule', cron: '*/15 * * * *', ...trigger })),
            flow: [{ agent: 'work', operation: 'code', config: { script: 'work', at: '${trigger.scheduledAt}' } }],
            outputs: { at: '${trigger.scheduledAt}' },
          },
        ],
        scripts: {
          work: async ({ config }) => {
            ran.push({ process, at: clock.now(), scheduledAt: (config as unknown as { at: number }).at });
            await world.hold;
          },
        },
        ...more,
      }) as Orchestrator;
      await orchestrator.ready();
      return orchestrator;
    },
  };
  return world;
}

/** Runs everything that needs no time to pass. */
export async function settle(turns = 20): Promise<void> {
  for (let i = 0; i < turns; i++) await hostTurn();
}

/** All executions, the oldest first. */
export async function allExecutions(orchestrator: Orchestrator): Promise<readonly Execution<unknown>[]> {
  const found: Execution<unknown>[] = [];
  let cursor: string | undefined;
  do {
    const page = await orchestrator.executions.list({ limit: 250, ...(cursor !== undefined && { cursor }) });
    found.push(...page.executions);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found.reverse();
}

/** The instants of ticks, in ms after the beginning of the world. */
export function ticksOf(executions: readonly Execution<unknown>[]): number[] {
  return executions.map(({ trigger }) => (trigger.scheduledAt as number) - T0);
}
