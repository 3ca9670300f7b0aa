/** The options for `ensemble test`. The tests answer for everything outside: none of it is asked. */
import { memoryMail } from 'ensemble-orchestrator';
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';
import { fakeModel } from 'ensemble-orchestrator/testing';
import { deskOptions } from './desk.mjs';

const { ensembles: _files, ...rest } = deskOptions({
  sql: sqliteDatabase({ path: ':memory:' }),
  mail: memoryMail(),
  model: fakeModel([]),
  pdf: { render: async () => new Uint8Array() },
  secrets: { INTAKE_SECRET: 'intake', PARTNER_SECRET: 'whsec_dGhlIHNlY3JldCBvZiBhIHBhcnRuZXI=' },
  linkSecret: 'a secret of the tests, 32 bytes or more',
});

export const options = rest;
