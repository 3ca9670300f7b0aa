/** `/deliveries...` and `/receivers...`: what the notifications of executions send, and sending it again. */

import * as z from 'zod/mini';
import { once } from '../../engine/base/once.ts';
import { DELIVERY_STATUSES } from '../../engine/delivery/delivery.ts';
import { pageOfList } from '../reply/page-of-list.ts';
import { LIST_BYTES, VALUE_BYTES } from '../reply/response-sizes.ts';
import { instantField, readInstantField, textField } from '../request/body-fields.ts';
import { executionId, instant, page, text, word } from '../request/read-query.ts';
import { call } from './define-call.ts';

const replayBody = once(() =>
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

export const deliveryCalls = [
  call('GET /deliveries', {
    id: 'listDeliveries',
    summary: 'Lists deliveries, newest first',
    scope: 'read:executions',
    query: {
      ensemble: text,
      execution: executionId,
      status: word(DELIVERY_STATUSES),
      url: text,
      since: instant,
      until: instant,
      ...page,
    },
    maxBytes: LIST_BYTES,
    replies: { 200: 'Deliveries' },
    run: ({ orchestrator, query }) => orchestrator.deliveries.list(query),
  }),
  call('GET /deliveries/:id', {
    id: 'getDelivery',
    summary: 'A delivery with its body',
    scope: 'read:executions',
    of: 'delivery',
    maxBytes: VALUE_BYTES,
    replies: { 200: 'DeliveryWithBody' },
    run: ({ orchestrator, id }) => orchestrator.deliveries.get(id),
  }),
  call('POST /deliveries/:id/redeliver', {
    id: 'redeliver',
    summary: 'Sends a delivery again',
    scope: 'execute:ensembles',
    of: 'delivery',
    replies: { 202: 'Delivery' },
    run: ({ orchestrator, id }) => orchestrator.deliveries.redeliver(id),
  }),
  call('GET /replays', {
    id: 'listReplays',
    summary: 'Lists the jobs of replays',
    scope: 'read:executions',
    query: page,
    replies: { 200: 'Replays' },
    run: async (given) =>
      pageOfList(given, 'replays', await given.orchestrator.deliveries.replays(), { idOf: ({ id }) => id }),
  }),
  call('POST /replays', {
    id: 'replayDeliveries',
    summary: 'Sends many deliveries again',
    scope: 'execute:ensembles',
    body: replayBody,
    replies: { 202: 'Replay' },
    run: ({ orchestrator, body: { since, until, ...filter } }) =>
      orchestrator.deliveries.replay({
        ...filter,
        since: readInstantField(since, 'since'),
        until: readInstantField(until, 'until'),
      }),
  }),
  call('GET /receivers', {
    id: 'listReceivers',
    summary: 'Lists receivers that fail or are paused',
    scope: 'read:executions',
    query: page,
    replies: { 200: 'Receivers' },
    run: async (given) =>
      pageOfList(given, 'receivers', await given.orchestrator.deliveries.receivers(), {
        idOf: ({ receiver }) => receiver,
      }),
  }),
  call('POST /receivers/:id/resume', {
    id: 'resumeReceiver',
    summary: 'Resumes a paused receiver',
    scope: 'execute:ensembles',
    of: 'receiver',
    replies: { 200: 'Resumed' },
    run: ({ orchestrator, id }) => orchestrator.deliveries.resume(id),
  }),
] as const;
