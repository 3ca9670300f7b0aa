/** Runs a `foreach`: up to `concurrency` items at a time, each with its own level of names. */

import { OrchestratorError } from '../../base/errors.ts';
import { IndexRanges } from '../../base/index-ranges.ts';
import type { Json, JsonObject } from '../../base/json/json.ts';
import { countedBytes } from '../../base/json/measure-json.ts';
import { andThen, isPromise, type MaybePromise } from '../../base/maybe-promise.ts';
import type { CompiledForeachStep, CompiledList } from '../../compiled/compiled-ensemble.ts';
import { MAX_FOREACH_ITEMS } from '../../ensemble/ensemble.ts';
import type { ExecutionError } from '../../execution/execution.ts';
import { JournalLostError } from '../../execution/journal.port.ts';
import type { FoldedBlock } from '../../execution/stored-execution.ts';
import { withGracePeriod } from '../attempt/with-grace-period.ts';
import { type CancellationScope, createChildScope } from '../cancellation-scope.ts';
import type { GuardChain, RunBody } from '../enter-step.ts';
import { checkDecisionSize, evaluateGuard, markFailed, stopsReplay, takeSnapshot, UNNAMED } from '../guards.ts';
import { markRefused, markStep } from '../marks.ts';
import { endsWalk } from '../open-failures.ts';
import { type PendingFailure, RunScope } from '../run-scope.ts';
import { startsClean } from './fold-walk.ts';
import { ItemQueue } from './item-queue.ts';

/** @param guards - the guards that led to the body */
export async function runForeach(
  step: CompiledForeachStep,
  scope: RunScope,
  guards: GuardChain,
  runBody: RunBody,
): Promise<boolean> {
  const { run } = scope;
  const key = scope.keyPrefix + step.key;
  const blockKey = `${key}.foreach`;
  const ended = run.journal.replayed(blockKey)?.output as ForeachEnd | undefined;
  if (ended) {
    run.countTo(ended.steps);
    return concludeItems(ended, step, scope, run.keepsAll ? 0 : countedBytes(ended.output));
  }

  const items = await readItems(step, scope);
  if (!items) {
    markRefused(step, scope);
    return true;
  }
  markStep(step, 'begun', scope, { items: items.length });
  const workers = Math.min(step.concurrency, items.length);
  const { cancellation, release } = createChildScope(scope.cancellation);
  const folded = run.journal.folded?.(blockKey);
  const parts = { step, scope, items, cancellation, guards, runBody, isConcurrent: workers > 1 };
  const block = beginBlock(blockKey, parts, folded);
  await (workers > 1 ? workTogether(block, workers) : work(block, scope));
  block.queue.close();
  release();
  cancellation.close();
  run.hold(-block.bytes);
  if (block.over) {
    // What else the block holds need not stay in memory.
    const end = describeItems(block, block.over);
    run.journal.fold?.(blockKey, () => ({ ...end, steps: run.steps }));
  }
  if (scope.cancellation.reason !== undefined || (block.isCut && endsAround(block))) return false;

  const { outputs, done, error, lastCommitAt } = block;
  const handled = [...block.handled];
  const output = step.collect ? outputs : done;
  const end: ForeachEnd = { output, lastCommitAt, handled, steps: run.steps, ...(error && { error }) };
  // Which of several concurrent items began is chance: a resumed run must not begin others.
  if (workers > 1 && (block.ended || error)) await run.journal.decide(blockKey, () => end as unknown as Json);
  return concludeItems(end, step, scope, block.bytes);
}

type BlockParts = Pick<Block, 'step' | 'scope' | 'items' | 'cancellation' | 'guards' | 'runBody' | 'isConcurrent'>;

/** @param folded - where the block was at the end of the last run */
function beginBlock(key: string, parts: BlockParts, folded: FoldedBlock | undefined): Block {
  const { step, scope, items, cancellation, guards, runBody, isConcurrent } = parts;
  const { run } = scope;
  const left = folded?.left as FoldedItems | undefined;
  const over = run.journal.fold && startsClean(scope) ? new IndexRanges(folded?.over) : undefined;
  const block: Block = {
    key,
    step,
    scope,
    items,
    cancellation,
    guards,
    runBody,
    lastCommitAt: left?.lastCommitAt ?? scope.lastCommitAt,
    isConcurrent,
    isCut: false,
    outputs: [],
    bytes: left?.bytes ?? 0,
    overBytes: left?.bytes ?? 0,
    queue: new ItemQueue(run, key, items.length, step.concurrency, folded?.over),
    over,
    handled: new Set(left?.handled),
    done: over?.size ?? 0,
    ended: false,
    error: undefined,
  };
  if (left) {
    run.failed = Math.max(run.failed, left.failed);
    const kept = left.outputs.values();
    for (const [first, end] of folded?.over ?? [])
      for (let index = first; index < end && step.collect; index++) block.outputs[index] = kept.next().value ?? null;
  }
  run.hold(block.bytes);
  if (over) run.journal.fold?.(key, () => describeItems(block, over));
  return block;
}

/** Whether the walk ends after a block in which an item ended by a failure outside of it. */
function endsAround({ step, scope, guards, handled }: Block): boolean {
  if (scope.run.unhandled === 0) return false;
  scope.handleNames(handled);
  const { list, index } = step.body.parent as NonNullable<CompiledList['parent']>;
  // The step's own condition led to its body only.
  return endsWalk(scope, list, index, (step.condition && guards.outer) ?? guards);
}

/** What a later run needs in place of the records of items that are over. */
type FoldedItems = JsonObject & {
  /** Size of their outputs. */
  readonly bytes: number;
  readonly failed: number;
  readonly lastCommitAt: number;
  readonly handled: string[];
  /** The outputs of the items that are over, in order; empty without `collect`. A fold with many is too large, and not made. */
  readonly outputs: Json[];
};

function describeItems(block: Block, over: IndexRanges): FoldedBlock & { readonly steps: number } {
  const { overBytes: bytes, lastCommitAt, handled, scope, step, outputs } = block;
  const { failed, steps } = scope.run;
  const { list } = over;
  const kept = step.collect ? list.flatMap(([first, end]) => outputs.slice(first, end)) : [];
  const left: FoldedItems = { bytes, failed, lastCommitAt, handled: [...handled], outputs: kept };
  return { over: list, left, steps };
}

/** The recorded decision: how the block ended. */
interface ForeachEnd {
  readonly output: Json[] | number;
  readonly lastCommitAt: number;
  readonly error?: ExecutionError;
  /** Names outside the block whose failures its items handled. */
  readonly handled?: readonly string[];
  /** How many steps the run had counted at the end of the block. */
  readonly steps?: number;
}

function concludeItems(
  { output, error, lastCommitAt, handled }: ForeachEnd,
  step: CompiledForeachStep,
  scope: RunScope,
  bytes: number,
): true {
  markStep(step, 'ended', scope, { items: typeof output === 'number' ? output : output.length }, error);
  scope.lastOutput = output;
  scope.lastCommitAt = lastCommitAt;
  scope.handleNames(new Set(handled));
  if (step.slot) {
    scope.put(step.slot.slot, error ? { status: 'failed', output, error } : { status: 'completed', output }, bytes);
  }
  if (error && !step.continueOnError) scope.fail({ slots: [step.slot ?? UNNAMED], error });
  return true;
}

interface Block {
  readonly key: string;
  readonly step: CompiledForeachStep;
  readonly scope: RunScope;
  readonly items: readonly Json[];
  readonly cancellation: CancellationScope;
  readonly guards: GuardChain;
  readonly runBody: RunBody;
  readonly outputs: Json[];
  /** Size of the outputs. */
  bytes: number;
  /** Size of the outputs of items that are over. */
  overBytes: number;
  readonly isConcurrent: boolean;
  /** An item ended without a result and without a failure of its own. */
  isCut: boolean;
  lastCommitAt: number;
  readonly queue: ItemQueue;
  /** The items that succeeded. Undefined where every run replays all items. */
  readonly over: IndexRanges | undefined;
  readonly handled: Set<string>;
  done: number;
  /** `breakWhen` held: no new item begins. */
  ended: boolean;
  /** The first failure that an item did not handle: no new item begins, and active items receive the abort signal. */
  error: ExecutionError | undefined;
}

/** Runs items at the same time; after a stop, waits for them at most for the grace period. */
async function workTogether(block: Block, workers: number): Promise<void> {
  const { scope, cancellation } = block;
  const { journal, exit } = scope.run;
  const closed = scope.openBlock(false);
  const inside = scope.fork(cancellation);
  let working = workers;
  journal.branches(workers - 1);
  const all = Array.from({ length: workers }, () =>
    work(block, inside).finally(() => {
      working -= 1;
      // The place of the last worker goes to the flow, which waits for the block.
      if (working > 0) journal.branches(-1);
    }),
  );
  const unbroken = Promise.all(all).catch((thrown) => {
    // What broke one item, such as a lost journal, stops the other items too, and every `finally`.
    exit.stop('abandoned');
    cancellation.stop('abandoned');
    throw thrown;
  });
  await withGracePeriod(unbroken, inside).finally(closed);
}

/** Runs items one after the other. @param outer - the scope of the block */
async function work(block: Block, outer: RunScope): Promise<void> {
  const { step, items, cancellation, scope, queue } = block;
  // Items that began before a resume are replayed, even when the block has ended.
  const hasNext = () => !queue.isEmpty && (queue.hasBegun || !(block.ended || block.error));
  while (hasNext() && cancellation.reason === undefined) {
    if (queue.mustWait) {
      await queue.wait();
      continue;
    }
    scope.run.count();
    const index = queue.take();
    if (step.collect) block.outputs[index] = null;
    const prefix = `${block.key}[${index}].`;
    const item = new RunScope(scope.run, scope, step.slots, cancellation, prefix, items[index] as Json, index, outer);
    item.handled = block.handled;
    item.isApart = block.isConcurrent || index < items.length - 1;
    const done = queue.follow(index, item);
    const reachedEnd = await block.runBody(step.body, item, block.guards);
    // The item was stopped in another process, or a failure outside the block ended it.
    if (!reachedEnd && !item.failures?.length) {
      block.isCut = true;
      item.release();
      done();
      continue;
    }
    const snapshot = step.breakWhen?.readsState ? takeSnapshot(item) : undefined;
    const finished = andThen(snapshot, () => finishItem(item, index, block));
    if (isPromise(finished)) await finished;
    item.release();
    done();
  }
}

function finishItem(item: RunScope, index: number, block: Block): MaybePromise<void> {
  const { step, cancellation } = block;
  const [failure] = item.failures ?? [];
  if (!failure && cancellation.reason === undefined && step.breakWhen) {
    return andThen(evaluateGuard(step.breakWhen, 'breakWhen', item), (holds) => {
      if (holds) block.ended = true;
      settleItem(item, index, item.failures?.[0], block, holds);
    });
  }
  settleItem(item, index, failure, block);
}

/** @param ends - the item ended the block: each run replays it */
function settleItem(
  item: RunScope,
  index: number,
  failure: PendingFailure | undefined,
  block: Block,
  ends = false,
): void {
  const { cancellation, step } = block;
  if (item.lastCommitAt > block.lastCommitAt) block.lastCommitAt = item.lastCommitAt;
  if (failure) {
    item.run.unhandled -= item.failures?.length ?? 0;
    block.error ??= failure.error;
    item.run.whenReplayed(() => cancellation.stop('abandoned'));
    return;
  }
  if (cancellation.reason !== undefined) return;
  block.done += 1;
  if (!ends) block.over?.add(index);
  if (!step.collect) return;
  block.outputs[index] = item.lastOutput;
  if (item.run.keepsAll) return;
  const bytes = item.lastSize;
  block.bytes += bytes;
  if (!ends) block.overBytes += bytes;
  item.release();
  item.run.hold(bytes);
}

/** @returns undefined when the expression gives no valid list; then the step is marked as failed */
function readItems(step: CompiledForeachStep, scope: RunScope): MaybePromise<readonly Json[] | undefined> {
  const read = () => step.items(scope.begin(scope.keyPrefix + step.key, 'items'));
  try {
    if (!step.itemsReadState) return checkItems(read(), step, scope);
    // The state may differ when the run is resumed; the items must not.
    const key = `${scope.keyPrefix}${step.key}.items`;
    if (stopsReplay(key, scope)) return undefined;
    const decided = scope.run.journal.decide(key, () =>
      checkDecisionSize(read(), `the list of the \`foreach\` at ${scope.keyPrefix}${step.key}`),
    );
    return andThen(decided, (items) => checkItems(items, step, scope));
  } catch (thrown) {
    if (thrown instanceof JournalLostError) throw thrown;
    markFailed(thrown, scope, step.slot, step.continueOnError);
    return undefined;
  }
}

function checkItems(items: Json, step: CompiledForeachStep, scope: RunScope): readonly Json[] | undefined {
  try {
    if (!Array.isArray(items)) {
      const found = items === null ? 'null' : typeof items === 'object' ? 'an object' : `a ${typeof items}`;
      throw new OrchestratorError(
        'EXPRESSION_ERROR',
        `\`foreach\` at ${scope.keyPrefix}${step.key} needs a list, and its expression gave ${found}`,
      );
    }
    if (items.length > MAX_FOREACH_ITEMS) {
      const message = `\`foreach\` at ${scope.keyPrefix}${step.key} has ${items.length} items; at most ${MAX_FOREACH_ITEMS} are allowed`;
      throw new OrchestratorError('EXPRESSION_ERROR', message);
    }
    return items;
  } catch (thrown) {
    markFailed(thrown, scope, step.slot, step.continueOnError);
    return undefined;
  }
}
