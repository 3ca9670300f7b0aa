/** Errors of drivers: an unreachable store, or a value that no store can hold. */

import { describe, expect, it } from 'vitest';
import { ofDriver, toStorageError as ofPostgres } from '../../src/adapters/storage/postgres/drivers/failure.ts';
import { toStorageError as ofSqlite } from '../../src/adapters/storage/sqlite/drivers/failure.ts';

const coded = (message: string, code: string) => Object.assign(new Error(message), { code });

describe('errors of a Postgres driver', () => {
  it('a TypeError of the driver means that the connection was lost during a call', () => {
    const thrown = new TypeError("Cannot read properties of null (reading 'write')");
    expect(ofPostgres(ofDriver(thrown))).toMatchObject({ code: 'OVERLOADED', retryable: true, cause: thrown });
  });

  it("errors of the library's own code stay unchanged, and never count as an unreachable store", () => {
    for (const thrown of [new RangeError('Invalid string length'), new TypeError('not a function')])
      expect(ofPostgres(thrown)).toBe(thrown);
    const range = new RangeError('Invalid string length');
    expect(ofDriver(range)).toBe(range);
  });

  it.each([
    ['a value that no column takes', coded('invalid byte sequence', '22021')],
    ['a row that is too large', coded('index row size exceeds maximum', '54000')],
    ['a value above 1 GB', coded('invalid memory alloc request size 1073741824', 'XX000')],
  ])('%s is INVALID_OUTPUT and is not retried', (_what, thrown) => {
    expect(ofPostgres(thrown)).toMatchObject({ code: 'INVALID_OUTPUT', retryable: false });
  });
});

describe('errors of a SQLite driver', () => {
  it('a value that is too large is INVALID_OUTPUT and is not retried', () => {
    const thrown = Object.assign(coded('string or blob too big', 'SQLITE_TOOBIG'), { rawCode: 18 });
    expect(ofSqlite(thrown, 'x.sqlite')).toMatchObject({ code: 'INVALID_OUTPUT', retryable: false });
  });
});
