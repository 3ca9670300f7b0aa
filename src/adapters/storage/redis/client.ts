/** The connection of a store to Redis: a client that the host passes, or one of its own through the optional package `ioredis`. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import { packageFailure } from '../../../engine/base/package-failure.ts';
import { like, optional, readOptions, withMethods } from '../../../engine/base/read-options.ts';

/** What a store needs of a client. An instance of `ioredis` has it. */
export interface RedisClient {
  /** Runs a script in Redis: first its keys, then its arguments. */
  eval(script: string, keyCount: number, ...keysAndArguments: (string | number)[]): Promise<unknown>;
}

/** A connection that the store opens, and must close. */
interface OwnRedisClient extends RedisClient {
  select(database: number): Promise<unknown>;
  disconnect(): void;
}

/** Longer than a command of this store takes on a server that answers. */
const COMMAND_TIMEOUT_MS = 10_000;
/** How often a command is sent again after its connection broke, before it fails. */
const MAX_RETRIES = 2;

/** @throws NOT_CONFIGURED when `ioredis` can't be loaded, or refuses the address */
async function openClient(who: string, url: string): Promise<OwnRedisClient> {
  const { Redis } = await import('ioredis').catch((cause: unknown) => {
    throw packageFailure(cause, { who, name: 'ioredis', install: 'ioredis@6', version: 'version 6' });
  });
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: COMMAND_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: MAX_RETRIES,
  });
  // A failure is reported by the commands that it affects. Without a listener, ioredis prints it.
  client.on('error', () => undefined);
  return client;
}

/** The number of the database, which is the path of the address. Undefined without one. */
function databaseOf(url: string): string | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname.slice(1) : '';
  return path === '' ? undefined : path;
}

/** The package works on database 0 if it can't select another one. @throws NOT_CONFIGURED; what the client throws */
async function selectDatabase(who: string, client: OwnRedisClient, database: string | undefined): Promise<void> {
  if (database === undefined || database === '0') return;
  try {
    await client.select(Number(database));
  } catch (thrown) {
    if (!/^ERR/.test(messageOf(thrown))) throw thrown;
    const message = `${who}: the server has no database ${database} (${messageOf(thrown)}); correct the number at the end of the address, or \`databases\` in the settings of the server`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause: thrown });
  }
}

/** Settings that no repetition repairs: the password, the rights, the kind of server, the type of a key. */
const MISCONFIGURED = /^(NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|MOVED|CROSSSLOT|ERR)\b/;

/** The failure that an error of the client stands for. The message has no address, which may contain a password. */
function toRedisFailure(who: string, thrown: unknown): OrchestratorError {
  if (isOrchestratorError(thrown)) return thrown;
  const message = messageOf(thrown);
  const reply = /^[A-Z]+\b/.exec(message)?.[0] ?? '';
  if (MISCONFIGURED.test(message)) {
    const text = `${who}: Redis refuses the command with ${reply}; check the user, its rights on the prefix, and that the prefix is used by this store only`;
    return new OrchestratorError('NOT_CONFIGURED', text, { cause: thrown });
  }
  const text = reply === '' ? `${who}: Redis did not answer` : `${who}: Redis is not ready: ${reply}`;
  return new OrchestratorError('OVERLOADED', text, { cause: thrown, retryable: true });
}

/** Where the data are. Pass `client` or `url`. */
export interface RedisOptions {
  /** A client of your own, such as `new Redis()` of `ioredis`. You close it. */
  readonly client?: RedisClient | undefined;
  /** The address of a server, such as `redis://user:password@host:6379/0`. Needs the package `ioredis`. */
  readonly url?: string | undefined;
  /** Separates apps that share one server: the beginning of the names of all keys, without `{` and `}`. Default `ensemble`. */
  readonly namespace?: string | undefined;
}

/** What stores in Redis do with their connection. */
export interface RedisConnection {
  readonly namespace: string;
  /** Loads the package, and reaches no server. @throws NOT_CONFIGURED */
  ready(): Promise<void>;
  /** Runs a script as one atomic step. @throws OVERLOADED, NOT_CONFIGURED */
  run(script: string, keys: readonly string[], ...given: readonly (string | number)[]): Promise<unknown>;
  /** Closes the connection that was opened here. A passed client stays open. */
  close(): Promise<void>;
}

/** Connects at the first call. @param who - the function of the library that has these options @throws TypeError */
export function openRedis(who: string, options: RedisOptions): RedisConnection {
  checkOptions(who, options);
  const { client, url = '', namespace = 'ensemble' } = options;
  let own: Promise<OwnRedisClient> | undefined;
  let closed = false;
  let selected: Promise<void> | undefined;
  const ownClient = () => {
    if (closed) throw new OrchestratorError('OVERLOADED', `${who}: the store was closed`);
    // A package that could not be loaded may be there at the next call.
    own ??= openClient(who, url).catch((thrown: unknown) => {
      own = undefined;
      throw thrown;
    });
    return own;
  };
  const ownDatabase = async () => {
    const opened = await ownClient();
    selected ??= selectDatabase(who, opened, databaseOf(url)).catch((thrown: unknown) => {
      selected = undefined;
      throw thrown;
    });
    await selected;
    return opened;
  };
  return {
    namespace,
    ready: async () => void (client ?? (await ownClient())),
    async run(script, keys, ...given) {
      try {
        return await (client ?? (await ownDatabase())).eval(script, keys.length, ...keys, ...given);
      } catch (thrown) {
        throw toRedisFailure(who, thrown);
      }
    },
    async close() {
      closed = true;
      const opened = await own?.catch(() => undefined);
      opened?.disconnect();
    },
  };
}

function checkOptions(who: string, options: RedisOptions): void {
  const { client, url } = readOptions(who, options, {
    client: withMethods('a client of ioredis, with the method `eval`', 'eval'),
    url: optional(
      'an address that begins with `redis://` or `rediss://`, and ends with the number of a database if it has a path',
      like(/^rediss?:\/\/[^/?#]*(\/\d*)?([?#].*)?$/),
    ),
    namespace: optional('text of 1 to 200 characters without `{` and `}`', like(/^[^{}]{1,200}$/)),
  });
  if ((client === undefined) === (url === undefined)) throw new TypeError(`${who}: pass either \`client\` or \`url\``);
}
