/** Runs another version of an ensemble dry, after executions have ended, and keeps where it differs. What this process has no time for is left. */

import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { messageOf } from '../../engine/base/errors.ts';
import { type PageRequest, readPages } from '../../engine/base/read-pages.ts';
import type { Traffic } from '../../engine/ensemble/traffic.ts';
import type { Execution, PlannedStep } from '../../engine/execution/execution.ts';
import type { ExecutionOutcome } from '../../engine/execution/execution-engine.port.ts';
import type { NewExecution } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { DocumentStore } from '../../engine/storage/document-store.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { readInput } from '../runs/read-input.ts';
import type { Executions } from '../runs/executions.ts';
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
  read(ensemble: string, traffic: Traffic): Promise<Shadowed>;
}

interface ShadowDependencies {
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** @throws NOT_FOUND */
  find(kind: 'ensemble', name: string): MaybePromise<LoadedEnsemble>;
  trafficOf(ensemble: string): Promise<Traffic | undefined>;
  readonly executions: () => Pick<Executions, 'get' | 'steps'>;
  accepted(id: string): MaybePromise<NewExecution | undefined>;
  /** Runs an ensemble dry with the answers of the execution, and stores nothing. */
  run(
    ensemble: LoadedEnsemble,
    execution: NewExecution,
  ): Promise<{ readonly outcome: ExecutionOutcome; readonly steps: readonly PlannedStep[] }>;
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
const NONE: Shadowed = { runs: 0, different: 0, left: 0, differences: [] };

/** What is stored: of one version, since it was set. */
interface Stored extends Shadowed {
  readonly shadow: string;
  readonly deployedAt: number;
}

export function createShadows(dependencies: ShadowDependencies): Shadows {
  const { documents, clock, logger, find, trafficOf, executions, accepted, run } = dependencies;
  const waiting: Ended[] = [];
  /** Those for which there was no place, by ensemble. */
  const left = new Map<string, number>();
  let work: Pick<TimedWork, 'wake'> | undefined;

  const wentOf = async (record: Execution<unknown>): Promise<Went> => {
    const { id, status, output } = record;
    const read = (page: PageRequest) => executions().steps(id, { ...page, maxOutput: 0 });
    const { items, nextCursor } = await readPages('steps', read, MAX_STEPS);
    const ran = items.filter(({ kind, status: of }) => COMPARED.has(kind) && of !== 'skipped');
    return { status, output: output as Json, steps: nextCursor === undefined ? ran : undefined };
  };

  /** @returns undefined if the traffic has changed */
  const compare = async ({ id, ensemble, shadow }: Ended): Promise<ShadowDifference | 'same' | undefined> => {
    const version = (await find('ensemble', ensemble)).traffic?.shadow();
    const execution = await accepted(id);
    if (version?.compiled.stored.version !== shadow || !execution) return undefined;
    const record = await executions().get(id);
    const ran = await runAfter(version, execution);
    const difference = differenceBetween(await wentOf(record), ran);
    if (!difference) return 'same';
    const { madeUp } = ran;
    return { executionId: id, at: clock.now(), ...difference, ...(madeUp.length > 0 && { madeUp }) };
  };

  const runAfter = async (version: LoadedEnsemble, execution: NewExecution) => {
    const { deadlineAt: _deadline, idempotencyKey: _key, ...like } = execution;
    try {
      const input = await readInput(version, execution.input);
      const trigger = { ...execution.trigger, dryRun: { like: execution.id } };
      const { outcome, steps } = await run(version, { ...like, input, trigger });
      const own = steps.filter(({ within, kind, skipped }) => within === undefined && COMPARED.has(kind) && !skipped);
      const madeUp = own.filter(({ from }) => from === 'types').map(({ name }) => name);
      const went = { output: outcome.output, steps: own.length < MAX_STEPS ? own : undefined };
      return { status: outcome.status as string, ...went, madeUp: [...new Set(madeUp)] };
    } catch (error) {
      // Its input does not fit the version.
      return { status: `refused: ${messageOf(error)}`, steps: undefined, madeUp: [] };
    }
  };

  const add = async (ensemble: string, more: Shadowed): Promise<void> => {
    const { shadow, deployedAt } = (await trafficOf(ensemble)) ?? {};
    // The traffic has changed.
    if (shadow === undefined || deployedAt === undefined) return;
    for (;;) {
      const now = clock.now();
      const stored = await documents.read(KIND, ensemble, now);
      const known = knownOf(stored?.value, { shadow, deployedAt });
      const value = { shadow, deployedAt, ...plus(known, more) } as unknown as JsonObject;
      const change = { expectedVersion: stored?.version ?? 0, document: { value, tag: '', updatedAt: now }, now };
      if (await documents.write(KIND, ensemble, change)) return;
    }
  };

  const advanceOne = async (ended: Ended): Promise<readonly [string, Shadowed]> => {
    const found = await compare(ended).catch((err: unknown) => {
      logger.warn({ err, executionId: ended.id, ensemble: ended.ensemble }, 'the shadow of an execution could not run');
      return undefined;
    });
    if (found === undefined) return [ended.ensemble, { ...NONE, left: 1 }];
    if (found === 'same') return [ended.ensemble, { ...NONE, runs: 1 }];
    return [ended.ensemble, { ...NONE, runs: 1, different: 1, differences: [found] }];
  };

  const task: TimedTask = {
    async advance({ shouldContinue }) {
      const found = new Map<string, Shadowed>();
      const keep = (ensemble: string, more: Shadowed) => found.set(ensemble, plus(found.get(ensemble) ?? NONE, more));
      for (const [ensemble, count] of left) keep(ensemble, { ...NONE, left: count });
      left.clear();
      for (let i = 0; i < AT_ONCE && waiting.length > 0 && shouldContinue(); i++)
        keep(...(await advanceOne(waiting.shift() as Ended)));
      for (const [ensemble, more] of found) await add(ensemble, more);
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
      else left.set(execution.ensemble, (left.get(execution.ensemble) ?? 0) + 1);
      work?.wake(task, clock.now());
    },
    async read(ensemble, { shadow, deployedAt }) {
      const stored = await documents.read(KIND, ensemble, clock.now());
      const { runs, different, left: not, differences } = knownOf(stored?.value, { shadow, deployedAt });
      return { runs, different, left: not, differences };
    },
  };
}

/** The kinds of steps that are compared. */
const COMPARED: ReadonlySet<string> = new Set(['agent', 'wait', 'ensemble']);

function plus(known: Shadowed, more: Shadowed): Shadowed {
  return {
    ...{ runs: known.runs + more.runs, different: known.different + more.different, left: known.left + more.left },
    differences: [...more.differences, ...known.differences].slice(0, MAX_DIFFERENCES),
  };
}

function knownOf(
  value: JsonObject | undefined,
  { shadow, deployedAt }: Pick<Traffic, 'shadow' | 'deployedAt'>,
): Shadowed {
  const known = value as unknown as Stored | undefined;
  return known && known.shadow === shadow && known.deployedAt === deployedAt ? known : NONE;
}
