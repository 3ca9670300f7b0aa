/** Copies stored executions by SQL: a store with a million of them is ready within minutes. */

import pg from 'pg';
import { openSqlite } from './open-sqlite.mjs';

/**
 * @param kind - `sqlite`, with the path of a file, or `postgres`, with a URL
 * @param options - `schema` of Postgres; `steps`: whether the steps are copied too; `chosen`: which of the stored executions the copy
 *   `n.n` is made of, in SQL, by default the only one; `values`: columns of the copies, in SQL
 * @returns `add(count)`, which adds copies of what was stored at the call of this function, `analyze()`, `count(status)` and `close()`
 */
export async function openCopies(kind, where, options = {}) {
  const { schema = 'ensemble', steps = false, chosen = 'true', values = {} } = options;
  const database = await (kind === 'sqlite' ? openFile(where) : openServer(where, schema));
  const { executions, steps: stepTable, numbers, padded, columns } = database;
  const idOf = (number) => `'exec_' || ${padded(number)}`;
  const of = copied(await columns('executions'), 'ref', (name) => {
    if (name === 'id') return idOf('n.n');
    if (values[name]) return values[name];
    return name === 'created_at' || name === 'due_at' ? `first.${name} + n.n / 1000` : `first.${name}`;
  });
  const ofSteps = copied(await columns('steps'), 'seq', (name) =>
    name === 'execution' ? 'copy.ref' : `first_steps.${name}`,
  );
  await database.exec(`CREATE TEMP TABLE first AS SELECT * FROM ${executions}`);
  await database.exec(`CREATE TEMP TABLE first_steps AS SELECT * FROM ${stepTable}`);
  let last = 0;
  return {
    async add(count) {
      const from = numbers(last + 1, last + count);
      await database.exec(
        `${from.before} INSERT INTO ${executions} (${of.names}) SELECT ${of.values} FROM first, ${from.table} WHERE ${chosen}`,
      );
      if (steps)
        await database.exec(
          `${from.before} INSERT INTO ${stepTable} (${ofSteps.names}) SELECT ${ofSteps.values}
          FROM ${from.table} JOIN first ON ${chosen} JOIN first_steps ON first_steps.execution = first.ref
          JOIN ${executions} copy ON copy.id = ${idOf('n.n')} AND copy.namespace = first.namespace`,
        );
      last += count;
    },
    analyze: database.analyze,
    count: (status) => database.count(`SELECT count(*) AS count FROM ${executions} WHERE status = '${status}'`),
    close: database.close,
  };
}

async function openServer(url, schema) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const [executions, steps] = [`"${schema}".executions`, `"${schema}".steps`];
  return {
    executions,
    steps,
    padded: (number) => `lpad(${number}::text, 26, '0')`,
    numbers: (from, to) => ({ before: '', table: `generate_series(${from}, ${to}) AS n(n)` }),
    async columns(table) {
      const { rows } = await client.query(
        'SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2',
        [schema, table],
      );
      return rows;
    },
    exec: (sql) => client.query(sql),
    analyze: () => client.query(`VACUUM ANALYZE ${executions}, ${steps}`),
    count: async (sql) => Number((await client.query(sql)).rows[0].count),
    close: () => client.end(),
  };
}

async function openFile(path) {
  const database = await openSqlite(path);
  return {
    executions: 'ensemble_executions',
    steps: 'ensemble_steps',
    padded: (number) => `printf('%026d', ${number})`,
    numbers: (from, to) => ({
      before: `WITH RECURSIVE n(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM n WHERE n < ${to})`,
      table: 'n',
    }),
    columns: async (table) => database.prepare(`PRAGMA table_info(ensemble_${table})`).all([]),
    exec: async (sql) => database.exec(sql),
    // The library leaves it out too: its indexes are named in its statements.
    analyze: async () => {},
    count: async (sql) => Number(Object.values(database.prepare(sql).all([])[0])[0]),
    close: async () => database.close(),
  };
}

/** @param own - the column whose value the database makes */
function copied(rows, own, valueIn) {
  const columns = rows.map(({ name }) => name).filter((name) => name !== own);
  return { names: columns.join(', '), values: columns.map(valueIn).join(', ') };
}
