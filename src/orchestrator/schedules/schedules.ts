/** The schedules of the ensembles of an orchestrator, as tasks of its timer. */

import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import { newExecution } from '../runs/new-execution.ts';
import { readInput } from '../runs/read-input.ts';
import type { TimedTask } from '../timed-work.ts';
import { createScheduleDriver, type QueuedStart } from './drive-schedule.ts';

export interface SchedulesParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly executionService: Pick<
    ExecutionService,
    'toLoadedDefinition' | 'traceStart' | 'engine' | 'records' | 'start'
  >;
}

export function scheduleTasks(ensembles: Iterable<LoadedEnsemble>, parts: SchedulesParts): readonly TimedTask[] {
  const { storage, clock, logger, executionService } = parts;
  const start = async (ensemble: LoadedEnsemble, { id, seed, trigger, input: given }: QueuedStart) => {
    const input = await readInput(ensemble, given);
    // The timeout counts from the start of the execution, not from the tick.
    const { name } = ensemble.compiled;
    const traced = executionService.traceStart({ executionId: id, ensemble: name, trigger, isDetached: true });
    const execution = newExecution(ensemble.compiled, { id, seed, trigger: traced, input, createdAt: clock.now() });
    await executionService.engine.begin(execution, executionService.toLoadedDefinition(ensemble), {
      mayQueue: true,
      repeatable: true,
    });
  };
  return [...ensembles].flatMap((ensemble) =>
    ensemble.compiled.schedules.map((schedule): TimedTask => {
      const { schedules } = storage;
      const { records } = executionService;
      const driver = createScheduleDriver({ schedules, records, clock, logger, ensemble, schedule, start });
      return {
        advance: driver.advance,
        logFailure(err, againInMs) {
          const about = { err, schedule: schedule.name, againInMs };
          logger.warn(about, 'a schedule could not be served; it is tried again, and no tick is lost');
        },
      };
    }),
  );
}
