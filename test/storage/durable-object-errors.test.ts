/** What the storage of a Durable Object throws. The suites run in workerd: test/runtimes/durable-objects-worker.mjs. */

import { describe, expect, it } from 'vitest';
import { durableObjectStorage } from '../../src/adapters/storage/sqlite/durable-object-storage.ts';
import type { DurableObjectContext } from '../../src/engine/host/host.port.ts';

/** An object whose database fails with this error. */
function failing(error: Error): Pick<DurableObjectContext, 'storage'> {
  const exec = () => {
    throw error;
  };
  return { storage: { sql: { exec }, transactionSync: (work) => work(), setAlarm: async () => undefined } };
}

describe('durableObjectStorage', () => {
  it.each([
    ['string or blob too big: SQLITE_TOOBIG', 'INVALID_OUTPUT', false],
    ['database or disk is full: SQLITE_FULL', 'OVERLOADED', true],
    ['too many SQL variables at offset 9: SQLITE_ERROR', 'INTERNAL', false],
    ['UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)', 'INTERNAL', false],
    ['SQL is not enabled for this Durable Object class. To enable it, ...', 'NOT_CONFIGURED', false],
  ])('an error of workerd: %s: is %s, retryable %s, and its cause', (message, code, retryable) => {
    const cause = new Error(message);
    const storage = durableObjectStorage(failing(cause));
    expect(() => storage.executions.countQueued(1)).toThrow(expect.objectContaining({ code, retryable, cause }));
  });

  it('an error that is not of SQLite: stays as it is', () => {
    const error = new Error('Durable Object reset because its code was updated.');
    expect(() => durableObjectStorage(failing(error)).executions.countQueued(1)).toThrow(error);
  });

  it.each([
    ['nothing', undefined],
    ['an object without a storage', {}],
    ['`ctx.storage`', failing(new Error('unused')).storage],
  ])('%s in place of `ctx`: TypeError', (_what, wrong) => {
    expect(() => durableObjectStorage(wrong as DurableObjectContext)).toThrow(TypeError);
    expect(() => durableObjectStorage(wrong as DurableObjectContext)).toThrow('pass the `ctx`');
  });
});
