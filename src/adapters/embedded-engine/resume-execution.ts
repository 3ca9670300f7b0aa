/** Resumes or starts a claimed execution: reads its records, loads its definition, and launches its run. */

import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import { nextTurn } from '../../engine/base/time/next-turn.ts';
import { lineOfEnd } from '../../engine/events/tallies/end-line.ts';
import { signalsOfEnd } from '../../engine/execution/child.ts';
import type { ExecutionTrigger } from '../../engine/execution/execution.ts';
import type { LoadedDefinition, Outbox } from '../../engine/execution/execution-engine.port.ts';
import { startsWithResults, waitedBefore } from '../../engine/execution/execution-record.ts';
import type {
  ClaimedExecution,
  CommitEntry,
  DamagedExecution,
  ExecutionEnd,
  Fold,
  NewExecution,
  StepRecord,
} from '../../engine/execution/stored-execution.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import { isAfterCrash } from '../../engine/running/held-execution.ts';
import { PinnedComponents } from '../../engine/running/pinned-components.ts';
import type { Run } from './active-runs.ts';
import { releaseLater } from './deferred-writes.ts';
import type { EngineState } from './engine-state.ts';
import { launchRun } from './launch-run.ts';
import { FIRST_DEATH_BLAME, MAX_BLAME } from './suspects.ts';

/** An execution that was reclaimed from dead workers more often than this is ended, whatever the causes of death. */
const MAX_RECOVERIES = 100;
/** An execution that the storage can't read this many times in a row, which takes half a minute, is ended. */
const MAX_FAILURES = 6;
const PAGE = 1000;
/** The largest number of executions whose recoveries are remembered. */
const MAX_REMEMBERED = 10_000;

/** A claimed execution, with what this process knows of its claim. */
interface Claim {
  readonly worker: string;
  readonly claimed: ClaimedExecution;
  /** The instant (Unix ms) up to which executions were claimed as due. */
  readonly reached: number;
}

/** Never rejects: a failure with one execution is retried later, and an execution that can't be read is ended. */
export async function resumeExecution(
  engine: EngineState,
  worker: string,
  claimed: ClaimedExecution | DamagedExecution,
  reached: number,
): Promise<void> {
  try {
    if ('damage' in claimed) await endDamaged(engine, worker, claimed);
    else await resume(engine, { worker, claimed, reached });
  } catch (error) {
    const executionId = idOf(claimed);
    const ensemble = 'damage' in claimed ? undefined : claimed.execution.ensemble;
    const { pauseMs, times, isNew } = engine.resume.backoff.next(executionId, error);
    if (isNew)
      engine.logger.error(
        { err: error, executionId, ensemble, worker },
        'an execution could not be resumed; it is tried again, less and less often',
      );
    if (times >= MAX_FAILURES && isOrchestratorError(error, 'INTERNAL') && 'execution' in claimed) {
      const message = `what is stored of it can't be read: ${error.message}`;
      if (await endUnrunnable(engine, worker, toUnrunnable(claimed), message).then(DONE, NOT_DONE)) return;
    }
    releaseLater(engine, worker, executionId, claimed.epoch, pauseMs);
  }
}

export function idOf(claimed: ClaimedExecution | DamagedExecution): string {
  return 'damage' in claimed ? claimed.executionId : claimed.execution.id;
}

async function resume(engine: EngineState, claim: Claim): Promise<void> {
  const { worker, claimed } = claim;
  const { recoveries, blame } = claimed;
  // Its worker died before it could release it. Its release pauses it.
  if (claimed.pauseRequested && !claimed.cancelRequested) return release(engine, worker, claimed, 0);
  const { id, ensemble } = claimed.execution;
  const scope = claimed.cancelRequested ? undefined : engine.pauses.scopeOf(ensemble);
  if (scope) {
    await engine.withRetry(() => engine.storage.executions.pause(id, scope));
    return release(engine, worker, claimed, 0);
  }
  if (blame >= MAX_BLAME) {
    const message =
      'its process died each time soon after it was resumed, and no other execution was running there that could be the cause; it is not resumed again. A retry runs it anew';
    return endUnrunnable(engine, worker, toUnrunnable(claimed), message);
  }
  if (recoveries > MAX_RECOVERIES) {
    const message = `its process died ${recoveries} times while it ran; it is not resumed again. A retry runs it anew`;
    return endUnrunnable(engine, worker, toUnrunnable(claimed), message);
  }
  if (blame > FIRST_DEATH_BLAME) return beginSuspect(engine, claim);
  engine.resume.count += 1;
  try {
    await beginRun(engine, claim);
  } finally {
    engine.resume.count -= 1;
  }
}

/** @returns the active run; undefined when the execution does not run here */
async function beginRun(engine: EngineState, { worker, claimed, reached }: Claim): Promise<Run | undefined> {
  const { execution, epoch, startedAt, begun, cancelRequested: cancelled, signals } = claimed;
  const { recoveries, handover, resumedAt } = claimed;
  const { id, version, ensemble } = execution;
  let loaded: LoadedDefinition | string | undefined;
  try {
    const found = loadDefinition(engine, version, ensemble);
    loaded = found instanceof Promise ? await found : found;
  } catch (error) {
    if (!isDamage(error)) throw error;
    await endUnrunnable(engine, worker, toUnrunnable(claimed), `its definition is damaged: ${error.message}`);
    return undefined;
  }
  if (loaded === undefined) {
    await endUnrunnable(engine, worker, toUnrunnable(claimed), `its definition ${version} is not stored`);
    return undefined;
  }
  if (typeof loaded === 'string') {
    const { unsupportedVersions } = engine.resume;
    if (!unsupportedVersions.has(version)) {
      const text = `executions of \`${ensemble}\` (definition ${version}) are left to other processes: ${loaded}`;
      engine.logger.warn({ ensemble, version }, text);
    }
    unsupportedVersions.add(version);
    await release(engine, worker, claimed, 0);
    return undefined;
  }
  let records: readonly StepRecord[] | undefined;
  let fold = handover?.fold?.version === version ? handover.fold : undefined;
  try {
    records = fold && (await readWithFold(engine, id, fold));
    if (!records) fold = undefined;
    // A queued retry was stored with the results that it keeps, and a step may have got its result by hand.
    const hasRecords = begun || startsWithResults(execution) || handover?.completions !== undefined;
    if (!records && hasRecords) records = await readRecords(engine, id);
  } catch (error) {
    if (!isDamage(error)) throw error;
    const message = `what is stored of it is damaged: ${error.message}`;
    await endUnrunnable(engine, worker, toUnrunnable(claimed), message);
    return undefined;
  }
  if (loaded.perProcess !== undefined && !engine.runs.perProcess.take(loaded, id)) {
    await release(engine, worker, claimed, 0);
    return undefined;
  }
  if (begun) logRecovery(engine, worker, claimed);
  const about = { execution, worker, epoch, startedAt, records, fold, signals, recoveries, handover, resumedAt };
  const begins = !begun || isAfterCrash(claimed);
  const isLate = !begun && execution.startBy !== undefined && engine.clock.now() >= execution.startBy;
  return launchRun(engine, { ...about, cancelled, isLate, resumed: begun, reached, begins }, loaded);
}

/** A damaged row stays damaged; the storage may recover from any other failure. */
function isDamage(error: unknown): error is Error {
  return isOrchestratorError(error, 'INTERNAL') && error.details.row !== undefined;
}

/** A claim does not say whether the execution was freed from a dead worker since the last claim, only how often it was freed. */
function logRecovery({ logger, resume: { recovered } }: EngineState, worker: string, claimed: ClaimedExecution): void {
  const { recoveries, execution } = claimed;
  const { id: executionId, ensemble } = execution;
  if (recoveries <= (recovered.get(executionId) ?? 0)) return;
  if (recovered.size >= MAX_REMEMBERED) recovered.clear();
  recovered.set(executionId, recoveries);
  logger.warn({ executionId, ensemble, worker, recoveries }, 'execution resumed after a crash');
}

async function beginSuspect(engine: EngineState, claim: Claim): Promise<void> {
  const { suspects, runs, resume: resuming } = engine;
  const { worker, claimed } = claim;
  // After this turn, the others of the same claim are counted.
  await undefined;
  const othersActive = runs.size - suspects.running + resuming.count;
  const place = suspects.enter(claimed.execution.id, claimed.blame, othersActive);
  if (typeof place === 'number') return postpone(engine, worker, claimed, place);
  let run: Run | undefined;
  try {
    // Every execution that this process holds when it dies gets blame: first release the suspects that have to wait.
    await new Promise<void>(nextTurn);
    while (resuming.postponing.size > 0) await Promise.all(resuming.postponing);
    run = await beginRun(engine, claim);
  } finally {
    if (!run) place.leave();
  }
  if (run) place.watch(run);
}

async function postpone(engine: EngineState, worker: string, claimed: ClaimedExecution, afterMs: number) {
  const { postponing } = engine.resume;
  const released = release(engine, worker, claimed, afterMs);
  const done = released.then(DONE, NOT_DONE);
  postponing.add(done);
  await done;
  postponing.delete(done);
  return released;
}

async function release(engine: EngineState, worker: string, claimed: ClaimedExecution, afterMs: number) {
  const { execution, epoch, begun } = claimed;
  const dueAt = engine.clock.now() + afterMs;
  const release = { status: begun ? ('running' as const) : ('queued' as const), dueAt };
  await engine.writer.write(worker, { executionId: execution.id, epoch, steps: [], release });
  if (afterMs > 0) engine.wakeups.wake(dueAt);
}

/** @returns undefined if not all of them are there: then the run replays what is there, and makes the rest again */
async function readWithFold(engine: EngineState, id: string, { keys, after }: Fold) {
  const { storage, withRetry } = engine;
  const records: StepRecord[] = [];
  for (let from = 0; from < keys.length; from += PAGE) {
    const some = keys.slice(from, from + PAGE);
    const found = await withRetry(() => storage.executions.getSteps(id, some));
    if (found.length !== some.length) return undefined;
    records.push(...found);
  }
  const known = new Set(keys);
  return [...records, ...(await readRecords(engine, id, after)).filter(({ key }) => !known.has(key))];
}

/** @param first - only the records after the one with this key */
async function readRecords(
  { storage, withRetry }: EngineState,
  id: string,
  first?: string,
): Promise<readonly StepRecord[]> {
  const records: StepRecord[] = [];
  for (;;) {
    const after = records.at(-1)?.key ?? first;
    const query = { after, limit: PAGE, bytes: Number.POSITIVE_INFINITY, notes: true };
    const page = await withRetry(() => storage.executions.listSteps(id, query));
    records.push(...page);
    if (page.length < PAGE) return records;
  }
}

async function endDamaged(engine: EngineState, worker: string, damaged: DamagedExecution): Promise<void> {
  const { executionId: id, epoch, damage, parentId } = damaged;
  const trigger = parentId === undefined ? ({ type: 'call' } as const) : ({ type: 'ensemble', parentId } as const);
  const message = `what is stored of it is damaged: ${messageOf(damage)}`;
  await endUnrunnable(
    engine,
    worker,
    { id, execution: undefined, epoch, trigger, startedAt: engine.clock.now(), waited: 0 },
    message,
  );
}

/** An execution that is ended without a run. */
interface UnrunnableExecution {
  readonly id: string;
  /** Undefined if it can't be read. */
  readonly execution: NewExecution | undefined;
  readonly epoch: number;
  readonly startedAt: number;
  readonly trigger: ExecutionTrigger;
  /** ms that it waited. */
  readonly waited: number;
}

function toUnrunnable({ execution, epoch, startedAt, handover, resumedAt }: ClaimedExecution): UnrunnableExecution {
  const { id, trigger } = execution;
  return { id, execution, epoch, startedAt, trigger, waited: waitedBefore(handover, resumedAt) };
}

/** Ends an execution that can't run as failed, so that it does not affect others. */
async function endUnrunnable(engine: EngineState, worker: string, claimed: UnrunnableExecution, message: string) {
  const { host, storage, clock, logger, writer, withRetry } = engine;
  const { id, execution, epoch, startedAt, waited } = claimed;
  const ensemble = execution?.ensemble;
  const finishedAt = Math.max(clock.now(), startedAt);
  const about = { output: null, error: { code: 'INTERNAL', message }, finishedAt, agents: 0 };
  const duration = finishedAt - startedAt;
  const components = await findComponents(engine, claimed);
  const more = { ...(waited > 0 && { waited }), ...(components && { components }) };
  const end = { status: 'failed' as const, ...about, duration, ...more };
  const signals = signalsOfEnd(claimed, end);
  const counted = execution && lineOfEnd(execution, startedAt, end);
  const entry: CommitEntry = { executionId: id, epoch, steps: [], end, counted, ...(signals && { signals }) };
  const outbox = execution && (await findOutbox(engine, execution));
  await writer.write(worker, outbox ? outbox(entry, execution) : entry);
  logger.error({ executionId: id, ensemble, worker }, `execution was ended: ${message}`);
  const record = await withRetry(() => storage.executions.get(id, { agents: false }));
  if (record) host.ended(record, worker);
}

/** What it used, as far as it can be read: a rollout counts the end of an execution that ended its processes. */
async function findComponents(engine: EngineState, { id }: UnrunnableExecution): Promise<ExecutionEnd['components']> {
  const pinned = new PinnedComponents();
  try {
    for (const record of await readRecords(engine, id)) pinned.add(record);
  } catch (error) {
    if (!isOrchestratorError(error, 'INTERNAL')) throw error;
  }
  return pinned.all;
}

/** Without the definition, nobody knows what is to be sent. */
async function findOutbox(engine: EngineState, { version, ensemble }: NewExecution): Promise<Outbox | undefined> {
  try {
    const loaded = await loadDefinition(engine, version, ensemble);
    return typeof loaded === 'object' ? loaded.outbox : undefined;
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

const DONE = () => true;
const NOT_DONE = () => false;

/**
 * Loads a definition. Concurrent callers share one read: hundreds of executions are claimed at once.
 * @returns the reason when this process can't run it, undefined when the definition is not stored
 */
function loadDefinition(
  engine: EngineState,
  version: string,
  ensemble: string,
): MaybePromise<LoadedDefinition | string | undefined> {
  const { definitions } = engine.resume;
  const key = `${version} ${ensemble}`;
  const known = definitions.get(key);
  if (known !== undefined) return known;
  const found = restore(engine, version, ensemble);
  definitions.set(key, found);
  const keep = (loaded: LoadedDefinition | string | undefined) => {
    if (typeof loaded === 'object') definitions.set(key, loaded);
    else definitions.delete(key);
  };
  found.then(keep, () => definitions.delete(key));
  return found;
}

async function restore({ host, storage, withRetry }: EngineState, version: string, ensemble: string) {
  const definition = await withRetry(() => storage.definitions.get(version));
  return definition && host.restore(definition, ensemble);
}
