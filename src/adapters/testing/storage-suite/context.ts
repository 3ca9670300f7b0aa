/** What the cases of the storage suite share: a fresh store each, records to hand in, and comparisons of their own. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import { equalJson, type Json } from '../../../engine/json.ts';
import type {
  ClaimedExecution,
  CommitEntry,
  ExecutionEnd,
  NewDelivery,
  NewExecution,
  NewSignal,
  Release,
  StepRecord,
} from '../../../engine/model/stored-execution.ts';
import type { ClaimQuery, CommitResult, Storage } from '../../../engine/ports/storage.ts';

/** Declares one case: it gets a store that is fresh, empty, and closed behind it. */
export type StorageCase = (name: string, body: (storage: Storage) => Promise<void>) => void;

/** Declares a case that opens other handles on the data of its store; they are closed behind it too. */
export type HandlesCase = (
  name: string,
  body: (storage: Storage, reopen: () => Promise<Storage>) => Promise<void>,
) => void;

/** Unix ms at which everything in the suite begins. */
export const T0 = Date.UTC(2026, 0, 1);

/** Who writes where a case names nobody else. */
export const OWNER = `own_${'0'.repeat(25)}1`;
/** A second owner. */
export const OTHER = `own_${'0'.repeat(25)}2`;
/** One that no case joins. */
export const STRANGER = `own_${'0'.repeat(25)}9`;
/** How long an owner is taken for alive after it joined, ms. */
export const LEASE = 30_000;

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
  return { status: 'completed', output: { done: true }, finishedAt: T0 + 500, duration: 400, agents: 1, ...fields };
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

/** An entry that accepts an execution: held and running, or queued when it is released. */
export function starting(accepted: NewExecution, fields: Partial<CommitEntry> = {}): CommitEntry {
  return { executionId: accepted.id, epoch: fields.release ? 0 : 1, start: accepted, steps: [], ...fields };
}

export async function join(storage: Storage, owner: string = OWNER, now: number = T0): Promise<void> {
  await storage.join(owner, { now, leaseUntil: now + LEASE });
}

/**
 * Accepts an execution that its owner holds from then on. The owner joins first, unless it did.
 * @throws Error unless it is stored
 */
export async function accept(storage: Storage, accepted: NewExecution, owner: string = OWNER): Promise<void> {
  const answer = await commitOne(storage, starting(accepted), owner);
  if (answer !== 'fenced') return same(answer, 'stored', `accept ${accepted.id}`);
  await join(storage, owner);
  same(await commitOne(storage, starting(accepted), owner), 'stored', `accept ${accepted.id}`);
}

/**
 * Accepts an execution that is free and due at `dueAt`; needs no owner.
 * @throws Error unless it is stored
 */
export async function enqueue(storage: Storage, accepted: NewExecution, dueAt: number = T0): Promise<void> {
  const queued = starting(accepted, { release: { status: 'queued', dueAt } });
  same(await commitOne(storage, queued), 'stored', `enqueue ${accepted.id}`);
}

/** What an owner is given: all that is due a minute after `T0`, unless the query says otherwise. */
export async function claim(
  storage: Storage,
  query: Partial<ClaimQuery> = {},
  owner: string = OWNER,
): Promise<readonly ClaimedExecution[]> {
  const claimed = await storage.claim(owner, { now: T0 + 60_000, limit: 100, except: [], ...query });
  return claimed.map((one) => {
    if ('damage' in one) throw new Error(`${one.executionId} could not be read`, { cause: one.damage });
    return one;
  });
}

/** Commits one entry and gives its answer. */
export async function commitOne(
  storage: Storage,
  one: CommitEntry,
  owner: string = OWNER,
): Promise<CommitResult | undefined> {
  const answers = await storage.commit(owner, [one]);
  same(answers.length, 1, 'number of answers');
  return answers[0];
}

/** Gives an execution up that its owner holds. @throws Error unless that is stored */
export async function release(
  storage: Storage,
  number: number,
  given: Release,
  { epoch = 1, owner = OWNER }: { readonly epoch?: number; readonly owner?: string } = {},
): Promise<void> {
  same(await commitOne(storage, entry(number, { epoch, release: given }), owner), 'stored', 'release');
}

/** When the earliest free execution is due. */
export async function nextDueAt(storage: Storage, except: readonly string[] = []): Promise<number | undefined> {
  return (await storage.survey(OWNER, except)).nextDueAt;
}

/** The numbers of executions, the smallest first. */
export function numbers(claimed: readonly ClaimedExecution[]): number[] {
  return claimed.map(({ execution: { id } }) => Number(id.slice(5))).sort((a, b) => a - b);
}

export function delivery(number: number, fields: Partial<NewDelivery> = {}): NewDelivery {
  return {
    id: `dlv_${String(number).padStart(26, '0')}`,
    event: 'execution.completed',
    target: { type: 'webhook', url: 'https://example.com/hook' },
    payload: { number },
    createdAt: T0 + 7,
    dueAt: T0 + 7,
    ...fields,
  };
}

/** A signal named `go` for an execution. */
export function signal(number: number, of: number, fields: Partial<NewSignal> = {}): NewSignal {
  const id = `sig_${String(number).padStart(26, '0')}`;
  return { id, executionId: executionId(of), name: 'go', payload: { number }, createdAt: T0 + 50, ...fields };
}

/** All that can be read of some executions and of the state: what must not differ after a refusal. */
export async function everything(storage: Storage, ...numbers: readonly number[]): Promise<Json> {
  const found: unknown[] = [
    await storage.readState('orders'),
    await storage.countQueued(1000),
    await nextDueAt(storage),
  ];
  for (const id of numbers.map(executionId)) {
    found.push(
      await storage.getAccepted(id),
      await storage.getExecution(id),
      await storage.listSteps(id, { limit: 2000, notes: true }),
      await storage.listDeliveries(id),
      await storage.listSignals(id, { name: 'go', after: 0, limit: 100 }),
      await storage.findEnded([id]),
    );
  }
  return plain(found);
}

/** Keys of the stored steps, in order. */
export async function stepKeys(storage: Storage, number: number): Promise<string[]> {
  return (await storage.listSteps(executionId(number), { limit: 1000 })).map(({ key }) => key);
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
