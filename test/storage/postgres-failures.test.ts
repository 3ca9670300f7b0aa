/** Recorded errors of Postgres, its drivers and poolers: which are transient, and which the user must fix. */

import { describe, expect, it } from 'vitest';
import { leavesConnection, toStorageError } from '../../src/adapters/storage/postgres/drivers/failure.ts';

const transient = { code: 'OVERLOADED', retryable: true };
const misconfigured = { code: 'NOT_CONFIGURED', retryable: false };

interface Recorded {
  readonly message: string;
  readonly code?: string;
  /** The name in `pg`. postgres.js has another name where the server gives only the translated severity. */
  readonly severity?: string;
  readonly severity_local?: string;
}
const thrown = ({ message, ...rest }: Recorded) => Object.assign(new Error(message), rest);
const fatal = (code: string, message: string): Recorded => ({ severity: 'FATAL', code, message });

/** By their source. The texts of PgBouncer are from 1.18 and 1.25, those of Supavisor from 1.0 and 2.9. */
const TRANSIENT: Readonly<Record<string, readonly Recorded[]>> = {
  Postgres: [
    fatal('57P01', 'terminating connection due to administrator command'),
    fatal('57P02', 'terminating connection because of crash of another server process'),
    fatal('57P03', 'the database system is starting up'),
    fatal('57P03', 'the database system is in recovery mode'),
    fatal('53300', 'sorry, too many clients already'),
    fatal('25P03', 'terminating connection due to idle-in-transaction timeout'),
    { severity: 'ERROR', code: '40001', message: 'could not serialize access due to concurrent update' },
    { severity: 'ERROR', code: '40P01', message: 'deadlock detected' },
    { severity: 'ERROR', code: '55P03', message: 'canceling statement due to lock timeout' },
    { severity: 'ERROR', code: '57014', message: 'canceling statement due to statement timeout' },
    { severity: 'ERROR', code: '25006', message: 'cannot execute INSERT in a read-only transaction' },
    { severity: 'ERROR', code: '53100', message: 'could not extend file "base/16384/2619": No space left on device' },
    { severity: 'ERROR', code: 'XX000', message: 'tuple concurrently updated' },
  ],
  'PgBouncer, by pg': [
    fatal('08P01', 'server conn crashed?'),
    fatal('08P01', 'query_wait_timeout'),
    fatal('08P01', 'query_timeout'),
    fatal('08P01', 'query timeout'),
    fatal('08P01', 'client_idle_timeout'),
    fatal('08P01', 'client_login_timeout'),
    fatal('08P01', 'client_login_timeout (server down)'),
    fatal('08P01', 'idle transaction timeout'),
    fatal('08P01', 'transaction timeout'),
    fatal('08P01', 'no more connections allowed (max_client_conn)'),
    fatal('08P01', 'database "app" is disabled'),
    fatal('08P01', 'database removed'),
    fatal('08P01', 'pgbouncer cannot connect to server'),
    fatal('08P01', 'server login has been failing, try again later (server_login_retry)'),
    fatal('08P01', 'server login has been failing, cached error: connect failed (server_login_retry)'),
    fatal(
      '08P01',
      'server login has been failing, cached error: password authentication failed for user "a" (server_login_retry)',
    ),
    fatal('08P01', 'server shutting down'),
    fatal('08P01', 'bouncer config error'),
    fatal('08P01', 'connect timeout'),
    fatal('08P01', 'server lifetime over'),
    fatal('08P01', 'idle server got dirty'),
    fatal('08P01', 'suspend_timeout'),
    fatal('08006', 'server DNS lookup failed'),
  ],
  'PgBouncer, by postgres.js': [
    { severity_local: 'FATAL', code: '08P01', message: 'server conn crashed?' },
    { severity_local: 'FATAL', code: '08P01', message: 'no more connections allowed (max_client_conn)' },
    { severity_local: 'FATAL', code: '08P01', message: 'database removed' },
    { code: 'CONNECTION_CLOSED', message: 'write CONNECTION_CLOSED 127.0.0.1:6432' },
  ],
  Supavisor: [
    fatal('XX000', 'Max client connections reached'),
    fatal('XX000', 'Max pools count reached'),
    fatal('XX000', 'Unable to check out process from the pool due to timeout'),
    fatal('XX000', 'DbHandler exited'),
    fatal('XX000', 'Failed to subscribe to tenant after multiple retries. Terminating.'),
    fatal('XX000', 'Failed to connect to database: {:error, :timeout}'),
    fatal('XX000', 'Internal error: {:error, :econnrefused}'),
    fatal(
      'XX000',
      'MaxClientsInSessionMode: max clients reached - in Session mode max clients are limited to pool_size',
    ),
    fatal('XX000', '(ECHECKOUTTIMEOUT) unable to check out connection from the pool after 15000ms in Transaction mode'),
    fatal('XX000', '(EDBHANDLEREXITED) connection to database closed. Check logs for more information'),
    fatal('XX000', '(EMAXCLIENTCONN) max client connections reached, limit: 200'),
    fatal('XX000', '(EMAXCONNSESSION) max clients reached in session mode - max clients are limited to pool_size: 15'),
    fatal('XX000', '(ECIRCUITBREAKER) too many failed attempts'),
    fatal('08006', 'connection failure during authentication'),
    { code: 'XX000', message: 'DbHandler exited' },
  ],
  'other poolers': [
    fatal('08000', 'Timed-out waiting to acquire database connection'),
    fatal('58000', 'could not get connection from the pool'),
    fatal('58000', 'failed to get remote server connection'),
    { severity: 'ERROR', code: 'XX000', message: "Couldn't connect to compute node" },
  ],
  'sockets and drivers': [
    ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EAI_AGAIN', 'ENOTFOUND'].map((code) => ({
      code,
      message: `connect ${code} 10.0.0.1:5432`,
    })),
    { code: 'ERR_STREAM_DESTROYED', message: 'Cannot call write after a stream was destroyed' },
    { code: 'ERR_SOCKET_CONNECTION_TIMEOUT', message: 'Socket connection timeout' },
    { code: 'CONNECTION_ENDED', message: 'write CONNECTION_ENDED 127.0.0.1:5432' },
    { code: 'CONNECTION_DESTROYED', message: 'write CONNECTION_DESTROYED 127.0.0.1:5432' },
    { code: 'CONNECT_TIMEOUT', message: 'write CONNECT_TIMEOUT 127.0.0.1:5432' },
    { message: 'Connection terminated unexpectedly' },
    { message: 'Connection terminated due to connection timeout' },
    { message: 'timeout expired' },
    { message: 'timeout exceeded when trying to connect' },
    { message: 'Client has encountered a connection error and is not queryable' },
    { message: 'There was an error establishing an SSL connection' },
    { message: 'Cannot use a pool after calling end on the pool' },
    { message: 'received invalid response: 48' },
  ],
};

const REFUSED: Readonly<Record<string, readonly Recorded[]>> = {
  Postgres: [
    fatal('28P01', 'password authentication failed for user "app"'),
    fatal('3D000', 'database "app" does not exist'),
    { severity: 'ERROR', code: '42501', message: 'permission denied for schema ensemble' },
  ],
  PgBouncer: [
    fatal('08P01', 'no such database: app'),
    fatal('08P01', 'no such user: app'),
    fatal('08P01', 'database "app" does not exist'),
    fatal('08P01', '"trust" authentication failed'),
    fatal('08P01', 'password authentication failed'),
    fatal('08P01', 'SASL authentication failed'),
    fatal('08P01', 'unsupported startup parameter: options'),
    fatal('08P01', 'SSL required'),
    fatal('08P01', 'transaction blocks not allowed in statement pooling mode'),
    { severity_local: 'FATAL', code: '08P01', message: 'no such database: app' },
    { message: 'The server does not support SSL connections' },
  ],
  Supavisor: [
    fatal('XX000', 'Tenant or user not found'),
    fatal('XX000', 'SSL connection is required'),
    fatal('XX000', 'Address not in tenant allow_list: {10, 0, 0, 1}'),
    fatal('XX000', '(ENOTFOUND) tenant/user app.ref not found'),
    fatal('XX000', '(ENOIDENTIFIER) no tenant identifier provided (external_id or sni_hostname required)'),
  ],
};

const rows = (table: Readonly<Record<string, readonly Recorded[]>>) =>
  Object.entries(table).flatMap(([from, all]) =>
    all.map(
      (one) =>
        [from, [one.severity ?? one.severity_local, one.code, one.message].filter(Boolean).join(' '), one] as const,
    ),
  );

describe('an error on the way to the database is transient', () => {
  it.each(rows(TRANSIENT))('%s: %s', (_from, _what, recorded) => {
    const error = thrown(recorded);
    const details = recorded.code === undefined ? {} : { details: { postgres: recorded.code } };
    expect(toStorageError(error)).toMatchObject({ ...transient, cause: error, ...details });
  });
});

describe('an error in the settings is reported at once, with its text', () => {
  it.each(rows(REFUSED))('%s: %s', (_from, _what, recorded) => {
    const error = thrown(recorded);
    const message = expect.stringContaining(recorded.message);
    expect(toStorageError(error)).toMatchObject({ ...misconfigured, cause: error, message });
  });

  it.each([
    { severity: 'ERROR', code: '26000', message: 'prepared statement "ensemble_1" does not exist' },
    { severity: 'ERROR', code: '42P05', message: 'prepared statement "ensemble_1" already exists' },
    fatal('XX000', '(ESESSIONLEAK) LISTEN is not allowed in transaction mode'),
    fatal('XX000', 'max prepared statements limit reached. Limit: 100 per connection'),
  ])('a pooler that shares connections is reported, with the option to set: $message', (recorded) => {
    const message = expect.stringContaining('sessions: false');
    expect(toStorageError(thrown(recorded))).toMatchObject({ ...misconfigured, message });
  });
});

describe('any other error is permanent', () => {
  it.each([
    { severity: 'ERROR', code: '42P01', message: 'relation "secret" does not exist' },
    {
      severity: 'ERROR',
      code: '08P01',
      message: 'bind message supplies 1 parameters, but prepared statement requires 2',
    },
    { severity: 'ERROR', code: 'XX001', message: 'invalid page in block 7 of relation base/1/2' },
    { code: 'ERR_INVALID_ARG_TYPE', message: 'secret' },
    { message: 'Cannot read properties of undefined' },
  ])('it has a fixed message and its cause: $message', (recorded) => {
    const error = thrown(recorded);
    const message = 'Postgres failed; its own error is the cause of this error';
    expect(toStorageError(error)).toMatchObject({ code: 'INTERNAL', retryable: false, message, cause: error });
  });
});

describe('a connection is returned to its pool', () => {
  it.each([
    [true, { severity: 'ERROR', code: '23505', message: 'duplicate key' }],
    [true, { severity: 'ERROR', code: '40P01', message: 'deadlock detected' }],
    [false, fatal('08P01', 'query_wait_timeout')],
    [false, fatal('57P01', 'terminating connection due to administrator command')],
    [false, fatal('XX000', 'DbHandler exited')],
    [false, fatal('53300', 'sorry, too many clients already')],
    [false, { code: 'EPIPE', message: 'write EPIPE' }],
    [false, { message: 'Connection terminated unexpectedly' }],
  ] as const)('%s, after %o', (isGood, recorded) => {
    expect(leavesConnection(thrown(recorded))).toBe(isGood);
  });
});
