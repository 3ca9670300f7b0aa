/**
 * One owner for each file and namespace: a lock of the operating system on a small file beside the store. It ends with the
 * process, however that ends, so nothing is ever left to be cleaned up; the small file itself stays, and is empty.
 *
 * The lock keeps owners from taking each other's work. What is stored does not depend on it: where it is lost (the small file
 * was deleted, or read by the process itself, which ends a lock on Unix), whoever joins next fences off the one before.
 */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { messageOf, OrchestratorError } from '../../../engine/errors.ts';
import type { SqlConnection, SqlDriver } from './connection.ts';
import { isBusy } from './failure.ts';

export interface OwnerLock {
  /**
   * @returns false when it was taken already by this very lock
   * @throws CONFLICT when somebody else has it; NOT_CONFIGURED when the file can't be made
   */
  take(): boolean;
  /** Does nothing when it was not taken. */
  release(): void;
}

/** @param connection - an open store: its path may be a link, or have been relative to another folder */
export function ownerLock(driver: SqlDriver, connection: SqlConnection, namespace: string): OwnerLock {
  const file = connection.prepare('PRAGMA database_list').all([])[0]?.file;
  // A store in memory belongs to its connection alone.
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

function memoryLock(): OwnerLock {
  let taken = false;
  return {
    take() {
      if (taken) return false;
      taken = true;
      return true;
    },
    release() {
      taken = false;
    },
  };
}

function lock(driver: SqlDriver, path: string, file: string): SqlConnection {
  let made: SqlConnection | undefined;
  try {
    made = driver(path);
    // An exclusive transaction that writes nothing: it leaves no journal, and the file stays as it is.
    made.exec('PRAGMA busy_timeout = 0');
    made.exec('BEGIN EXCLUSIVE');
    return made;
  } catch (cause) {
    made?.close();
    if (isBusy(cause)) {
      const message = `sqliteStorage: another process (or another orchestrator of this one) works on ${file}, and a SQLite file takes one alone: it holds the lock on ${path}, which ends with it. Others may still open the file as guests, as the commands of \`ensemble\` do; stop the other one first, or use a storage for several processes`;
      throw new OrchestratorError('CONFLICT', message, { cause, details: { file, lock: path } });
    }
    const message = `sqliteStorage: can't lock ${path} (${messageOf(cause)}), which keeps other processes from working on ${file} at the same time; its folder must be writable, and nothing else may stand there`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause });
  }
}

/** No two namespaces have the same, also where a folder takes no account of upper case. */
function toFileName(namespace: string): string {
  if (/^[a-z0-9_-]{1,31}$/.test(namespace)) return namespace;
  return bytesToHex(sha256(utf8ToBytes(namespace))).slice(0, 32);
}
