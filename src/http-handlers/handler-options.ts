/** What a handler takes, and the checks that it makes of it. */

import type { Clock } from '../engine/ports/clock.ts';
import type { Logger } from '../engine/ports/logger.ts';
import { MASKING, type Masking } from '../engine/ports/masking.ts';
import { suggestName } from '../engine/suggest-name.ts';
import type { Orchestrator } from '../orchestrator.ts';
import { BodyBudget } from './body-budget.ts';
import type { HandlerParts } from './call.ts';
import { corsRule } from './cors.ts';
import { streamSlots } from './stream-slots.ts';

export interface HandlerOptions {
  /** Stands in front of every path, such as `/service`; default none. */
  readonly basePath?: string;
  /** Largest body of a request, in bytes as they come. Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /**
   * Bytes that bodies may take up in memory at once, over all requests: from the first byte, or from the announced length, until
   * what came is stored or refused. A value counts for more than its text: 48 bytes more an object or array, 16 an entry. A
   * request past it is 503 `OVERLOADED` with `Retry-After`, unless there is no other. Default 64 MiB.
   */
  readonly maxInFlightBytes?: number;
  /** How long, in ms, a caller waits for a run at most before it gets 202. Default 30,000. */
  readonly syncTimeoutMs?: number;
  /** Silence on a stream of events, in ms, after which a comment is sent. Default 15,000. */
  readonly heartbeatMs?: number;
  /** How many streams of events may be open at once; the next one is 503. Default 1,000. */
  readonly maxStreams?: number;
  /** How many of them one token may have open. Default 100. */
  readonly maxStreamsPerToken?: number;
  /** Origins whose pages may call, such as `https://app.example`. Default: none, and no CORS header at all. */
  readonly cors?: readonly string[];
  /** Hears of failures that an answer hides (`INTERNAL`), with the answer's request id. Default: silent. */
  readonly logger?: Logger;
  /** Whose timers measure the times above. Default: the platform's. */
  readonly clock?: Pick<Clock, 'setTimer'> & Partial<Pick<Clock, 'monotonic'>>;
}

const KNOWN: Readonly<Record<keyof HandlerOptions, true>> = {
  basePath: true,
  maxBodyBytes: true,
  maxInFlightBytes: true,
  syncTimeoutMs: true,
  heartbeatMs: true,
  maxStreams: true,
  maxStreamsPerToken: true,
  cors: true,
  logger: true,
  clock: true,
};
const LONGEST_MS = 2 ** 31 - 1;
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** @throws TypeError for an unknown key or a value of a wrong kind */
export function readHandlerOptions(orchestrator: Orchestrator, options: HandlerOptions): HandlerParts {
  if (typeof orchestrator?.start !== 'function') throw new TypeError('a handler needs what createOrchestrator() gave');
  for (const key of Object.keys(options)) {
    if (Object.hasOwn(KNOWN, key)) continue;
    const near = suggestName(key, Object.keys(KNOWN));
    throw new TypeError(`\`${key}\` is no option of a handler${near ? `; did you mean \`${near}\`?` : ''}`);
  }
  // One that somebody put together from parts has none.
  const masking = (orchestrator as { readonly [MASKING]?: Masking })[MASKING];
  const logger = options.logger ?? SILENT;
  return {
    orchestrator,
    mask: masking?.text ?? ((text) => text),
    toJson: masking?.json ?? JSON.stringify,
    basePath: checkBasePath(options.basePath ?? ''),
    maxBodyBytes: checkNumber('maxBodyBytes', options.maxBodyBytes ?? 1024 * 1024, Number.MAX_SAFE_INTEGER),
    bodies: new BodyBudget(
      checkNumber('maxInFlightBytes', options.maxInFlightBytes ?? 64 * 1024 * 1024, Number.MAX_SAFE_INTEGER),
    ),
    syncTimeoutMs: checkNumber('syncTimeoutMs', options.syncTimeoutMs ?? 30_000, LONGEST_MS),
    heartbeatMs: checkNumber('heartbeatMs', options.heartbeatMs ?? 15_000, LONGEST_MS),
    streams: streamSlots(
      checkNumber('maxStreams', options.maxStreams ?? 1000, Number.MAX_SAFE_INTEGER),
      checkNumber('maxStreamsPerToken', options.maxStreamsPerToken ?? 100, Number.MAX_SAFE_INTEGER),
    ),
    cors: corsRule(options.cors),
    logger: masking?.logger(logger) ?? logger,
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
 * Timers of the platform that are made only when the turn is over in which they were asked for, where it can tell (Node.js, Deno,
 * Bun): nearly every run has ended by then, and making a timer costs more than many a run.
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

function checkBasePath(basePath: string): string {
  if (basePath === '' || /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/.test(basePath)) return basePath;
  throw new TypeError(
    `\`basePath\` must begin with a slash and end without one, such as '/service', not ${JSON.stringify(basePath)}`,
  );
}

function checkNumber(name: keyof HandlerOptions, value: number, most: number): number {
  if (Number.isSafeInteger(value) && value > 0 && value <= most) return value;
  throw new TypeError(`\`${name}\` must be a whole number from 1 to ${most}, not ${value}`);
}
