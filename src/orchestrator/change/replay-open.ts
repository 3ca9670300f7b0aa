/** Replays an execution that has not ended against another definition: whether it could continue there. */

import { manualClock } from '../../adapters/clock/manual-clock.ts';
import { nextTurn } from '../../engine/base/time/next-turn.ts';
import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import { equalJson, type Json } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { ExecutionOutcome } from '../../engine/execution/execution-engine.port.ts';
import type { NewExecution, StepRecord } from '../../engine/execution/stored-execution.ts';
import type { RunPorts } from '../../engine/interpreter/run.ts';
import { runEnsemble } from '../../engine/interpreter/run-ensemble.ts';
import { Turns } from '../../engine/interpreter/turns.ts';
import { describeRecord, placeOf } from '../../engine/running/describe-record.ts';
import { type ReplayDifference, ReplayJournal } from '../../engine/running/replay-journal.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { readInput } from '../runs/read-input.ts';

/** What is recorded of an execution that has not ended. */
export interface OpenRecord {
  readonly execution: NewExecution;
  readonly steps: readonly StepRecord[];
  readonly status: Execution['status'];
  readonly waitingFor: Execution['waitingFor'];
}

/** Old names of agents and signals, and their new ones. */
export type NameMap = Readonly<Record<string, string>>;

/**
 * Whether the execution can continue in a definition: its input fits, each recorded step is at its position, and if it waits, the flow
 * waits for the same there. The first difference is the answer. No operation is called.
 *
 * @param env - `env` and `secrets` together
 * @returns undefined if it can
 */
export async function replayOpen(
  ensemble: LoadedEnsemble,
  { execution, steps, status, waitingFor }: OpenRecord,
  env: Readonly<Record<string, string>>,
  names: NameMap = {},
): Promise<ReplayDifference | undefined> {
  const refused = await differentInput(ensemble, execution.input);
  if (refused || status === 'queued') return refused;
  const journal = new ReplayJournal({ steps }, true, names);
  const last = steps.reduce((latest, step) => Math.max(latest, step.startedAt + step.duration), execution.createdAt);
  const clock = manualClock({ now: last });
  const children: RunPorts['children'] = {
    newId: () => '',
    start: ({ key, ensemble: name }) => journal.stopAtChild(key, name),
    cancel: async () => undefined,
  };
  const ports: RunPorts = {
    ...{ clock, env, children, turns: new Turns(clock), mask: (text) => text, keepsStacks: false },
    ...{ logger: undefined, emit: undefined },
  };
  // A deadline is a matter of time, not of the definition.
  const { deadlineAt: _none, ...accepted } = execution;
  const { compiled, checkOutput } = ensemble;
  let outcome: ExecutionOutcome | undefined;
  const run = runEnsemble(compiled, accepted, journal, ports, { resumed: true, cancelled: false }, checkOutput);
  void run.outcome.then((ended) => {
    outcome = ended;
  });
  while (!outcome) {
    await journal.untilStill(() => new Promise(nextTurn));
    // A block that was stopped waits for a timer.
    if (outcome || journal.isAtEnd || !(await clock.advanceToNext())) break;
  }
  if (!outcome) run.abandon();
  return (
    journal.difference ??
    unusedStep(journal) ??
    (outcome ? ended(outcome) : status === 'waiting' ? differentWait(waitingFor, journal, names) : undefined)
  );
}

async function differentInput(ensemble: LoadedEnsemble, input: Json): Promise<ReplayDifference | undefined> {
  let checked: Json;
  try {
    checked = await (readInput(ensemble, input) as MaybePromise<Json>);
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
    const reason = `the definition refuses the recorded input: ${messageOf(error)}`;
    return { at: 'input', expected: input, found: error.message, reason };
  }
  if (equalJson(checked, input)) return undefined;
  const reason = 'the definition reads the recorded input as another value, for example with a default that is new';
  return { at: 'input', expected: input, found: checked, reason };
}

function unusedStep({ unused }: ReplayJournal): ReplayDifference | undefined {
  if (!unused) return undefined;
  const at = placeOf(unused.key);
  const expected = describeRecord(unused);
  const reason = `${expected} was recorded at ${at}, and the definition does not come to it`;
  return { at, expected, found: null, reason };
}

function ended({ status, error }: ExecutionOutcome): ReplayDifference {
  const why = error ? `: ${error.message}` : '';
  const reason = `the execution has not ended, and the definition ends after what is recorded, as ${status}${why}`;
  return { at: 'status', expected: 'open', found: status, reason };
}

/** What it waits for, and the flow does not wait for there. */
function differentWait(
  waitingFor: OpenRecord['waitingFor'],
  { stops }: ReplayJournal,
  names: NameMap,
): ReplayDifference | undefined {
  for (const { key, kind, name } of waitingFor) {
    const stop = stops.get(key);
    const renamed = name !== undefined && Object.hasOwn(names, name) ? names[name] : name;
    // An agent between two attempts is asked for its next one, or for the pause before it.
    const isSame =
      stop &&
      (stop.kind === kind || (kind === 'retry' && stop.kind === 'agent')) &&
      (kind === 'sleep' || stop.name === renamed);
    if (isSame) continue;
    const expected = describeWait(kind, renamed);
    const found = stop ? describeWait(stop.kind, stop.name) : null;
    const instead = stop ? `has ${found} there` : 'does not wait there';
    return {
      at: key,
      expected,
      found,
      reason: `the execution waits at ${key} (${expected}), and the definition ${instead}`,
    };
  }
  return undefined;
}

const WAITS = { signal: 'a wait for', sleep: 'a sleep', retry: 'a retry of', child: 'a child of', agent: 'agent' };

function describeWait(kind: keyof typeof WAITS, name: string | undefined): string {
  return name === undefined ? WAITS[kind] : `${WAITS[kind]} \`${name}\``;
}
