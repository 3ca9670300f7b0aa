/** The schedules of the ensembles of an orchestrator, as tasks of its timer. */

import { METRICS } from '../../engine/events/measurement.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import { newExecution } from '../runs/starts/new-execution.ts';
import { readInput } from '../runs/starts/read-input.ts';
import { traceStart } from '../telemetry.ts';
import type { SteadyClock } from '../timed/steady-clock.ts';
import type { TimedTask } from '../timed/timed-work.ts';
import { createScheduleDriver, type QueuedStart } from './drive-schedule.ts';

export interface SchedulesDependencies {
  readonly storage: Storage;
  readonly clock: SteadyClock;
  readonly logger: Logger;
  readonly events: Pick<Emitter, 'measure'>;
  readonly executionService: Pick<
    ExecutionService,
    'toLoadedDefinition' | 'tracing' | 'engine' | 'records' | 'start' | 'requests'
  >;
}

export function scheduleTasks(
  ensembles: Iterable<LoadedEnsemble>,
  dependencies: SchedulesDependencies,
): readonly TimedTask[] {
  const { storage, clock, logger, events, executionService } = dependencies;
  const start = async (ensemble: LoadedEnsemble, { id, seed, trigger, input: given }: QueuedStart) => {
    const input = await readInput(ensemble, given);
    // The timeout counts from the start of the execution, not from the tick.
    const { name } = ensemble.compiled;
    const { tracing } = executionService;
    const traced = traceStart(tracing, { executionId: id, ensemble: name, trigger, isDetached: true });
    const execution = newExecution(ensemble.compiled, { id, seed, trigger: traced, input, createdAt: clock.now() });
    const { scheduledAt = execution.createdAt } = trigger;
    events.measure?.(METRICS.scheduleLag, [name], Math.max(0, execution.createdAt - scheduledAt) / 1000);
    await executionService.engine.begin(execution, executionService.toLoadedDefinition(ensemble), {
      mayQueue: true,
      repeatable: true,
    });
  };
  return [...ensembles].flatMap((ensemble) =>
    ensemble.compiled.schedules.map((schedule): TimedTask => {
      const { schedules } = storage;
      const { records } = executionService;
      const driver = createScheduleDriver({ schedules, records, clock: clock.wall, logger, ensemble, schedule, start });
      return {
        usesWall: true,
        advance: driver.advance,
        logFailure(err, againInMs) {
          const about = { err, schedule: schedule.name, againInMs };
          logger.warn(about, 'a schedule could not be served; it is tried again, and no tick is lost');
        },
      };
    }),
  );
}
