/** About how many bytes an entry takes in a store: for bounds of batches and of time, not for accounts. */

import type { Json, JsonObject } from '../json.ts';
import type { CommitEntry } from './stored-execution.ts';

/** A value of no content has its frame all the same. */
const FRAME = 8;

export function entryBytes({ start, steps, state, deliveries, signals, end }: CommitEntry): number {
  let bytes = 0;
  for (let i = 0; i < steps.length; i++) bytes += jsonBytes(steps[i]?.output ?? null);
  if (end !== undefined) bytes += jsonBytes(end.output);
  if (start !== undefined) bytes += jsonBytes(start.input);
  if (state !== undefined) bytes += jsonBytes(state.value);
  if (signals !== undefined) for (const { payload } of signals) bytes += jsonBytes(payload);
  if (deliveries !== undefined) for (const { payload } of deliveries) bytes += jsonBytes(payload);
  return bytes;
}

function jsonBytes(value: Json): number {
  if (typeof value === 'string') return value.length + FRAME;
  if (typeof value !== 'object' || value === null) return FRAME;
  let bytes = FRAME;
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) bytes += jsonBytes(value[i] as Json);
  else for (const key in value) bytes += key.length + jsonBytes((value as JsonObject)[key] as Json);
  return bytes;
}
