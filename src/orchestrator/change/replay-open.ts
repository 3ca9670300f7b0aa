/** Replays an execution that has not ended against another definition: whether it could continue there. */

import { manualClock } from '../../adapters/clock/manual-clock.ts';
import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import { equalJson, type Json } from '../../engine/base/json/json.ts';
import type { CompiledEnsemble } from '../../engine/compiled/compiled-ensemble.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { type Execution, type ExecutionMove, isAtStep } from '../../engine/execution/execution.ts';
import type { ExecutionOutcome } from '../../engine/execution/execution-engine.port.ts';
import type { NewExecution, StepRecord } from '../../engine/execution/stored-execution.ts';
import type { RunPorts } from '../../engine/interpreter/run.ts';
import { runEnsemble } from '../../engine/interpreter/run-ensemble.ts';
import { Turns } from '../../engine/interpreter/turns.ts';
import { type ReplayDifference, ReplayJournal } from '../../engine/running/replay-journal.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { readRecordedInput } from '../runs/starts/read-input.ts';
import { differentStep, type NameMap } from './same-steps.ts';

/** What is recorded of an execution that has not ended. */
export interface OpenRecord {
  readonly execution: NewExecution;
  readonly steps: readonly StepRecord[];
  readonly status: Execution['status'];
  readonly waitingFor: Execution['waitingFor'];
  /** How many more waits it has. */
  readonly omitted?: number | undefined;
  /** The definition that it has, as it is stored. */
  readonly definition: EnsembleDefinition;
  readonly moves?: readonly ExecutionMove[] | undefined;
}

/**
 * Whether the execution can continue in a definition: its input fits, each recorded step is at its position, and if it waits, the flow
 * waits for the same there. The first difference is the answer. No operation is called.
 *
 * @param env - `env` and `secrets` together
 * @returns undefined if it can
 */
export async function replayOpen(
  ensemble: LoadedEnsemble,
  { execution, steps, status, waitingFor, omitted = 0, definition, moves = [] }: OpenRecord,
  env: Readonly<Record<string, string>>,
  names: NameMap = {},
): Promise<ReplayDifference | undefined> {
  if (status === 'running') return { at: 'status', expected: 'waiting', found: status, reason: BUSY };
  const refused = await differentInput(ensemble, execution.input);
  if (refused || status === 'queued') return refused;
  if (omitted > 0)
    return {
      at: 'status',
      expected: null,
      found: null,
      reason: 'it waits at more than 100 places: they are not all known',
    };
  // The records have the names of the definition with which it began.
  const allNames = [...moves.map(({ map = {} }) => map), names].reduce(joinNames, {});
  const { compiled, checkOutput } = ensemble;
  const other = differentStep({ steps, waitingFor }, definition, storedOf(compiled), names);
  if (other) return other;
  const journal = new ReplayJournal({ steps }, true, allNames);
  const instants = [
    ...steps.map(({ startedAt, duration }) => startedAt + duration),
    ...waitingFor.map(({ since }) => since),
  ];
  const last = instants.reduce((latest, one) => Math.max(latest, one), execution.createdAt);
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
  let outcome: ExecutionOutcome | undefined;
  const run = runEnsemble(compiled, accepted, journal, ports, { resumed: true, cancelled: false }, checkOutput);
  void run.outcome.then((ended) => {
    outcome = ended;
  });
  do {
    // Twice: what is asked in the first turn may be answered in the next one.
    await clock.advance(0);
    await clock.advance(0);
    // A block that was stopped waits for a timer.
  } while (!outcome && !journal.isAtEnd && (await clock.advanceToNext()));
  if (!outcome) run.abandon();
  return (
    journal.difference ??
    journal.unusedStep('the definition') ??
    (outcome ? ended(outcome) : differentWait(waitingFor, journal, names))
  );
}

/** Why a running execution is not moved. */
export const BUSY = 'a process runs it at the moment, or is about to: it can be moved when it waits';

function joinNames(before: NameMap, more: NameMap): NameMap {
  const known = Object.entries(before).map(([from, to]) => [from, Object.hasOwn(more, to) ? (more[to] as string) : to]);
  return { ...more, ...Object.fromEntries(known) };
}

/** The definition with the shared agents that it uses. */
function storedOf({ stored }: CompiledEnsemble): EnsembleDefinition {
  return stored.definition as unknown as EnsembleDefinition;
}

async function differentInput(ensemble: LoadedEnsemble, input: Json): Promise<ReplayDifference | undefined> {
  let checked: Json;
  try {
    checked = await readRecordedInput(ensemble, input);
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
    const reason = `the definition refuses the recorded input: ${messageOf(error)}`;
    return { at: 'input', expected: null, found: null, reason };
  }
  if (equalJson(checked, input)) return undefined;
  const reason = 'the definition reads the recorded input as another value, for example with a default that is new';
  return { at: 'input', expected: null, found: null, reason };
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
  for (const wait of waitingFor) {
    if (!isAtStep(wait)) continue;
    const { key, kind, name } = wait;
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

const WAITS = {
  signal: 'a wait for',
  sleep: 'a sleep',
  retry: 'a retry of',
  child: 'a child of',
  agent: 'agent',
};

function describeWait(kind: keyof typeof WAITS, name: string | undefined): string {
  return name === undefined ? WAITS[kind] : `${WAITS[kind]} \`${name}\``;
}
