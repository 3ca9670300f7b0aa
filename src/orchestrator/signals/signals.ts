/** Builds a signal from a caller's arguments, or says what is wrong with them. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { NAME_PATTERN, NAME_RULE } from '../../engine/ensemble/name.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { NewSignal } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { readJsonOption } from '../operators/operator-options.ts';

export interface SignalOptions {
  /** A second signal of the same execution, name and key changes nothing. 1 to 255 characters. */
  readonly idempotencyKey?: string | undefined;
  /** A transaction that the caller has begun: the signal is sent if and only if the caller commits. As for `start`. */
  readonly transaction?: unknown;
}

/** @throws INVALID_INPUT for a name that no `wait` can have, a payload that is not JSON, and an invalid key */
export function toSignal(
  executionId: string,
  name: unknown,
  payload: unknown,
  options: SignalOptions | undefined,
  dependencies: { readonly clock: Clock; readonly ids: IdSource },
): NewSignal {
  if (options !== undefined) refuseUnknownKeys(options, ['idempotencyKey', 'transaction'], 'executions.signal');
  if (typeof name !== 'string' || !NAME_PATTERN.test(name)) {
    throw new OrchestratorError(
      'INVALID_INPUT',
      `a signal must have a name (${NAME_RULE}): the one that a \`wait\` names`,
    );
  }
  const createdAt = dependencies.clock.now();
  return {
    // Different prefixes: a caller's key never equals a generated id.
    id:
      options?.idempotencyKey === undefined
        ? dependencies.ids.id('sig_', createdAt)
        : `key_${name}:${readKey(options.idempotencyKey)}`,
    executionId,
    name,
    payload: payload === undefined ? null : readJsonOption(payload, `the payload of signal \`${name}\``),
    createdAt,
  };
}

function readKey(key: unknown): string {
  if (typeof key === 'string' && key.length >= 1 && key.length <= 255) return key;
  throw new OrchestratorError('INVALID_INPUT', 'the idempotency key of a signal must be text of 1 to 255 characters');
}
