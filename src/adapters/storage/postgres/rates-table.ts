/** The logs of requests in sliding windows. Requests that arrive together are counted in one transaction. */

import {
  logEndsAt,
  logKeyOf,
  newLog,
  readLogText,
  type RequestLog,
  takeFromLogs,
  toLogText,
  usesOf,
} from '../../../engine/model/request-log.ts';
import type { RateAnswer, LimitStore, RateWindow } from '../../../engine/ports/storage.ts';
import { countTogether, type RateCall, windowsByName } from '../count-together.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';
import { toTextColumn } from './columns.ts';
import { type SqlClient, type SqlResult, type SqlTransaction, statement, toArray } from './driver.ts';
import { codeOf } from './failure.ts';
import type { Names } from './names.ts';

/** How many logs, whose requests have left their window, a call deletes in passing. */
const MAX_SWEPT = 10_000;
const MAX_TRIES = 5;
const DEADLOCK = '40P01';

export function ratesTable(client: SqlClient, { rates }: Names, namespace: string): LimitStore {
  const columns = ['key', 'requests'];
  const inKeys = 'namespace = $1 AND key = ANY ($2::text[])';
  const select = statement(`SELECT key, requests FROM ${rates} WHERE ${inKeys}`, columns);
  const lock = statement(`SELECT key, requests FROM ${rates} WHERE ${inKeys} ORDER BY key FOR UPDATE`, columns);
  // A key that another transaction has inserted meanwhile is locked and read.
  const insert = statement(
    `INSERT INTO ${rates} AS r (namespace, key, ends_at, requests) SELECT $1, x.key, 0, '' FROM unnest($2::text[]) x (key)
    ORDER BY x.key ON CONFLICT (namespace, key) DO UPDATE SET ends_at = r.ends_at RETURNING key, requests`,
    columns,
  );
  const update = statement(
    `UPDATE ${rates} r SET ends_at = x.ends_at, requests = x.requests
    FROM unnest($2::text[], $3::bigint[], $4::text[]) x (key, ends_at, requests)
    WHERE r.namespace = $1 AND r.key = x.key`,
  );
  const sweep = statement(
    `DELETE FROM ${rates} WHERE namespace = $1 AND key IN (
      SELECT key FROM ${rates} WHERE namespace = $1 AND ends_at <= $2::bigint
      LIMIT ${MAX_SWEPT} FOR UPDATE SKIP LOCKED)`,
  );

  const countAll = async (on: SqlTransaction, calls: readonly RateCall[]): Promise<readonly RateAnswer[]> => {
    const windows = windowsByName(calls, columnOf);
    const keys = [...windows.keys()].sort();
    const logs = readLogs(await on.run(lock, [namespace, toArray(keys)]));
    const missing = keys.filter((key) => !logs.has(key));
    if (missing.length > 0) {
      for (const [key, log] of readLogs(await on.run(insert, [namespace, toArray(missing)]))) logs.set(key, log);
    }
    const logOf = (window: RateWindow) => logs.get(columnOf(window)) as RequestLog;
    const answers = calls.map((call) => takeFromLogs(call.windows, call.windows.map(logOf), call.now));
    const ends = keys.map((key) => logEndsAt(logs.get(key) as RequestLog, windows.get(key) as RateWindow));
    const texts = keys.map((key) => toLogText(logs.get(key) as RequestLog));
    await on.run(update, [namespace, toArray(keys), toArray(ends), toArray(texts)]);
    return answers;
  };

  const count = async (calls: readonly RateCall[]): Promise<readonly RateAnswer[]> => {
    for (let tries = 1; ; tries++) {
      try {
        return await client.transaction((on) => countAll(on, calls));
      } catch (error) {
        // Nothing is stored, and the other transaction has continued.
        if (codeOf(error) !== DEADLOCK || tries === MAX_TRIES) throw error;
      }
    }
  };

  const take = countTogether(count);
  const sweepEnded = sweepSometimes(MAX_SWEPT, async (now) => (await client.run(sweep, [namespace, now])).count);

  return {
    take(windows, now) {
      sweepEnded(now);
      return take(windows, now);
    },
    async peek(windows, now) {
      const logs = readLogs(await client.run(select, [namespace, toArray(windows.map(columnOf))]));
      return usesOf(
        windows,
        windows.map((window) => logs.get(columnOf(window)) ?? newLog()),
        now,
      );
    },
  };
}

function columnOf(window: RateWindow): string {
  return toTextColumn(logKeyOf(window));
}

function readLogs({ rows }: SqlResult): Map<string, RequestLog> {
  return new Map(rows.map(({ key, requests }) => [key as string, readLogText(requests as string)]));
}
