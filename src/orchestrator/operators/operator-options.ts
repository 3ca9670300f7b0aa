/** What the caller of a change of executions may say: who, why and from where. It is kept in the audit log. */

import type { Principal } from '../../engine/access/token.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type Json, JsonError } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import type { ExecutionSummary } from '../../engine/execution/execution.ts';
import { checkPrincipal } from '../options/options.ts';

export interface OperatorOptions {
  /** Who asks for the change, such as the result of `tokens.verify()`. */
  readonly principal?: Principal | undefined;
  /** The name of who asks, where there is no principal: up to 200 characters. Default: the name of the principal. */
  readonly actor?: string | undefined;
  /** Why: 1 to 500 characters. */
  readonly reason?: string | undefined;
  /** From where the request came. Default: a call of this process. */
  readonly source?: OperatorSource | undefined;
}

/** Where a request for a change came from. */
export interface OperatorSource {
  /** `call`: a call of a process. `http`: a request to the API. */
  readonly type: 'call' | 'http';
  /** The address of the client, as far as the host knows it. */
  readonly address?: string | undefined;
  readonly requestId?: string | undefined;
}

const MAX_REASON = 500;
const MAX_ACTOR = 200;
const KEYS = ['principal', 'actor', 'reason', 'source'];

/** @param more - further keys of the call @throws INVALID_REQUEST, TypeError for unknown keys */
export function checkOperatorOptions(options: OperatorOptions, call: string, more: readonly string[] = []): void {
  refuseUnknownKeys(options, [...KEYS, ...more], call);
  checkSaid(options);
}

/** @throws INVALID_REQUEST, TypeError */
export function checkSaid({ principal, reason, actor }: OperatorOptions): void {
  checkPrincipal(principal);
  checkText(reason, 'reason', MAX_REASON);
  checkText(actor, 'actor', MAX_ACTOR);
}

function checkText(text: unknown, option: string, most: number): void {
  if (text === undefined || (typeof text === 'string' && text !== '' && text.length <= most)) return;
  throw new OrchestratorError('INVALID_REQUEST', `\`${option}\` must be text of 1 to ${most} characters`);
}

/** Who asks, and why, as a record says it. */
export function saidBy({ principal, actor = principal?.name, reason }: OperatorOptions): {
  readonly by?: string;
  readonly reason?: string;
} {
  return { ...(actor !== undefined && { by: actor }), ...(reason !== undefined && { reason }) };
}

/** @param what - such as `the output` @throws INVALID_INPUT for a value that is not JSON */
export function readJsonOption(value: unknown, what: string): Json {
  try {
    return copyJson(value);
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    const { path, message } = thrown.problem;
    throw new OrchestratorError('INVALID_INPUT', `${path ? `\`${path}\` in ${what}` : what} ${message}`);
  }
}

/** The execution is not in a state for the change. */
export function conflict({ id: executionId, status }: ExecutionSummary, message: string): OrchestratorError {
  return new OrchestratorError('CONFLICT', message, { details: { executionId, status } });
}
