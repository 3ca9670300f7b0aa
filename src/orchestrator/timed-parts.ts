/** What an orchestrator does at its time: its schedules, its deliveries and the rollouts of components, with one timer. */

import { connectDeliveries, type ConnectedDeliveries, type DeliveryParts } from './deliveries/connect-deliveries.ts';
import type { Rollouts } from './components/rollouts.ts';
import type { OrchestratorOptions } from './options.ts';
import { scheduleTasks, type SchedulesParts } from './schedules/schedules.ts';
import { createSchedules, type Schedules } from './schedules/schedule-control.ts';
import { createTimedWork, type TimedWork } from './timed-work.ts';

export function createTimedParts(
  options: OrchestratorOptions,
  parts: SchedulesParts & DeliveryParts & { readonly rollouts: Rollouts },
): { readonly work: TimedWork; readonly deliveries: ConnectedDeliveries; readonly schedules: Schedules } {
  const { storage, clock, logger, ensembles, executionService, rollouts } = parts;
  const deliveries = connectDeliveries(options, parts);
  const ticks = scheduleTasks(options.schedules === false ? [] : ensembles.values(), parts);
  const { engine } = executionService;
  const work = createTimedWork([...ticks, deliveries.task, rollouts.task], { storage, clock, logger, engine });
  deliveries.attach(work);
  rollouts.attach(work);
  const schedules = createSchedules({
    ...{ ensembles: ensembles.values(), schedules: storage.schedules, clock },
    executionService() {
      work.begin(false);
      return executionService;
    },
  });
  return { work, deliveries, schedules };
}
