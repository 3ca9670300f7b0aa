/** The transaction of a step: what the step writes, and its record, on one connection of the storage. */

import pLimit from 'p-limit';
import { copyJson, type Json } from '../../../../engine/base/json/json.ts';
import {
  type RecordedTransaction,
  RefusedTransactionError,
} from '../../../../engine/storage/recorded-transaction.port.ts';
import type { Storage } from '../../../../engine/storage/storage.port.ts';
import { toRows } from '../database/database-rows.ts';
import { clientOf } from '../drivers/caller-transaction.ts';
import { type SqlClient, type SqlTransaction, statement } from '../drivers/driver.ts';
import { leavesConnection } from '../drivers/failure.ts';

/** An open transaction. */
interface Opened {
  readonly on: SqlTransaction;
  /** Ends it. */
  commit(): void;
  rollBack(): void;
  /** Resolves after the commit. */
  readonly ended: Promise<void>;
}

/**
 * @param commitOn - the commits of the storage on a client
 * @param atOnce - how many are open at most: the storage needs the other connections of its pool
 */
export function createTransact(
  client: SqlClient,
  commitOn: (on: SqlClient) => Storage['commit'],
  atOnce: number,
): NonNullable<Storage['transact']> {
  const limit = pLimit(atOnce);
  return (worker) => {
    let opening: Promise<Opened> | undefined;
    let last: Promise<unknown> = Promise.resolve();
    let failure: { readonly error: unknown } | undefined;
    let isOver = false;
    const rollBack = async (): Promise<void> => {
      isOver = true;
      await last;
      const opened = await opening?.catch(() => undefined);
      opened?.rollBack();
      await opened?.ended.catch(() => undefined);
    };
    const transaction: RecordedTransaction = {
      get hasBegun() {
        return opening !== undefined;
      },
      query(text, values = []) {
        if (isOver) return Promise.reject(new TypeError('the step has ended, and its transaction with it'));
        opening ??= open(client, limit);
        const answer = last.then(async () => {
          const { on } = await (opening as Promise<Opened>);
          const table = await on.table(String(text), values.map(toParam));
          return { rows: toRows(table), count: table.count };
        });
        last = answer.catch((error) => {
          failure ??= { error };
        });
        return answer;
      },
      async commit(entry) {
        isOver = true;
        await last;
        if (failure) {
          await rollBack();
          throw new RefusedTransactionError(failure.error);
        }
        const opened = await (opening as Promise<Opened>);
        try {
          // Nothing is stored before the commit: what is lost until then is a failed attempt, as a server ends an idle transaction.
          await opened.on.run(PROBE, []);
        } catch (error) {
          await rollBack();
          throw new RefusedTransactionError(error);
        }
        try {
          const [answer] = await commitOn(clientOf(opened.on.run))(worker, [entry]);
          if (answer !== 'stored') {
            await rollBack();
            return 'fenced';
          }
        } catch (thrown) {
          await rollBack();
          throw thrown;
        }
        opened.commit();
        try {
          await opened.ended;
        } catch (thrown) {
          // A constraint that is checked at the end.
          throw leavesConnection(thrown) ? new RefusedTransactionError(thrown) : thrown;
        }
        return 'stored';
      },
      rollBack,
    };
    return transaction;
  };
}

const PROBE = statement('SELECT 1 AS one', ['one']);

function open(client: SqlClient, limit: ReturnType<typeof pLimit>): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const ended = limit(() =>
      client.transaction(
        (on) =>
          new Promise<void>((commit, undo) => {
            const rollBack = () => undo(new Error('the transaction of a step is rolled back'));
            resolve({ on, commit, rollBack, ended: later });
          }),
      ),
    );
    const later = Promise.resolve().then(() => ended);
    later.catch(reject);
  });
}

function toParam(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  const json: Json = copyJson(value);
  return typeof json === 'object' ? JSON.stringify(json) : String(json);
}
