/** What the cases of the storage suite share: a fresh store each, records to hand in, and comparisons of their own. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import { equalJson, type Json } from '../../../engine/json.ts';
import type { CommitEntry, ExecutionEnd, NewExecution, StepRecord } from '../../../engine/model/stored-execution.ts';
import type { CommitResult, Storage } from '../../../engine/ports/storage.ts';

/** Declares one case: it gets a store that is fresh, empty, and closed behind it. */
export type StorageCase = (name: string, body: (storage: Storage) => Promise<void>) => void;

/** Unix ms at which everything in the suite begins. */
export const T0 = Date.UTC(2026, 0, 1);

/** `exec_` and 26 characters: ids of greater numbers are newer. */
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
    epoch: 1,
    ...fields,
  };
}

export function step(key: string, fields: Partial<StepRecord> = {}): StepRecord {
  const made = { key, name: 'agent', status: 'completed' as const, attempts: 1, startedAt: T0 + 5, duration: 7 };
  return { ...made, output: { of: key }, ...fields };
}

/** A record between two attempts. */
export function retrying(key: string, attempts: number): StepRecord {
  const error = { code: 'AGENT_FAILED', message: `attempt ${attempts}`, agent: 'agent' };
  return step(key, { status: 'failed', attempts, output: null, error, retryAt: T0 + 1000 * attempts });
}

export function end(fields: Partial<ExecutionEnd> = {}): ExecutionEnd {
  return { status: 'completed', output: { done: true }, finishedAt: T0 + 500, duration: 400, ...fields };
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

/** Commits one entry and gives its answer. */
export async function commitOne(storage: Storage, one: CommitEntry): Promise<CommitResult | undefined> {
  const answers = await storage.commit([one]);
  same(answers.length, 1, 'number of answers');
  return answers[0];
}

/** Keys of the stored steps, in order. */
export async function stepKeys(storage: Storage, number: number): Promise<string[]> {
  return (await storage.listSteps(executionId(number), { after: 0, limit: 1000 })).map(({ key }) => key);
}

/** @throws Error unless both are the same JSON; the order of keys does not count, and undefined is absent */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [plain(actual), plain(expected)];
  if (equalJson(found, wanted)) return;
  throw new Error(`${what}: expected ${shorten(wanted)}, got ${shorten(found)}`);
}

/** @throws Error unless the call fails with CONFLICT, at once or later */
export async function refusesAsConflict(call: () => unknown): Promise<void> {
  let thrown: unknown;
  try {
    await call();
  } catch (error) {
    thrown = error;
  }
  if (!isOrchestratorError(thrown, 'CONFLICT'))
    throw new Error(`expected CONFLICT to be thrown, got ${String(thrown)}`);
}

/** Frozen at every level: a store that writes into what it is handed throws. */
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
