/** An instant in a body: Unix ms or ISO 8601. */

import * as z from 'zod/mini';
import { OrchestratorError } from '../engine/base/errors.ts';
import { readInstant } from '../engine/base/read-instant.ts';

export const instantField = () => z.union([z.number(), z.string()], { error: 'must be Unix ms or ISO 8601' });

/** @param name - of the field @returns Unix ms @throws INVALID_REQUEST */
export function readInstantField(given: number | string | undefined, name: string): number | undefined {
  if (given === undefined) return undefined;
  const read = readInstant(String(given));
  if (read !== undefined) return read;
  throw new OrchestratorError(
    'INVALID_REQUEST',
    `\`${name}\` must be Unix ms or ISO 8601 such as 2026-01-31T09:00:00Z`,
  );
}
