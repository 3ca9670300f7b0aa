/** Replays a recorded execution against the definitions of today, without a call of an operation. */

import { hostTurn, type ManualClock, manualClock } from '../../adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../adapters/storage/memory/memory-storage.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { equalJson, type Json } from '../../engine/base/json/json.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import type {
  ExecutionEngine,
  ExecutionOutcome,
  LoadedDefinition,
} from '../../engine/execution/execution-engine.port.ts';
import type { ExecutionHistory } from '../../engine/execution/execution-history.ts';
import type { NewExecution } from '../../engine/execution/stored-execution.ts';
import { never } from '../../engine/running/recorded-journal.ts';
import { type ReplayDifference, ReplayJournal } from '../../engine/running/replay-journal.ts';
import type { Orchestrator } from '../../orchestrator/create-orchestrator.ts';
import type { OrchestratorOptions } from '../../orchestrator/options/options.ts';

export type { ReplayDifference };

export type ReplayResult = { readonly matches: true } | ({ readonly matches: false } & ReplayDifference);

/** @param create - creates an orchestrator with these options besides those of the caller */
export async function replayHistory(
  history: ExecutionHistory,
  create: (options: OrchestratorOptions) => Orchestrator,
): Promise<ReplayResult> {
  checkHistory(history);
  const isOpen = wasStopped(history);
  const journal = new ReplayJournal(history, isOpen);
  const engine = captureStart(journal);
  const clock = manualClock({ now: latestInstant(history) });
  // Nothing of the caller's storage is read or written.
  const orchestrator = create({ engine, clock, storage: memoryStorage(), schedules: false });
  const { execution } = history;
  const agent = agentAlone(execution.ensemble);
  try {
    if (agent === undefined) await orchestrator.start(execution.ensemble, execution.input, { events: false });
    else await orchestrator.startAgent(agent, execution.input, { events: false });
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
    const reason = `today's definition refuses the recorded input: ${error.message}`;
    return { matches: false, at: 'input', expected: execution.input, found: error.message, reason };
  }
  const { input, loaded } = engine.captured();
  const { outcome, hasState } = await runToEnd({ ...execution, input }, { loaded, journal, clock });
  const difference =
    journal.difference ?? journal.unusedStep("today's definition") ?? differentEnd(history, outcome, isOpen, hasState);
  return difference ? { matches: false, ...difference } : { matches: true };
}

/** @throws TypeError for a value that `executions.history(id)` did not return */
function checkHistory(history: ExecutionHistory): void {
  const { format, execution, steps } = (history ?? {}) as Partial<ExecutionHistory>;
  if (format === 1 && typeof execution?.ensemble === 'string' && Array.isArray(steps)) return;
  throw new TypeError('replay takes the result of `executions.history(id)`, or the same after JSON.parse');
}

/** Whether the recorded run has not reached the end of its flow: it has not ended, or something outside of its flow stopped it. */
function wasStopped({ end }: ExecutionHistory): boolean {
  return !end || end.status === 'cancelled' || end.status === 'timed_out' || end.error?.code === 'INTERNAL';
}

function latestInstant({ execution, steps, end }: ExecutionHistory): number {
  if (end) return end.finishedAt;
  return steps.reduce((latest, step) => Math.max(latest, step.startedAt + step.duration), execution.createdAt);
}

/** An engine that runs nothing: it keeps the accepted input and the definition. */
function captureStart(journal: ReplayJournal) {
  let start: { readonly input: Json; readonly loaded: LoadedDefinition } | undefined;
  const unknown = (): Promise<never> => {
    // A child execution that was begun, and whose end is not recorded.
    journal.isAtEnd = true;
    return never();
  };
  const nothing = async () => undefined;
  const engine: ExecutionEngine = {
    attach: () => ({
      runRecords: { executions: { get: unknown, countDescendants: unknown }, signals: { list: unknown } },
      active: 0,
      begin({ input }, loaded) {
        start = { input, loaded };
        return { finished: never() };
      },
      open() {},
      whenEnded: nothing,
      cancel: nothing,
      signal: unknown,
      runDue: async () => ({}),
      close: nothing,
    }),
  };
  return {
    ...engine,
    captured() {
      if (start) return start;
      throw new OrchestratorError('INTERNAL', 'the replay was not started');
    },
  };
}

/** @returns no outcome when the flow has come to the end of the history */
async function runToEnd(
  execution: NewExecution,
  { loaded, journal, clock }: { loaded: LoadedDefinition; journal: ReplayJournal; clock: ManualClock },
) {
  let outcome: ExecutionOutcome | undefined;
  const run = loaded.run(execution, journal, { resumed: true, cancelled: false });
  void run.outcome.then((ended) => {
    outcome = ended;
  });
  while (!outcome) {
    await journal.untilStill(hostTurn);
    if (outcome || journal.isAtEnd) break;
    // A block that was stopped waits for a timer. Without one, an `outputSchema` is still at work.
    if (!(await clock.advanceToNext())) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (!outcome) run.abandon();
  return { outcome: outcome as ExecutionOutcome | undefined, hasState: 'state' in loaded.definition.definition };
}

/** @param hasState - the ensemble has a state. What it was then is not recorded, so outputs are not compared */
function differentEnd(
  { status, end }: ExecutionHistory,
  outcome: ExecutionOutcome | undefined,
  isOpen: boolean,
  hasState: boolean,
): ReplayDifference | undefined {
  if (isOpen || !end || !outcome) {
    if (status !== 'waiting' || !outcome) return undefined;
    const reason = `the recorded execution waits, and today's definition ends as ${outcome.status}`;
    return { at: 'status', expected: status, found: outcome.status, reason };
  }
  if (outcome.status !== end.status) {
    const why = outcome.error ? `: ${outcome.error.message}` : '';
    const reason = `the recorded execution ended as ${end.status}, and today's definition ends as ${outcome.status}${why}`;
    return { at: 'status', expected: end.status, found: outcome.status, reason };
  }
  if (outcome.error?.code !== end.error?.code || outcome.error?.agent !== end.error?.agent) {
    const [expected, found] = [end.error ?? null, outcome.error ?? null] as unknown as readonly [Json, Json];
    return { at: 'error', expected, found, reason: 'the execution fails for another reason' };
  }
  if (hasState || equalJson(end.output, outcome.output)) return undefined;
  const reason = "the results of the steps are the same, and today's definition computes other outputs from them";
  return { at: 'output', expected: end.output, found: outcome.output, reason };
}
