/** The library's one error class, the closed set of its codes, and the type of `details` for each code. Every layer may throw it. */

/** The codes of {@link OrchestratorError}. `docs/reference/errors.md` lists the cause, the remedy and the HTTP status of each. */
export type ErrorCode =
  | 'AGENT_FAILED'
  | 'CONCURRENT_LIMIT_EXCEEDED'
  | 'CONFLICT'
  | 'EXECUTION_CANCELLED'
  | 'EXECUTION_FAILED'
  | 'EXECUTION_TIMEOUT'
  | 'EXPRESSION_ERROR'
  | 'FORBIDDEN'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'INTERNAL'
  | 'INVALID_CURSOR'
  | 'INVALID_DEFINITION'
  | 'INVALID_INPUT'
  | 'INVALID_OUTPUT'
  | 'INVALID_REQUEST'
  | 'ITERATION_LIMIT'
  | 'METHOD_NOT_ALLOWED'
  | 'NOT_ACTIVE'
  | 'NOT_CONFIGURED'
  | 'NOT_FOUND'
  | 'OVERLOADED'
  | 'PAYLOAD_TOO_LARGE'
  | 'QUOTA_EXCEEDED'
  | 'RATE_LIMIT_EXCEEDED'
  | 'TIMEOUT'
  | 'TOKEN_EXPIRED'
  | 'UNAUTHORIZED'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'VERSION_NOT_FOUND';

/** One problem of a definition: where it is, what is wrong, and what was expected. */
export interface DefinitionIssue {
  /** Path inside the definition, such as `flow[2].condition`. Empty for the document as a whole. */
  readonly path: string;
  /** What is wrong, and what was expected. */
  readonly message: string;
  /** Counted from 1. Absent if the definition was an object. */
  readonly line?: number;
  /** In UTF-16 units, counted from 1. Absent if the definition was an object. */
  readonly column?: number;
  /** The lines of the source around the problem, with a marker under the problem. */
  readonly frame?: string;
  /** The nearest valid name. */
  readonly suggestion?: string;
  /** The name of the file, if it is known. */
  readonly source?: string;
  /**
   * Among the definitions of `createOrchestrator`: the name of the ensemble. If the name could not be read, its position, such
   * as `ensembles[2]`.
   */
  readonly ensemble?: string;
}

/**
 * The `details` that the library gives with each code. `isOrchestratorError(error, code)` narrows `error.details` to the
 * entry of `code`. `Readonly<Record<string, unknown>>` means that the library gives none. An error that a script, an operation or
 * an adapter throws may have other details.
 */
export interface ErrorDetails {
  readonly AGENT_FAILED: {
    /** HTTP status of the answer to an `api` call, of a model server, of a tool server or of its token server. */
    readonly status?: number;
    /** The answer's body if it was text, at most 1,000 characters, with the sent header values masked. */
    readonly body?: string;
    /** The shortest wait before a retry, in ms. */
    readonly retryAfterMs?: number;
    /** Why an exchange over HTTP failed: `connection`, `malformed`, `encoding`, `too-large`, `fragmented`, `token`, ... */
    readonly reason?: string;
    /** The code of the network error, such as `ECONNREFUSED`. */
    readonly code?: string;
    /** The largest allowed answer, in bytes, or the most tools of a list. */
    readonly limit?: number;
    /** The code of the answer of a mail server, such as 421. */
    readonly responseCode?: number;
    /** `unknown` if the mail may have been sent although the call failed. */
    readonly outcome?: 'unknown';
    /** How many mails of a batch were sent, and how many were not. */
    readonly sent?: number;
    readonly failed?: number;
  };
  readonly CONCURRENT_LIMIT_EXCEEDED: {
    /** How many executions of the caller may run at once. */
    readonly limit: number;
    /** How many run. */
    readonly active: number;
    /** Seconds after which it is worth trying again. */
    readonly retryAfter: number;
  };
  readonly CONFLICT: {
    readonly executionId?: string;
    /** The status of the execution, which does not allow the call. */
    readonly status?: string;
    /** The limit that was met: the depth or the number of descendants. */
    readonly limit?: number;
    /** The version that the resource has now. */
    readonly version?: string;
    /** The SQLite file that another process works on. */
    readonly file?: string;
    /** The file that holds the lock on `file`. */
    readonly lock?: string;
  };
  readonly EXECUTION_CANCELLED: ErrorDetails['EXECUTION_FAILED'];
  /** The end of a child execution. Over HTTP: the end of the execution that the caller waited for. */
  readonly EXECUTION_FAILED: {
    readonly executionId?: string;
    /** The status of the execution. */
    readonly status?: string;
    /** The code of the execution's error. */
    readonly reason?: string;
    /** The agent that failed. */
    readonly agent?: string;
    /** The details of the execution's error. Over HTTP, only tokens with `read:executions` get them. */
    readonly details?: Readonly<Record<string, unknown>>;
    readonly metrics?: { readonly totalDuration: number; readonly agents: number };
    /** How long the execution took, in ms. */
    readonly duration?: number;
  };
  readonly EXECUTION_TIMEOUT: ErrorDetails['EXECUTION_FAILED'];
  readonly EXPRESSION_ERROR: {
    /** The text of the expression. */
    readonly expression?: string;
    /** Where in `expression` the failure is, in UTF-16 units from 0. */
    readonly index?: number;
  };
  readonly FORBIDDEN: {
    /** The scope that the route needs. */
    readonly requiredScope: string;
    /** The scopes that the token has. */
    readonly providedScopes: readonly string[];
  };
  readonly IDEMPOTENCY_KEY_REUSED: {
    /** The execution that was started before under the same id or key. Absent for a request that starts none. */
    readonly executionId?: string;
  };
  readonly INTERNAL: {
    /** The damaged row, such as `execution exec_01...`. */
    readonly row?: string;
    /** The damaged column of `row`. */
    readonly column?: string;
    /** Ids of executions that can't be read from a damaged SQLite file. */
    readonly executions?: readonly string[];
    /** The schedule whose pattern has no next instant. */
    readonly schedule?: string;
    /** SQLite's result code. */
    readonly sqlite?: number;
    /** Postgres' SQLSTATE, or the code of its driver. */
    readonly postgres?: string;
  };
  readonly INVALID_CURSOR: Readonly<Record<string, unknown>>;
  readonly INVALID_DEFINITION: {
    /** All problems. */
    readonly issues: readonly DefinitionIssue[];
  };
  readonly INVALID_INPUT: {
    /** The problems of an input. `path` is empty for the input as a whole. */
    readonly issues?: readonly { readonly path: string; readonly message: string }[];
    /** For a signal that no `wait` takes: the names that the waits of the execution take. */
    readonly waits?: readonly string[];
    /** The HTTP status with which a mail provider refused the message. */
    readonly status?: number;
    /** The code with which a mail server refused the message or a recipient, such as 550. */
    readonly responseCode?: number;
    /** The recipients that a mail server refused. */
    readonly rejected?: readonly string[];
    /** The most rows of an export. */
    readonly limit?: number;
  };
  readonly INVALID_OUTPUT: {
    /** What does not fit the schema of the answer. The path is empty for the value itself. */
    readonly issues?: readonly { readonly path: string; readonly message: string }[];
    /** The status of the answer whose body does not fit. */
    readonly status?: number;
    /** `too-large`: an object of a store is larger than `limit`, in bytes. */
    readonly reason?: string;
    readonly limit?: number;
    /** SQLite's result code. */
    readonly sqlite?: number;
    /** Postgres' SQLSTATE, or the code of its driver. */
    readonly postgres?: string;
  };
  readonly INVALID_REQUEST: {
    /** The problems of a body or an argument. `path` is empty for the value as a whole. */
    readonly issues?: readonly { readonly path: string; readonly message: string }[];
    /** Why an outbound call was refused: `url`, `address`, `method`, `header`, `body` or `limit`. */
    readonly reason?: string;
    /** The largest number of matches of a search. */
    readonly limit?: number;
  };
  readonly ITERATION_LIMIT: Readonly<Record<string, unknown>>;
  readonly METHOD_NOT_ALLOWED: Readonly<Record<string, unknown>>;
  readonly NOT_ACTIVE: Readonly<Record<string, unknown>>;
  readonly NOT_CONFIGURED: {
    /** What a definition needs and this process lacks. */
    readonly issues?: readonly DefinitionIssue[];
    /** The package that could not be loaded. */
    readonly driver?: string;
    /** The version of the stored schema, which is newer than `supported`. */
    readonly version?: number;
    /** The newest version of the schema that this version of the library supports. */
    readonly supported?: number;
    /** Postgres' SQLSTATE, or the code of its driver. */
    readonly postgres?: string;
    /** Where Postgres was not reached. */
    readonly host?: string;
    readonly port?: number;
  };
  readonly NOT_FOUND: Readonly<Record<string, unknown>>;
  readonly OVERLOADED: {
    /** The limit that was met: of queued executions, of streams, or of stored bytes. */
    readonly limit?: number;
    /** The time in which the storage did not answer, in ms. */
    readonly timeoutMs?: number;
    /** SQLite's result code. */
    readonly sqlite?: number;
    /** Postgres' SQLSTATE, or the code of its driver. */
    readonly postgres?: string;
  };
  readonly PAYLOAD_TOO_LARGE: {
    /** The largest allowed body. */
    readonly maxBytes: number;
  };
  readonly QUOTA_EXCEEDED: {
    /** How many executions the caller's plan allows in a calendar month (UTC). */
    readonly limit: number;
    readonly used: number;
    /** The end of the month, in Unix seconds. */
    readonly reset: number;
    /** Seconds until then. */
    readonly retryAfter: number;
  };
  readonly RATE_LIMIT_EXCEEDED: {
    /** How many requests are allowed in a window. */
    readonly limit: number;
    /** When the next request is possible, in Unix seconds. */
    readonly reset: number;
    /** Seconds until then. */
    readonly retryAfter: number;
    /** Present if it is the limit of the address. */
    readonly of?: 'address';
  };
  readonly TIMEOUT: {
    /** The timeout of the call that did not end in time, in ms. */
    readonly timeoutMs?: number;
    /** `unknown` if the mail may have been sent although the call took too long. */
    readonly outcome?: 'unknown';
  };
  readonly TOKEN_EXPIRED: {
    /** Unix ms. */
    readonly expiredAt: number;
  };
  readonly UNAUTHORIZED: Readonly<Record<string, unknown>>;
  readonly UNSUPPORTED_MEDIA_TYPE: Readonly<Record<string, unknown>>;
  /** A reference to a component leads to no version, or a definition has no version of this name. */
  readonly VERSION_NOT_FOUND: {
    /** The name of the component. Absent for a definition. */
    readonly component?: string;
    /** What was asked for: a version, `latest`, an environment, a label or a hash. */
    readonly ref: string;
    /** The versions that exist: of a component the highest first, of a definition the newest. */
    readonly versions: readonly string[];
  };
}

/** An {@link OrchestratorError} with one of the codes `C`. `switch (error.code)` narrows `error.details`. */
export type OrchestratorErrorOf<C extends ErrorCode> = {
  readonly [K in C]: OrchestratorError & { readonly code: K; readonly details: ErrorDetails[K] };
}[C];

/** The third argument of {@link OrchestratorError}. */
export interface ErrorOptions {
  /** Facts for programs: the issues of a definition, the status of an answer, the limit that was met. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown | undefined;
  /** Whether the same call may succeed later. Default false. */
  readonly retryable?: boolean | undefined;
}

// `Symbol.for` makes `isOrchestratorError` work across two copies of the package.
const MARK: unique symbol = Symbol.for('ensemble-orchestrator.error');

/**
 * A failure that the library reports. Scripts, operations and adapters throw it to set the code and `retryable`.
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
 * Checks whether a thrown value is an {@link OrchestratorError}, and whether it has the given code.
 *
 * @param error - anything that was thrown
 * @param code - the code that the error must have. Default: any
 */
export function isOrchestratorError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: C,
): error is OrchestratorErrorOf<C> {
  if (typeof error !== 'object' || error === null || !hasMark(error)) return false;
  return code === undefined || (error as OrchestratorError).code === code;
}

// A thrown value may be a proxy, or have getters that throw. Such a value is not an OrchestratorError.
function hasMark(value: object): boolean {
  try {
    return (value as { [MARK]?: unknown })[MARK] === true;
  } catch {
    return false;
  }
}

/** For a call that is not as it must be. */
export function invalid(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message);
}

/** The text of a thrown value: an error's message, a string as it is, or the JSON or the type of another value. */
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
