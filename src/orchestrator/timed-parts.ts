/** What an orchestrator does at its time: its schedules and its deliveries, with one timer. */

import { connectDeliveries, type ConnectedDeliveries, type DeliveryParts } from './deliveries/connect-deliveries.ts';
import type { OrchestratorOptions } from './options.ts';
import { scheduleTasks, type SchedulesParts } from './schedules/schedules.ts';
import { createTimedWork, type TimedWork } from './timed-work.ts';

export function createTimedParts(
  options: OrchestratorOptions,
  parts: SchedulesParts & DeliveryParts,
): { readonly work: TimedWork; readonly deliveries: ConnectedDeliveries } {
  const { storage, clock, logger, ensembles, executionService } = parts;
  const deliveries = connectDeliveries(options, parts);
  const schedules = scheduleTasks(options.schedules === false ? [] : ensembles.values(), parts);
  const { engine } = executionService;
  const work = createTimedWork([...schedules, deliveries.task], { storage, clock, logger, engine });
  deliveries.attach(work);
  return { work, deliveries };
}
