/**
 * Runs a `parallel`: its branches run at the same time, each with its own results, which are put together when the block is done.
 *
 * | waitFor | the block is done when | output |
 * |---|---|---|
 * | all | every branch has succeeded, or one has failed | the output of every branch by name |
 * | any | one branch has succeeded, or all have failed | `{ winner, output }` |
 * | first | one branch has ended | `{ winner, output }`, or its failure |
 *
 * Branches that the block no longer waits for receive the abort signal, and their `finally` steps get time to run. Which branch is
 * first is chance, so it is recorded before anything follows from it. The names of the other branches read as never run.
 */

import type { Json } from '../../base/json/json.ts';
import type { CompiledBranch, CompiledParallelStep } from '../../compiled/compiled-ensemble.ts';
import type { NameResult } from '../../compiled/expression-scope.ts';
import { withGracePeriod } from '../attempt/with-grace-period.ts';
import { createReplayScope } from '../cancellation-scope.ts';
import { type GuardChain, NO_GUARDS, type RunBody } from '../enter-step.ts';
import { UNNAMED } from '../guards.ts';
import { markStep } from '../marks.ts';
import { isOpen } from '../open-failures.ts';
import type { PendingFailure, RunScope } from '../run-scope.ts';
import { type Branch, ParallelBranches } from './parallel-branches.ts';

/** The recorded decision: how the block ended, when that depended on chance. */
interface ParallelEnd {
  /** Index of the branch that was first; undefined when all branches count. */
  readonly winner?: number;
  /** Index of the branch whose failure is the block's. */
  readonly failed?: number;
  readonly lastCommitAt: number;
  /** Names outside the block whose failures its branches handled. */
  readonly handled: readonly string[];
  /** Unix ms */
  readonly at: number;
  /** How many steps the run had counted at the end of the block. */
  readonly steps?: number;
}

export async function runParallel(
  step: CompiledParallelStep,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  const key = `${scope.keyPrefix}${step.key}.parallel`;
  const walk = (branch: CompiledBranch, inner: RunScope) => runBody(branch.list, inner, guards);
  const ended = scope.run.journal.replayed(key)?.output as ParallelEnd | undefined;
  markStep(step, 'begun', scope);
  if (ended || scope.cancellation.replay) return replayBranches(step, scope, ended, walk);

  const closed = scope.openBlock(false);
  try {
    return await runBranches(new ParallelBranches(step, scope, key, walk), step, scope, key);
  } finally {
    closed();
  }
}

async function runBranches(
  block: ParallelBranches,
  step: CompiledParallelStep,
  scope: RunScope,
  key: string,
): Promise<boolean> {
  const { run } = scope;
  await withGracePeriod(block.done, block.inside);
  const { winner, failed, isCutShort } = block;
  const isStopped = scope.cancellation.reason !== undefined;
  block.close();
  const branches = [...block.branches].sort((a, b) => a.place - b.place);
  // A race that was stopped has no winner: none was recorded.
  if (isStopped)
    return concludeBranches(step, scope, branches, stoppedEnd(branches, scope, run.ports.clock.now()), true);
  const counted = winner ? [winner] : branches;
  const end: ParallelEnd = {
    ...(winner && { winner: winner.place }),
    ...(failed && { failed: failed.place }),
    lastCommitAt: latestCommit(scope, counted),
    at: run.ports.clock.now(),
    steps: run.steps,
    handled: handledBy(counted),
  };
  if (winner || isCutShort) await run.journal.decide(key, () => end as unknown as Json);
  return concludeBranches(step, scope, branches, end, false);
}

function latestCommit(scope: RunScope, branches: readonly Branch[]): number {
  return Math.max(scope.lastCommitAt, ...branches.map(({ scope: inner }) => inner.lastCommitAt));
}

function handledBy(branches: readonly Branch[]): readonly string[] {
  return [...new Set(branches.flatMap(({ scope }) => [...(scope.handled ?? [])]))];
}

/** The end of a block that stopped together with the run or the block around it. */
function stoppedEnd(branches: readonly Branch[], scope: RunScope, at: number): ParallelEnd {
  const failed = branches.find(({ scope: inner, succeeded }) => !succeeded && (inner.failures?.length ?? 0) > 0);
  const lastCommitAt = latestCommit(scope, branches);
  return { ...(failed && { failed: failed.place }), lastCommitAt, at, handled: handledBy(branches) };
}

/** Replays a block that was already over, for its results: nothing in it begins. */
async function replayBranches(
  step: CompiledParallelStep,
  scope: RunScope,
  ended: ParallelEnd | undefined,
  walk: (branch: CompiledBranch, inner: RunScope) => Promise<boolean>,
): Promise<boolean> {
  const until = ended?.at ?? scope.cancellation.replay?.until ?? 0;
  const branches: Branch[] = [];
  const begun = scope.run.journal.replayedParts(`${scope.keyPrefix}${step.key}.parallel`);
  for (const [place, compiled] of step.branches.entries()) {
    const counts = ended?.winner === undefined || place === ended.winner;
    // A branch that lost is replayed for the children that it started: they may not have been cancelled yet.
    if (!counts && !begun.has(place)) continue;
    const cancellation = createReplayScope(until);
    const inner = scope.fork(cancellation, scope.keyPrefix, [...scope.results]);
    inner.handled = new Set();
    inner.isApart = true;
    const succeeded = (await walk(compiled, inner)) && cancellation.reason === undefined;
    if (counts) branches.push({ place, compiled, scope: inner, cancellation, succeeded });
    else {
      inner.takeFailures();
      inner.release();
    }
  }
  scope.run.countTo(ended?.steps);
  if (ended) return concludeBranches(step, scope, branches, ended, false);
  // A block around it was over before this block.
  const isDone = branches.every(({ cancellation }) => cancellation.reason === undefined);
  if (!isDone) scope.cancellation.replay?.root.stop('abandoned');
  return concludeBranches(step, scope, branches, stoppedEnd(branches, scope, until), !isDone);
}

/** Puts the results of the counted branches together. @param isStopped - the block stopped with the run or the block around it */
function concludeBranches(
  step: CompiledParallelStep,
  scope: RunScope,
  branches: readonly Branch[],
  { winner, failed, lastCommitAt, handled }: ParallelEnd,
  isStopped: boolean,
): boolean {
  const isRace = step.waitFor !== 'all';
  const counted = branches.filter(({ place }) => winner === undefined || place === winner);
  const waiting = new Map(branches.map((branch) => [branch.place, branch.scope.takeFailures()]));
  for (const { scope: inner } of branches) inner.release();
  if (isStopped && isRace) return false;
  for (const { compiled, scope: inner } of counted) {
    for (const { slot } of compiled.slots) scope.put(slot, inner.results[slot], inner.sizes?.of(slot) ?? 0);
  }
  scope.lastCommitAt = lastCommitAt;
  scope.handleNames(new Set(handled));
  const outputOf = (branch: Branch | undefined) => (branch?.succeeded ? branch.scope.lastOutput : null);
  const [first] = counted;
  const output: Json = isRace
    ? {
        winner: winner === undefined ? null : (first?.compiled.label ?? null),
        output: winner === undefined ? null : outputOf(first),
      }
    : Object.fromEntries(
        step.branches.map(({ label }, place) => [label, outputOf(branches.find((branch) => branch.place === place))]),
      );
  scope.lastOutput = output;
  const isGuardedLater = (failure: PendingFailure, { compiled }: Branch) =>
    isOpen(failure, compiled.list, 0, NO_GUARDS, scope.caughtBy);
  const culprit = culpritOf(branches, failed, waiting, isGuardedLater);
  // A failure that a guard after the block checks stays pending; the block's own failure replaces all others.
  if (winner !== undefined || !(isRace && failed !== undefined)) {
    for (const branch of counted) {
      for (const failure of waiting.get(branch.place) ?? []) {
        if (failure !== culprit && isGuardedLater(failure, branch)) scope.fail(failure);
      }
    }
  }
  const error = culprit?.error;
  if (!isStopped) markStep(step, 'ended', scope, isRace ? { winner: first?.compiled.label ?? null } : {}, error);
  const isWhole =
    !isStopped || (branches.length === step.branches.length && branches.every(({ succeeded }) => succeeded));
  if (step.slot && (error || isWhole)) {
    const result: NameResult = error ? { status: 'failed', output, error } : { status: 'completed', output };
    // The output of a named branch is counted under its own name.
    const unnamed = counted.filter(({ compiled: { label, slots } }) => !slots.some(({ name }) => name === label));
    const bytes = unnamed.reduce((sum, { scope: inner }) => sum + inner.lastSize, 0);
    scope.put(step.slot.slot, result, scope.run.keepsAll ? 0 : bytes);
  }
  if (culprit && !step.continueOnError) {
    const slots = [...(step.slot ? [step.slot] : []), ...culprit.slots];
    scope.fail({ slots: slots.length > 0 ? slots : [UNNAMED], error: culprit.error });
  }
  return !isStopped;
}

/** The failure that ended the block: preferably one that no guard after the block checks. */
function culpritOf(
  branches: readonly Branch[],
  failed: number | undefined,
  waiting: ReadonlyMap<number, readonly PendingFailure[]>,
  isGuardedLater: (failure: PendingFailure, branch: Branch) => boolean,
): PendingFailure | undefined {
  const branch = branches.find(({ place }) => place === failed);
  const failures = waiting.get(failed ?? -1) ?? [];
  return (branch && failures.find((failure) => !isGuardedLater(failure, branch))) ?? failures[0];
}
