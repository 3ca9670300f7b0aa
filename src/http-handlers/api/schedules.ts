/** `/schedules...`: the schedules of ensembles, their pause, and a run out of turn. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpCall } from '../call.ts';
import { locationOf } from '../location.ts';
import { byId, pageOfList } from '../page-of-list.ts';
import type { Reply } from '../reply.ts';
import { refuseContent } from './refuse-content.ts';

const ID = /^[A-Za-z][A-Za-z0-9_-]{0,63}\.[0-9a-f]{1,64}$/;

function readScheduleId({ params }: HttpCall): string {
  const { id = '' } = params;
  if (ID.test(id)) return id;
  throw new OrchestratorError('NOT_FOUND', 'there is no such schedule; GET /api/v1/schedules has their ids');
}

/** In the order of their ids. */
export async function listSchedules(call: HttpCall): Promise<Reply> {
  const schedules = [...(await call.parts.orchestrator.schedules.list())].sort((a, b) => byId(a.id, b.id));
  return pageOfList(call, 'schedules', schedules, { idOf: ({ id }) => id });
}

export async function pauseSchedule(call: HttpCall): Promise<Reply> {
  await refuseContent(call);
  return { status: 200, json: await call.parts.orchestrator.schedules.pause(readScheduleId(call)) };
}

export async function resumeSchedule(call: HttpCall): Promise<Reply> {
  await refuseContent(call);
  return { status: 200, json: await call.parts.orchestrator.schedules.resume(readScheduleId(call)) };
}

/** Replies 202: the execution runs after the reply. */
export async function runSchedule(call: HttpCall): Promise<Reply> {
  await refuseContent(call);
  const options = call.principal ? { principal: call.principal } : {};
  const { id } = await call.parts.orchestrator.schedules.run(readScheduleId(call), options);
  return { status: 202, json: { executionId: id, status: 'queued' }, headers: locationOf(call, `/executions/${id}`) };
}
