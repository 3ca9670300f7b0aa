/** `ensemble audit`: who changed which executions. */

import type { AuditAction, AuditEntry } from '../../engine/access/audit-entry.ts';
import { readPages } from '../../engine/base/read-pages.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { readLimit, readTime } from './execution-command.ts';

export interface AuditCommandOptions extends PlaceOptions {
  readonly since?: string;
  readonly until?: string;
  readonly action?: string;
  readonly execution?: string;
  readonly by?: string;
  readonly limit: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

const COLUMNS: readonly Column[] = [
  { title: 'AT' },
  { title: 'ACTION' },
  { title: 'TARGET', shrinkTo: 12 },
  { title: 'BY', shrinkTo: 12 },
  { title: 'FROM' },
  { title: 'RESULT', shrinkTo: 12 },
  { title: 'REASON', shrinkTo: 12 },
];

export async function listAudit(options: AuditCommandOptions, output: Output, host: ServiceHost): Promise<number> {
  const now = Date.now();
  const wanted = options.all ? Number.POSITIVE_INFINITY : readLimit(options.limit);
  const filter = {
    since: readTime(options.since, 'since', now),
    until: readTime(options.until, 'until', now),
    action: options.action as AuditAction | undefined,
    executionId: options.execution,
    by: options.by,
  };
  const given = withoutUndefined(filter);
  const { items: entries, nextCursor } = await withService(options, host, ({ audit }) =>
    readPages('entries', (page) => audit.list({ ...given, ...page }), wanted),
  );
  if (options.json) for (const entry of entries) output.print(`${JSON.stringify(entry)}\n`);
  else if (entries.length === 0) output.say('no entries\n');
  else output.print(formatTable(COLUMNS, entries.map(toCells), terminalWidth(host.process)));
  if (nextCursor !== undefined) output.say('there are more; show them with --limit or --all\n');
  return 0;
}

function toCells({ at, action, target, by, from, reason = '', after, error }: AuditEntry): string[] {
  const { executionId, ensemble, jobId, all } = target;
  const what = executionId ?? jobId ?? (all === true ? 'everything' : (ensemble ?? JSON.stringify(target)));
  const { executionId: next, status = '' } = after ?? {};
  const isOther = next !== undefined && next !== executionId;
  const result =
    error?.code ?? (isOther ? `${status} ${next}`.trim() : after ? status || JSON.stringify(after) : 'unknown');
  return [
    new Date(at).toISOString(),
    action,
    String(what),
    by?.name ?? '',
    from.address ?? from.type,
    String(result),
    reason,
  ];
}
