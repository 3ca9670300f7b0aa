/**
 * One worker process for each file and namespace: an operating system lock on a small file next to the database file.
 * The lock ends with the process, however the process ends, so nothing needs cleaning up. The small file stays and is
 * empty.
 *
 * The lock keeps workers from claiming each other's executions. Stored data does not depend on the lock. It can be
 * lost: the small file was deleted, or the process itself read it, which ends a lock on Unix. The next process that
 * registers a worker then fences off the previous one.
 */

import { hashText } from '../../../../engine/base/bytes/hash.ts';
import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import { memoryLock, type WorkerLock } from '../tables/worker-lock.ts';
import type { SqlConnection, SqlDriver } from './driver.ts';
import { isBusy } from './failure.ts';

/**
 * @param connection - the open database, which knows the file's real path: the given path may be a link, or relative to
 *   another folder
 */
export function fileLock(driver: SqlDriver, connection: SqlConnection, namespace: string): WorkerLock {
  const file = connection.prepare('PRAGMA database_list').all([])[0]?.file;
  // No other connection can open a database in memory.
  if (typeof file !== 'string' || file === '') return memoryLock();
  const path = `${file}-owner${namespace === 'default' ? '' : `-${toFileName(namespace)}`}`;
  let holder: SqlConnection | undefined;
  return {
    take() {
      if (holder) return false;
      holder = lock(driver, path, file);
      return true;
    },
    release() {
      const held = holder;
      holder = undefined;
      if (!held) return;
      try {
        held.exec('ROLLBACK');
      } finally {
        held.close();
      }
    },
  };
}

function lock(driver: SqlDriver, path: string, file: string): SqlConnection {
  let made: SqlConnection | undefined;
  try {
    made = driver(path);
    // An exclusive transaction that writes nothing leaves no journal and does not change the file.
    made.exec('PRAGMA busy_timeout = 0');
    made.exec('BEGIN EXCLUSIVE');
    return made;
  } catch (cause) {
    made?.close();
    if (isBusy(cause)) {
      const message = `sqliteStorage: another process (or another orchestrator of this process) works on ${file}, and a SQLite file allows only one. It holds the lock on ${path} until it ends. Stop it first, or use a storage for several processes. Clients that run no executions, such as the commands of \`ensemble\`, can open the file meanwhile`;
      throw new OrchestratorError('CONFLICT', message, { cause, details: { file, lock: path } });
    }
    const message = `sqliteStorage: can't lock ${path} (${messageOf(cause)}); the lock keeps other processes from working on ${file} at the same time. The folder must be writable, and the path must not name anything else`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause });
  }
}

/** No two namespaces have the same file name, even where file names ignore upper case. */
function toFileName(namespace: string): string {
  if (/^[a-z0-9_-]{1,31}$/.test(namespace)) return namespace;
  return hashText(namespace);
}
