/** The connections of one SMTP sender: how many there are, who uses them, and which stay open for the next mail. */

import pLimit from 'p-limit';
import type { Nodemailer } from './load-nodemailer.ts';
import type { SmtpPoolOptions, SmtpServer } from './smtp-settings.ts';

export type SmtpClient = InstanceType<Nodemailer['SmtpConnection']>;

/** One connection to a server, logged in. */
export interface Connection {
  readonly client: SmtpClient;
  /** What was wrong with it, as the client reported it. */
  readonly failure: Error | undefined;
  /** Calls a method of the client with a callback. @throws what the callback gets, or why the connection ended */
  call<T>(run: (done: (error?: Error | null, result?: T) => void) => void): Promise<T>;
}

export interface Connections {
  /** Calls the task with a connection to its server: one that is open, or a new one. The connection stays open if the task succeeds. */
  use(server: SmtpServer, task: ConnectionTask): Promise<void>;
  /** Closes the connections that nobody uses. */
  close(): void;
}

/** What somebody does with a connection. */
export interface ConnectionTask {
  /** Opens a connection and logs in. */
  open(): Promise<Connection>;
  /** Called with an open connection before anything is sent over it. Who closes its client ends the task. */
  onTake(connection: Connection): void;
  /** Whether the caller has stopped to wait. */
  isOver(): boolean;
  run(connection: Connection): Promise<void>;
}

interface Idle {
  readonly key: string;
  readonly connection: Connection;
  readonly uses: number;
  readonly timer: ReturnType<typeof setTimeout>;
}

const DEFAULTS: Required<SmtpPoolOptions> = { maxConnections: 5, maxMessages: 100, idleMs: 3_000 };

/** @param options - `false`: no connection stays open, and there is no limit */
export function smtpConnections(options: false | SmtpPoolOptions = {}): Connections {
  const { maxConnections, maxMessages, idleMs } =
    options === false
      ? { maxConnections: Number.POSITIVE_INFINITY, maxMessages: 1, idleMs: 0 }
      : { ...DEFAULTS, ...options };
  const limit = pLimit(maxConnections);
  const idle = new Set<Idle>();
  const drop = (one: Idle) => {
    idle.delete(one);
    clearTimeout(one.timer);
    quit(one.connection.client);
  };
  const keep = (key: string, connection: Connection, uses: number) => {
    const timer = setTimeout(() => drop(one), idleMs);
    const one: Idle = { key, connection, uses, timer };
    idle.add(one);
  };
  /** @returns an open connection on which the server still answers */
  const takeIdle = async (key: string, task: ConnectionTask): Promise<Idle | undefined> => {
    for (const one of [...idle].reverse()) {
      if (task.isOver()) return undefined;
      if (one.key !== key || !idle.delete(one)) continue;
      clearTimeout(one.timer);
      const { connection } = one;
      task.onTake(connection);
      const isAlive = await connection
        .call((done) => connection.client.reset(done))
        .then(
          () => true,
          () => false,
        );
      if (isAlive) return one;
      connection.client.close();
    }
    return undefined;
  };
  return {
    use: (server, task) =>
      limit(async () => {
        const key = JSON.stringify(server);
        const found = await takeIdle(key, task);
        if (task.isOver()) return found?.connection.client.close();
        // A connection to another server gives its place to the new one.
        for (const one of idle) if (!found && limit.activeCount + idle.size > maxConnections) drop(one);
        const connection = found?.connection ?? (await task.open());
        const uses = (found?.uses ?? 0) + 1;
        try {
          await task.run(connection);
        } catch (thrown) {
          // Whatever is left of the transaction ends with the connection.
          connection.client.close();
          throw thrown;
        }
        if (uses >= maxMessages || connection.failure) quit(connection.client);
        else keep(key, connection, uses);
      }),
    close() {
      for (const one of idle) drop(one);
    },
  };
}

/** Says goodbye, and does not wait for the answer. */
function quit(client: SmtpClient): void {
  client.quit();
  client.close();
}

/** @param client - not connected yet */
export function createConnection(client: SmtpClient): Connection {
  let failure: Error | undefined;
  let fail: ((error: Error) => void) | undefined;
  client.on('error', (error) => {
    failure ??= error;
    fail?.(error);
  });
  client.on('end', () => {
    const error = failure ?? new Error('the connection was closed');
    failure = error;
    // The client may close itself just before it gives a caller the reason.
    queueMicrotask(() => fail?.(error));
  });
  return {
    client,
    get failure() {
      return failure;
    },
    call: (run) =>
      new Promise((resolve, reject) => {
        fail = reject;
        if (failure) reject(failure);
        else run((error, result) => (error ? reject(error) : resolve(result as never)));
      }),
  };
}
