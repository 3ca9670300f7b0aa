/** Turns what Postgres, its drivers and the poolers in front of it throw into the library's errors: which may pass later, and what to look at. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/errors.ts';

export const UNIQUE_VIOLATION = '23505';

/**
 * | what it is | then |
 * |---|---|
 * | `passing` | the server or a pooler is away, starts, stops, is full, or gave this call up for another one: it may pass later |
 * | `shared` | a pooler shares the connection between transactions, and the storage does not know that |
 * | `unstorable` | no column takes the value, or it is too large |
 * | `refused` | somebody must change the address, the user, its rights or the pooler's settings |
 */
type Failure = 'passing' | 'shared' | 'unstorable' | 'refused';

/** By the error's code, by its text, or by both. */
interface Row {
  readonly is: Failure;
  readonly code?: RegExp;
  readonly text?: RegExp;
}

/**
 * The first row that fits counts; what no row fits is final. Poolers have few codes of their own: PgBouncer gives 08P01 for
 * everything, Supavisor XX000, so their texts tell what is wrong with the settings, and all the rest passes.
 */
const TABLE: readonly Row[] = [
  // Prepared statements, or what else belongs to a session, are gone from one call to the next.
  { is: 'shared', code: /^(26000|42P05)$/ },
  { is: 'shared', code: /^(08P01|XX000)$/, text: /(not allowed in transaction mode|^max prepared statements)/ },
  { is: 'unstorable', code: /^(22|54)/ },
  { is: 'unstorable', code: /^XX000$/, text: /^invalid memory alloc/ },
  // A wrong password or role, no such database, a right that is missing.
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
        // Supavisor, in the words of older versions and with the codes of newer ones
        ...['^tenant or user not found', '^SSL connection is required', '^address not in tenant allow_list'],
        '^\\((ENOTFOUND|ETENANTNOTFOUND|ENOIDENTIFIER|ESSLREQUIRED|EADDRNOTALLOWED|EWRONGPASSWORD|EINVALIDUSERINFO)\\)',
      ].join('|'),
      'i',
    ),
  },
  { is: 'refused', text: /^The server does not support SSL connections/ },
  { is: 'passing', code: /^(08|53|57P|40001$|40P01$|55P03$|57014$|25006$|25P0[23]$|58000$|58030$|XX000$)/ },
  // What sockets and name servers answer, and what postgres.js calls a connection that is lost.
  { is: 'passing', code: /^(E(?!RR_)[A-Z_]+|ERR_(SOCKET|STREAM)_[A-Z_]+|CONNECTION_[A-Z]+|CONNECT_TIMEOUT)$/ },
  {
    is: 'passing',
    // `pg` gives these without a code.
    text: /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client (has encountered|was closed)|Cannot use a pool|There was an error establishing an SSL connection|received invalid response)/,
  },
];

/** The code of a Postgres error (SQLSTATE), or of a driver's; undefined when there is none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

/** Whether the connection stays as good as before: Postgres itself said what is wrong with a call, and goes on to answer. */
export function leavesConnection(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && /^(?!08|57P|XX|E)[0-9A-Z]{5}$/.test(code) && !/^(FATAL|PANIC)$/.test(severityOf(error));
}

/** What a driver threw: one that stumbles over itself has lost its connection in the midst of a call. */
export function ofDriver(error: unknown): unknown {
  if (!(error instanceof TypeError)) return error;
  const message = 'the driver of Postgres failed; whether it was stored is not known, try again';
  return new OrchestratorError('OVERLOADED', message, { cause: error, retryable: true });
}

/** What a method of the storage throws in place of a driver's error; the library's own, and those of its code, stay as they are. */
export function toStorageError(error: unknown): unknown {
  if (isOrchestratorError(error) || error instanceof RangeError || error instanceof TypeError) return error;
  const code = codeOf(error);
  const options = { cause: error, ...(code !== undefined && { details: { postgres: code } }) };
  const failure = classify(error, code);
  if (failure === 'passing') {
    const message =
      'Postgres, or a pooler in front of it, could not be reached or gave the call up; whether it was stored is not known, try again';
    return new OrchestratorError('OVERLOADED', message, { ...options, retryable: true });
  }
  if (failure === 'unstorable') {
    const message = `Postgres can't hold what is to be stored (${messageOf(error)}); make it smaller`;
    return new OrchestratorError('INVALID_OUTPUT', message, options);
  }
  if (failure === 'shared') {
    const message =
      'postgresStorage: prepared statements do not stay on the connection; behind a pooler that shares connections between transactions, set `sessions: false`';
    return new OrchestratorError('NOT_CONFIGURED', message, options);
  }
  if (failure === 'refused') {
    const message = `postgresStorage: Postgres, or a pooler in front of it, refuses the connection, or a right that is needed (${messageOf(error)}); look at the address, the user, the password, the database with its grants, and the pooler's settings`;
    return new OrchestratorError('NOT_CONFIGURED', message, options);
  }
  return new OrchestratorError('INTERNAL', 'Postgres failed; the error that it gave is the cause of this one', options);
}

function classify(error: unknown, code: string | undefined): Failure | undefined {
  const text = error instanceof Error ? error.message : '';
  // Postgres itself answers so when a driver speaks to it wrongly, and stays on the line; a pooler hangs up.
  if (code === '08P01' && severityOf(error) === 'ERROR') return undefined;
  return TABLE.find((row) => {
    // A text alone stands for errors that have no code.
    const hasCode = row.code ? code !== undefined && row.code.test(code) : code === undefined;
    return hasCode && (!row.text || row.text.test(text));
  })?.is;
}

/** As the server wrote it; postgres.js keeps what is not translated apart. */
function severityOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { severity, severity_local: local } = error as Readonly<Record<string, unknown>>;
  return String(severity ?? local ?? '');
}
