/** The parts of an attempt whose results are stored on their own: calls of models, of tools and of other agents, and sent messages. */

import { OrchestratorError } from '../../base/errors.ts';
import { copyJson, type Json, JsonError, type JsonObject } from '../../base/json/json.ts';
import type { CompiledAgentStep, CompiledCall } from '../../compiled/compiled-ensemble.ts';
import type { NameResult } from '../../compiled/expression-scope.ts';
import { partKey, toNote } from '../../ensemble/step-kind.ts';
import type { AttemptSpan } from '../../host/telemetry.port.ts';
import type { AgentAnswer, MaybePromise, OperationPart } from '../../operation/operation.port.ts';
import { cancellationError, createChildScope } from '../cancellation-scope.ts';
import { checkDecisionSize } from '../guards.ts';
import { emitRecord } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';

/** What the parts of one attempt need of it. */
export interface PartPlace {
  readonly step: CompiledAgentStep;
  readonly scope: RunScope;
  /** The key of the agent's step. */
  readonly key: string;
  /** Aborts when the attempt is out of time or was stopped. */
  readonly signal: AbortSignal;
  /** Whether the operation has ended, so that no part may begin. */
  readonly isOver: boolean;
  /** Whether nothing of the attempt may be stored any more. */
  readonly isClosed: boolean;
  /** The keys of the parts that this attempt asked for. */
  readonly asked: Set<string>;
  /** The parts that run in this process or were stored by it, by key. Later attempts use them. */
  readonly kept: Map<string, KeptPart>;
  /** Undefined without telemetry. */
  readonly span: AttemptSpan | undefined;
}

/** A part that an attempt began. */
export interface KeptPart {
  readonly name: string;
  readonly result: Promise<unknown>;
  /** Of the attempt that began it. If it aborts before the result is stored, a later attempt runs the part again. */
  readonly signal: AbortSignal;
  isStored: boolean;
}

/**
 * Returns what is stored of a part, or runs it and stores what it returns.
 *
 * @throws what `run` throws; INVALID_OUTPUT; the reason of the signal; TypeError for a part that is not one, or was asked for before;
 *   AGENT_FAILED if another tool has its number
 */
export async function runPart(place: PartPlace, part: OperationPart, run: () => MaybePromise<unknown>): Promise<Json> {
  const key = keyOf(place, part);
  const stored = place.scope.run.journal.replayed(key);
  // A model may have another name after a change of an `env`: what it answered before still counts.
  const before = part.kind === 'model' ? undefined : (stored ?? place.kept.get(key))?.name;
  if (before !== undefined && before !== part.name) throw otherPart(place, part, before);
  const value = stored
    ? (stored.output as unknown as StoredPart).value
    : await keep(place, key, part.name, () => storeResult(place, part, key, run));
  // The operation may change what it receives.
  return copyJson(value);
}

/** What is stored of a part. */
interface StoredPart {
  /** The agent. */
  readonly agent: string;
  readonly value: Json;
}

async function storeResult(
  place: PartPlace,
  part: OperationPart,
  key: string,
  run: () => MaybePromise<unknown>,
): Promise<Json> {
  const { step, scope, signal, span } = place;
  const { journal, ports } = scope.run;
  await beginEffect(place);
  const at = ports.clock.now();
  const began = ports.clock.monotonic();
  const result = await (span ? span.part(part, run) : run());
  // As for a step, a result within the grace period of a cancellation is stored.
  if (place.isClosed) signal.throwIfAborted();
  const value = checkedResult(result, step, part);
  const facts = { name: part.name, at, duration: Math.round(ports.clock.monotonic() - began) };
  const { provider } = part;
  const output: JsonObject = { agent: step.name, value, ...(provider !== undefined && { provider }) };
  await journal.decide(key, () => output, facts);
  emitRecord(toNote(key, { output, ...facts }), scope.run);
  return value;
}

/** Runs a part, unless an earlier attempt of this process runs it or has stored it. */
async function keep<T>({ kept, signal }: PartPlace, key: string, name: string, make: () => Promise<T>): Promise<T> {
  const known = kept.get(key);
  if (known && (known.isStored || !known.signal.aborted)) return known.result as Promise<T>;
  const result = make();
  const part: KeptPart = { name, result, signal, isStored: false };
  kept.set(key, part);
  try {
    const value = await result;
    part.isStored = true;
    return value;
  } catch (thrown) {
    if (kept.get(key) === part) kept.delete(key);
    throw thrown;
  }
}

/** The failure of a part whose number has the result of another one: the operation was changed, or numbers its parts differently. */
function otherPart({ step }: PartPlace, { kind, number, name }: OperationPart, before: string): OrchestratorError {
  const message = `${kind} part ${number} of agent \`${step.name}\` is stored as \`${before}\`, and \`${name}\` was asked for; a part keeps its number and its name on every attempt`;
  return new OrchestratorError('AGENT_FAILED', message);
}

/** @throws TypeError for a part that is not one, or that the attempt asked for before */
function keyOf({ key, asked }: PartPlace, { kind, number, name }: OperationPart): string {
  if (
    !(kind === 'model' || kind === 'tool' || kind === 'send') ||
    !(Number.isSafeInteger(number) && number > 0) ||
    typeof name !== 'string'
  )
    throw new TypeError("a part is `{ kind: 'model', 'tool' or 'send', number: 1 or more, name }`");
  const part = partKey(key, kind, number);
  if (asked.has(part))
    throw new TypeError(`this attempt has a ${kind} part ${number} already; give each part its own number`);
  asked.add(part);
  return part;
}

/**
 * Runs an agent under the key of a part. Its own step is stored, in place of the part.
 *
 * @throws TypeError for an agent that the definition does not name; the reason of the signal
 */
export async function callAgent(
  place: PartPlace,
  name: string,
  input: Json,
  part: OperationPart,
): Promise<AgentAnswer> {
  const { calls, operation } = place.step;
  const callee = calls.get(name);
  if (!callee) throw new TypeError(`\`calls\` of operation \`${operation.name}\` does not give agent \`${name}\``);
  const key = keyOf(place, part);
  const { output = null, error } =
    (await keep(place, key, name, () => {
      const run = () => runAgent(place, callee, copyJson(input), key);
      return place.span ? place.span.part(part, run) : run();
    })) ?? {};
  return error ? { error } : { output: copyJson(output) };
}

async function runAgent(
  { scope, signal, isOver }: PartPlace,
  callee: CompiledCall,
  input: Json,
  key: string,
): Promise<NameResult | undefined> {
  if (isOver) throw attemptIsOver();
  signal.throwIfAborted();
  const { cancellation, release } = createChildScope(scope.cancellation);
  // The next attempt runs the agent again, so a later result of this run must not be stored.
  const onAbort = () => {
    cancellation.close();
    cancellation.stop('abandoned');
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const result = await scope.run.runCall({ callee, input, keyPrefix: `${key}.`, cancellation, caller: scope.run });
    signal.throwIfAborted();
    if (cancellation.reason !== undefined) throw cancellationError(cancellation.reason);
    return result;
  } finally {
    signal.removeEventListener('abort', onAbort);
    release();
  }
}

function attemptIsOver(): Error {
  return new Error('the attempt is over, so no part of it can begin: await every part before `run` returns');
}

/** Right before an effect: waits until no other worker can have resumed the run. @throws the reason of the signal */
async function beginEffect(place: PartPlace): Promise<void> {
  const { scope, signal } = place;
  for (;;) {
    if (place.isOver) throw attemptIsOver();
    signal.throwIfAborted();
    const lease = scope.run.journal.waitForLease();
    if (lease === undefined) return;
    await lease;
  }
}

function checkedResult(result: unknown, { name }: CompiledAgentStep, part: OperationPart): Json {
  const what = `${part.kind} \`${part.name}\` of agent \`${name}\``;
  try {
    return checkDecisionSize(copyJson(result), `what ${what} gave`);
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    const { path, message } = thrown.problem;
    throw new OrchestratorError('INVALID_OUTPUT', `${path ? `\`${path}\` in ` : ''}what ${what} gave ${message}`);
  }
}
