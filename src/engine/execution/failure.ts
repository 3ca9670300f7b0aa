/** Turns anything thrown into a failure that can be stored and shown: its code, its text without secrets, whether it may pass. */

import { type ErrorCode, isOrchestratorError, messageOf } from '../errors.ts';
import type { MaskText } from './mask-secrets.ts';

export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
  /** How long the other side asked to be left alone; 0 when it did not. */
  readonly retryAfterMs: number;
}

const MAX_MESSAGE = 4096;

// What a script throws is its own: reading it may run code, and that may throw again.
function textOf(thrown: unknown): string {
  try {
    return messageOf(thrown);
  } catch {
    return 'something was thrown that can not be read';
  }
}

// In its middle: what is long are addresses and what peers said, and what went wrong often stands after them.
function cut(message: string): string {
  if (message.length <= MAX_MESSAGE) return message;
  const end = MAX_MESSAGE / 4;
  return `${message.slice(0, MAX_MESSAGE - end - 3)}...${message.slice(-end)}`;
}

/** What the library does not know may pass when it is tried again; secrets are masked before the text is cut. */
export function toFailure(thrown: unknown, mask: MaskText): Failure {
  const known = isOrchestratorError(thrown);
  const message = mask(textOf(thrown));
  const retryAfter = known ? thrown.details.retryAfterMs : undefined;
  return {
    code: known ? thrown.code : 'AGENT_FAILED',
    message: cut(message),
    retryable: known ? thrown.retryable : true,
    retryAfterMs: typeof retryAfter === 'number' && retryAfter > 0 ? retryAfter : 0,
  };
}
