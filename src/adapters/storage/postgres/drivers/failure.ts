/**
 * Turns errors of Postgres, its drivers and poolers into the library's errors: transient failures, and what the user
 * must fix.
 */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../../engine/base/errors.ts';

/**
 * | kind | meaning |
 * |---|---|
 * | `transient` | the server or a pooler starts, stops, is full, or cancelled this call: a retry may succeed later |
 * | `unreached` | the server did not answer, or the connection was lost: a retry may succeed later |
 * | `shared` | a pooler shares the connection between transactions, but the storage was not configured for it |
 * | `unstorable` | no column can hold the value, or it is too large |
 * | `refused` | the user must change the address, the database user, its rights or the pooler's settings |
 */
type FailureKind = 'transient' | 'unreached' | 'shared' | 'unstorable' | 'refused';

/** Recognizes an error by its code, by its text, or by both. */
interface Row {
  readonly is: FailureKind;
  readonly code?: RegExp;
  readonly text?: RegExp;
}

/**
 * The first matching row counts. An error without a row is permanent. Poolers have few codes of their own: PgBouncer
 * uses 08P01 and Supavisor XX000 for everything. So their texts show what is wrong with the settings, and their other
 * errors are transient.
 */
const TABLE: readonly Row[] = [
  // Prepared statements, or other parts of a session, are gone at the next call.
  { is: 'shared', code: /^(26000|42P05)$/ },
  { is: 'shared', code: /^(08P01|XX000)$/, text: /(not allowed in transaction mode|^max prepared statements)/ },
  { is: 'unstorable', code: /^(22|54)/ },
  { is: 'unstorable', code: /^XX000$/, text: /^invalid memory alloc/ },
  // A wrong password or role, an unknown database, a missing right.
  { is: 'refused', code: /^(28|3D000$|42501$)/ },
  {
    is: 'refused',
    code: /^(08P01|XX000)$/,
    text: new RegExp(
      [
        // PgBouncer
        ...[
          '^no such (database|user)\\b',
          '^database ".*" does not exist$',
          '^\\S+ authentication failed',
          '^login rejected$',
        ],
        ...['^unsupported startup parameter', '^(SSL|TLS)( connection)? required', 'statement pooling mode$'],
        // Supavisor: the texts of older versions and the codes of newer ones
        ...['^tenant or user not found', '^SSL connection is required', '^address not in tenant allow_list'],
        '^\\((ENOTFOUND|ETENANTNOTFOUND|ENOIDENTIFIER|ESSLREQUIRED|EADDRNOTALLOWED|EWRONGPASSWORD|EINVALIDUSERINFO)\\)',
      ].join('|'),
      'i',
    ),
  },
  { is: 'refused', text: /^The server does not support SSL connections/ },
  { is: 'transient', code: /^(08|53|57P|40001$|40P01$|55P03$|57014$|25006$|25P0[23]$|58000$|58030$|XX000$)/ },
  // Codes of sockets and name servers, and those of postgres.js for a lost connection.
  { is: 'unreached', code: /^(E(?!RR_)[A-Z_]+|ERR_(SOCKET|STREAM)_[A-Z_]+|CONNECTION_[A-Z]+|CONNECT_TIMEOUT)$/ },
  {
    is: 'unreached',
    // Errors of `pg` without a code.
    text: /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client (has encountered|was closed)|Cannot use a pool|There was an error establishing an SSL connection|received invalid response)/,
  },
];

/** The code of a Postgres error (SQLSTATE), or of a driver's; undefined when there is none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

/** Whether the connection can still be used: Postgres itself reported the error of a call, and continues to answer. */
export function leavesConnection(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && /^(?!08|57P|XX|E)[0-9A-Z]{5}$/.test(code) && !/^(FATAL|PANIC)$/.test(severityOf(error));
}

/**
 * Replaces a TypeError of a driver: it means that the driver lost its connection during a call. Other errors stay as
 * they are.
 */
export function ofDriver(error: unknown): unknown {
  if (!(error instanceof TypeError)) return error;
  const message = 'the driver of Postgres failed; whether it was stored is not known, try again';
  return new OrchestratorError('OVERLOADED', message, { cause: error, retryable: true });
}

/**
 * Turns a driver's error into the error that a storage method throws. The library's own errors, TypeErrors and
 * RangeErrors stay as they are.
 */
export function toStorageError(error: unknown): unknown {
  if (isOrchestratorError(error) || error instanceof RangeError || error instanceof TypeError) return error;
  const code = codeOf(error);
  const options = { cause: error, ...(code !== undefined && { details: { postgres: code } }) };
  const failure = classify(error, code);
  if (failure === 'transient' || failure === 'unreached') {
    const message =
      'Postgres, or a pooler in front of it, could not be reached or cancelled the call; whether it was stored is not known, try again';
    return new OrchestratorError('OVERLOADED', message, { ...options, retryable: true });
  }
  if (failure === 'unstorable') {
    const message = `Postgres can't store the value (${messageOf(error)}); make it smaller`;
    return new OrchestratorError('INVALID_OUTPUT', message, options);
  }
  if (failure === 'shared') {
    const message =
      'postgresStorage: prepared statements do not stay on the connection; behind a pooler that shares connections between transactions, set `sessions: false`';
    return new OrchestratorError('NOT_CONFIGURED', message, options);
  }
  if (failure === 'refused') {
    const message = `postgresStorage: Postgres, or a pooler in front of it, refuses the connection, or a right that is needed (${messageOf(error)}); check the address, the user, the password, the database with its grants, and the pooler's settings`;
    return new OrchestratorError('NOT_CONFIGURED', message, options);
  }
  return new OrchestratorError('INTERNAL', 'Postgres failed; its own error is the cause of this error', options);
}

/** Whether the server gave no answer. */
export function isUnreached(error: unknown): boolean {
  return isOrchestratorError(error, 'OVERLOADED') || classify(error, codeOf(error)) === 'unreached';
}

function classify(error: unknown, code: string | undefined): FailureKind | undefined {
  const text = error instanceof Error ? error.message : '';
  // Postgres gives 08P01 for a wrong message of a driver, and keeps the connection. A pooler closes it.
  if (code === '08P01' && severityOf(error) === 'ERROR') return undefined;
  return TABLE.find((row) => {
    // A row without a code matches only errors without a code.
    const hasCode = row.code ? code !== undefined && row.code.test(code) : code === undefined;
    return hasCode && (!row.text || row.text.test(text));
  })?.is;
}

/** The severity as the server wrote it. In postgres.js the untranslated severity is another property. */
function severityOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { severity, severity_local: local } = error as Readonly<Record<string, unknown>>;
  return String(severity ?? local ?? '');
}
