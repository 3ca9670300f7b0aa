/** What the tests of schedules share: one process after another, or several at once, on one store and one clock. */

import { hostTurn, type ManualClock, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import type { ScheduleTrigger } from '../../src/engine/model/ensemble.ts';
import type { Execution } from '../../src/engine/model/execution.ts';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { memoryStorage, type Orchestrator } from '../../src/index.ts';
import type { OrchestratorOptions } from '../../src/options.ts';
import { createOrchestrator } from '../../src/orchestrator.ts';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Unix ms at which every world begins. */
export const T0 = Date.UTC(2026, 0, 1);

export interface World {
  readonly clock: ManualClock;
  readonly storage: Storage;
  /** Whom the script was run for, in order. */
  readonly ran: { readonly process: string; readonly at: number; readonly scheduledAt: number }[];
  readonly logged: { readonly level: string; readonly message: string }[];
  /** What a run waits for before it is over; undefined for nothing. */
  hold: Promise<void> | undefined;
  /** A process on the store, that serves the schedules given. */
  open(
    process: string,
    triggers: readonly Partial<ScheduleTrigger>[],
    more?: OrchestratorOptions,
  ): Promise<Orchestrator>;
}

/** A world on a store of its own: by default one in memory that several processes share. */
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

/** Lets everything happen that needs no time to pass. */
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

/** The instants of ticks, in ms behind the world's beginning. */
export function ticksOf(executions: readonly Execution<unknown>[]): number[] {
  return executions.map(({ trigger }) => (trigger.scheduledAt as number) - T0);
}
