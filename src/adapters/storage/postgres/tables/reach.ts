/** Reaches the server before its first use, so that a wrong address shows at once and not as calls that wait. */

import { messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';
import { underDeadline } from '../../../../engine/base/time/under-deadline.ts';
import { type SqlClient, statement } from '../drivers/driver.ts';
import { isUnreached } from '../drivers/failure.ts';
import type { Settings } from '../options.ts';

/** For how long a server is tried that was never reached. */
const REACH_MS = 1900;
const PAUSE_MS = 100;
const PING = statement('SELECT 1 AS one', ['one']);

/**
 * Returns when the server has answered.
 * @throws NOT_CONFIGURED with the address and the cause if nothing answers within 2 s. What the server itself answers,
 *   such as that it starts or refuses the user, is thrown at once.
 */
export async function reach(client: SqlClient, source: Settings['source']): Promise<void> {
  // PGlite runs in this process; its first start may take long.
  if (source.pglite) return;
  let cause: unknown;
  await underDeadline({ timeoutMs: REACH_MS, late: () => unreachedServer(source, cause) }, async (over) => {
    while (!over.aborted) {
      try {
        await client.run(PING, []);
        return;
      } catch (error) {
        if (!isUnreached(error)) throw error;
        cause = error;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  });
}

function unreachedServer(source: Settings['source'], cause: unknown): OrchestratorError {
  const { host, port } = addressOf(source);
  // A name that stands for several addresses fails with one error for each.
  const all = cause instanceof AggregateError ? cause.errors : [cause ?? 'no answer'];
  const message = `postgresStorage: Postgres was not reached at ${host}:${port} within 2 s (${all.map(messageOf).join(', ')}); start it, or correct the address`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { host, port } });
}

interface Address {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly connectionString?: unknown;
}

function addressOf({ url, pool, sql }: Settings['source']): { readonly host: string; readonly port: number } {
  const given = ((pool?.options ?? sql?.options) as Address | undefined) ?? {};
  const text = String(url ?? given.connectionString);
  const from = URL.canParse(text) ? new URL(text) : undefined;
  // postgres.js has lists of hosts and ports.
  const host = [from?.searchParams.get('host') || from?.hostname || given.host].flat()[0] || 'localhost';
  const port = [from?.searchParams.get('port') || from?.port || given.port].flat()[0] || 5432;
  return { host: String(host), port: Number(port) };
}
