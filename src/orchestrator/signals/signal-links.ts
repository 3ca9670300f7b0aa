/** Reads and uses the links that `signalUrl()` created, as the public `orchestrator.signalLinks`. */

import { isFinal } from '../../engine/model/execution.ts';
import type { NewSignal } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import { linkSignalId, readLink, type SignalLink } from '../../engine/signing/signal-link.ts';

/**
 * The state of a link:
 *
 * | state | meaning |
 * |---|---|
 * | open | it can be used |
 * | given | this call has sent its signal |
 * | answered | it was used before, or another link of the same step for the same signal was used |
 * | over | its execution has ended, or the wait after the step that created it has |
 * | unknown | it is not a link of this orchestrator: it was changed, cut off, or signed with a secret that is not listed any more |
 */
export type SignalLinkState = 'open' | 'given' | 'answered' | 'over' | 'unknown';

/** The state of a link, and its content. An unknown link has only a state. */
export interface SignalLinkStatus {
  readonly state: SignalLinkState;
  readonly executionId?: string;
  /** The signal's name. */
  readonly name?: string;
  /** JSON. */
  readonly payload?: unknown;
}

/** The links that `signalUrl()` creates, for your own pages in place of the built-in ones. */
export interface SignalLinks {
  /** Reads the state of a link, and changes nothing. @param token - the part after `/signals/` in the link */
  read(token: string): Promise<SignalLinkStatus>;
  /** Sends the signal if the link is open. A second call changes nothing. @param token - as for `read` */
  use(token: string): Promise<SignalLinkStatus>;
}

export interface SignalLinksParts {
  readonly secrets: readonly string[];
  readonly clock: Clock;
  readonly executionService: ExecutionService;
}

export function createSignalLinks({ secrets, clock, executionService }: SignalLinksParts): SignalLinks {
  const { records, engine } = executionService;
  const stateOf = async (link: SignalLink): Promise<SignalLinkState> => {
    const { executionId, name, madeAt, place } = link;
    const known = await records.executions.getStatus(executionId);
    // Only executions create links: an unknown execution has ended and was deleted.
    if (!known) return 'over';
    if (await records.signals.find(executionId, linkSignalId(link))) return 'answered';
    if (isFinal(known.status)) return 'over';
    const waits = await records.executions.listEndedWaits(executionId, name, madeAt);
    return waits.some(({ key }) => !areConcurrent(place, key)) ? 'over' : 'open';
  };

  const send = async (link: SignalLink): Promise<SignalLinkState> => {
    const { executionId, name, payload } = link;
    const signal: NewSignal = { id: linkSignalId(link), executionId, name, payload, createdAt: clock.now() };
    if ((await engine.signal(signal)) !== 'stored') return 'over';
    // Two links of one step may be used at the same moment: the first stored signal counts.
    const stored = await records.signals.find(executionId, signal.id);
    return stored && JSON.stringify(stored.payload) !== JSON.stringify(payload) ? 'answered' : 'given';
  };

  const answer = async (token: string, isUsed: boolean): Promise<SignalLinkStatus> => {
    const link = typeof token === 'string' ? readLink(token, secrets) : undefined;
    if (!link) return { state: 'unknown' };
    const before = await stateOf(link);
    const state = isUsed && before === 'open' ? await send(link) : before;
    const { executionId, name, payload } = link;
    return { state, executionId, name, payload };
  };

  return { read: (token) => answer(token, false), use: (token) => answer(token, true) };
}

const BRANCH = /^(foreach|parallel)\[\d+\]$/;

/**
 * Whether two steps are in different items of one `foreach`, or in different branches of one `parallel`. Then the wait of one has
 * nothing to do with a link of the other.
 */
function areConcurrent(a: string, b: string): boolean {
  const [ofA, ofB] = [a.split('.'), b.split('.')];
  const at = ofA.findIndex((segment, i) => segment !== ofB[i]);
  return BRANCH.test(ofA[at] ?? '') && BRANCH.test(ofB[at] ?? '');
}
