/** The driver for the SQLite database of a Cloudflare Durable Object. */

import type { DurableObjectContext } from '../../../../engine/host/host.port.ts';
import type { SqlConnection, SqlRow, SqlValue } from './driver.ts';

/**
 * The largest text or blob, in bytes. workerd allows 2.2 MB for a whole row. The difference is for the other columns: a
 * claim must never find a row that is too large to be updated.
 */
export const MAX_VALUE_BYTES = 2 * 1024 * 1024;

/** What workerd throws for a value that is too large, and what this driver throws a little earlier. */
export const TOO_BIG = 'string or blob too big: SQLITE_TOOBIG';

export function durableObjectConnection({ storage }: Pick<DurableObjectContext, 'storage'>): SqlConnection {
  const query = (text: string, params: readonly SqlValue[]) => {
    for (const value of params) if (isTooBig(value)) throw new Error(TOO_BIG);
    return storage.sql.exec(text, ...params).toArray();
  };
  return {
    // workerd keeps the statements that were used last prepared, by their text.
    prepare: (text) => ({
      run(params) {
        query(text, params);
        // The cursor's `rowsWritten` counts the rows of indexes, too.
        return query('SELECT changes() AS changes', [])[0]?.changes as number;
      },
      all: (params) => query(text, params).map(toRow),
    }),
    exec(text) {
      query(text, []);
    },
    transaction: (work) => storage.transactionSync(work),
    // A statement has at most 100 parameters, and a row up to 12.
    maxRows: 1,
    close() {},
  };
}

function isTooBig(value: SqlValue): boolean {
  if (typeof value === 'string') {
    return value.length * 3 > MAX_VALUE_BYTES && new TextEncoder().encode(value).length > MAX_VALUE_BYTES;
  }
  return value instanceof Uint8Array && value.length > MAX_VALUE_BYTES;
}

function toRow(row: Record<string, SqlValue | ArrayBuffer>): SqlRow {
  for (const name in row) {
    const value = row[name];
    if (value instanceof ArrayBuffer) row[name] = new Uint8Array(value);
  }
  return row as SqlRow;
}
