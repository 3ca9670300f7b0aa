/** What becomes of the links that `signalUrl()` made, as the public `orchestrator.signalLinks`. */

import { isFinal } from './engine/model/execution.ts';
import type { NewSignal } from './engine/model/stored-execution.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { RunningEngine } from './engine/ports/execution-engine.ts';
import type { Storage } from './engine/ports/storage.ts';
import { linkSignalId, readLink, type SignalLink } from './engine/signing/signal-link.ts';

/**
 * How it stands with a link:
 *
 * | state | means |
 * |---|---|
 * | open | it may be used |
 * | given | its signal was given just now |
 * | answered | it was used before, or another one of the same step for the same signal |
 * | over | its execution has ended, or the wait behind the step that made it has |
 * | unknown | nobody here made it: it was changed, cut off, or signed with a secret that is not listed any more |
 */
export type SignalLinkState = 'open' | 'given' | 'answered' | 'over' | 'unknown';

/** What a link is good for. Of one that is unknown nothing is told but that. */
export interface SignalLinkStatus {
  readonly state: SignalLinkState;
  readonly executionId?: string;
  /** The signal's name. */
  readonly name?: string;
  /** JSON. */
  readonly payload?: unknown;
}

/** The links that `signalUrl()` makes, for pages of your own in place of the built-in ones. */
export interface SignalLinks {
  /** Looks, and changes nothing. @param token - what stands behind `/signals/` in the link */
  read(token: string): Promise<SignalLinkStatus>;
  /** Gives the signal, if the link is open. A second call changes nothing. @param token - as for `read` */
  use(token: string): Promise<SignalLinkStatus>;
}

export interface SignalLinksParts {
  readonly secrets: readonly string[];
  readonly storage: Storage;
  readonly clock: Clock;
  readonly engine: RunningEngine;
}

export function createSignalLinks({ secrets, storage, clock, engine }: SignalLinksParts): SignalLinks {
  const stateOf = async (link: SignalLink): Promise<SignalLinkState> => {
    const { executionId, name, madeAt, place } = link;
    const known = await storage.getStatus(executionId);
    // Links were made by executions alone: one that is not there has ended, and was deleted.
    if (!known) return 'over';
    if (await storage.findSignal(executionId, linkSignalId(link))) return 'answered';
    if (isFinal(known.status)) return 'over';
    const waits = await storage.listEndedWaits(executionId, name, madeAt);
    return waits.some(({ key }) => !isBeside(place, key)) ? 'over' : 'open';
  };

  const give = async (link: SignalLink): Promise<SignalLinkState> => {
    const { executionId, name, payload } = link;
    const signal: NewSignal = { id: linkSignalId(link), executionId, name, payload, createdAt: clock.now() };
    if ((await engine.signal(signal)) !== 'stored') return 'over';
    // Two links of one step may be used in the same moment: the first one that was stored counts.
    const stored = await storage.findSignal(executionId, signal.id);
    return stored && JSON.stringify(stored.payload) !== JSON.stringify(payload) ? 'answered' : 'given';
  };

  const answer = async (token: string, isUsed: boolean): Promise<SignalLinkStatus> => {
    const link = typeof token === 'string' ? readLink(token, secrets) : undefined;
    if (!link) return { state: 'unknown' };
    const before = await stateOf(link);
    const state = isUsed && before === 'open' ? await give(link) : before;
    const { executionId, name, payload } = link;
    return { state, executionId, name, payload };
  };

  return { read: (token) => answer(token, false), use: (token) => answer(token, true) };
}

const BRANCH = /^(foreach|parallel)\[\d+\]$/;

/**
 * Whether two steps stand in different items of one `foreach`, or branches of one `parallel`: the wait of the one is none of
 * the other's.
 */
function isBeside(a: string, b: string): boolean {
  const [ofA, ofB] = [a.split('.'), b.split('.')];
  const at = ofA.findIndex((segment, i) => segment !== ofB[i]);
  return BRANCH.test(ofA[at] ?? '') && BRANCH.test(ofB[at] ?? '');
}
