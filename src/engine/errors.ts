/** The one error class of the library, and the closed set of its codes; every room may throw it. */

/** Codes a caller can switch on. The HTTP status of each lives with the HTTP handlers alone. */
export type ErrorCode =
  | 'AGENT_FAILED'
  | 'CONFLICT'
  | 'EXECUTION_CANCELLED'
  | 'EXECUTION_FAILED'
  | 'EXECUTION_TIMEOUT'
  | 'EXPRESSION_ERROR'
  | 'FORBIDDEN'
  | 'INTERNAL'
  | 'INVALID_CURSOR'
  | 'INVALID_DEFINITION'
  | 'INVALID_INPUT'
  | 'INVALID_OUTPUT'
  | 'INVALID_REQUEST'
  | 'ITERATION_LIMIT'
  | 'METHOD_NOT_ALLOWED'
  | 'NOT_CONFIGURED'
  | 'NOT_FOUND'
  | 'OVERLOADED'
  | 'PAYLOAD_TOO_LARGE'
  | 'TIMEOUT'
  | 'TOKEN_EXPIRED'
  | 'UNAUTHORIZED'
  | 'UNSUPPORTED_MEDIA_TYPE';

/** What {@link OrchestratorError} is made of beside its code and message. */
export interface ErrorOptions {
  /** Facts for programs: issues of a definition, the status of a peer, the limit that was met. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
  /** Whether the same call may pass when it is made again later. Default false. */
  readonly retryable?: boolean;
}

// Found by `Symbol.for`, so the check holds across two copies of the package.
const MARK: unique symbol = Symbol.for('ensemble-orchestrator.error');

/**
 * Every failure that the library reports on purpose.
 *
 * @example
 * ```ts
 * import { createOrchestrator, isOrchestratorError } from 'ensemble-orchestrator';
 *
 * try {
 *   await createOrchestrator().execute('nobody');
 * } catch (error) {
 *   if (isOrchestratorError(error, 'NOT_FOUND')) console.log(error.message);
 * }
 * ```
 */
export class OrchestratorError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'OrchestratorError';
    this.code = code;
    this.details = options.details ?? {};
    this.retryable = options.retryable ?? false;
    Object.defineProperty(this, MARK, { value: true });
  }
}

/**
 * Tells whether a thrown value is the library's own, and of one code if that is given.
 *
 * @param error - anything that was thrown
 * @param code - narrows to this code
 */
export function isOrchestratorError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: C,
): error is OrchestratorError & { readonly code: C } {
  if (typeof error !== 'object' || error === null || !hasMark(error)) return false;
  return code === undefined || (error as OrchestratorError).code === code;
}

// A thrown value may be a proxy or carry getters that throw: then it is none of ours.
function hasMark(value: object): boolean {
  try {
    return (value as { [MARK]?: unknown })[MARK] === true;
  } catch {
    return false;
  }
}

/** The text of anything thrown: an error's message, a string as it is, otherwise its JSON or type. */
export function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  if (typeof thrown === 'object' && thrown !== null) {
    const { message, name } = thrown as { readonly message?: unknown; readonly name?: unknown };
    if (typeof message === 'string' && (message !== '' || !(thrown instanceof Error))) return message;
    if (thrown instanceof Error) return typeof name === 'string' && name !== '' ? name : 'Error';
  }
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return `a value of type ${typeof thrown}`;
  }
}
