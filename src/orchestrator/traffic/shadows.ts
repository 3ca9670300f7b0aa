/** Runs another version of an ensemble dry after executions have ended, and keeps where it differs. What this process has no time for is left. */

import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { Traffic } from '../../engine/ensemble/traffic.ts';
import type { NewExecution } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { DocumentStore } from '../../engine/storage/document-store.port.ts';
import type { RanDry } from '../change/dry-run.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { readRecordedInput } from '../runs/starts/read-input.ts';
import type { TimedTask, TimedWork } from '../timed/timed-work.ts';
import { differenceBetween, type Went, type WentDifferently } from './compare-shadow.ts';

/** An execution whose path or output would be another one in the version that is its shadow. */
export interface ShadowDifference extends WentDifferently {
  readonly executionId: string;
  /** Unix ms. */
  readonly at: number;
  /** The steps of the other version that the execution did not have: their results are made up from their types. */
  readonly madeUp?: readonly string[];
}

/** What the dry runs of a version have shown. */
export interface Shadowed {
  /** After how many executions it ran. */
  readonly runs: number;
  readonly different: number;
  /** Executions after which it did not run, because too many were waiting for it. */
  readonly left: number;
  /** The newest first, at most 100. */
  readonly differences: readonly ShadowDifference[];
}

export interface Shadows {
  readonly task: TimedTask;
  attach(work: Pick<TimedWork, 'wake'>): void;
  /** An execution has ended in this process. @param shadow - the hash of the version that is its shadow */
  ended(execution: { readonly id: string; readonly ensemble: string; readonly shadow: string }): void;
  read(ensemble: string, traffic: Pick<Traffic, 'shadow' | 'shadowSince'>): Promise<Shadowed>;
  /** The ensemble was deleted. */
  remove(ensemble: string): Promise<void>;
}

interface ShadowDependencies {
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** @throws NOT_FOUND */
  find(kind: 'ensemble', name: string): MaybePromise<LoadedEnsemble>;
  /** The definition with a hash. A text says what this process lacks. */
  load(version: string, ensemble: string): Promise<LoadedEnsemble | string>;
  trafficOf(ensemble: string): Promise<Traffic | undefined>;
  accepted(id: string): MaybePromise<NewExecution | undefined>;
  /** Runs an ensemble dry with the answers of the execution, and stores nothing. */
  run(ensemble: LoadedEnsemble, execution: NewExecution): Promise<RanDry>;
}

interface Ended {
  readonly id: string;
  readonly ensemble: string;
  readonly shadow: string;
}

const KIND = 'ensemble-shadow';
const MAX_WAITING = 100;
const AT_ONCE = 10;
const MAX_DIFFERENCES = 100;
/** How many steps of an execution are compared: as many as a plan has. */
const MAX_STEPS = 1_000;
/** How long the differences are kept after the last one. */
const KEPT_MS = 30 * 24 * 60 * 60 * 1_000;
const NONE: Shadowed = { runs: 0, different: 0, left: 0, differences: [] };

/** What is stored: of one version, since it was set. */
interface Stored extends Shadowed {
  readonly shadow: string;
  readonly since: number;
}

export function createShadows(dependencies: ShadowDependencies): Shadows {
  const { documents, clock, logger, find, load, trafficOf, accepted, run } = dependencies;
  const waiting: Ended[] = [];
  /** Those for which there was no place, by the shadow and its ensemble. */
  const left = new Map<string, Shadowed>();
  let work: Pick<TimedWork, 'wake'> | undefined;

  /**
   * Runs both versions dry, so that only what the definitions say differs: not the time, and not which branch was first.
   * @returns undefined if the traffic has changed
   */
  const compare = async ({ id, ensemble, shadow }: Ended): Promise<ShadowDifference | 'same' | undefined> => {
    const version = (await find('ensemble', ensemble)).traffic?.shadow();
    const execution = await accepted(id);
    if (version?.compiled.stored.version !== shadow || !execution) return undefined;
    const own = await load(execution.version, ensemble);
    if (typeof own === 'string') throw new Error(own);
    const { deadlineAt: _deadline, idempotencyKey: _key, ...accept } = execution;
    const like = { ...accept, trigger: { ...execution.trigger, dryRun: { like: id } } };
    const was = wentOf(await run(own, like));
    const is = await runShadow(version, like);
    const difference = differenceBetween(was, is);
    if (!difference) return 'same';
    const madeUp = is.madeUp.filter((name) => !was.madeUp.includes(name));
    return { executionId: id, at: clock.now(), ...difference, ...(madeUp.length > 0 && { madeUp }) };
  };

  const runShadow = async (version: LoadedEnsemble, like: NewExecution) => {
    let input: Json;
    try {
      input = await readRecordedInput(version, like.input);
    } catch (error) {
      if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
      return { status: `refused: ${messageOf(error)}`, steps: undefined, madeUp: [] };
    }
    return wentOf(await run(version, { ...like, input }));
  };

  const add = async ({ ensemble, shadow }: Pick<Ended, 'ensemble' | 'shadow'>, more: Shadowed): Promise<void> => {
    const { shadow: current, shadowSince: since } = (await trafficOf(ensemble)) ?? {};
    // The traffic has changed.
    if (current !== shadow || since === undefined) return;
    for (;;) {
      const now = clock.now();
      const stored = await documents.read(KIND, ensemble, now);
      const known = knownOf(stored?.value, shadow, since);
      const value = { shadow, since, ...plus(known, more) } as unknown as JsonObject;
      const document = { value, tag: '', updatedAt: now, expiresAt: now + KEPT_MS };
      if (await documents.write(KIND, ensemble, { expectedVersion: stored?.version ?? 0, document, now })) return;
    }
  };

  const advanceOne = async (ended: Ended): Promise<Shadowed> => {
    const { id: executionId, ensemble } = ended;
    const found = await compare(ended).catch((err: unknown) => {
      logger.warn({ err, executionId, ensemble }, 'the shadow of an execution could not run');
      return undefined;
    });
    if (found === undefined) return { ...NONE, left: 1 };
    if (found === 'same') return { ...NONE, runs: 1 };
    return { ...NONE, runs: 1, different: 1, differences: [found] };
  };

  const task: TimedTask = {
    async advance({ shouldContinue }) {
      const found = new Map(left);
      left.clear();
      for (let i = 0; i < AT_ONCE && waiting.length > 0 && shouldContinue(); i++) {
        const one = waiting.shift() as Ended;
        keep(found, one, await advanceOne(one));
      }
      try {
        for (const [key, more] of found) {
          const [shadow = '', ensemble = ''] = key.split(' ');
          await add({ ensemble, shadow }, more);
          found.delete(key);
        }
      } catch (error) {
        for (const [key, more] of found) left.set(key, plus(left.get(key) ?? NONE, more));
        throw error;
      }
      return { nextAt: waiting.length > 0 ? clock.now() : undefined };
    },
    logFailure: (err, againInMs) => logger.warn({ err, againInMs }, 'what shadows have shown could not be stored'),
  };

  return {
    task,
    attach(to) {
      work = to;
    },
    ended(execution) {
      if (waiting.length < MAX_WAITING) waiting.push(execution);
      else keep(left, execution, { ...NONE, left: 1 });
      work?.wake(task, clock.now());
    },
    async read(ensemble, { shadow = '', shadowSince = 0 }) {
      const stored = await documents.read(KIND, ensemble, clock.now());
      const { runs, different, left: not, differences } = knownOf(stored?.value, shadow, shadowSince);
      const there = await Promise.all(differences.map(({ executionId }) => accepted(executionId)));
      // What was deleted is shown no longer.
      return { runs, different, left: not, differences: differences.filter((_one, i) => there[i]) };
    },
    async remove(ensemble) {
      const now = clock.now();
      const stored = await documents.read(KIND, ensemble, now);
      if (stored) await documents.write(KIND, ensemble, { expectedVersion: stored.version, now });
    },
  };
}

/** The kinds of steps that are compared. */
const COMPARED: ReadonlySet<string> = new Set(['agent', 'wait', 'ensemble']);

function wentOf({ outcome: { status, output }, steps }: RanDry): Went & { readonly madeUp: readonly string[] } {
  const own = steps.filter(({ within, kind, skipped }) => within === undefined && COMPARED.has(kind) && !skipped);
  const madeUp = own.filter(({ from }) => from === 'types').map(({ name }) => name);
  return { status, output, steps: steps.length < MAX_STEPS ? own : undefined, madeUp: [...new Set(madeUp)] };
}

function keep(
  all: Map<string, Shadowed>,
  { ensemble, shadow }: Pick<Ended, 'ensemble' | 'shadow'>,
  more: Shadowed,
): void {
  const key = `${shadow} ${ensemble}`;
  all.set(key, plus(all.get(key) ?? NONE, more));
}

function plus(known: Shadowed, more: Shadowed): Shadowed {
  return {
    ...{ runs: known.runs + more.runs, different: known.different + more.different, left: known.left + more.left },
    differences: [...more.differences, ...known.differences].slice(0, MAX_DIFFERENCES),
  };
}

function knownOf(value: JsonObject | undefined, shadow: string, since: number): Shadowed {
  const known = value as unknown as Stored | undefined;
  return known && known.shadow === shadow && known.since === since ? known : NONE;
}
