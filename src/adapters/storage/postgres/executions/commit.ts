/** Writes commits: each entry under its fence, wholly or not at all; a batch in as few statements as possible. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { isRepeatable } from '../../../../engine/execution/start-once.ts';
import type { CommitEntry, StepRecord } from '../../../../engine/execution/stored-execution.ts';
import type { CommitResult, Storage } from '../../../../engine/storage/storage.port.ts';
import { readNumber, toJsonColumn } from '../../sql/columns.ts';
import { admitStarts, type LimitedStart, limitedStart, storeStarts } from '../../sql/queues/admit-starts.ts';
import { readArrivals } from '../../sql/queues/claim-queues.ts';
import { purgeLimits, sweepLimits } from '../../sql/queues/purge-limits.ts';
import { KnownLimits } from '../../sql/queues/queue-cursor.ts';
import { runLater } from '../../sql/queues/steps.ts';
import type { SqlClient, SqlResult, SqlRunner } from '../drivers/driver.ts';
import type { ChargesTable } from '../tables/charges-table.ts';
import { readList, toTextColumn } from '../tables/columns.ts';
import { isOverLimit } from '../tables/count-charges.ts';
import type { Names } from '../tables/names.ts';
import { commitStatements } from './commit-statements.ts';
import { CHARGE, DELIVERY, EXPECTS, GATED, SETTLE, START, STATE, STEP, TAG, toArrays, toRow } from './entry-columns.ts';
import { createRefusals, type Written } from './explain-refusal.ts';
import { createFastCommit } from './fast-commit.ts';
import { isFenceCheck, needsTransaction, planWrites, type Write } from './plan-writes.ts';
import { NO_CALLERS } from './queue-statements.ts';
import { createQueues } from './queue-tables.ts';
import type { SignalsTable } from './signals-table.ts';

export interface CommitDependencies {
  /** Called when an execution became free. */
  readonly onFreed: () => void;
  readonly signals: SignalsTable;
  readonly usage: ChargesTable;
}

export function createCommit(
  client: SqlClient,
  names: Names,
  namespace: string,
  { onFreed, signals, usage }: CommitDependencies,
): Storage['commit'] {
  const statements = commitStatements(names);
  const refusals = createRefusals(names, namespace);
  const fast = createFastCommit(client, names, namespace);
  const queuesOn = createQueues(names, namespace, NO_CALLERS);
  let limitedCommits = 0;
  /** The limits that this process knows to be stored. */
  const known = new KnownLimits();
  const sweep = sweepLimits((now) => client.transaction((on) => runLater(purgeLimits(queuesOn(on), known, now))));

  /** @returns undefined when everything was stored */
  const run = async (on: SqlRunner, worker: string, write: Write): Promise<Written | undefined> => {
    const { starts, tags, charges, states, settles, steps, deliveries } = write;
    const gated = states.length > 0;
    const params = [
      ...toArrays(inOrder(starts), write.expects ? [...START, ...EXPECTS] : START),
      ...toArrays(tags, TAG),
      ...toArrays(charges, CHARGE),
      ...toArrays(states, STATE),
      ...toArrays(settles, gated ? [...SETTLE, GATED] : SETTLE),
      ...toArrays(steps, gated ? [...STEP, GATED] : STEP),
      ...toArrays(deliveries, gated ? [...DELIVERY, GATED] : DELIVERY),
    ];
    if (params.length === 0) return NOTHING;
    return toWritten(write, await on.run(statements.general(write), [namespace, toTextColumn(worker), ...params]));
  };

  /** @returns whether the step was stored */
  const runStep = async (worker: string, entry: CommitEntry, part: StepRecord): Promise<boolean> => {
    const row = toRow({ entry, part, json: toJsonColumn(part.output) }, STEP);
    return (await client.run(statements.step, [namespace, toTextColumn(worker), ...row])).count === 1;
  };

  /**
   * Writes an entry that needs several statements: a start together with its end or a state change, or an entry that
   * sends signals.
   */
  const commitInTransaction = async (worker: string, entry: CommitEntry): Promise<CommitResult> => {
    const { signals: sent = [], ...rest } = entry;
    const parts = needsTransaction(rest) ? splitEntry(rest) : [rest];
    const refused = new Error('refused');
    let answer: CommitResult = 'stored';
    try {
      await client.transaction(async (on) => {
        if (isFenceCheck(rest)) await signals.lockWorker(on, worker);
        for (const part of parts) {
          const written = await run(on, worker, planWrites([part])[0] as Write);
          if (!written) continue;
          [answer = 'fenced'] = await refusals.answer(on, worker, [part], written);
          // If an earlier call stored the start, it also stored the rest of the entry, so the rest is not written
          // again.
          if (answer !== 'stored' || (part === parts[0] && !isFenceCheck(part))) throw refused;
        }
        if (sent.length > 0) await signals.send(on, sent);
      });
    } catch (error) {
      if (isOverLimit(error)) return usage.limitOf(entry);
      if (error !== refused) throw error;
    }
    if (sent.length > 0 && answer === 'stored') await signals.deliverSent();
    return answer;
  };

  const commitWrite = async (
    worker: string,
    write: Write,
    entries: readonly CommitEntry[],
  ): Promise<readonly CommitResult[]> => {
    const [first] = entries;
    if (first && needsTransaction(first)) return [await commitInTransaction(worker, first)];
    if (await fast.run(worker, write)) return entries.map((): CommitResult => 'stored');
    let written: Written | undefined;
    try {
      written = await run(client, worker, write);
    } catch (error) {
      if (!isOverLimit(error)) throw error;
      return entries.length === 1 ? [await usage.limitOf(first as CommitEntry)] : commitOneByOne(worker, entries);
    }
    return written ? refusals.answer(client, worker, entries, written) : entries.map((): CommitResult => 'stored');
  };

  /** For entries of which one is over a limit of its caller, so that nothing of their common statement was stored. */
  const commitOneByOne = async (worker: string, entries: readonly CommitEntry[]): Promise<CommitResult[]> => {
    const answers: CommitResult[] = [];
    for (const entry of entries) answers.push(...(await commitWrite(worker, planWrites([entry])[0] as Write, [entry])));
    return answers;
  };

  /** Starts that run under limits: they take their slots at once, or may be too many. In one transaction, with their limits locked. */
  const commitLimited = async (worker: string, entries: readonly CommitEntry[]): Promise<readonly CommitResult[]> => {
    let cancels = false;
    const now = Math.max(...entries.map(({ start }) => start?.createdAt ?? 0));
    sweep(now);
    try {
      const answers = await known.during(() =>
        client.transaction(async (on) => {
          const tables = queuesOn(on);
          const starts = entries.map((entry) => limitedStart(entry) as LimitedStart);
          // What was freed is removed here too: where nobody waits for slots, nobody claims from queues.
          limitedCommits += 1;
          if (limitedCommits % ARRIVALS_EVERY === 0) await runLater(readArrivals(tables, known, now));
          const { answers: admitted, states } = await runLater(admitStarts(tables, known, starts, now));
          const isStored = (i: number) => admitted[i] === 'begins' || admitted[i] === 'queued';
          const accepted = entries.filter((entry, i) => isStored(i) && !needsTransaction(entry));
          const answers = new Map<CommitEntry, CommitResult>();
          for (const write of planWrites(accepted)) {
            const these = write.places.map((place) => accepted[place] as CommitEntry);
            const written = await run(on, worker, write);
            const found = written && (await refusals.answer(on, worker, these, written));
            for (const [i, entry] of these.entries()) answers.set(entry, found?.[i] ?? 'stored');
          }
          const stored = starts.flatMap((start, i) =>
            answers.get(entries[i] as CommitEntry) === 'stored' ? [{ ...start, begins: admitted[i] === 'begins' }] : [],
          );
          cancels = await runLater(storeStarts(tables, states, stored, now));
          // An earlier call may have stored one of the others: it takes the slot itself.
          const others = entries.filter((entry) => !answers.has(entry));
          const earlier = others.length > 0 ? await refusals.answer(on, worker, others, NOTHING) : [];
          for (const [i, entry] of others.entries()) {
            const answer = earlier[i] as CommitResult;
            const refusal = admitted[entries.indexOf(entry)] === 'queue-full' ? 'queue-full' : 'slots-taken';
            answers.set(entry, answer === 'fenced' ? refusal : answer);
          }
          return entries.map((entry) => answers.get(entry) as CommitResult);
        }),
      );
      if (cancels || entries.some(({ release }) => release)) onFreed();
      return answers;
    } catch (error) {
      if (!isOverLimit(error)) throw error;
      if (entries.length === 1) return [await usage.limitOf(entries[0] as CommitEntry)];
      const answers: CommitResult[] = [];
      for (const entry of entries) answers.push(...(await commitLimited(worker, [entry])));
      return answers;
    }
  };

  const commitAll = async (worker: string, batch: readonly CommitEntry[]): Promise<readonly CommitResult[]> => {
    const answers: CommitResult[] = [];
    for (const write of planWrites(batch)) {
      const entries = write.places.map((place) => batch[place] as CommitEntry);
      answers.push(...(await commitWrite(worker, write, entries)));
      if (entries.some(({ release }) => release !== undefined)) onFreed();
    }
    return answers;
  };

  return async (worker, batch) => {
    const [only] = batch;
    const step = batch.length === 1 && only ? onlyStep(only) : undefined;
    if (only && step) {
      return (await runStep(worker, only, step)) ? STORED : refusals.answer(client, worker, batch, NOTHING);
    }
    const isLimited = (entry: CommitEntry) => limitedStart(entry) !== undefined;
    const limited = batch.filter(isLimited);
    if (limited.length === 0) return commitAll(worker, batch);
    const others = batch.filter((entry) => !isLimited(entry));
    const [ofLimited, ofOthers] = await Promise.all([commitLimited(worker, limited), commitAll(worker, others)]);
    const answers = new Map<CommitEntry, CommitResult>();
    for (const [i, entry] of limited.entries()) answers.set(entry, ofLimited[i] as CommitResult);
    for (const [i, entry] of others.entries()) answers.set(entry, ofOthers[i] as CommitResult);
    return batch.map((entry) => answers.get(entry) as CommitResult);
  };
}

/** Which commits of starts under limits also remove what was freed. */
const ARRIVALS_EVERY = 16;

const NOTHING: Written = { settled: new Set(), changed: new Set() };
const STORED: readonly CommitResult[] = ['stored'];

function toWritten(write: Write, { rows: [row] }: SqlResult): Written | undefined {
  if (!row) throw new OrchestratorError('INTERNAL', 'Postgres gave no answer to a commit');
  const { starts, tags, states, settles, steps, deliveries } = write;
  const expected = {
    ...{ started: starts, tagged: tags, changed: states },
    ...{ settled: settles, put: steps, outbox: deliveries },
  };
  const isAll = Object.entries(expected).every(
    ([name, parts]) => parts.length === 0 || readNumber(row, name, 'a commit') === parts.length,
  );
  return isAll ? undefined : { settled: new Set(readList(row, 'ids')), changed: new Set(readList(row, 'ensembles')) };
}

/**
 * Starts that a caller may repeat are written in one order by all processes: a statement that finds an id or a key of
 * another one waits for it, and two statements must not wait for each other.
 */
function inOrder(starts: Write['starts']): Write['starts'] {
  if (!starts.some(({ part }) => isRepeatable(part))) return starts;
  const keyOf = ({ part }: Write['starts'][0]) => part.idempotencyKey ?? part.id;
  return starts.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function splitEntry({ start, charge, expects, ...change }: CommitEntry): readonly CommitEntry[] {
  const { executionId, epoch } = change;
  const accepted = { ...(start && { start }), ...(charge && { charge }), ...(expects && { expects }) };
  return [{ executionId, epoch, steps: [], ...accepted }, change];
}

/** The step of an entry that consists of one step only. */
function onlyStep({ start, steps, state, signals, release, end, deliveries }: CommitEntry): StepRecord | undefined {
  if (steps.length !== 1 || start || state || release || end || signals || deliveries) return undefined;
  return steps[0];
}
