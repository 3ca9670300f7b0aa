/** Kills this process before the n-th statement that a database driver sends, for example between two rows of one commit. */

import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { dieNow } from './flows.mjs';

/** @returns `dieAt(n)`: the process dies instead of sending the n-th statement from now on (1: it dies at once) */
export async function countStatements() {
  let left = Number.POSITIVE_INFINITY;
  const count = () => {
    left -= 1;
    if (left <= 0) dieNow();
  };
  const wrap = (prototype, name, before) => {
    const own = prototype[name];
    prototype[name] = function (...args) {
      before();
      return own.apply(this, args);
    };
  };
  const wrapPrepare = (prototype) => {
    const { prepare } = prototype;
    prototype.prepare = function (...args) {
      const statement = prepare.apply(this, args);
      for (const method of ['run', 'all']) {
        const own = statement[method];
        statement[method] = (...params) => {
          count();
          return own.apply(statement, params);
        };
      }
      return statement;
    };
    wrap(prototype, 'exec', count);
  };
  // The SQLite driver: the one of the runtime, or libsql.
  const own = await import('node:sqlite').catch(() => undefined);
  wrapPrepare((own ? own.DatabaseSync : createRequire(import.meta.url)('libsql')).prototype);
  // The Postgres driver: what it writes to its socket.
  wrap(Socket.prototype, 'write', count);
  return {
    dieAt(n) {
      left = n;
      if (left <= 1) dieNow();
    },
  };
}
