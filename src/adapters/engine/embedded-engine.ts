/**
 * The embedded engine: runs executions in the host's processes, over the storage that they share or that one of them has.
 *
 * A start is stored before anything of it runs. What is at work here is held under an epoch, so that of two processes that
 * both believe to own an execution one alone can write.
 */

import { OrchestratorError } from '../../engine/errors.ts';
import { isFinal } from '../../engine/model/execution.ts';
import type { NewExecution } from '../../engine/model/stored-execution.ts';
import type {
  AcceptedRun,
  BeginOptions,
  EngineHost,
  ExecutionEngine,
  Runnable,
  RunningEngine,
} from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import { createCancel } from './cancel-execution.ts';
import { closeEngine } from './close-engine.ts';
import { createCommitWriter } from './commit-writer.ts';
import { type EmbeddedEngineOptions, readEngineOptions } from './engine-options.ts';
import { createOrphans } from './orphans.ts';
import { createOwner } from './owner.ts';
import { createPatience } from './patience.ts';
import { createRunStorage } from './run-storage.ts';
import { createRuns } from './runs.ts';
import { createSetbacks } from './setbacks.ts';
import { createStarts } from './starts.ts';
import { createSuspects, SOON_MS } from './suspects.ts';
import { createTakeUp, idOf } from './take-up.ts';
import { createWaiters } from './waiters.ts';
import { createWorkLoop } from './work-loop.ts';

/**
 * Runs executions in the processes that use it; several on one storage share the work, and take over from each other.
 *
 * @param options - see {@link EmbeddedEngineOptions}
 * @throws TypeError when one is not what it must be
 */
export function embeddedEngine(options: EmbeddedEngineOptions = {}): ExecutionEngine {
  const settings = readEngineOptions(options);
  return { attach: (host) => attach(host, settings) };
}

/** Between the tries to resume an execution whose storage fails for it again and again. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;
const NONE: AcceptedRun = { finished: Promise.resolve(undefined) };

function attach(host: EngineHost, settings: Required<EmbeddedEngineOptions>): RunningEngine {
  const { storage, clock, logger } = host;
  const { concurrency, leaseMs, renewMs, sweepMs, groupCommit, queueLimit } = settings;
  const foreign = new Set<string>();
  const setbacks = createSetbacks(clock, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  const waiters = createWaiters(storage);
  const patiently = createPatience(clock, logger, leaseMs);
  const runStorage = createRunStorage(storage, patiently);
  const writer = createCommitWriter({ storage, clock, patiently, groupCommit });
  let closed = false;

  // A death is noticed up to a lease later.
  const blameFrom = () => clock.now() - SOON_MS - leaseMs;
  const owner = createOwner({
    ...{ storage, clock, logger, patiently, leaseMs, renewMs, blameFrom },
    newOwner: host.newOwner,
    onLost() {
      for (const run of runs.all()) run.drop();
      loop.wake();
    },
  });
  const orphans = createOrphans({ storage, writer, clock, logger, onFreed: () => loop.wake() });
  const starts = createStarts({ ...{ storage, patiently, writer, owner, orphans }, queueLimit });

  const runs = createRuns({
    ...{ host, storage: runStorage, clock, writer, lease: storage.capabilities.shared ? owner : undefined },
    ended(id, record) {
      host.ended(record);
      if (waiters.size > 0) waiters.settle(id, record);
      // Its parent may be due.
      if (record.parentId !== undefined) loop.wake();
      loop.freed();
    },
    givenUp(run) {
      const { signal, execution } = run.held;
      if (signal) cancelWith(signal, execution.id);
      // A write was refused: perhaps not for this execution alone.
      if (run.dueAt === undefined && owner.id === run.held.owner) void owner.doubt();
      if (run.dueAt !== undefined && waiters.size > 0) waiters.tellWait(execution.id, run.dueAt - clock.now());
      loop.wake(run.dueAt);
      loop.freed();
    },
    broken(held, err) {
      const { id } = held.execution;
      const { pauseMs, times, isNew } = setbacks.add(id, err);
      if (isNew)
        logger.error(
          { err, executionId: id },
          'an execution is suspended, because its storage stores nothing; it is resumed later',
        );
      orphans.giveBack(held.owner, id, held.epoch, times === 1 ? 0 : pauseMs);
    },
  });

  const suspects = createSuspects(clock, () => loop.wake());
  const takeUp = createTakeUp({
    ...{ host, storage, patiently, writer, foreign, suspects, giveBack: orphans.giveBack, launch: runs.launch },
    wake: (dueAt) => loop.wake(dueAt),
    othersAtWork: () => runs.size - suspects.running,
  });

  const loop = createWorkLoop({
    ...{ storage, clock, logger, sweepMs, foreign, isSure: owner.isSure, doubt: owner.doubt, blameFrom },
    retentionMs: host.retentionMs,
    // One that closes claims nothing more, but for what nobody else would ever claim.
    owner: async () => ((closed && !runs.pending) || concurrency === 0 ? undefined : await owner.join()),
    room: () => (suspects.areAtWork ? 0 : concurrency - runs.taken),
    take: (by, claimed, reached) =>
      runs.coming(idOf(claimed), runs.takePlace(async () => takeUp(by, claimed, reached)) as Promise<void>),
    async giveBackUnknown(by) {
      for (const { executionId, epoch } of await storage.listHeld(by)) {
        if (!runs.knows(executionId)) orphans.giveBack(by, executionId, epoch);
      }
    },
    cancel: (id) => runs.get(id)?.cancel(),
    hear: (id, signals) => runs.get(id)?.hear(signals),
    lookForEnds: () => waiters.look(),
  });

  const cancel = createCancel({ host, patiently, runs, waiters, loop });

  /** For a run that its caller's signal does not reach any more. */
  const cancelWith = (signal: AbortSignal, id: string) => {
    const stop = () => cancelInBackground(id);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  };

  const cancelInBackground = (id: string) => {
    cancel(id).catch((err: unknown) => logger.warn({ err, executionId: id }, 'a cancel could not be stored'));
  };

  const open = (): MaybePromise<string> => {
    const joined = owner.join();
    const begin = (id: string) => {
      loop.start();
      return id;
    };
    return joined instanceof Promise ? joined.then(begin) : begin(joined);
  };

  const beginNow = (by: string, execution: NewExecution, runnable: Runnable, options: BeginOptions) => {
    const { signal, steps = [] } = options;
    const run = (holder: string): AcceptedRun => {
      const records = steps.length > 0 ? steps : undefined;
      const { createdAt: startedAt } = execution;
      // In one piece: copies of objects are dear in what every run passes through.
      const held = { execution, owner: holder, epoch: 1, startedAt, records, cancelled: false, resumed: false, signal };
      return runs.launch(held, runnable);
    };
    const held = starts.hold(by, execution, steps);
    return held instanceof Promise ? held.then(run) : run(held);
  };

  const enqueue = async (execution: NewExecution, options: BeginOptions): Promise<AcceptedRun> => {
    const { signal, steps = [], isChild = false, repeatable = false } = options;
    await starts.enqueue(execution, steps, { always: isChild, repeatable });
    runs.pending?.set(execution.id, undefined);
    if (signal) cancelWith(signal, execution.id);
    loop.wake();
    return NONE;
  };

  const engine: RunningEngine = {
    storage: runStorage,
    get active() {
      return runs.size;
    },
    begin(execution, runnable, options) {
      if (closed && !(options.isChild && runs.size > 0))
        throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed and takes no new executions');
      const { definition } = runnable;
      // One that closes takes nothing up that another process could go on with.
      if (concurrency === 0 || options.repeatable || (closed && !runs.pending))
        return starts.withDefinition(definition, () => enqueue(execution, options));
      const mustQueue = () => options.mayQueue && (runs.taken >= concurrency || suspects.areAtWork);
      const begin = (by: string): MaybePromise<AcceptedRun> =>
        starts.withDefinition(
          definition,
          (): MaybePromise<AcceptedRun> =>
            mustQueue()
              ? enqueue(execution, options)
              : runs.takePlace(() => beginNow(by, execution, runnable, options)),
        );
      const by = open();
      const begun = by instanceof Promise ? by.then(begin) : begin(by);
      return begun instanceof Promise ? runs.coming(execution.id, begun) : begun;
    },
    open() {
      if (closed || concurrency === 0) return undefined;
      const opened = open();
      return opened instanceof Promise ? opened.then(() => loop.wake()) : loop.wake();
    },
    async whenEnded(id, longestWaitMs = Number.POSITIVE_INFINITY) {
      for (let run = runs.get(id); run; run = runs.get(id)) {
        const record = await run.finished;
        if (record) return record;
        if (run.dueAt !== undefined && run.dueAt - clock.now() > longestWaitMs) return undefined;
      }
      if (closed && !runs.pending) {
        const known = await storage.getStatus(id);
        if (!known || isFinal(known.status)) return known && storage.getExecution(id);
        throw new OrchestratorError('OVERLOADED', `the orchestrator is closed; execution ${id} goes on elsewhere`);
      }
      loop.start();
      return waiters.wait(id, longestWaitMs);
    },
    cancel,
    async signal(signal) {
      const result = await storage.putSignal(signal);
      loop.wake();
      return result;
    },
    async runDue(limit) {
      if (closed) throw new OrchestratorError('OVERLOADED', 'the orchestrator is closed');
      await owner.join();
      await loop.turn(limit);
      await runs.idle(false);
      // What it did may have made more, or put off what was next.
      const nextDueAt = await loop.turn(0);
      return nextDueAt === undefined ? {} : { nextDueAt };
    },
    async close(graceMs) {
      closed = true;
      await closeEngine({ runs, loop, orphans, waiters, owner, clock, logger, cancel: cancelInBackground }, graceMs);
    },
  };
  return engine;
}
