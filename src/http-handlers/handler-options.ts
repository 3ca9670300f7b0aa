/** The options of a handler, and their checks. */

import { createFindAddress, type TrustProxy } from '../engine/access/rules/client-address.ts';
import {
  checkedLater,
  like,
  type OptionChecks,
  optional,
  readOptions,
  wholeNumber,
  withMethods,
} from '../engine/base/read-options.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import { type Logger, loggerOf, SILENT } from '../engine/host/logger.port.ts';
import { MASKING, type ServedDependencies } from '../engine/host/masking.port.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import type { Authenticate } from './access/host-principal.ts';
import type { HandlerDependencies } from './call.ts';
import { corsRule } from './reply/cors.ts';
import { streamSlots } from './reply/stream-slots.ts';
import { ByteBudget, SenderBudgets } from './request/byte-budget.ts';

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

const MIB = 1024 * 1024;
const POSITIVE = wholeNumber(1);
const MS = wholeNumber(1, 2 ** 31 - 1);
const CHECKS: OptionChecks<HandlerOptions> = {
  basePath: optional(
    "a path of letters, digits and ._~- that begins with a slash and ends without one, such as '/service'",
    like(/^((\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)?$/),
  ),
  ...{ maxBodyBytes: POSITIVE, maxInFlightBytes: POSITIVE, maxUnsentBytes: POSITIVE },
  ...{ maxStreams: POSITIVE, maxStreamsPerToken: POSITIVE, syncTimeoutMs: MS, heartbeatMs: MS },
  ...{ trustProxy: checkedLater, cors: checkedLater },
  authenticate: optional(
    'a function that takes a Request and returns a principal or undefined',
    (value) => typeof value === 'function',
  ),
  logger: checkedLater,
  clock: withMethods('a Clock such as systemClock()', 'setTimer'),
};

/**
 * @param more - the checks of the options that only this handler has
 * @param who - the function that takes them, for the messages
 * @throws TypeError for an unknown key or a value of a wrong kind
 */
export function readHandlerOptions<O extends HandlerOptions>(
  orchestrator: Orchestrator,
  options: O,
  more?: OptionChecks<Omit<O, keyof HandlerOptions>>,
  who = 'handler',
): HandlerDependencies {
  if (typeof orchestrator?.start !== 'function')
    throw new TypeError('a handler needs an orchestrator of createOrchestrator()');
  // An orchestrator that does not come from createOrchestrator(), such as a wrapper, has none of these.
  const served = (orchestrator as { readonly [MASKING]?: ServedDependencies })[MASKING];
  const { logger, maxInFlightBytes = 64 * MIB } = readOptions<HandlerOptions>(who, options, {
    ...CHECKS,
    ...more,
  });
  const bodies = new ByteBudget(maxInFlightBytes);
  return {
    orchestrator,
    mask: served?.text ?? ((text) => text),
    toJson: served?.json ?? JSON.stringify,
    openFrom: served?.openFrom ?? ((text) => text.length),
    once: served?.once,
    deliver: served?.deliver,
    measured: served?.events,
    apiKeyHeader: `x-${orchestrator.brand.toLowerCase()}-api-key`,
    basePath: options.basePath ?? '',
    maxBodyBytes: options.maxBodyBytes ?? MIB,
    bodies,
    webhookBodies: new SenderBudgets(maxInFlightBytes / 2, bodies),
    unsent: new ByteBudget(options.maxUnsentBytes ?? 64 * MIB),
    syncTimeoutMs: options.syncTimeoutMs ?? 30_000,
    heartbeatMs: options.heartbeatMs ?? 15_000,
    streams: streamSlots(options.maxStreams ?? 1000, options.maxStreamsPerToken ?? 100),
    findAddress: createFindAddress(options.trustProxy),
    cors: corsRule(options.cors),
    authenticate: options.authenticate,
    readOnly: false,
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
