/** Estimates how many bytes a commit entry takes in a storage. `base/measure-json.ts` compares the ways to measure values. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { CommitEntry, StepRecord } from './stored-execution.ts';

/** Added for each value, so that values without content count too. */
const VALUE_OVERHEAD = 8;

/** The estimate limits the size of batches and sets their timeouts. It is not exact enough for accounting. */
export function estimateEntryBytes({ start, steps, state, signals, end }: CommitEntry): number {
  let bytes = 0;
  for (let i = 0; i < steps.length; i++) {
    const { output, error } = steps[i] as StepRecord;
    bytes += estimateBytes(output);
    if (error !== undefined) bytes += estimateBytes(error as unknown as Json);
  }
  if (end !== undefined) bytes += estimateBytes(end.output);
  if (end?.error !== undefined) bytes += estimateBytes(end.error as unknown as Json);
  if (start !== undefined) bytes += estimateBytes(start.input);
  if (state !== undefined) bytes += estimateBytes(state.value);
  if (signals !== undefined) for (const { payload } of signals) bytes += estimateBytes(payload);
  return bytes;
}

function estimateBytes(value: Json): number {
  if (typeof value === 'string') return value.length + VALUE_OVERHEAD;
  if (typeof value !== 'object' || value === null) return VALUE_OVERHEAD;
  let bytes = VALUE_OVERHEAD;
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) bytes += estimateBytes(value[i] as Json);
  else for (const key in value) bytes += key.length + estimateBytes((value as JsonObject)[key] as Json);
  return bytes;
}
