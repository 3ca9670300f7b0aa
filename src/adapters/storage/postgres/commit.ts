/** Writes commits: each entry under its fence, wholly or not at all, a batch in as few statements as it takes. */

import type { CommitEntry, StepRecord } from '../../../engine/model/stored-execution.ts';
import type { CommitResult, Storage } from '../../../engine/ports/storage.ts';
import { toJsonColumn } from '../sql/columns.ts';
import { commitStatements } from './commit-statements.ts';
import type { Names } from './names.ts';
import { isBare, isTwofold, planWrites, type Write } from './plan-writes.ts';
import { createRefusals } from './refused.ts';
import { createRunWrite } from './run-write.ts';
import type { SignalsTable } from './signals-table.ts';
import type { SqlClient } from './sql-client.ts';

/** @param onFreed - told when something became free */
export function createCommit(
  client: SqlClient,
  names: Names,
  namespace: string,
  onFreed: () => void,
  signals: SignalsTable,
): Storage['commit'] {
  const run = createRunWrite(client, commitStatements(names), namespace);
  const refusals = createRefusals(names, namespace);

  /** A start that is changed at once, and what sends signals: several writes, which are stored together. */
  const commitTwofold = async (owner: string, entry: CommitEntry): Promise<CommitResult> => {
    const { signals: sent = [], ...rest } = entry;
    const parts = isTwofold(rest) ? partsOf(rest) : [rest];
    const refused = new Error('refused');
    let answer: CommitResult = 'stored';
    try {
      await client.transaction(async (on) => {
        if (isBare(rest)) await signals.holdOwner(on, owner);
        for (const part of parts) {
          const written = await run.write(on, owner, planWrites([part])[0] as Write);
          if (!written) continue;
          [answer = 'fenced'] = await refusals.answer(on, owner, [part], written);
          // What was stored by an earlier call is there with all that belongs to it, so nothing of it is written twice.
          if (answer !== 'stored' || (part === parts[0] && !isBare(part))) throw refused;
        }
        if (sent.length > 0) await signals.send(on, sent);
      });
    } catch (error) {
      if (error !== refused) throw error;
    }
    if (sent.length > 0 && answer === 'stored') await signals.giveSent();
    return answer;
  };

  const commitWrite = async (owner: string, write: Write, entries: readonly CommitEntry[]) => {
    const [first] = entries;
    if (first && isTwofold(first)) return [await commitTwofold(owner, first)];
    const written = await run.write(client, owner, write);
    if (!written) return entries.map((): CommitResult => 'stored');
    return written.isConflict ? ['state-conflict' as const] : refusals.answer(client, owner, entries, written);
  };

  return async (owner, batch) => {
    const [only] = batch;
    const step = batch.length === 1 && only ? onlyStep(only) : undefined;
    if (only && step) {
      const written = await run.step(owner, { entry: only, part: step, json: toJsonColumn(step.output) });
      return written ? refusals.answer(client, owner, batch, written) : STORED;
    }
    const answers: CommitResult[] = [];
    for (const write of planWrites(batch)) {
      const entries = write.places.map((place) => batch[place] as CommitEntry);
      answers.push(...(await commitWrite(owner, write, entries)));
      if (entries.some(({ release }) => release !== undefined)) onFreed();
    }
    return answers;
  };
}

function partsOf({ start, ...change }: CommitEntry): readonly CommitEntry[] {
  const { executionId, epoch } = change;
  return [{ executionId, epoch, steps: [], ...(start && { start }) }, change];
}

const STORED: readonly CommitResult[] = ['stored'];

/** The step of an entry that holds one, and nothing else. */
function onlyStep({ start, steps, state, deliveries, signals, release, end }: CommitEntry): StepRecord | undefined {
  if (steps.length !== 1 || start || state || release || end || signals || (deliveries && deliveries.length > 0))
    return undefined;
  return steps[0];
}
