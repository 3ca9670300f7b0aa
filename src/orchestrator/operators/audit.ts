/**
 * The audit log: who changed what, when, from where and why. Each entry is a document, apart from the executions, and their retention does
 * not touch it.
 */

import { AUDIT_ACTIONS, type AuditAction, type AuditEntry } from '../../engine/access/audit-entry.ts';
import { invalid } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import { type IdSource, normalizeExecutionId } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type { DocumentStore, StoredDocument } from '../../engine/storage/storage.port.ts';
import { checkSaid, type OperatorOptions, saidBy } from './operator-options.ts';

export interface AuditFilter {
  /** Unix ms, inclusive. */
  readonly since?: number | undefined;
  /** Unix ms, exclusive. */
  readonly until?: number | undefined;
  readonly action?: AuditAction | undefined;
  readonly executionId?: string | undefined;
  /** The name of a principal, or the id of its token. */
  readonly by?: string | undefined;
}

export interface Audit {
  /** Newest first. @throws INVALID_REQUEST, INVALID_CURSOR */
  list(
    filter?: AuditFilter & { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  ): Promise<{ readonly entries: readonly AuditEntry[]; readonly nextCursor?: string }>;
  /** All entries, newest first. @throws INVALID_REQUEST, at the first read */
  all(filter?: AuditFilter): AsyncIterableIterator<AuditEntry>;
}

/** What is written before a change. */
export type AuditedChange = Pick<AuditEntry, 'action' | 'target' | 'options' | 'before'>;

/** Writes an entry before a change, and what became of it after that. */
export type RecordChange = <T>(
  describe: () => AuditedChange,
  by: OperatorOptions,
  change: () => Promise<T>,
  after: (result: T) => JsonObject,
) => Promise<T>;

const KIND = 'audit';
const KEPT_MS = 400 * 86_400_000;
const PAGE = 250;
/** How many entries one call of `list` reads at most. */
const MAX_READ = 10_000;
/** Names sort by their bytes, and the newest entry is the first. */
const LAST_INSTANT = 9_999_999_999_999;
const FILTERS = ['since', 'until', 'action', 'executionId', 'by'] as const;

export interface AuditDependencies {
  readonly storage: { readonly documents: DocumentStore };
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
}

export function createAudit({ storage, clock, ids, logger }: AuditDependencies): {
  audit: Audit;
  record: RecordChange;
} {
  const { documents } = storage;
  const record: RecordChange = async (describe, options, change, after) => {
    checkSaid(options);
    const about = describe();
    const { principal, source } = options;
    const { by: name, ...why } = saidBy(options);
    const at = clock.now();
    const id = ids.id('aud_', at);
    const entry: AuditEntry = {
      ...{ id, at, ...about },
      ...(name !== undefined && { by: { name, ...(principal && { tokenId: principal.tokenId }) } }),
      from: withoutUndefined({ type: 'call', ...source }) as AuditEntry['from'],
      ...why,
    };
    const write = async (expectedVersion: number, value: AuditEntry) => {
      const document = {
        value: value as unknown as JsonObject,
        tag: '',
        updatedAt: clock.now(),
        expiresAt: at + KEPT_MS,
      };
      await documents.write(KIND, nameOf(at, id), { expectedVersion, document, now: clock.now() });
    };
    const finish = (more: Pick<AuditEntry, 'after' | 'error'>) =>
      write(1, { ...entry, ...more }).catch((err: unknown) => {
        logger.warn({ err, auditId: id }, 'an entry of the audit log does not say what became of its change');
      });
    await write(0, entry);
    try {
      const result = await change();
      await finish({ after: after(result) });
      return result;
    } catch (thrown) {
      const isWrong = thrown instanceof TypeError;
      const { code = isWrong ? 'INVALID_REQUEST' : 'INTERNAL', message } = thrown as {
        code?: unknown;
        message?: unknown;
      };
      await finish({ error: { code: String(code), message: String(message) } });
      throw thrown;
    }
  };

  async function* entriesAfter(after: string, { until, since = 0 }: AuditFilter, most: number): AsyncGenerator<Found> {
    let last = until === undefined ? after : later(after, nameOf(until - 1, ''));
    for (let read = 0; read < most; ) {
      const page = await documents.list(KIND, { limit: PAGE, now: clock.now(), ...(last !== '' && { after: last }) });
      for (const document of page) {
        const entry = entryOf(document);
        if (entry.at < since) return;
        yield { name: document.name, entry };
      }
      read += page.length;
      if (page.length < PAGE) return;
      last = (page.at(-1) as StoredDocument).name;
    }
    yield { name: last, entry: undefined };
  }

  const audit: Audit = {
    async list(given = {}) {
      refuseUnknownKeys(given, [...FILTERS, 'limit', 'cursor'], 'audit.list');
      const { limit, cursor, ...filter } = given;
      const wanted = readFilter(filter);
      const size = pageLimit(limit);
      const about = `audit ${JSON.stringify(wanted)}`;
      const after = cursor === undefined ? '' : decodeCursor(cursor, about, /^\d{13} aud_/);
      const entries: AuditEntry[] = [];
      let last = '';
      for await (const { name, entry } of entriesAfter(after, wanted, MAX_READ)) {
        // Many were read in vain: the next page reads further.
        if (!entry) return { entries, nextCursor: encodeCursor(name, about) };
        if (!isWanted(entry, wanted)) continue;
        if (entries.length === size) return { entries, nextCursor: encodeCursor(last, about) };
        entries.push(entry);
        last = name;
      }
      return { entries };
    },
    async *all(given = {}) {
      refuseUnknownKeys(given, FILTERS, 'audit.all');
      const wanted = readFilter(given);
      for await (const { entry } of entriesAfter('', wanted, Number.POSITIVE_INFINITY))
        if (entry && isWanted(entry, wanted)) yield entry;
    },
  };
  return { audit, record };
}

interface Found {
  readonly name: string;
  /** Absent: there may be more, which were not read. */
  readonly entry: AuditEntry | undefined;
}

function nameOf(at: number, id: string): string {
  return `${String(LAST_INSTANT - at).padStart(13, '0')} ${id}`;
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}

function entryOf({ value }: StoredDocument): AuditEntry {
  return value as unknown as AuditEntry;
}

function isWanted({ action, target, by }: AuditEntry, filter: AuditFilter): boolean {
  if (filter.action !== undefined && action !== filter.action) return false;
  if (filter.executionId !== undefined && target.executionId !== filter.executionId) return false;
  return filter.by === undefined || by?.name === filter.by || by?.tokenId === filter.by;
}

/** @throws INVALID_REQUEST */
function readFilter(filter: AuditFilter): AuditFilter {
  const { since, until, action, executionId, by } = filter;
  for (const [name, instant] of [['since', since] as const, ['until', until] as const])
    if (instant !== undefined && !(Number.isSafeInteger(instant) && instant >= 0 && instant <= LAST_INSTANT))
      throw invalid(`\`${name}\` must be an instant: Unix ms`);
  if (action !== undefined && !AUDIT_ACTIONS.includes(action))
    throw invalid(`\`action\` must be one of ${AUDIT_ACTIONS.join(', ')}`);
  if (by !== undefined && typeof by !== 'string')
    throw invalid('`by` must be the name of a principal, or the id of its token');
  const id = executionId === undefined ? undefined : normalizeExecutionId(executionId);
  return withoutUndefined({ since, until, action, executionId: id, by }) as AuditFilter;
}
