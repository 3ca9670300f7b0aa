/** `/deliveries...` and `/receivers...`: what the notifications of executions send, and sending it again. */

import * as z from 'zod/mini';
import { once } from '../../engine/base/once.ts';
import { readShape } from '../../engine/base/read-shape.ts';
import type { DeliveryStatus } from '../../engine/model/delivery.ts';
import { instantField, readInstantField, textField } from '../body-fields.ts';
import type { HttpCall } from '../call.ts';
import { pageOfList } from '../page-of-list.ts';
import { known, readExecutionId, readId } from '../read-id.ts';
import { readJson } from '../read-json.ts';
import { readInstantParameter, readLimit, readQuery } from '../read-query.ts';
import type { Reply } from '../reply.ts';
import { refuseContent } from './refuse-content.ts';

export const DELIVERY_FILTERS = [
  'ensemble',
  'execution',
  'status',
  'url',
  'since',
  'until',
  'limit',
  'cursor',
] as const;

export async function listDeliveries({ parts, request }: HttpCall): Promise<Reply> {
  const { ensemble, url, cursor, ...query } = readQuery(request.query, DELIVERY_FILTERS);
  const filter = {
    ...{ ensemble, url, cursor, execution: readExecutionId(query.execution, 'execution') },
    // `list()` refuses an unknown status.
    status: query.status as DeliveryStatus | undefined,
    since: readInstantParameter(query.since, 'since'),
    until: readInstantParameter(query.until, 'until'),
    limit: readLimit(query.limit),
  };
  return { status: 200, json: await parts.orchestrator.deliveries.list(filter) };
}

export async function getDelivery(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'delivery');
  return { status: 200, json: await known(call.parts.orchestrator.deliveries.get(id), 'delivery') };
}

/** Replies 202: the attempt is made after the reply. */
export async function redeliver(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'delivery');
  await refuseContent(call);
  return { status: 202, json: await known(call.parts.orchestrator.deliveries.redeliver(id), 'delivery') };
}

export const replayBody = once(() =>
  z.strictObject({
    ensemble: textField(),
    execution: textField(),
    status: z.optional(
      z.enum(['succeeded', 'failed', 'paused'], { error: 'must be `succeeded`, `failed` or `paused`' }),
    ),
    url: textField(),
    since: instantField(),
    until: instantField(),
  }),
);

/** Replies 202 with the job. */
export async function replayDeliveries(call: HttpCall): Promise<Reply> {
  const { since, until, ...filter } = readShape(replayBody(), await readJson(call), 'the body is not valid');
  const job = await call.parts.orchestrator.deliveries.replay({
    ...filter,
    since: readInstantField(since, 'since'),
    until: readInstantField(until, 'until'),
  });
  return { status: 202, json: job };
}

export async function listReplays(call: HttpCall): Promise<Reply> {
  return pageOfList(call, 'replays', await call.parts.orchestrator.deliveries.replays(), { idOf: ({ id }) => id });
}

export async function listReceivers(call: HttpCall): Promise<Reply> {
  const receivers = await call.parts.orchestrator.deliveries.receivers();
  return pageOfList(call, 'receivers', receivers, { idOf: ({ receiver }) => receiver });
}

export async function resumeReceiver(call: HttpCall): Promise<Reply> {
  const id = readId(call, 'receiver');
  await refuseContent(call);
  return { status: 200, json: await known(call.parts.orchestrator.deliveries.resume(id), 'receiver') };
}
