/** The options for `ensemble test`. Its tests answer for the database, which is never asked. */
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';

export const options = { bindings: { sql: sqliteDatabase({ path: ':memory:' }) } };
