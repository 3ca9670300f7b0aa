/** Notes of the forms of bodies, for the parts that a function checks: the OpenAPI document shows them. */

import * as z from 'zod/mini';
import { once } from '../engine/base/once.ts';

type Notes = Readonly<Record<string, unknown>>;

export const bodyNotes = once(() => z.registry<Notes>());

/** @param notes - the form as JSON Schema */
export function noted<S extends z.ZodMiniType>(schema: S, notes: Notes): S {
  bodyNotes().add(schema, notes);
  return schema;
}
