/** The logs of requests in sliding windows. */

import {
  logEndsAt,
  logKeyOf,
  type RequestLog,
  readLogText,
  takeFromLogs,
  toLogText,
  usesOf,
} from '../../../../engine/access/request-log.ts';
import type { LimitStore, RateWindow } from '../../../../engine/storage/storage.port.ts';
import { sweepSometimes } from '../../sweep-sometimes.ts';
import type { RunTransaction, SqlConnection } from '../drivers/driver.ts';
import { toTextColumn } from './columns.ts';

/** How many logs, whose requests have left their window, a call deletes in passing. */
const MAX_SWEPT = 1000;

export function ratesTable(connection: SqlConnection, namespace: string, transaction: RunTransaction): LimitStore {
  const select = connection.prepare('SELECT requests FROM ensemble_rates WHERE namespace = ? AND key = ?');
  const upsert = connection.prepare(`
    INSERT INTO ensemble_rates (namespace, key, ends_at, requests) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET ends_at = excluded.ends_at, requests = excluded.requests`);
  const sweep = connection.prepare(`
    DELETE FROM ensemble_rates WHERE (namespace, key) IN (
      SELECT namespace, key FROM ensemble_rates WHERE ends_at <= ? LIMIT ${MAX_SWEPT})`);
  const unsynced = withoutSync(connection);
  const sweepEnded = sweepSometimes(MAX_SWEPT, (now) => sweep.run([now]));

  const logsOf = (windows: readonly RateWindow[]) =>
    windows.map((window) =>
      readLogText((select.all([namespace, toTextColumn(logKeyOf(window))])[0]?.requests ?? '') as string),
    );

  return {
    take: (windows, now) =>
      unsynced(() =>
        transaction(() => {
          const logs = logsOf(windows);
          const answer = takeFromLogs(windows, logs, now);
          for (const [i, window] of windows.entries()) {
            const log = logs[i] as RequestLog;
            if (answer.taken || log.moved) {
              upsert.run([namespace, toTextColumn(logKeyOf(window)), logEndsAt(log, window), toLogText(log)]);
            }
          }
          sweepEnded(now);
          return answer;
        }),
      ),
    peek: (windows, now) => usesOf(windows, logsOf(windows), now),
  };
}

/**
 * Runs a transaction that need not survive a power failure, so that a request does not wait for the disk. The log of SQLite is
 * written all the same; the next commit of an execution makes it durable.
 */
function withoutSync(connection: SqlConnection): <T>(work: () => T) => T {
  // A Durable Object does not wait for its disk.
  if (connection.transaction) return (work) => work();
  const [row = {}] = connection.prepare('PRAGMA synchronous').all([]);
  const configured = Number(Object.values(row)[0]);
  return (work) => {
    connection.exec('PRAGMA synchronous = 1');
    try {
      return work();
    } finally {
      connection.exec(`PRAGMA synchronous = ${configured}`);
    }
  };
}
