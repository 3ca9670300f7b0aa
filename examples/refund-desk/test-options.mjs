/** The options for `ensemble test`. The tests answer for the database, the bank and the mail: none of them is asked. */
import { memoryMail } from 'ensemble-orchestrator';
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';
import { deskOptions } from './desk.mjs';

const { ensembles: _files, ...rest } = deskOptions({
  sql: sqliteDatabase({ path: ':memory:' }),
  mail: memoryMail(),
  bankUrl: 'https://bank.example',
  publicUrl: 'https://shop.example',
  linkSecret: 'a secret of the tests, 32 bytes or more',
});

export const options = rest;
