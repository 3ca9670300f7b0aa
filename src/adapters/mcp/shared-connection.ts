/** A connection that the calls of a process share. Calls that come while it is made wait for it, each within its own time. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { type CallScope, callScope } from './call-scope.ts';
import type { Connection } from './connection.ts';
import { toFailure } from './failure.ts';

export interface SharedConnection {
  /** @returns the connection, which is made when it is first needed. @throws OrchestratorError */
  join(scope: CallScope): Promise<Connection>;
  /** Forgets a connection that the server does not know any more. */
  drop(connection: Connection): void;
  /** Ends the session. A later call makes another connection. Never throws. */
  close(): Promise<void>;
}

interface Opening {
  readonly scope: CallScope;
  readonly connection: Promise<Connection>;
  waiting: number;
}

export function sharedConnection(
  server: string,
  open: (scope: CallScope, timeoutMs: number) => Promise<Connection>,
): SharedConnection {
  let opening: Opening | undefined;
  let ready: Connection | undefined;

  function begin(timeoutMs: number): Opening {
    const scope = callScope(server);
    const connection = open(scope, timeoutMs)
      .then(
        (made) => {
          ready = made;
          return made;
        },
        (thrown) => {
          throw scope.failure ? scope.failure.error : toFailure(thrown, server, scope);
        },
      )
      .finally(() => {
        scope.end();
        if (opening === mine) opening = undefined;
      });
    const mine: Opening = { scope, connection, waiting: 0 };
    return mine;
  }

  return {
    async join(scope) {
      if (ready) return ready;
      opening ??= begin(scope.timeoutMs);
      const joined = opening;
      joined.waiting += 1;
      try {
        return await scope.run(joined.connection);
      } finally {
        joined.waiting -= 1;
        if (joined.waiting === 0) joined.scope.fail(closedConnection(server));
      }
    },
    drop(connection) {
      if (ready === connection) ready = undefined;
    },
    async close() {
      opening?.scope.fail(closedConnection(server));
      const connection = ready;
      ready = undefined;
      await connection?.close();
    },
  };
}

function closedConnection(server: string): OrchestratorError {
  const message = `the connection to tool server \`${server}\` was closed before it was made`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason: 'connection-closed' }, retryable: true });
}
