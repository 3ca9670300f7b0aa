/** Takes up an execution that was claimed: recalls what is stored of it, finds what it runs, and gives both to be run. */

import { isOrchestratorError, messageOf } from '../../engine/errors.ts';
import { signalsOfEnd } from '../../engine/model/child.ts';
import type { ExecutionTrigger } from '../../engine/model/execution.ts';
import type { ClaimedExecution, DamagedExecution, StepRecord } from '../../engine/model/stored-execution.ts';
import { nextTurn } from '../../engine/next-turn.ts';
import type { EngineHost, Runnable } from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { ActiveRun } from './active-run.ts';
import type { CommitWriter } from './commit-writer.ts';
import type { HeldExecution } from './held-execution.ts';
import type { Patience } from './patience.ts';
import { createSetbacks } from './setbacks.ts';
import { MARK, type Suspects, TOO_MUCH_BLAME } from './suspects.ts';

export interface TakeUpParts {
  readonly host: EngineHost;
  readonly storage: Storage;
  readonly patiently: Patience;
  readonly writer: CommitWriter;
  /** Versions that this process can't run; it claims none of them any more. */
  readonly foreign: Set<string>;
  readonly suspects: Suspects;
  /** How many runs are at work here that are no suspects. */
  othersAtWork(): number;
  giveBack(owner: string, executionId: string, epoch: number, afterMs: number): void;
  /** Something is due at an instant. */
  wake(dueAt: number): void;
  /** Runs it. */
  launch(held: HeldExecution, runnable: Runnable): ActiveRun;
}

/** More takeovers than this, and an execution is ended, whatever its processes died of. */
const MOST_RECOVERIES = 100;
/** An execution that the store can't give so many times in a row, over half a minute, is ended. */
const MOST_FAILURES = 6;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;
const PAGE = 1000;

export function createTakeUp(
  parts: TakeUpParts,
): (owner: string, claimed: ClaimedExecution | DamagedExecution, reached: number) => Promise<void> {
  const { host, storage, patiently, writer, foreign, suspects } = parts;
  const { clock, logger } = host;
  const runnables = new Map<string, MaybePromise<Runnable | string | undefined>>();
  const setbacks = createSetbacks(clock, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  /** Suspects that have to wait, and are not yet given back. */
  const puttingOff = new Set<Promise<boolean>>();
  /** Those on their way in that are no suspects. */
  let comingIn = 0;

  const giveBack = async (owner: string, { execution, epoch, begun }: ClaimedExecution, afterMs: number) => {
    const dueAt = clock.now() + afterMs;
    const release = { status: begun ? ('running' as const) : ('queued' as const), dueAt };
    await writer.write(owner, { executionId: execution.id, epoch, steps: [], release });
    if (afterMs > 0) parts.wake(dueAt);
  };

  /** Ends what can't be run, so that it harms no other. */
  const park = async (owner: string, claimed: Parked, message: string) => {
    const { id, epoch, startedAt } = claimed;
    const finishedAt = clock.now();
    const about = { output: null, error: { code: 'INTERNAL', message }, finishedAt, agents: 0 };
    const end = { status: 'failed' as const, ...about, duration: Math.max(0, finishedAt - startedAt) };
    const signals = signalsOfEnd(claimed, end);
    await writer.write(owner, { executionId: id, epoch, steps: [], end, ...(signals && { signals }) });
    logger.error({ executionId: id }, `execution ${id} was ended: ${message}`);
    const record = await patiently(() => storage.getExecution(id, { agents: false }));
    if (record) host.ended(record);
  };

  const restore = async (version: string, ensemble: string): Promise<Runnable | string | undefined> => {
    const definition = await patiently(() => storage.getDefinition(version));
    return definition && host.restore(definition, ensemble);
  };

  /**
   * Claims come by the hundred: whoever needs a definition while it is looked up waits for the same answer.
   * @returns a text when this process can't run it, undefined when the definition is gone
   */
  const find = (version: string, ensemble: string): MaybePromise<Runnable | string | undefined> => {
    const key = `${version} ${ensemble}`;
    const known = runnables.get(key);
    if (known !== undefined) return known;
    const found = restore(version, ensemble);
    runnables.set(key, found);
    const keep = (runnable: Runnable | string | undefined) => {
      if (typeof runnable === 'object') runnables.set(key, runnable);
      else runnables.delete(key);
    };
    found.then(keep, () => runnables.delete(key));
    return found;
  };

  const readRecords = async (id: string): Promise<readonly StepRecord[]> => {
    const records: StepRecord[] = [];
    for (;;) {
      const after = records.at(-1)?.key;
      const query = { after, limit: PAGE, bytes: Number.POSITIVE_INFINITY, notes: true };
      const page = await patiently(() => storage.listSteps(id, query));
      records.push(...page);
      if (page.length < PAGE) return records;
    }
  };

  /** @returns the run, at work; undefined when it is not to run here */
  const begin = async (owner: string, claimed: ClaimedExecution, reached: number): Promise<ActiveRun | undefined> => {
    const { execution, epoch, startedAt, begun, cancelRequested: cancelled, signals } = claimed;
    const { id, version, ensemble } = execution;
    const found = find(version, ensemble);
    const runnable = found instanceof Promise ? await found : found;
    if (runnable === undefined) {
      await park(owner, toParked(claimed), `its definition ${version} is not stored`);
      return undefined;
    }
    if (typeof runnable === 'string') {
      if (!foreign.has(version)) {
        const text = `executions of \`${ensemble}\` (definition ${version}) are left to other processes: ${runnable}`;
        logger.warn({ ensemble, version }, text);
      }
      foreign.add(version);
      await giveBack(owner, claimed, 0);
      return undefined;
    }
    let records: readonly StepRecord[] | undefined;
    try {
      // What was queued may have been handed results.
      if (begun || execution.retryOf !== undefined) records = await readRecords(id);
    } catch (error) {
      // A row that says that it is damaged stays so; of anything else the store may recover.
      if (!isOrchestratorError(error, 'INTERNAL') || error.details.row === undefined) throw error;
      await park(owner, toParked(claimed), `what is stored of it is damaged: ${error.message}`);
      return undefined;
    }
    const about = { execution, owner, epoch, startedAt, records, signals };
    return parts.launch({ ...about, cancelled, resumed: begun, reached }, runnable);
  };

  const putOff = async (owner: string, claimed: ClaimedExecution, afterMs: number): Promise<void> => {
    const given = giveBack(owner, claimed, afterMs);
    const done = given.then(DONE, NOT_DONE);
    puttingOff.add(done);
    await done;
    puttingOff.delete(done);
    return given;
  };

  const beginSuspect = async (owner: string, claimed: ClaimedExecution, reached: number): Promise<void> => {
    // The others that were claimed with it are counted by then.
    await undefined;
    const place = suspects.enter(claimed.execution.id, claimed.blame, parts.othersAtWork() + comingIn);
    if (typeof place === 'number') return putOff(owner, claimed, place);
    let run: ActiveRun | undefined;
    try {
      // What this process still holds when it dies is blamed too: those that have to wait are given back first.
      await new Promise<void>(nextTurn);
      while (puttingOff.size > 0) await Promise.all(puttingOff);
      run = await begin(owner, claimed, reached);
    } finally {
      if (!run) place.leave();
    }
    if (run) place.watch(run);
  };

  const takeUp = async (owner: string, claimed: ClaimedExecution | DamagedExecution, reached: number) => {
    if ('damage' in claimed) {
      const { executionId: id, epoch, damage, parentId } = claimed;
      const trigger = parentId === undefined ? ({ type: 'call' } as const) : ({ type: 'ensemble', parentId } as const);
      const parked = { id, epoch, trigger, startedAt: clock.now() };
      return park(owner, parked, `what is stored of it is damaged: ${messageOf(damage)}`);
    }
    const { recoveries, blame } = claimed;
    if (blame >= TOO_MUCH_BLAME) {
      const message =
        'its process died each time soon after it was resumed, and nothing else was at work there that could be the cause; it is not resumed again. A retry runs it anew';
      return park(owner, toParked(claimed), message);
    }
    if (recoveries > MOST_RECOVERIES) {
      const message = `its process died ${recoveries} times while it ran; it is not resumed again. A retry runs it anew`;
      return park(owner, toParked(claimed), message);
    }
    if (blame > MARK) return beginSuspect(owner, claimed, reached);
    comingIn += 1;
    try {
      await begin(owner, claimed, reached);
    } finally {
      comingIn -= 1;
    }
  };

  /** What went wrong with one execution is tried again later, and ended when it can't be read. */
  return async (owner, claimed, reached) => {
    try {
      await takeUp(owner, claimed, reached);
    } catch (error) {
      const executionId = idOf(claimed);
      const { pauseMs, times, isNew } = setbacks.add(executionId, error);
      if (isNew)
        logger.error(
          { err: error, executionId },
          'an execution could not be resumed; it is tried again, less and less often',
        );
      if (times >= MOST_FAILURES && isOrchestratorError(error, 'INTERNAL') && 'execution' in claimed) {
        const parked = park(owner, toParked(claimed), `what is stored of it can't be read: ${error.message}`);
        if (await parked.then(DONE, NOT_DONE)) return;
      }
      parts.giveBack(owner, executionId, claimed.epoch, pauseMs);
    }
  };
}

const DONE = () => true;
const NOT_DONE = () => false;

/** What is known of an execution that is ended without having been run. */
interface Parked {
  readonly id: string;
  readonly epoch: number;
  readonly startedAt: number;
  readonly trigger: ExecutionTrigger;
}

function toParked({ execution, epoch, startedAt }: ClaimedExecution): Parked {
  return { id: execution.id, epoch, startedAt, trigger: execution.trigger };
}

export function idOf(claimed: ClaimedExecution | DamagedExecution): string {
  return 'damage' in claimed ? claimed.executionId : claimed.execution.id;
}
