/** Writes a test from a real execution: its input, what its agents answered, the signals that it took, and how it ended. */

import { stringify } from 'yaml';
import { isMap } from '../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../engine/base/json/json.ts';
import { isChildSignalName } from '../engine/execution/child.ts';
import type { ExecutionHistory } from '../engine/execution/execution-history.ts';
import { isTakenSignal, type StepRecord } from '../engine/execution/stored-execution.ts';

export interface RecordOptions {
  /** The children of the execution, at any depth. */
  readonly children: readonly ExecutionHistory[];
  /** The names of fields whose values are replaced, anywhere. */
  readonly redact: readonly string[];
  /** The value as JSON text, with the secrets of the project masked. */
  readonly mask: (value: unknown) => string | undefined;
}

const REDACTED = 'redacted';

/** The children that a history names. */
export function childrenOf({ steps }: ExecutionHistory): string[] {
  return steps.flatMap(({ key, note, output }) =>
    note && key.endsWith('.ensemble.begun') && isMap(output) ? [String(output.id)] : [],
  );
}

/** @returns the text of a test file with one test */
export function recordTest(history: ExecutionHistory, { children, redact, mask }: RecordOptions): string {
  const { execution, status, end } = history;
  const all = [history, ...children].flatMap(({ steps }) => steps).sort((a, b) => a.startedAt - b.startedAt);
  const agents: Record<string, JsonObject[]> = {};
  for (const step of all) if (!step.note) agents[step.name] = [...(agents[step.name] ?? []), ...answersOf(step)];
  const signals = all.filter(isTakenSignal).flatMap(({ name, output }) => {
    const { signal, payload, at } = output as { readonly signal: string; readonly payload: Json; readonly at: number };
    return isChildSignalName(signal) ? [] : [{ name, after: at - execution.createdAt, payload }];
  });
  const error = end?.error && {
    code: end.error.code,
    ...(end.error.agent !== undefined && { agent: end.error.agent }),
  };
  const test = {
    name: `as in ${execution.id}`,
    now: new Date(execution.createdAt).toISOString(),
    input: execution.input,
    agents: Object.fromEntries(
      Object.entries(agents).map(([name, list]) => [name, list.length === 1 ? list[0] : list]),
    ),
    ...(signals.length > 0 && { signals }),
    expect: {
      status,
      ...(end && !error && { output: end.output }),
      ...(error && { error }),
      steps: history.steps.filter(({ note }) => !note).map(({ name }) => name),
    },
  };
  const masked = JSON.parse(mask(redacted(test as unknown as Json, redact)) ?? 'null') as Json;
  const head = `# From execution ${execution.id}. Without its answer, an agent of \`code\` runs its script.\n`;
  return head + stringify({ ensemble: execution.ensemble, tests: [masked] }, { lineWidth: 0 });
}

/** What failed attempts before the last one were is not stored. */
function answersOf({ status, output, error, attempts }: StepRecord): JsonObject[] {
  const before = Array.from({ length: attempts - 1 }, () => ({ error: { message: 'failed', retryable: true } }));
  const last =
    status === 'completed' || !error
      ? { output }
      : { error: { code: error.code, message: error.message, retryable: false } };
  return [...before, last as unknown as JsonObject];
}

function redacted(value: Json, names: readonly string[]): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item) => redacted(item, names));
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      names.includes(key) && inner !== null && typeof inner !== 'object' ? REDACTED : redacted(inner, names),
    ]),
  );
}
