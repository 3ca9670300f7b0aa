/** What the cases of the storage suite share: builders of records, calls with defaults, and assertions. */

import { type ErrorCode, isOrchestratorError } from '../../engine/base/errors.ts';
import { equalJson, type Json, type JsonObject } from '../../engine/base/json/json.ts';
import {
  type ClaimedExecution,
  type CommitEntry,
  type ExecutionEnd,
  type Handover,
  NEVER,
  type NewExecution,
  type NewSignal,
  type Release,
  type StepRecord,
} from '../../engine/execution/stored-execution.ts';
import type { ClaimQuery, CommitResult, Storage } from '../../engine/storage/storage.port.ts';
import type { DeclareCase } from '../declare-cases.ts';

/** Declares one case of the suite. */
export type StorageCase = DeclareCase<Storage>;

/** The instant at which each case begins, Unix ms. */
export const T0 = Date.UTC(2026, 0, 1);

/** In the record of an execution that waits for nothing and lost no worker. */
export const UNTROUBLED = { waitingFor: [], recoveries: 0 };

/** A value with every kind of JSON. */
export const EVERY_KIND: JsonObject = {
  nothing: null,
  texts: ['', 'ä漢👩‍👩‍👧', '\u0000', '\u2028', '\ud83d', '{"a":1}', '2026-01-01'],
  numbers: [0, -1, 0.1, 1e21, 5e-324, Number.MAX_SAFE_INTEGER],
  others: [true, false, [], {}, [[null]]],
  '': { constructor: 1, ключ: 2, '0': 3 },
};

/** `own_` and 26 characters. @param number - one digit */
export function workerId(number: number): string {
  return `own_${'0'.repeat(25)}${number}`;
}

/** The worker of a case that names no other worker. */
export const WORKER = workerId(1);
/** A second worker. */
export const OTHER = workerId(2);
/** A worker that no case registers. */
export const STRANGER = workerId(9);
/** How long the lease of a worker lasts after its registration, ms. */
export const LEASE = 30_000;

/** `exec_` and 26 characters. An execution with a greater number is newer. */
export function executionId(number: number): string {
  return `exec_${String(number).padStart(26, '0')}`;
}

export function execution(number: number, fields: Partial<NewExecution> = {}): NewExecution {
  return {
    id: executionId(number),
    ensemble: 'orders',
    version: '0123456789abcdef0123456789abcdef',
    trigger: { type: 'call' },
    input: { number },
    seed: '00112233445566778899aabbccddeeff',
    createdAt: T0 + number,
    ...fields,
  };
}

export function step(key: string, fields: Partial<StepRecord> = {}): StepRecord {
  const made = { key, name: 'agent', status: 'completed' as const, attempts: 1, startedAt: T0 + 5, duration: 7 };
  return { ...made, output: { of: key }, ...fields };
}

/** The record of a decision of the interpreter. */
export function decision(key: string, output: Json = { decided: key }): StepRecord {
  return step(key, { name: '', output, duration: 0, note: true });
}

/** The record of a failed attempt that another attempt follows. */
export function retrying(key: string, attempts: number): StepRecord {
  const kept = { details: { attempts, code: 'ECONNREFUSED' }, stack: 'Error: down\n    at script' };
  const error = { code: 'AGENT_FAILED', message: `attempt ${attempts}`, agent: 'agent', ...kept };
  return step(key, { status: 'failed', attempts, output: null, error, retryAt: T0 + 1000 * attempts });
}

export function end(fields: Partial<ExecutionEnd> = {}): ExecutionEnd {
  return { status: 'completed', output: { done: true }, finishedAt: T0 + 500, duration: 400, agents: 1, ...fields };
}

/** What a run left that waited for 5 ms, and then for a signal and a child, with the greatest values. */
export function handover(fields: Partial<Handover> = {}): Handover {
  const child = {
    key: 'flow[1].foreach[7].steps[0]',
    kind: 'child',
    name: 'other',
    executionId: executionId(9),
  } as const;
  const waitingFor = [
    { key: 'flow[0]', kind: 'signal', name: 'ä "go"', since: T0 + 20, until: NEVER } as const,
    { ...child, since: T0 + 30 },
  ];
  return { waitingFor, omitted: 100_000, waited: 5, suspendedAt: T0 + 30, recoveries: 2, ...fields };
}

export function entry(number: number, fields: Partial<CommitEntry> = {}): CommitEntry {
  return { executionId: executionId(number), epoch: 1, steps: [], ...fields };
}

/** A state change of the ensemble `orders`. */
export function change(
  expectedVersion: number,
  value: Record<string, Json>,
  ensemble = 'orders',
): CommitEntry['state'] {
  return { ensemble, expectedVersion, value, updatedAt: T0 + expectedVersion };
}

/** An entry that accepts an execution. With `release` the execution is queued; without it, it runs and the worker holds it. */
export function starting(accepted: NewExecution, fields: Partial<CommitEntry> = {}): CommitEntry {
  return { executionId: accepted.id, epoch: fields.release ? 0 : 1, start: accepted, steps: [], ...fields };
}

export async function register(storage: Storage, worker: string = WORKER, now: number = T0): Promise<void> {
  await storage.workers.register(worker, { now, leaseUntil: now + LEASE });
}

/**
 * Accepts an execution that the worker then holds. Registers the worker first if it is unknown.
 * @throws Error unless the execution is stored
 */
export async function accept(storage: Storage, accepted: NewExecution, worker: string = WORKER): Promise<void> {
  const answer = await commitOne(storage, starting(accepted), worker);
  if (answer !== 'fenced') return same(answer, 'stored', `accept ${accepted.id}`);
  await register(storage, worker);
  same(await commitOne(storage, starting(accepted), worker), 'stored', `accept ${accepted.id}`);
}

/**
 * Accepts an execution that is queued and due at `dueAt`. It needs no registered worker.
 * @throws Error unless the execution is stored
 */
export async function enqueue(storage: Storage, accepted: NewExecution, dueAt: number = T0): Promise<void> {
  const queued = starting(accepted, { release: { status: 'queued', dueAt } });
  same(await commitOne(storage, queued), 'stored', `enqueue ${accepted.id}`);
}

/** Claims for a worker. Unless `query` says otherwise: up to 100 executions that are due a minute after `T0`. */
export async function claim(
  storage: Storage,
  query: Partial<ClaimQuery> = {},
  worker: string = WORKER,
): Promise<readonly ClaimedExecution[]> {
  const claimed = await storage.executions.claim(worker, {
    now: T0 + 60_000,
    limit: 100,
    excludeVersions: [],
    ...query,
  });
  return claimed.map((one) => {
    if ('damage' in one) throw new Error(`${one.executionId} can't be read`, { cause: one.damage });
    return one;
  });
}

/** Commits one entry. @returns its answer */
export async function commitOne(
  storage: Storage,
  one: CommitEntry,
  worker: string = WORKER,
): Promise<CommitResult | undefined> {
  const answers = await storage.commit(worker, [one]);
  same(answers.length, 1, 'number of answers');
  return answers[0];
}

/** Releases an execution that the worker holds. @throws Error unless the release is stored */
export async function release(
  storage: Storage,
  number: number,
  given: Release,
  { epoch = 1, worker = WORKER }: { readonly epoch?: number; readonly worker?: string } = {},
): Promise<void> {
  same(await commitOne(storage, entry(number, { epoch, release: given }), worker), 'stored', 'release');
}

/** Unix ms at which the earliest free execution is due. */
export async function nextDueAt(
  storage: Storage,
  excludeVersions: readonly string[] = [],
): Promise<number | undefined> {
  return (await storage.executions.poll(WORKER, excludeVersions)).nextDueAt;
}

/** The numbers of executions, in ascending order. */
export function numbers(claimed: readonly ClaimedExecution[]): number[] {
  return claimed.map(({ execution: { id } }) => Number(id.slice(5))).sort((a, b) => a - b);
}

/** A signal named `go` for the execution with the number `of`. */
export function signal(number: number, of: number, fields: Partial<NewSignal> = {}): NewSignal {
  const id = `sig_${String(number).padStart(26, '0')}`;
  return { id, executionId: executionId(of), name: 'go', payload: { number }, createdAt: T0 + 50, ...fields };
}

/** Everything that a store shows of some executions and of the state of `orders`. A refused call must not change it. */
export async function everything(storage: Storage, ...numbers: readonly number[]): Promise<Json> {
  const found: unknown[] = [
    await storage.state.read('orders'),
    await storage.executions.countQueued(1000),
    await nextDueAt(storage),
  ];
  for (const id of numbers.map(executionId)) {
    found.push(
      await storage.executions.getAccepted(id),
      await storage.executions.get(id),
      await storage.executions.listSteps(id, { limit: 2000, notes: true }),
      await storage.signals.list(id, { name: 'go', after: 0, limit: 100 }),
      await storage.executions.findEnded([id]),
    );
  }
  return plain(found);
}

/** Keys of the stored agent runs, in order. */
export async function stepKeys(storage: Storage, number: number): Promise<string[]> {
  return (await storage.executions.listSteps(executionId(number), { limit: 1000 })).map(({ key }) => key);
}

/** @throws Error unless both are the same JSON; the order of keys does not count, and a key with `undefined` is absent */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [plain(actual), plain(expected)];
  if (equalJson(found, wanted)) return;
  throw new Error(`${what}: expected ${shorten(wanted)}, got ${shorten(found)}`);
}

/** @throws Error unless the call fails with this code, at once or later */
export async function refuses(code: ErrorCode, call: () => unknown): Promise<void> {
  let thrown: unknown;
  try {
    await call();
  } catch (error) {
    thrown = error;
  }
  if (!isOrchestratorError(thrown, code)) throw new Error(`expected ${code} to be thrown, got ${String(thrown)}`);
}

/** Freezes a value at every level, so that a store that changes it throws. */
export function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
}

function plain(value: unknown): Json {
  return value === undefined ? 'undefined' : (JSON.parse(JSON.stringify(value)) as Json);
}

function shorten(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}...` : text;
}
