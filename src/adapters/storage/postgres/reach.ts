/** Reaches the server before its first use, so that a wrong address shows at once and not as calls that wait. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import { type SqlClient, statement } from './driver.ts';
import { codeOf, toStorageError } from './failure.ts';
import type { Settings } from './options.ts';

/** For how long a server is tried that was never reached. */
const REACH_MS = 1900;
const PAUSE_MS = 100;
const PING = statement('SELECT 1 AS one', ['one']);
const NO_ANSWER = new Error('no answer');
/** The code of an error that the server itself reports. Those of sockets begin with E too, but have no digit. */
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/;

/**
 * Returns when the server has answered.
 * @throws NOT_CONFIGURED with the address and the cause if nothing answers within 2 s. What the server itself answers,
 *   such as that it starts or refuses the user, is thrown at once.
 */
export async function reach(client: SqlClient, source: Settings['source']): Promise<void> {
  // PGlite runs in this process; its first start may take long.
  if (source.pglite) return;
  const until = performance.now() + REACH_MS;
  let cause: unknown;
  while (performance.now() < until) {
    try {
      await withinMs(until - performance.now(), client.run(PING, []));
      return;
    } catch (error) {
      // What went wrong before says more than that the time is over.
      if (error === NO_ANSWER) cause ??= error;
      else if (isLost(error)) cause = error;
      else throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const { host, port } = addressOf(source);
  const message = `postgresStorage: Postgres was not reached at ${host}:${port} within 2 s (${reasonOf(cause)}); start it, or correct the address`;
  throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { host, port } });
}

function isLost(error: unknown): boolean {
  return !SQLSTATE.test(codeOf(error) ?? '') && isOrchestratorError(toStorageError(error), 'OVERLOADED');
}

function withinMs<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(NO_ANSWER), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** A name that stands for several addresses fails with one error for each. */
function reasonOf(cause: unknown): string {
  const all = cause instanceof AggregateError ? cause.errors : [cause];
  return all.map(messageOf).join(', ');
}

interface Address {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly connectionString?: unknown;
}

function addressOf({ url, pool, sql }: Settings['source']): { readonly host: string; readonly port: number } {
  const given = ((pool?.options ?? sql?.options) as Address | undefined) ?? {};
  const from = readUrl(url ?? given.connectionString);
  // postgres.js has lists of hosts and ports.
  const host = [from?.searchParams.get('host') || from?.hostname || given.host].flat()[0] || 'localhost';
  const port = [from?.searchParams.get('port') || from?.port || given.port].flat()[0] || 5432;
  return { host: String(host), port: Number(port) };
}

function readUrl(url: unknown): URL | undefined {
  try {
    return new URL(String(url));
  } catch {
    return undefined;
  }
}
