/** The logs of requests in sliding windows. Requests that arrive together are counted in one transaction. */

import { logKeyOf, readLogText, usesOf } from '../../../../engine/access/request-log.ts';
import type { LimitStore, RateAnswer, RateWindow } from '../../../../engine/storage/storage.port.ts';
import { type CountedLog, countInLogs, countTogether, logNames, type RateCall } from '../../count-together.ts';
import { sweepSometimes } from '../../sweep-sometimes.ts';
import { type SqlClient, type SqlResult, type SqlTransaction, statement, toArray } from '../drivers/driver.ts';
import { codeOf } from '../drivers/failure.ts';
import { toTextColumn } from './columns.ts';
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
    `WITH old AS MATERIALIZED (
      SELECT key FROM ${rates} WHERE namespace = $1 AND ends_at <= $2::bigint LIMIT ${MAX_SWEPT} FOR UPDATE SKIP LOCKED
    )
    DELETE FROM ${rates} WHERE namespace = $1 AND key IN (SELECT key FROM old)`,
  );

  const countAll = async (on: SqlTransaction, calls: readonly RateCall[]): Promise<readonly RateAnswer[]> => {
    const keys = [...logNames(calls, columnOf)].sort();
    const texts = readTexts(await on.run(lock, [namespace, toArray(keys)]));
    const missing = keys.filter((key) => !texts.has(key));
    if (missing.length > 0) {
      for (const [key, text] of readTexts(await on.run(insert, [namespace, toArray(missing)]))) texts.set(key, text);
    }
    const { answers, logs } = countInLogs(calls, columnOf, (key) => texts.get(key));
    const columnsOf = (value: (log: CountedLog) => string | number) => toArray(logs.map(value));
    const params = [columnsOf(({ name }) => name), columnsOf(({ endsAt }) => endsAt), columnsOf(({ text }) => text)];
    await on.run(update, [namespace, ...params]);
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
      const texts = readTexts(await client.run(select, [namespace, toArray(windows.map(columnOf))]));
      return usesOf(
        windows,
        windows.map((window) => readLogText(texts.get(columnOf(window)) ?? '')),
        now,
      );
    },
  };
}

function columnOf(window: RateWindow): string {
  return toTextColumn(logKeyOf(window));
}

function readTexts({ rows }: SqlResult): Map<string, string> {
  return new Map(rows.map(({ key, requests }) => [key as string, requests as string]));
}
