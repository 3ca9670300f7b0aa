/** What an orchestrator does at its time: its schedules, its deliveries, rollouts, shadows and jobs, with one timer. */

import type { Mover } from '../change/move.ts';
import type { Rollouts } from '../components/rollouts.ts';
import {
  type ConnectedDeliveries,
  connectDeliveries,
  type DeliveryDependencies,
} from '../deliveries/connect-deliveries.ts';
import { jobDocuments } from '../operators/job-documents.ts';
import { createJobs, type Jobs, type StoredJob } from '../operators/jobs.ts';
import { createJobTask } from '../operators/work-on-jobs.ts';
import type { ConnectedOptions } from '../options/options.ts';
import type { Executions } from '../runs/executions.ts';
import { createSchedules, type Schedules } from '../schedules/schedule-control.ts';
import { type SchedulesDependencies, scheduleTasks } from '../schedules/schedules.ts';
import { createTimedWork, type TimedWork } from './timed-work.ts';

export interface TimedOrchestratorDependencies {
  readonly work: TimedWork;
  readonly deliveries: ConnectedDeliveries;
  readonly schedules: Schedules;
  readonly jobs: Jobs;
}

export function createTimedParts(
  options: ConnectedOptions,
  dependencies: SchedulesDependencies &
    DeliveryDependencies & {
      /** Rollouts and shadows. */
      readonly more: readonly Pick<Rollouts, 'task' | 'attach'>[];
      readonly executions: Executions;
      readonly mover: Pick<Mover, 'prepare'>;
    },
): TimedOrchestratorDependencies {
  const { storage, clock, logger, ensembles, executionService } = dependencies;
  const more = [...dependencies.more, executionService.requests];
  const deliveries = connectDeliveries(options, dependencies);
  const ticks = scheduleTasks(options.schedules === false ? [] : ensembles.values(), dependencies);
  const { engine } = executionService;
  const stored = jobDocuments<StoredJob>(storage.documents, clock, 'job');
  const jobTask = createJobTask({ ...dependencies, stored, wake: () => wake() });
  const tasks = [...ticks, deliveries.task, ...more.map(({ task }) => task), jobTask];
  const work = createTimedWork(tasks, { storage, clock, logger, engine });
  for (const one of [deliveries, ...more]) one.attach(work);
  const schedules = createSchedules({
    ...{ ensembles: ensembles.values(), schedules: storage.schedules, clock: clock.wall },
    executionService() {
      work.begin(false);
      return executionService;
    },
  });
  const wake = () => {
    work.begin(false);
    work.wake(jobTask, clock.now());
  };
  const jobs = createJobs({ ...dependencies, stored, wake });
  return { work, deliveries, schedules, jobs };
}
