/** What an execution keeps of the request that started it: only the parts that its definition reads. */

import type { Json, JsonObject } from '../base/json/json.ts';
import { toNote } from '../ensemble/step-kind.ts';
import type { StepRecord } from '../execution/stored-execution.ts';

/** The key of the note that holds it. It is stored together with the start. */
export const REQUEST_KEY = 'run.request';

/** The parts of a request that expressions can read, as `headers` and as `trigger.<part>`. */
export type RequestPart = 'query' | 'headers' | 'body' | 'rawBody';

export const REQUEST_PARTS: readonly RequestPart[] = ['query', 'headers', 'body', 'rawBody'];

/** The parts of a request. Each is computed only for a definition that reads it. */
export type RequestReader = { readonly [Part in 'query' | 'headers']: () => JsonObject } & {
  readonly [Part in 'body' | 'rawBody']: () => Json;
};

/** @returns undefined for a definition that reads nothing of its request */
export function keepRequest(
  reads: ReadonlySet<RequestPart>,
  request: RequestReader,
  now: number,
): StepRecord | undefined {
  if (reads.size === 0) return undefined;
  const output: JsonObject = Object.fromEntries([...reads].map((part) => [part, request[part]()]));
  return toNote(REQUEST_KEY, { at: now, output });
}

/** Whether a record is what an execution keeps of its request. */
export function isKeptRequest({ key, note }: Pick<StepRecord, 'key' | 'note'>): boolean {
  return note === true && key === REQUEST_KEY;
}
