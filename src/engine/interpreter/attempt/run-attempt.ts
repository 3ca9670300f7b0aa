/** One attempt of one agent: evaluates its input and config, runs the operation, and builds the record of the result. */

import { OrchestratorError } from '../../base/errors.ts';
import { copySized, JsonError } from '../../base/json/json.ts';
import { andThen, isPromise, type MaybePromise } from '../../base/maybe-promise.ts';
import type { CompiledAgentStep, CompiledReferences } from '../../compiled/compiled-ensemble.ts';
import type { ResolvedComponent } from '../../component/component.ts';
import type { Resolution } from '../../component/component-source.port.ts';
import type { ExecutionError } from '../../execution/execution.ts';
import type { StoreRecord } from '../../execution/journal.port.ts';
import { readKey } from '../../execution/limits/flow-limit.ts';
import type { StepRecord } from '../../execution/stored-execution.ts';
import type { AttemptSpan, RunSpan } from '../../host/telemetry.port.ts';
import { describeProblems } from '../../json-schema/check-by-schema.ts';
import type { ValueCheck } from '../../json-schema/rule.ts';
import { type RecordedTransaction, RefusedTransactionError } from '../../storage/recorded-transaction.port.ts';
import { unlessStopped } from '../cancellation-scope.ts';
import { describeThrown, type ThrownFailure, toFailure, toLoggedError } from '../failure.ts';
import type { Run, StepSlots } from '../run.ts';
import type { RunScope } from '../run-scope.ts';
import type { Attempt } from './attempt.ts';
import { AttemptContext } from './attempt-context.ts';

/** The record of an attempt; undefined when it failed after the run was stopped, and then nothing is stored. */
type Made = StepRecord | undefined;

/**
 * Runs one attempt and stores its record. Returns without a promise when the operation and the store do.
 */
export function runAttempt(attempt: Attempt, store: StoreRecord): MaybePromise<Made> {
  const { scope } = attempt;
  // A resumed run may have to stop just where its replay ends.
  if (scope.cancellation.reason !== undefined) return undefined;
  attempt.made = true;
  const { span } = scope.run;
  return span ? makeTraced(span, attempt, store) : prepare(attempt, store);
}

function makeTraced(run: RunSpan, attempt: Attempt, store: StoreRecord): MaybePromise<Made> {
  const { step, key, number } = attempt;
  const span = run.attempt({ agent: step.name, operation: step.operation.name, key, number });
  attempt.span = span;
  const end = (record: Made) => {
    span.end(record);
    return record;
  };
  // The first end counts: the second one is that of an attempt of which nothing is stored.
  return andThen(
    prepare(attempt, (record) => store(end(record))),
    end,
  );
}

function prepare(attempt: Attempt, store: StoreRecord): MaybePromise<Made> {
  const { step, scope } = attempt;
  // Before a later attempt there is a pause, and the process may have died in it.
  if (attempt.number === 1 && scope.run.journal.mayRepeat) attempt.cutOff = 1;
  const isRouted = step.takesPrompt && scope.findPrompt()?.isReference;
  const references = isRouted ? step.routed : step.references;
  return references ? fill(attempt, references, store) : make(attempt, step, store);
}

function fill(attempt: Attempt, references: CompiledReferences, store: StoreRecord): MaybePromise<Made> {
  const fail = (thrown: unknown) => store(toFailedAttempt(attempt, thrown));
  let filled: MaybePromise<CompiledAgentStep>;
  try {
    filled = fillReferences(attempt, references);
  } catch (thrown) {
    return fail(thrown);
  }
  const { cancellation, run } = attempt.scope;
  const use = (ready: CompiledAgentStep) =>
    cancellation.reason === undefined ? make(attempt, ready, store) : undefined;
  const next = (ready: CompiledAgentStep) => andThen(run.journal.storeChosen(), () => use(ready));
  return isPromise(filled) ? filled.then(next, fail) : next(filled);
}

/** @param ready - the step, with the texts of components in its config */
function make(attempt: Attempt, ready: CompiledAgentStep, store: StoreRecord): MaybePromise<Made> {
  let context: AttemptContext;
  try {
    context = new AttemptContext(attempt, ready);
  } catch (thrown) {
    return store(toFailedAttempt(attempt, thrown));
  }
  const { limit } = ready;
  const { slots } = attempt.scope.run.ports;
  return limit && slots ? beginInSlot(limit, slots, context, attempt, store) : beginAttempt(context, attempt, store);
}

async function beginInSlot(
  { of, key: keyOf }: NonNullable<CompiledAgentStep['limit']>,
  slots: StepSlots,
  context: AttemptContext,
  attempt: Attempt,
  store: StoreRecord,
): Promise<Made> {
  const { scope, key: stepKey, step } = attempt;
  const { cancellation, run } = scope;
  let key: string;
  try {
    key = keyOf ? readKey(keyOf(scope.begin(stepKey, 'concurrency'))) : '';
  } catch (thrown) {
    const reason = typeof thrown === 'string' ? `\`concurrency.key\` of agent \`${step.name}\` ${thrown}` : undefined;
    return store(toFailedAttempt(attempt, reason ? new OrchestratorError('INVALID_INPUT', reason) : thrown));
  }
  const holder = { executionId: run.accepted.id, key: stepKey };
  const giveBack = await unlessStopped(cancellation, (signal) => slots.take({ ...of, key }, holder, signal));
  if (!giveBack) return undefined;
  try {
    return cancellation.reason === undefined ? await beginAttempt(context, attempt, store) : undefined;
  } finally {
    giveBack();
  }
}

/** Runs the operation. Right before that, and nowhere else, it checks that no other worker can have resumed the run. */
function beginAttempt(context: AttemptContext, attempt: Attempt, store: StoreRecord): MaybePromise<Made> {
  const { step, scope } = attempt;
  const lease = scope.run.journal.waitForLease(attempt.key, context, step);
  if (lease !== undefined)
    return lease.then(() =>
      scope.cancellation.reason === undefined ? beginAttempt(context, attempt, store) : undefined,
    );
  let result: unknown;
  try {
    result = attempt.span ? runWithin(attempt.span, step, context) : step.operation.run(context);
  } catch (thrown) {
    return storeResult(toFailedAttempt(attempt, thrown, keptOf(thrown, scope)), attempt, store);
  }
  if (!isPromise(result)) {
    context.release();
    return storeResult(toCompletedAttempt(attempt, result), attempt, store);
  }
  if (step.timeoutMs === undefined) return settle(result, context, attempt, store);
  const settled = settle(result, context, attempt, undefined);
  return inTime(settled, step.timeoutMs, context, attempt).then((made) => storeResult(made, attempt, store));
}

// A function of its own: a closure in `begin` would cost every attempt, also without telemetry.
function runWithin(span: AttemptSpan, { operation }: CompiledAgentStep, context: AttemptContext): unknown {
  return span.within(() => operation.run(context));
}

function settle(
  pending: PromiseLike<unknown>,
  context: AttemptContext,
  attempt: Attempt,
  store: StoreRecord | undefined,
): Promise<Made> {
  return Promise.resolve(pending).then(
    (value) => {
      context.release();
      return context.isAborted ? undefined : storeResult(toCompletedAttempt(attempt, value), attempt, store);
    },
    (thrown) => {
      context.release();
      if (context.isAborted) return undefined;
      return storeResult(toFailedAttempt(attempt, thrown, keptOf(thrown, attempt.scope)), attempt, store);
    },
  );
}

/** Stores what became of an attempt, together with what it wrote in its transaction. */
function storeResult(made: Made, attempt: Attempt, store: StoreRecord | undefined): MaybePromise<Made> {
  if (!store) return made;
  const { transaction } = attempt;
  return transaction ? storeTogether(made, transaction, attempt, store) : store(made);
}

async function storeTogether(
  made: Made,
  transaction: RecordedTransaction,
  attempt: Attempt,
  store: StoreRecord,
): Promise<Made> {
  if (made?.status !== 'completed') {
    await transaction.rollBack();
    return store(made);
  }
  if (!transaction.hasBegun) {
    // None begins after the result.
    await transaction.rollBack();
    return store(made);
  }
  try {
    const stored = await store(made, transaction);
    if (!stored) await transaction.rollBack();
    return stored;
  } catch (thrown) {
    if (!(thrown instanceof RefusedTransactionError)) throw thrown;
    return store(toFailedAttempt(attempt, thrown.cause));
  }
}

// A result after the timeout is dropped, and a failure too: a script may reject because its signal aborted.
function inTime(settled: Promise<Made>, timeoutMs: number, context: AttemptContext, attempt: Attempt): Promise<Made> {
  const { step, scope } = attempt;
  return new Promise((resolve, reject) => {
    const cancelTimer = scope.run.ports.clock.setTimer(timeoutMs, () => {
      const error = new OrchestratorError('TIMEOUT', `agent \`${step.name}\` took longer than ${timeoutMs} ms`, {
        retryable: true,
      });
      context.abort(error);
      resolve(toFailedAttempt(attempt, error));
    });
    settled.then((record) => {
      cancelTimer();
      resolve(record);
    }, reject);
  });
}

function toCompletedAttempt(attempt: Attempt, value: unknown): Made {
  const { step, scope } = attempt;
  if (scope.cancellation.closed) return undefined;
  try {
    const { value: output, bytes } = step.checkOutput ? copyChecked(value, step, step.checkOutput) : copySized(value);
    attempt.bytes = bytes;
    return {
      key: attempt.key,
      name: step.name,
      status: 'completed',
      attempts: attempt.number + attempt.cutOff,
      startedAt: attempt.startedAt,
      duration: elapsedMs(attempt),
      output,
    };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) return toFailedAttempt(attempt, thrown);
    const { path, message } = thrown.problem;
    const what = path ? `\`${path}\` in what agent \`${step.name}\` gave` : `what agent \`${step.name}\` gave`;
    return toFailedAttempt(attempt, new OrchestratorError('INVALID_OUTPUT', `${what} ${message}`));
  }
}

/** @throws INVALID_OUTPUT for a value that does not fit the `output` of the agent, JsonError for one that is not JSON */
function copyChecked(value: unknown, { name }: CompiledAgentStep, check: ValueCheck): ReturnType<typeof copySized> {
  const copied = copySized(value);
  const checked = check(copied.value);
  if ('value' in checked) return checked.value === copied.value ? copied : copySized(checked.value);
  const message = `what agent \`${name}\` gave does not fit its \`output\`: ${describeProblems(checked.problems)}`;
  throw new OrchestratorError('INVALID_OUTPUT', message, { details: { issues: checked.problems } });
}

/** @param kept - the stack and the cause of what the operation threw, for the record */
function toFailedAttempt(attempt: Attempt, thrown: unknown, kept?: KeptOfThrown): Made {
  const { step, scope } = attempt;
  if (scope.cancellation.reason !== undefined) return undefined;
  const failure = toFailure(thrown, scope.run.ports.mask);
  const { retryAfterMs } = failure;
  if (retryAfterMs > 0 && failure.error.details?.status === 429)
    scope.run.ports.askedToWait?.(scope.run.accepted, retryAfterMs);
  const retryAt = nextAttempt(attempt, failure);
  const error = { ...failure.error, agent: step.name, ...kept };
  logFailure(error, thrown, attempt, retryAt);
  return {
    key: attempt.key,
    name: step.name,
    status: 'failed',
    // The number of a failed attempt says which attempt is next.
    attempts: retryAt === undefined ? attempt.number + attempt.cutOff : attempt.number,
    startedAt: attempt.startedAt,
    duration: elapsedMs(attempt),
    output: null,
    error,
    ...(retryAt === undefined ? {} : { retryAt }),
  };
}

type KeptOfThrown = Pick<ExecutionError, 'stack' | 'cause'>;

/** What the option `errors` adds to the error of an attempt. */
function keptOf(thrown: unknown, { run }: RunScope): KeptOfThrown | undefined {
  if (!run.ports.keepsStacks) return undefined;
  const { stack, cause } = describeThrown(thrown, run.ports.mask);
  return { ...(stack !== undefined && { stack }), ...(cause && { cause }) };
}

function logFailure(
  { code, agent, details }: ExecutionError,
  thrown: unknown,
  { scope: { run }, key, number: attempt }: Attempt,
  retryAt: number | undefined,
): void {
  const { logger, mask } = run.ports;
  if (!logger) return;
  const about = { ...run.logged, agent, attempt, key, retryAt, code, details };
  logger.warn({ ...about, err: toLoggedError(describeThrown(thrown, mask)) }, 'attempt failed');
}

function nextAttempt(attempt: Attempt, failure: ThrownFailure): number | undefined {
  const { step, scope, number } = attempt;
  if (!failure.retryable || number >= step.retry.maxAttempts) return undefined;
  return scope.run.ports.clock.now() + Math.max(delayOf(attempt), failure.retryAfterMs);
}

// Derived from the execution's seed like every random value, so that each worker gets the same wait.
function delayOf({ step: { retry }, scope, key, number }: Attempt): number {
  const delay = retry.delayAfter(number);
  return retry.jitter === 0
    ? delay
    : Math.round(delay * (1 - retry.jitter * scope.begin(key, `retry ${number}`).random()));
}

function elapsedMs({ scope, monotonic }: Attempt): number {
  const { clock, turns } = scope.run.ports;
  turns.now = clock.monotonic();
  return Math.round(turns.now - monotonic);
}

/** @throws VERSION_NOT_FOUND; INVALID_DEFINITION for a text that can't be used; what the source of the components throws */
function fillReferences(
  { step, scope, key }: Attempt,
  references: CompiledReferences,
): MaybePromise<CompiledAgentStep> {
  const texts = references.all.map((evaluate) => String(evaluate(scope.begin(key, 'components'))));
  const prompt = step.takesPrompt ? scope.findPrompt() : undefined;
  if (prompt?.isReference) texts.push(prompt.text);
  const found = texts.map((text) => resolve(text, scope.run));
  const fill = (components: readonly ResolvedComponent[]) => references.fill(step, components);
  return found.some((one) => isPromise(one)) ? Promise.all(found).then(fill) : fill(found as ResolvedComponent[]);
}

const componentOf = ({ component }: Resolution) => component;

function resolve(reference: string, run: Run): MaybePromise<ResolvedComponent> {
  const { journal, ports } = run;
  if (!ports.resolveComponent)
    throw new OrchestratorError('NOT_CONFIGURED', `there are no components here, and the config reads ${reference}`);
  const pinned = journal.pinned(reference);
  if (pinned) return andThen(ports.resolveComponent(`${pinned.kind}://${pinned.name}@${pinned.version}`), componentOf);
  const subject = { input: run.input, executionId: run.accepted.id };
  return andThen(ports.resolveComponent(reference, subject), (resolution) => {
    // Another branch may have come first.
    const first = journal.pinned(reference);
    if (first && first.version !== resolution.component.version) return resolve(reference, run);
    if (!first) journal.pin(reference, resolution.used);
    return resolution.component;
  });
}
