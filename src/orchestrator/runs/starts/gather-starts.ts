/**
 * Takes several starts into one execution, as `debounce` and `batch` say. The first start queues the execution, which is due later. Each
 * other one replaces its input and its due time, under the fence of its epoch: it begins with a start, or the start makes another one.
 *
 * A document of the kind `gather` names the execution that takes the starts of a version and a key. The start that
 * stores an execution under the id in it is the first. With an idempotency key, a document of the kind `gathered` names the execution, and a note in it proves that it
 * took the start.
 */

import { hashJson, hashText } from '../../../engine/base/bytes/hash.ts';
import { isOrchestratorError, OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { jsonTextBytes } from '../../../engine/base/json/measure-json.ts';
import type { Gather } from '../../../engine/compiled/compiled-ensemble.ts';
import { toNote } from '../../../engine/ensemble/step-kind.ts';
import type { PendingWait } from '../../../engine/execution/execution.ts';
import {
  type AttachedEngine,
  type BeginOptions,
  StaleDefinitionError,
} from '../../../engine/execution/execution-engine.port.ts';
import type { Repin } from '../../../engine/execution/execution-store.port.ts';
import type { Handover, NewExecution, StepRecord } from '../../../engine/execution/stored-execution.ts';
import type { Clock } from '../../../engine/host/clock.port.ts';
import type { RecordReader, Storage } from '../../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../../definitions/load-definitions.ts';
import type { ExecuteOptions } from './execute-options.ts';
import { newestOf, reusedKey } from './find-first.ts';
import { inputOfFirst } from './new-execution.ts';

const [OPEN, TAKEN] = ['gather', 'gathered'];
const MAX_TRIES = 100;
/** Bytes of JSON text that a list of inputs may have, so that each start rewrites no more. */
const MAX_LIST_BYTES = 1024 * 1024;
/** How long another process may need from naming an execution to storing it. */
const UNSTORED_MS = 5_000;
const DAY_MS = 86_400_000;

export interface GatherDependencies {
  readonly clock: Clock;
  readonly storage: Pick<Storage, 'documents' | 'executions' | 'capabilities'>;
  readonly records: RecordReader;
  readonly engine: Pick<AttachedEngine, 'wake'>;
  readonly retentionMs: number;
  begin(start: SharedStart & { readonly keeps: boolean }): Promise<unknown>;
}

/** @returns the id of the execution that takes a start */
export type GatherStart = (gather: Gather, start: SharedStart, options: ExecuteOptions) => Promise<string>;

interface SharedStart {
  readonly ensemble: LoadedEnsemble;
  readonly execution: NewExecution;
  readonly how: BeginOptions;
}

/** An execution that takes starts. */
interface Taking {
  readonly execution: NewExecution;
  readonly epoch: number;
  readonly handover: Handover;
  readonly wait: PendingWait & { readonly until: number };
}

/** What an execution is after a start. */
interface Next {
  readonly start: NonNullable<Repin['start']>;
  readonly handover: Handover;
}

interface Gathering {
  readonly gather: Gather;
  readonly key: string;
}

/** The idempotency key of a start: its hash, the note about it, and the document that names the execution which took it. */
interface StartKey {
  readonly name: string;
  readonly note: StepRecord;
  readonly version: number;
}

export function createGatherStart(dependencies: GatherDependencies): GatherStart {
  const { clock, storage, records, engine, retentionMs } = dependencies;
  const { documents, executions, capabilities } = storage;
  const inTurn = capabilities.sharedPromises ? takeTurns() : <T>(_name: string, work: () => Promise<T>) => work();

  const findTaking = async (id: string, version: string, { kind }: Gather): Promise<Taking | 'unknown' | 'closed'> => {
    const pinned = await executions.getPinned(id);
    if (!pinned) return 'unknown';
    const { handover, epoch } = pinned;
    const [wait] = handover?.waitingFor ?? [];
    if (!pinned.isFree || pinned.begun || pinned.version !== version || wait?.kind !== kind) return 'closed';
    const execution = await executions.getAccepted(id);
    const { until = 0 } = wait;
    return execution && handover ? { execution, epoch, handover, wait: { ...wait, until } } : 'closed';
  };

  /** @returns whether the execution took the start, which it does not if it has changed meanwhile */
  const take = async ({ execution, epoch }: Taking, next: Next, step: StepRecord | undefined): Promise<boolean> => {
    const { id, version: from } = execution;
    const { handover, start } = next;
    if (!(await executions.repin(id, { epoch, from, to: from, handover, start, step }))) return false;
    if (start.dueAt <= clock.now()) engine.wake?.();
    return true;
  };

  /** What an earlier start with the same key began. */
  const findTaken = async (start: NewExecution): Promise<string | StartKey | undefined> => {
    const { idempotencyKey: key, ensemble, input, createdAt } = start;
    if (key === undefined) return undefined;
    const earlier = await records.executions.findByKey(key);
    if (earlier !== undefined) return newestOf(records, earlier);
    const name = hashText(key);
    const output = { ensemble, input: hashJson(input) };
    const note = toNote(`run.start[${name}]`, { at: createdAt, output });
    const known = await documents.read(TAKEN, name, clock.now());
    const { id } = (known?.value ?? {}) as { readonly id?: string };
    const taken = id === undefined ? undefined : await records.executions.getStep(id, note.key);
    if (id === undefined || !taken) return { name, note, version: known?.version ?? 0 };
    const before = taken.output as typeof output;
    if (before.ensemble !== ensemble) throw reusedKey('idempotency key', id, 'for another ensemble');
    if (before.input !== output.input) throw reusedKey('idempotency key', id, 'with another input');
    return newestOf(records, id);
  };
  const nameTaker = async ({ name, version }: StartKey, id: string, { maxMs }: Gather): Promise<boolean> => {
    const now = clock.now();
    const expiresAt = now + maxMs + retentionMs;
    const document = { value: { id }, tag: id, updatedAt: now, ...(Number.isFinite(expiresAt) && { expiresAt }) };
    return documents.write(TAKEN, name, { expectedVersion: version, document, now });
  };

  const checkCurrent = async ({ expects }: LoadedEnsemble): Promise<void> => {
    const stored = expects && (await documents.read(expects.kind, expects.name, clock.now()));
    if (expects && stored?.tag !== expects.tag) throw new StaleDefinitionError();
  };

  /** @returns undefined if something has changed meanwhile */
  const tryOnce = async (
    ensemble: LoadedEnsemble,
    given: NewExecution,
    how: BeginOptions,
    { gather, key }: Gathering,
  ) => {
    const now = clock.now();
    const name = `${given.ensemble}/${hashJson([given.version, key])}`;
    const known = await documents.read(OPEN, name, now);
    const { id: current = '' } = (known?.value ?? {}) as { readonly id?: string };
    const taking = known ? await findTaking(current, given.version, gather) : 'closed';
    // After the epoch was read: what takes the start from here on changes it.
    const taken = await findTaken(given);
    if (typeof taken === 'string') return taken;
    const next = typeof taking === 'object' ? nextOf(gather, taking, given, now) : undefined;
    if (typeof taking === 'object' && next) {
      await checkCurrent(ensemble);
      if (taken && !(await nameTaker(taken, current, gather))) return undefined;
      return (await take(taking, next, taken?.note)) ? current : undefined;
    }
    const isUnstored = taking === 'unknown' && known !== undefined && now < known.updatedAt + UNSTORED_MS;
    const id = isUnstored ? current : given.id;
    const document = { value: { id }, tag: id, updatedAt: now, expiresAt: now + gather.maxMs + DAY_MS };
    if (!isUnstored && !(await documents.write(OPEN, name, { expectedVersion: known?.version ?? 0, document, now })))
      return undefined;
    if (taken && !(await nameTaker(taken, id, gather))) return undefined;
    const { start, handover } = firstOf(gather, given, key, now);
    const { idempotencyKey: _none, ...rest } = given;
    try {
      const { dueAt, ...replaced } = start;
      const steps = taken ? [...(how.steps ?? []), taken.note] : how.steps;
      await dependencies.begin({
        ...{ ensemble, execution: { ...rest, ...replaced, id }, keeps: false },
        how: { ...how, steps, later: { dueAt, handover } },
      });
      return id;
    } catch (thrown) {
      // Another start was the first under this id.
      if (isOrchestratorError(thrown, 'CONFLICT') && (await executions.getPinned(id))) return undefined;
      throw thrown;
    }
  };

  return async (gather, { ensemble, execution: start, how }, options) => {
    refuseShared(options, gather);
    const key = gather.key(inputOfFirst(gather, start.input), start.createdAt);
    return inTurn(`${start.ensemble} ${key}`, async () => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const id = await tryOnce(ensemble, start, how, { gather, key });
        if (id !== undefined) return id;
      }
      const message = `too many starts of \`${start.ensemble}\` with the key ${JSON.stringify(key)} came at the same time; try again`;
      throw new OrchestratorError('OVERLOADED', message, { retryable: true });
    });
  };
}

/** Lets calls with the same name run one after the other. */
function takeTurns() {
  const last = new Map<string, Promise<unknown>>();
  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const mine = (last.get(name) ?? Promise.resolve()).then(work, work);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}

function firstOf(gather: Gather, { input, createdAt, deadlineAt }: NewExecution, key: string, now: number): Next {
  const { kind, waitMs, size } = gather;
  const until = size === 1 ? now : now + waitMs;
  const wait: PendingWait = { kind, key, since: createdAt, until, starts: 1 };
  return {
    start: { input, dueAt: until, ...(deadlineAt !== undefined && { deadlineAt: deadlineAt + until - createdAt }) },
    handover: { waitingFor: [wait], waited: 0, recoveries: 0 },
  };
}

/** @returns undefined if the execution takes no more starts */
function nextOf(
  gather: Gather,
  { execution, handover, wait }: Taking,
  given: NewExecution,
  now: number,
): Next | undefined {
  const { deadlineAt, input: before } = execution;
  const { starts = 1, since, until } = wait;
  const { keep, size, waitMs, maxMs } = gather;
  if (starts >= size) return undefined;
  const input =
    keep === 'all'
      ? [...(before as readonly Json[]), ...(given.input as readonly Json[])]
      : keep === 'last'
        ? given.input
        : before;
  if (keep === 'all' && jsonTextBytes(input, MAX_LIST_BYTES) > MAX_LIST_BYTES) return undefined;
  // What is due waits for a slot of a limit, and keeps its place.
  const later = keep === 'all' || until <= now ? until : Math.min(now + waitMs, since + maxMs);
  const dueAt = starts + 1 === size ? Math.min(now, later) : later;
  return {
    start: { input, dueAt, ...(deadlineAt !== undefined && { deadlineAt: deadlineAt + dueAt - until }) },
    handover: { ...handover, waitingFor: [{ ...wait, until: dueAt, starts: starts + 1 }] },
  };
}

/** What can't be said of a start that may share its execution with others, and what to do instead. */
const NOT_SHARED = {
  id: 'use `idempotencyKey`',
  signal: 'cancel the execution by its id',
  transaction: 'start it after the commit',
} as const;

/** @throws INVALID_REQUEST */
function refuseShared(options: ExecuteOptions, { kind }: Gather): void {
  for (const [option, instead] of Object.entries(NOT_SHARED)) {
    if (options[option as keyof typeof NOT_SHARED] === undefined) continue;
    const message = `\`${option}\` can't be used with an ensemble that has \`${kind}\`: several starts share an execution; ${instead}`;
    throw new OrchestratorError('INVALID_REQUEST', message);
  }
}
