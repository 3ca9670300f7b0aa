/**
 * Runs a `parallel`: its branches at the same time, each over results of its own, which are put together when the block is done.
 *
 * | waitFor | the block is done when | and gives |
 * |---|---|---|
 * | all | every branch has succeeded, or one has failed | every branch's output by name |
 * | any | one branch has succeeded, or all have failed | `{ winner, output }` |
 * | first | one branch has ended | `{ winner, output }`, or its failure |
 *
 * Branches that are not waited for any more are signalled, and those that clean up are given the time for it. Who was first is
 * chance, so it is stored before anything follows from it; of the others, names read as never run.
 */

import type { CompiledBranch, CompiledParallelStep } from '../definition/compiled-ensemble.ts';
import type { NameResult } from '../definition/scope.ts';
import type { Json } from '../json.ts';
import { bounded } from './bounded.ts';
import { recallHalt } from './halt.ts';
import { type GuardChain, isLetIn, led, NO_NAME } from './level.ts';
import { isOpen } from './open-failures.ts';
import { type Branch, ParallelBranches } from './parallel-branches.ts';
import type { Failure, RunScope } from './run-scope.ts';
import type { RunBody } from './run-while.ts';

/** How a block came out, where chance had a part in it. */
interface BlockEnd {
  /** Place of the branch that was first; without it, all count. */
  readonly winner?: number;
  /** Place of the branch whose failure is the block's. */
  readonly failed?: number;
  readonly lastCommitAt: number;
  /** Names around the block whose failures its branches handled. */
  readonly handled: readonly string[];
  /** Unix ms */
  readonly at: number;
  /** How many steps the run had walked by then. */
  readonly steps?: number;
}

export async function runParallel(
  step: CompiledParallelStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<boolean> {
  let chain = guards;
  if (step.condition) {
    if (!(await isLetIn(step, scope, step.continueOnError))) return true;
    chain = led(step.condition, guards, scope);
  }
  const key = `${scope.keyPrefix}${step.key}.parallel`;
  const walk = (branch: CompiledBranch, inner: RunScope) => runBody(branch.list, inner, chain);
  const ended = scope.run.journal.recalled(key)?.output as BlockEnd | undefined;
  if (ended || scope.halt.recall) return walkAgain(step, scope, ended, walk);

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
  await bounded(block.done, block.halt, block.inside, undefined);
  const { winner, failed, isCutShort } = block;
  const isStopped = scope.halt.reason !== undefined;
  block.close();
  const branches = [...block.branches].sort((a, b) => a.place - b.place);
  // A race that was stopped has no winner: nobody was told of one.
  if (isStopped) return conclude(step, scope, branches, stoppedEnd(branches, scope, run.ports.clock.now()), true);
  const counted = winner ? [winner] : branches;
  const end: BlockEnd = {
    ...(winner && { winner: winner.place }),
    ...(failed && { failed: failed.place }),
    lastCommitAt: latestCommit(scope, counted),
    at: run.ports.clock.now(),
    steps: run.steps,
    handled: handledBy(counted),
  };
  if (winner || isCutShort) await run.journal.note(key, () => end as unknown as Json);
  return conclude(step, scope, branches, end, false);
}

function latestCommit(scope: RunScope, branches: readonly Branch[]): number {
  return Math.max(scope.lastCommitAt, ...branches.map(({ scope: inner }) => inner.lastCommitAt));
}

function handledBy(branches: readonly Branch[]): readonly string[] {
  return [...new Set(branches.flatMap(({ scope }) => [...(scope.handled ?? [])]))];
}

/** Of a block that a stop of what is around it ended. */
function stoppedEnd(branches: readonly Branch[], scope: RunScope, at: number): BlockEnd {
  const failed = branches.find(({ scope: inner, succeeded }) => !succeeded && (inner.failures?.length ?? 0) > 0);
  const lastCommitAt = latestCommit(scope, branches);
  return { ...(failed && { failed: failed.place }), lastCommitAt, at, handled: handledBy(branches) };
}

/** Walks a block that is over, for its results: nothing in it begins. */
async function walkAgain(
  step: CompiledParallelStep,
  scope: RunScope,
  ended: BlockEnd | undefined,
  walk: (branch: CompiledBranch, inner: RunScope) => unknown,
): Promise<boolean> {
  const until = ended?.at ?? scope.halt.recall?.until ?? 0;
  const branches: Branch[] = [];
  for (const [place, compiled] of step.branches.entries()) {
    const counts = ended?.winner === undefined || place === ended.winner;
    // One that lost is walked for the children that it had begun: they may not have heard that nobody waits for them.
    if (!counts && !scope.run.journal.recalls(`${scope.keyPrefix}${step.key}.parallel[${place}]`)) continue;
    const halt = recallHalt(until);
    const inner = scope.stretch(halt, scope.keyPrefix, [...scope.results]);
    inner.handled = new Set();
    inner.isApart = true;
    const succeeded = (await walk(compiled, inner)) === true && halt.reason === undefined;
    if (counts) branches.push({ place, compiled, scope: inner, halt, succeeded });
    else {
      inner.takeFailures();
      inner.release();
    }
  }
  scope.run.countTo(ended?.steps);
  if (ended) return conclude(step, scope, branches, ended, false);
  // A block around it was over before this one was.
  const isDone = branches.every(({ halt }) => halt.reason === undefined);
  if (!isDone) scope.halt.recall?.root.stop('abandoned');
  return conclude(step, scope, branches, stoppedEnd(branches, scope, until), !isDone);
}

/** Puts the results of the branches that count together. @param isStopped - a stop of what is around it ended it */
function conclude(
  step: CompiledParallelStep,
  scope: RunScope,
  branches: readonly Branch[],
  { winner, failed, lastCommitAt, handled }: BlockEnd,
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
  const isGuardedBehind = (failure: Failure, { compiled }: Branch) =>
    isOpen(failure, compiled.list, 0, undefined, scope.caughtBy);
  const culprit = culpritOf(branches, failed, waiting, isGuardedBehind);
  // What waits for a guard behind the block goes on waiting; the block's own failure stands for all else.
  if (winner !== undefined || !(isRace && failed !== undefined)) {
    for (const branch of counted) {
      for (const failure of waiting.get(branch.place) ?? []) {
        if (failure !== culprit && isGuardedBehind(failure, branch)) scope.fail(failure);
      }
    }
  }
  const error = culprit?.error;
  const isWhole =
    !isStopped || (branches.length === step.branches.length && branches.every(({ succeeded }) => succeeded));
  if (step.slot && (error || isWhole)) {
    const result: NameResult = error ? { status: 'failed', output, error } : { status: 'completed', output };
    // What a branch gave is counted under its own name, where it has one.
    const unnamed = counted.filter(({ compiled: { label, slots } }) => !slots.some(({ name }) => name === label));
    const bytes = unnamed.reduce((sum, { scope: inner }) => sum + inner.lastSize, 0);
    scope.put(step.slot.slot, result, scope.run.keepsAll ? 0 : bytes);
  }
  if (culprit && !step.continueOnError) {
    const slots = [...(step.slot ? [step.slot] : []), ...culprit.slots];
    scope.fail({ slots: slots.length > 0 ? slots : [NO_NAME], error: culprit.error });
  }
  return !isStopped;
}

/** The failure that ended the block: one that no guard behind it looks at, if there is one. */
function culpritOf(
  branches: readonly Branch[],
  failed: number | undefined,
  waiting: ReadonlyMap<number, readonly Failure[]>,
  isGuardedBehind: (failure: Failure, branch: Branch) => boolean,
): Failure | undefined {
  const branch = branches.find(({ place }) => place === failed);
  const failures = waiting.get(failed ?? -1) ?? [];
  return (branch && failures.find((failure) => !isGuardedBehind(failure, branch))) ?? failures[0];
}
