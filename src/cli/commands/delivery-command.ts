/** `ensemble delivery`: lists, shows and sends again what notifications send, and resumes paused receivers. */

import { readPages } from '../../engine/base/read-pages.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import type { DeliveryStatus } from '../../engine/delivery/delivery.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { Service, ServiceHost } from '../service/service.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { cutText, formatDuration, oneLine, printJson } from '../terminal/text.ts';
import { formatDistance, formatInstant } from '../terminal/times.ts';
import { readLimit, readTime } from './execution-command.ts';

export interface DeliveryFilterOptions extends PlaceOptions {
  readonly ensemble?: string;
  readonly execution?: string;
  readonly status?: string;
  readonly receiver?: string;
  readonly since?: string;
  readonly until?: string;
  readonly json?: boolean;
}

export interface DeliveryListOptions extends DeliveryFilterOptions {
  readonly limit: string;
}

export interface DeliveryOptions extends PlaceOptions {
  readonly json?: boolean;
}

type Delivery = Awaited<ReturnType<Service['deliveries']['get']>>;

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'EVENT' },
  { title: 'BY' },
  { title: 'ENSEMBLE', shrinkTo: 8 },
  { title: 'STATUS' },
  { title: 'CREATED' },
  { title: 'ATTEMPTS' },
  { title: 'LAST', shrinkTo: 12 },
];

export async function listDeliveries(options: DeliveryListOptions, output: Output, host: ServiceHost): Promise<number> {
  const wanted = readLimit(options.limit);
  const filter = readFilter(options);
  const { items: deliveries, nextCursor } = await withService(options, host, (service) =>
    readPages('deliveries', (page) => service.deliveries.list({ ...filter, ...page }), wanted),
  );
  if (options.json) {
    output.print(`${printJson({ deliveries, nextCursor })}\n`);
    return 0;
  }
  if (deliveries.length === 0) {
    output.say('no deliveries\n');
    return 0;
  }
  const now = Date.now();
  const rows = deliveries.map(({ id, event, type, ensemble, status, createdAt, attempts }) => [
    ...[id, event, type, ensemble, status, formatDistance(createdAt, now)],
    ...[String(attempts.at(-1)?.attempt ?? 0), describeAttempt(attempts.at(-1))],
  ]);
  output.print(formatTable(COLUMNS, rows, terminalWidth(host.process)));
  if (nextCursor !== undefined) output.say(`there are more; show them with --limit ${wanted * 5}\n`);
  return 0;
}

export async function showDelivery(
  id: string,
  options: DeliveryOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const delivery = await withService(options, host, (service) => service.deliveries.get(id));
  if (options.json) {
    output.print(`${printJson(delivery)}\n`);
    return 0;
  }
  const { event, ensemble, executionId, status, receiver, createdAt, nextAttemptAt, attempts, body } = delivery;
  const lines = [
    `${id}  ${status}`,
    `event      ${event} of ${ensemble}, ${executionId}`,
    `created    ${formatInstant(createdAt)}`,
    `receiver   ${oneLine(receiver)}`,
    ...(nextAttemptAt === undefined ? [] : [`next       ${formatInstant(nextAttemptAt)}`]),
    ...attempts.map(
      (attempt) =>
        `attempt ${attempt.attempt}  ${formatInstant(attempt.at)}  ${formatDuration(attempt.duration)}  ${describeAttempt(attempt)}`,
    ),
    `body       ${cutText(oneLine(body), 2000)}`,
  ];
  output.print(`${lines.join('\n')}\n`);
  return 0;
}

function describeAttempt(attempt: Delivery['attempts'][0] | undefined): string {
  if (!attempt) return '';
  const { status, error, excerpt } = attempt;
  const parts = [status === undefined ? undefined : String(status), error, excerpt].filter(
    (part) => part !== undefined,
  );
  return oneLine(parts.length === 0 ? 'sent' : parts.join('  '));
}

/** Sends one delivery again, or all that match a filter. */
export async function redeliver(
  id: string | undefined,
  options: DeliveryFilterOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const answer = await withService(
    options,
    host,
    async ({ deliveries }): Promise<unknown> =>
      id === undefined ? deliveries.replay(readFilter(options)) : deliveries.redeliver(id),
  );
  if (options.json) output.print(`${printJson(answer)}\n`);
  else if (id === undefined) output.say('what matches is sent again, by a process that serves this store\n');
  else output.say('it is sent again, by a process that serves this store\n');
  return 0;
}

export async function listReceivers(options: DeliveryOptions, output: Output, host: ServiceHost): Promise<number> {
  const receivers = await withService(options, host, (service) => service.deliveries.receivers());
  if (options.json) output.print(`${printJson({ receivers })}\n`);
  else if (receivers.length === 0) output.say('no receiver fails\n');
  else {
    const now = Date.now();
    const columns = [
      { title: 'RECEIVER' },
      { title: 'ADDRESS', shrinkTo: 12 },
      { title: 'FAILING SINCE' },
      { title: 'PAUSED' },
      { title: 'REASON' },
    ];
    const rows = receivers.map(({ receiver, address, failingSince, pausedAt, reason = '' }) => [
      ...[receiver, oneLine(address), formatDistance(failingSince, now)],
      ...[pausedAt === undefined ? '' : formatDistance(pausedAt, now), reason],
    ]);
    output.print(formatTable(columns, rows, terminalWidth(host.process)));
  }
  return 0;
}

export async function resumeReceiver(
  receiver: string,
  options: DeliveryOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const answer = await withService(options, host, (service) => service.deliveries.resume(receiver));
  if (options.json) output.print(`${printJson(answer)}\n`);
  else output.say(`the receiver is resumed; deliveries that waited for it: ${answer.deliveries}\n`);
  return 0;
}

function readFilter({ ensemble, execution, status, receiver: url, since, until }: DeliveryFilterOptions) {
  const now = Date.now();
  const filter = {
    ...{ ensemble, execution, url, status: status as DeliveryStatus | undefined },
    ...{ since: readTime(since, 'since', now), until: readTime(until, 'until', now) },
  };
  return withoutUndefined(filter);
}
