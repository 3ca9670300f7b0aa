/** Runs a `foreach`: a sliding pool of items, each with a level of names of its own. */

import { type CompiledForeachStep, type CompiledList, MAX_FOREACH_ITEMS } from '../definition/compiled-ensemble.ts';
import { OrchestratorError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { MaybePromise } from '../ports/operation.ts';
import { isPromise } from './attempt.ts';
import { HALT_GRACE_MS, type Halt, innerHalt } from './halt.ts';
import { afterSnapshot, type GuardChain, NO_NAME, noteFailure, readGuard, skip } from './level.ts';
import { RunScope } from './run.ts';

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
  const slot = step.slot ?? NO_NAME;
  let chain = guards;
  if (step.condition) {
    const holds = readGuard(step.condition, step.key, scope, slot, step.continueOnError);
    if (holds === undefined) return true;
    if (!holds) return skip(step.slot, step.key, scope);
    chain = { guard: step.condition, outer: guards };
  }
  const items = readItems(step, scope);
  if (!items) return true;

  const { halt, release } = innerHalt(scope.halt);
  const block: Block = {
    step,
    scope,
    items,
    halt,
    guards: chain,
    runBody,
    outputs: [],
    next: 0,
    done: 0,
    ended: false,
    error: undefined,
  };
  const workers = Math.min(step.concurrency, items.length);
  if (workers <= 1) await work(block);
  else await untilDone(Promise.all(Array.from({ length: workers }, () => work(block))), block);
  release();
  if (scope.halt.reason !== undefined) return false;

  const output = step.collect ? block.outputs : block.done;
  scope.lastOutput = output;
  if (step.slot) {
    const result = { status: block.error ? ('failed' as const) : ('completed' as const), output };
    scope.results[step.slot.slot] = block.error ? { ...result, error: block.error } : result;
  }
  if (block.error && !step.continueOnError) scope.fail({ slot, router: undefined, error: block.error });
  return true;
}

function readItems(step: CompiledForeachStep, scope: RunScope): readonly Json[] | undefined {
  try {
    const items = step.items(scope.begin(scope.keyPrefix + step.key, 'items'));
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
    noteFailure(thrown, scope, step.slot ?? NO_NAME, step.continueOnError);
    return undefined;
  }
}

interface Block {
  readonly step: CompiledForeachStep;
  readonly scope: RunScope;
  readonly items: readonly Json[];
  readonly halt: Halt;
  readonly guards: GuardChain | undefined;
  readonly runBody: RunBody;
  readonly outputs: Json[];
  next: number;
  done: number;
  /** `breakWhen` held: no new item begins. */
  ended: boolean;
  /** The first failure that an item did not handle; no new item begins, and those in flight are signalled. */
  error: ExecutionError | undefined;
}

/** Waits for all workers; once the block is stopped, no longer than the grace for steps that ignore their signal. */
function untilDone(workers: Promise<unknown>, { halt, scope }: Block): Promise<void> {
  return new Promise((resolve, reject) => {
    let cancelTimer: (() => void) | undefined;
    const forget = halt.onStop(() => {
      cancelTimer = scope.run.ports.clock.setTimer(HALT_GRACE_MS, resolve);
    });
    workers
      .finally(() => {
        forget();
        cancelTimer?.();
      })
      .then(
        () => resolve(),
        (thrown) => {
          // What broke the block, such as a store that is gone, breaks the items beside it too.
          halt.stop('abandoned');
          reject(thrown);
        },
      );
  });
}

async function work(block: Block): Promise<void> {
  const { step, items, halt, scope } = block;
  while (block.next < items.length && !block.ended && halt.reason === undefined) {
    const index = block.next++;
    if (step.collect) block.outputs[index] = null;
    const prefix = `${scope.keyPrefix}${step.key}.foreach[${index}].`;
    const item = new RunScope(scope.run, scope, step.slots, halt, prefix, items[index] as Json, index);
    const ran = block.runBody(step.body, item, block.guards);
    if (isPromise(ran)) await ran;
    const finished = step.breakWhen?.readsState
      ? afterSnapshot(item, () => finishItem(item, index, block))
      : finishItem(item, index, block);
    if (isPromise(finished)) await finished;
  }
}

function finishItem(item: RunScope, index: number, block: Block): void {
  const { step, halt } = block;
  let [failure] = item.failures ?? [];
  if (!failure && halt.reason === undefined && step.breakWhen) {
    if (readGuard(step.breakWhen, 'breakWhen', item, NO_NAME)) block.ended = true;
    [failure] = item.failures ?? [];
  }
  if (failure) {
    item.run.unhandled -= item.failures?.length ?? 0;
    block.error ??= failure.error;
    halt.stop('abandoned');
    return;
  }
  if (halt.reason !== undefined) return;
  block.done += 1;
  if (step.collect) block.outputs[index] = item.lastOutput;
}
