/** What an orchestrator does at its time: its schedules, its deliveries, the rollouts of components and its jobs, with one timer. */

import type { Rollouts } from '../components/rollouts.ts';
import { type ConnectedDeliveries, connectDeliveries, type DeliveryParts } from '../deliveries/connect-deliveries.ts';
import { jobDocuments } from '../jobs/job-documents.ts';
import { createJobs, type Jobs, type StoredJob } from '../jobs/jobs.ts';
import { createJobTask } from '../jobs/work-on-jobs.ts';
import type { ConnectedOptions } from '../options/options.ts';
import type { Executions } from '../runs/executions.ts';
import { createSchedules, type Schedules } from '../schedules/schedule-control.ts';
import { type SchedulesParts, scheduleTasks } from '../schedules/schedules.ts';
import { createTimedWork, type TimedWork } from './timed-work.ts';

export interface TimedOrchestratorParts {
  readonly work: TimedWork;
  readonly deliveries: ConnectedDeliveries;
  readonly schedules: Schedules;
  readonly jobs: Jobs;
}

export function createTimedParts(
  options: ConnectedOptions,
  parts: SchedulesParts & DeliveryParts & { readonly rollouts: Rollouts; readonly executions: Executions },
): TimedOrchestratorParts {
  const { storage, clock, logger, ensembles, executionService, rollouts } = parts;
  const deliveries = connectDeliveries(options, parts);
  const ticks = scheduleTasks(options.schedules === false ? [] : ensembles.values(), parts);
  const { engine } = executionService;
  const stored = jobDocuments<StoredJob>(storage.documents, clock, 'job');
  const jobTask = createJobTask({ ...parts, stored, wake: () => wake() });
  const work = createTimedWork([...ticks, deliveries.task, rollouts.task, jobTask], { storage, clock, logger, engine });
  deliveries.attach(work);
  rollouts.attach(work);
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
  const jobs = createJobs({ ...parts, stored, wake });
  return { work, deliveries, schedules, jobs };
}
