/** This library on a SQLite file, with its defaults. */

import { join } from 'node:path';
import { checkStored, countStored, fiveSteps } from '../../durable/library-steps.mjs';
import { importStore } from '../../durable/library-store.mjs';
import { openSqlite, sqliteDriver } from '../../durable/open-sqlite.mjs';

export async function setup({ folder }) {
  const file = join(folder, 'library.db');
  const { sqliteStorage } = await importStore('sqlite');
  const { orchestrator, run } = await fiveSteps(sqliteStorage({ path: file }));
  // The storage opens the file at its first use.
  await run();
  return {
    file,
    note: await sqliteDriver(),
    run,
    async check(executions) {
      const reader = await openSqlite(file);
      checkStored(reader.prepare(countStored('ensemble_')).all()[0], executions + 1);
      reader.close();
    },
    close: () => orchestrator.close(),
  };
}
