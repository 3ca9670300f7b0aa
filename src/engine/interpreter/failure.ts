/** Turns anything thrown into a failure that can be stored and shown: its error, with secrets masked, and whether to retry. */

import { isOrchestratorError, messageOf } from '../base/errors.ts';
import type { ErrorCause, ExecutionError } from '../execution/execution.ts';
import { detailsOf, ownCode } from './attempt/error-details.ts';
import type { MaskText } from './attempt/mask-secrets.ts';

export interface ThrownFailure {
  readonly error: Omit<ExecutionError, 'agent' | 'stack' | 'cause'>;
  readonly retryable: boolean;
  /** How long the other side asked to wait before a retry, ms; 0 when it did not. */
  readonly retryAfterMs: number;
}

const MAX_MESSAGE = 4096;
const MAX_STACK = 8192;
/** The largest part of a stack that is kept of the message at its top. */
const MAX_STACK_HEAD = 1024;
/** How many causes are kept of one error. */
const MAX_CAUSES = 5;

// Reading a value that a script threw may run code of the script, which may throw again.
function textOf(thrown: unknown): string {
  try {
    return messageOf(thrown);
  } catch {
    return 'a value was thrown that can not be read';
  }
}

// Cuts the middle: long parts are addresses and responses of peers, and the problem often follows them.
function cut(message: string): string {
  if (message.length <= MAX_MESSAGE) return message;
  const end = MAX_MESSAGE / 4;
  return `${message.slice(0, MAX_MESSAGE - end - 3)}...${message.slice(-end)}`;
}

/** An unknown error is retryable. Secrets are masked before anything is cut. */
export function toFailure(thrown: unknown, mask: MaskText): ThrownFailure {
  const known = isOrchestratorError(thrown);
  const code = known ? thrown.code : 'AGENT_FAILED';
  const message = cut(mask(textOf(thrown)));
  const details = detailsOf(thrown, mask);
  const retryAfter = details?.retryAfterMs;
  return {
    error: details ? { code, message, details } : { code, message },
    retryable: known ? thrown.retryable : true,
    retryAfterMs: typeof retryAfter === 'number' && retryAfter > 0 ? retryAfter : 0,
  };
}

/** A thrown value with its stack and its causes. Secrets are masked before anything is cut. */
export function describeThrown(thrown: unknown, mask: MaskText, causes = MAX_CAUSES): ErrorCause {
  const read = (key: 'name' | 'stack' | 'cause'): unknown => {
    try {
      return typeof thrown === 'object' && thrown !== null ? (thrown as Record<string, unknown>)[key] : undefined;
    } catch {
      return undefined;
    }
  };
  const [name, stack, cause] = [read('name'), read('stack'), read('cause')];
  const code = isOrchestratorError(thrown) ? thrown.code : ownCode(thrown);
  return {
    ...(typeof name === 'string' && { name: cut(mask(name)) }),
    ...(code !== undefined && { code: cut(mask(String(code))) }),
    message: cut(mask(textOf(thrown))),
    ...(typeof stack === 'string' && { stack: cutStack(mask(stack)) }),
    ...(cause !== undefined && cause !== null && causes > 0 && { cause: describeThrown(cause, mask, causes - 1) }),
  };
}

/** Cuts the message at the top and the last frames: the frames at the top name the place. */
function cutStack(stack: string): string {
  const frames = Math.max(0, stack.indexOf('\n    at '));
  const head = frames > MAX_STACK_HEAD ? `${stack.slice(0, MAX_STACK_HEAD - 3)}...` : stack.slice(0, frames);
  return (head + stack.slice(frames)).slice(0, MAX_STACK);
}

/** An error as loggers expect it: their serializers check `instanceof Error`, and write own fields. */
export function toLoggedError({ cause, ...own }: ErrorCause): Error {
  const error: Error = Object.assign(Object.create(Error.prototype), { name: 'Error', stack: '' }, own);
  if (cause) error.cause = toLoggedError(cause);
  return error;
}
