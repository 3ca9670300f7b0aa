/** Runs a `foreach`: a sliding pool of items, each with a level of names of its own. */

import type { CompiledForeachStep, CompiledList } from '../definition/compiled-ensemble.ts';
import { type Json, sizeOfJson } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { isPromise } from './attempt.ts';
import { bounded } from './bounded.ts';
import { begunBefore, readItems } from './foreach-items.ts';
import { type Halt, innerHalt } from './halt.ts';
import { ItemQueue } from './item-queue.ts';
import { afterSnapshot, decide, type GuardChain, isLetIn, led, NO_NAME } from './level.ts';
import { endsWalk } from './open-failures.ts';
import { type Failure, RunScope } from './run-scope.ts';

/** Walks the steps of one item; handed in, because a list holds blocks that hold lists. */
type RunBody = (list: CompiledList, scope: RunScope, guards: GuardChain | undefined) => MaybePromise<boolean>;

export function runForeach(
  step: CompiledForeachStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): MaybePromise<boolean> {
  const needsState = step.readsState || step.condition?.readsState;
  const begin = () => runBlock(step, scope, guards, runBody);
  return needsState ? afterSnapshot(scope, begin) : begin();
}

async function runBlock(
  step: CompiledForeachStep,
  scope: RunScope,
  guards: GuardChain | undefined,
  runBody: RunBody,
): Promise<boolean> {
  let chain = guards;
  if (step.condition) {
    if (!(await isLetIn(step, scope, step.continueOnError))) return true;
    chain = led(step.condition, guards, scope, step.body);
  }
  const { journal } = scope.run;
  const blockKey = `${scope.keyPrefix}${step.key}.foreach`;
  const ended = journal.recalled(blockKey)?.output as BlockEnd | undefined;
  if (ended) {
    scope.run.countTo(ended.steps);
    return conclude(ended, step, scope, scope.run.keepsAll ? 0 : sizeOfJson(ended.output));
  }

  const items = await readItems(step, scope);
  if (!items) return true;
  const key = scope.keyPrefix + step.key;
  scope.run.ports.emit?.('foreach.started', { executionId: scope.run.accepted.id, key, items: items.length });
  const workers = Math.min(step.concurrency, items.length);
  const { halt, release } = innerHalt(scope.halt);
  const block: Block = {
    step,
    scope,
    items,
    halt,
    guards: chain,
    runBody,
    lastCommitAt: scope.lastCommitAt,
    isConcurrent: workers > 1,
    isCut: false,
    working: 1,
    outputs: [],
    bytes: 0,
    queue: new ItemQueue(scope.run, items.length, begunBefore(items, step, scope)),
    handled: new Set(),
    done: 0,
    ended: false,
    error: undefined,
  };
  if (workers <= 1) await work(block, scope);
  else {
    const closed = scope.openBlock(false);
    const inside = scope.stretch(halt);
    block.working = workers;
    journal.branches(workers - 1);
    const all = Array.from({ length: workers }, () =>
      work(block, inside).finally(() => {
        block.working -= 1;
        // The last one's place is taken by the flow that waits for the block.
        if (block.working > 0) journal.branches(-1);
      }),
    );
    await untilDone(Promise.all(all), halt, inside).finally(closed);
  }
  block.queue.close();
  release();
  halt.close();
  scope.run.hold(-block.bytes);
  if (scope.halt.reason !== undefined) return false;
  if (block.isCut && scope.run.unhandled > 0) {
    scope.handleNames(block.handled);
    const { list, index } = step.body.parent as NonNullable<CompiledList['parent']>;
    if (endsWalk(scope, list, index, guards)) return false;
  }

  const { outputs, done, error, lastCommitAt } = block;
  const handled = [...block.handled];
  const output = step.collect ? outputs : done;
  const end: BlockEnd = { output, lastCommitAt, handled, steps: scope.run.steps, ...(error && { error }) };
  // Which items were begun at all, of several at once, is chance: a run that is taken up again must not begin others.
  if (workers > 1 && (block.ended || error)) await journal.note(blockKey, () => end as unknown as Json);
  return conclude(end, step, scope, block.bytes);
}

/** How a block came out. */
interface BlockEnd {
  readonly output: Json[] | number;
  readonly lastCommitAt: number;
  readonly error?: ExecutionError;
  /** Names around the block whose failures its items handled. */
  readonly handled?: readonly string[];
  /** How many steps the run had walked by then. */
  readonly steps?: number;
}

function conclude(
  { output, error, lastCommitAt, handled }: BlockEnd,
  step: CompiledForeachStep,
  scope: RunScope,
  bytes: number,
): true {
  scope.lastOutput = output;
  scope.lastCommitAt = lastCommitAt;
  scope.handleNames(new Set(handled));
  if (step.slot) {
    scope.put(step.slot.slot, error ? { status: 'failed', output, error } : { status: 'completed', output }, bytes);
  }
  if (error && !step.continueOnError) scope.fail({ slots: [step.slot ?? NO_NAME], error });
  return true;
}

interface Block {
  readonly step: CompiledForeachStep;
  readonly scope: RunScope;
  readonly items: readonly Json[];
  readonly halt: Halt;
  readonly guards: GuardChain | undefined;
  readonly runBody: RunBody;
  readonly outputs: Json[];
  /** What they count. */
  bytes: number;
  readonly isConcurrent: boolean;
  /** An item came to nothing. */
  isCut: boolean;
  /** Workers that have not ended. */
  working: number;
  lastCommitAt: number;
  readonly queue: ItemQueue;
  readonly handled: Set<string>;
  done: number;
  /** `breakWhen` held: no new item begins. */
  ended: boolean;
  /** The first failure that an item did not handle; no new item begins, and those in flight are signalled. */
  error: ExecutionError | undefined;
}

/** Waits for all workers; once the block is stopped, no longer than the grace for steps that ignore their signal. */
function untilDone(workers: Promise<unknown>, halt: Halt, scope: RunScope): Promise<unknown> {
  const unbroken = workers.catch((thrown) => {
    // What broke the block, such as a store that is gone, breaks the items beside it too, and all that cleans up.
    scope.run.givenUp.stop('abandoned');
    halt.stop('abandoned');
    throw thrown;
  });
  return bounded(unbroken, halt, scope, undefined);
}

function itemKey(step: CompiledForeachStep, scope: RunScope, index: number): string {
  return `${scope.keyPrefix}${step.key}.foreach[${index}].`;
}

/** @param outer - the stretch in which the items are */
async function work(block: Block, outer: RunScope): Promise<void> {
  const { step, items, halt, scope, queue } = block;
  // Those that were begun before come to where they were, whatever ended the block then.
  const goesOn = () => !queue.isEmpty && (queue.hasBegun || !(block.ended || block.error));
  while (goesOn() && halt.reason === undefined) {
    if (queue.mustWait) {
      await queue.wait();
      continue;
    }
    scope.run.count();
    const index = queue.take();
    if (step.collect) block.outputs[index] = null;
    const prefix = itemKey(step, scope, index);
    const item = new RunScope(scope.run, scope, step.slots, halt, prefix, items[index] as Json, index, outer);
    item.handled = block.handled;
    item.isApart = block.isConcurrent || index < items.length - 1;
    const done = queue.follow(index, item);
    const ran = block.runBody(step.body, item, block.guards);
    const goesOn = isPromise(ran) ? await ran : ran;
    // One that was stopped in another process, or ended by a failure outside of the block, has come to nothing.
    if (!goesOn && !item.failures?.length) {
      block.isCut = true;
      item.release();
      done();
      continue;
    }
    const finished = step.breakWhen?.readsState
      ? afterSnapshot(item, () => finishItem(item, index, block))
      : finishItem(item, index, block);
    if (isPromise(finished)) await finished;
    item.release();
    done();
  }
}

function finishItem(item: RunScope, index: number, block: Block): MaybePromise<void> {
  const { step, halt } = block;
  const [failure] = item.failures ?? [];
  if (!failure && halt.reason === undefined && step.breakWhen) {
    return decide(step.breakWhen, 'breakWhen', item, NO_NAME, false, (holds) => {
      if (holds) block.ended = true;
      settleItem(item, index, item.failures?.[0], block);
    });
  }
  settleItem(item, index, failure, block);
}

function settleItem(item: RunScope, index: number, failure: Failure | undefined, block: Block): void {
  const { halt, step } = block;
  if (item.lastCommitAt > block.lastCommitAt) block.lastCommitAt = item.lastCommitAt;
  if (failure) {
    item.run.unhandled -= item.failures?.length ?? 0;
    block.error ??= failure.error;
    item.run.whenRecalled(() => halt.stop('abandoned'));
    return;
  }
  if (halt.reason !== undefined) return;
  block.done += 1;
  if (!step.collect) return;
  block.outputs[index] = item.lastOutput;
  if (item.run.keepsAll) return;
  const bytes = item.lastSize;
  block.bytes += bytes;
  item.release();
  item.run.hold(bytes);
}
