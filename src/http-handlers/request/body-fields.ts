/** Fields of bodies that several routes take, and notes for those that a function checks: the OpenAPI document shows them. */

import * as z from 'zod/mini';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { once } from '../../engine/base/once.ts';
import { readInstant } from '../../engine/base/time/read-instant.ts';
import type { OperatorOptions } from '../../orchestrator/operators/operator-options.ts';
import { addressOf } from '../access/rate-limit.ts';
import type { HttpCall } from '../call.ts';
import { isObject } from './read-json.ts';

type Notes = Readonly<Record<string, unknown>>;

export const bodyNotes = once(() => z.registry<Notes>());

/** @param notes - the form as JSON Schema */
export function withBodyNotes<S extends z.ZodMiniType>(schema: S, notes: Notes): S {
  bodyNotes().add(schema, notes);
  return schema;
}

export const textField = () => z.optional(z.string({ error: 'must be a text' }));

/** An object with any keys. Not z.record(): it copies the object and silently drops `__proto__`. */
export const objectField = () =>
  z.optional(
    withBodyNotes(z.custom<object>(isObject, { error: 'must be an object' }), {
      type: 'object',
      additionalProperties: true,
    }),
  );

/** What a move says besides its filter. The orchestrator checks that it is complete. */
export const moveFields = () => ({
  to: textField(),
  map: z.optional(z.record(z.string(), z.string(), { error: 'must have the new name of each old one' })),
});

/** Who asks for a change, why, and from where: for the audit log. */
export function changeOf(
  { principal, request, host, dependencies, requestId }: HttpCall,
  { reason }: { readonly reason?: string | undefined } = {},
): OperatorOptions {
  const source = { type: 'http', address: addressOf(request, host, dependencies), requestId } as const;
  return { source, ...(principal && { principal }), ...(reason !== undefined && { reason }) };
}

/** An instant: Unix ms or ISO 8601. {@link readInstantField} reads it. */
export const instantField = () =>
  z.optional(z.union([z.number(), z.string()], { error: 'must be Unix ms or ISO 8601' }));

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
