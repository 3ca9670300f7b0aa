/** The options of a handler, and their checks. */

import { createFindAddress, type TrustProxy } from '../engine/access/client-address.ts';
import type { Clock } from '../engine/ports/clock.ts';
import { type Logger, loggerOf, SILENT } from '../engine/ports/logger.ts';
import { MASKING, type ServedParts } from '../engine/ports/masking.ts';
import { suggestName } from '../engine/base/suggest-name.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { ByteBudget, SenderBudgets } from './byte-budget.ts';
import type { HandlerParts } from './call.ts';
import { corsRule } from './cors.ts';
import type { Authenticate } from './host-principal.ts';
import { streamSlots } from './stream-slots.ts';

export interface HandlerOptions {
  /** Precedes every path, such as `/service`. Default: none. */
  readonly basePath?: string | undefined;
  /** The largest body of a request, in received bytes. Default 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * The bytes that the bodies of all requests may hold in memory at once. A body counts from its announced length, or with each
   * received byte, until its request is stored or refused. A value counts for more than its text: 48 bytes for each object or array,
   * and 16 for each further entry. A request that does not fit gets 503 `OVERLOADED` with `Retry-After`, unless it is the only one. Default 64 MiB.
   */
  readonly maxInFlightBytes?: number | undefined;
  /**
   * The bytes that responses may hold in memory until their readers have taken them. A response that does not fit waits before it
   * is built; after 10 seconds, it is 503 `OVERLOADED` with `Retry-After`. An event stream ends before an event that does
   * not fit; its reader continues with `Last-Event-ID`. Default 64 MiB.
   */
  readonly maxUnsentBytes?: number | undefined;
  /** How long a caller waits for an execution at most before it gets 202, in ms. Default 30,000. */
  readonly syncTimeoutMs?: number | undefined;
  /** A comment is sent on an event stream after this time without an event, in ms. Default 15,000. */
  readonly heartbeatMs?: number | undefined;
  /** How many event streams may be open at once. The next one gets 503. Default 1,000. */
  readonly maxStreams?: number | undefined;
  /** How many event streams one token may have open at once. Default 100. */
  readonly maxStreamsPerToken?: number | undefined;
  /**
   * Which proxies before this server are trusted to name the client in `X-Forwarded-For`: how many there are (`true`
   * is one), or their addresses and ranges, such as `['10.0.0.0/8']`. Requests are counted by the address of the client. Default false: the peer of the connection is
   * the client.
   */
  readonly trustProxy?: TrustProxy | undefined;
  /** Origins whose pages may call, such as `https://app.example`. Default: none, and no CORS header at all. */
  readonly cors?: readonly string[] | undefined;
  /**
   * Identifies callers in your own way, for example by a session of your app. It is called before the check of API tokens, on every
   * route that needs a scope, and again while an event stream is open. What it returns is who calls. For undefined, the API token of
   * the request counts. If it throws, the response is 500 and the log has the reason. An `OrchestratorError` with UNAUTHORIZED or
   * FORBIDDEN is answered as such. Default: API tokens only.
   */
  readonly authenticate?: Authenticate | undefined;
  /**
   * Receives the failures that a response hides (such as `INTERNAL`), with the request id of the response. Default: the logger of the
   * orchestrator. With `false`, nothing is logged.
   */
  readonly logger?: Logger | false | undefined;
  /** Measures the times above. Default: the platform's timers. */
  readonly clock?: (Pick<Clock, 'setTimer'> & Partial<Pick<Clock, 'monotonic'>>) | undefined;
}

const KNOWN: Readonly<Record<keyof HandlerOptions, true>> = {
  basePath: true,
  maxBodyBytes: true,
  maxInFlightBytes: true,
  maxUnsentBytes: true,
  syncTimeoutMs: true,
  heartbeatMs: true,
  maxStreams: true,
  maxStreamsPerToken: true,
  trustProxy: true,
  cors: true,
  authenticate: true,
  logger: true,
  clock: true,
};
const MAX_MS = 2 ** 31 - 1;

/** @throws TypeError for an unknown key or a value of a wrong kind */
export function readHandlerOptions(orchestrator: Orchestrator, options: HandlerOptions): HandlerParts {
  if (typeof orchestrator?.start !== 'function')
    throw new TypeError('a handler needs an orchestrator of createOrchestrator()');
  for (const key of Object.keys(options)) {
    if (Object.hasOwn(KNOWN, key)) continue;
    const near = suggestName(key, Object.keys(KNOWN));
    throw new TypeError(`\`${key}\` is not an option of a handler${near ? `; did you mean \`${near}\`?` : ''}`);
  }
  // An orchestrator that does not come from createOrchestrator(), such as a wrapper, has none of these.
  const served = (orchestrator as { readonly [MASKING]?: ServedParts })[MASKING];
  const { logger, maxInFlightBytes = 64 * 1024 * 1024 } = options;
  const bodies = new ByteBudget(checkNumber('maxInFlightBytes', maxInFlightBytes, Number.MAX_SAFE_INTEGER));
  return {
    orchestrator,
    mask: served?.text ?? ((text) => text),
    toJson: served?.json ?? JSON.stringify,
    openFrom: served?.openFrom ?? ((text) => text.length),
    once: served?.once,
    deliver: served?.deliver,
    apiKeyHeader: `x-${orchestrator.brand.toLowerCase()}-api-key`,
    basePath: checkBasePath(options.basePath ?? ''),
    maxBodyBytes: checkNumber('maxBodyBytes', options.maxBodyBytes ?? 1024 * 1024, Number.MAX_SAFE_INTEGER),
    bodies,
    webhookBodies: new SenderBudgets(maxInFlightBytes / 2, bodies),
    unsent: new ByteBudget(
      checkNumber('maxUnsentBytes', options.maxUnsentBytes ?? 64 * 1024 * 1024, Number.MAX_SAFE_INTEGER),
    ),
    syncTimeoutMs: checkNumber('syncTimeoutMs', options.syncTimeoutMs ?? 30_000, MAX_MS),
    heartbeatMs: checkNumber('heartbeatMs', options.heartbeatMs ?? 15_000, MAX_MS),
    streams: streamSlots(
      checkNumber('maxStreams', options.maxStreams ?? 1000, Number.MAX_SAFE_INTEGER),
      checkNumber('maxStreamsPerToken', options.maxStreamsPerToken ?? 100, Number.MAX_SAFE_INTEGER),
    ),
    findAddress: createFindAddress(options.trustProxy),
    cors: corsRule(options.cors),
    authenticate: checkAuthenticate(options.authenticate),
    logger: loggerOf(logger && (served?.logger(logger) ?? logger), served?.log ?? SILENT),
    monotonic: options.clock?.monotonic ?? platformInstant,
    setTimer: options.clock?.setTimer ?? platformTimers(globalThis as Immediates),
  };
}

const setPlatformTimer: Clock['setTimer'] = (ms, callback) => {
  const handle = setTimeout(callback, ms);
  return () => clearTimeout(handle);
};

const platformInstant: Clock['monotonic'] = () => performance.now();

interface Immediates {
  setImmediate?(callback: () => void): unknown;
  clearImmediate?(handle: unknown): void;
}

/**
 * The platform's timers, set one turn of the event loop late where `setImmediate` exists (Node.js, Deno, Bun). Nearly every run has
 * ended before that, and setting a timer costs more than many runs.
 */
function platformTimers({ setImmediate, clearImmediate }: Immediates): Clock['setTimer'] {
  if (!setImmediate || !clearImmediate) return setPlatformTimer;
  return (ms, callback) => {
    let cancel: (() => void) | undefined;
    const soon = setImmediate(() => {
      cancel = setPlatformTimer(ms, callback);
    });
    return () => (cancel ? cancel() : clearImmediate(soon));
  };
}

function checkAuthenticate(given: Authenticate | undefined): Authenticate | undefined {
  if (given === undefined || typeof given === 'function') return given;
  throw new TypeError('`authenticate` must be a function that takes a Request and returns a principal or undefined');
}

function checkBasePath(basePath: string): string {
  if (basePath === '' || /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/.test(basePath)) return basePath;
  throw new TypeError(
    `\`basePath\` must be a path of letters, digits and ._~- that begins with a slash and ends without one, such as '/service', not ${JSON.stringify(basePath)}`,
  );
}

function checkNumber(name: keyof HandlerOptions, value: number, max: number): number {
  if (Number.isSafeInteger(value) && value > 0 && value <= max) return value;
  throw new TypeError(`\`${name}\` must be a whole number from 1 to ${max}, not ${value}`);
}
