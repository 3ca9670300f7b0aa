/** All tables and their rows: the title of a row, the module that is measured, and the peer that it needs. */

import { titleOf } from './peers.mjs';

const row = (title, module, argument) => ({ title, module, argument });
const peerRow = (peer, title, file, argument) => ({
  get title() {
    return `${titleOf(peer)}${title}`;
  },
  module: `peers/${peer}/${file}.mjs`,
  peer,
  argument,
});

const counts = (name, module, numbers) =>
  Object.fromEntries(numbers.map((count) => [`${name}-${count}`, row(count.toLocaleString('en'), module, count)]));

/** One execution at a time in memory, or over HTTP. */
export const IN_MEMORY = {
  throughput: {
    bare: row('bare loop of five awaits', 'cases/bare.mjs'),
    plain: row('five steps', 'cases/plain.mjs'),
    expressions: row('five steps, 15 expressions, two conditions', 'cases/expressions.mjs'),
    mastra: peerRow('mastra', ', five steps', 'case'),
    langgraph: peerRow('langgraph', ', five nodes', 'case'),
  },
  scaling: counts('steps', 'cases/steps.mjs', [5, 50, 200, 1000]),
  foreach: {
    'foreach-1': row('in memory, 1 at a time', 'cases/foreach.mjs', [1]),
    'foreach-50': row('in memory, 50 at a time', 'cases/foreach.mjs', [50]),
    'foreach-sqlite': row('on SQLite, each durable, 50 at a time', 'cases/foreach.mjs', [50, 'sqlite']),
    'foreach-bare': row('bare SQLite, a commit a turn, 50 at a time', 'cases/foreach-bare-sqlite.mjs', [50]),
  },
  http: {
    'http-handler': row('`POST execute`, five steps, through the handler', 'cases/http-handler.mjs'),
    'node-http': row('the same over a Node HTTP server', 'cases/node-http.mjs'),
    hono: row('a bare Hono route over a Node HTTP server', 'cases/hono.mjs'),
  },
  limits: {
    'limits-hono': row('a bare Hono route, without a socket', 'cases/limits.mjs', ['hono']),
    'limits-usage': row('`GET /usage` with token and limits, in memory', 'cases/limits.mjs', ['usage']),
    'limits-usage-postgres': row('the same on Postgres, 50 at a time', 'cases/limits.mjs', ['usage', 'postgres']),
    ...Object.fromEntries(
      ['memory', 'sqlite', 'postgres'].flatMap((storage) => [
        [`limits-start-${storage}`, row(`a start on ${storage}, 50 at a time`, 'cases/limits.mjs', ['start', storage])],
        [
          `limits-slots-${storage}`,
          row('the same with quota and slot', 'cases/limits.mjs', ['start', storage, 'limited']),
        ],
      ]),
    ),
  },
  webhooks: {
    'webhooks-check': row('the check of a signature of 1 KB', 'cases/webhooks.mjs', ['check']),
    'webhooks-node': row('its HMAC by `node:crypto`', 'cases/webhooks.mjs', ['node']),
    'webhooks-receive': row('a signed webhook to 202 on SQLite, 50 at a time', 'cases/webhooks.mjs', [
      'receive',
      'sqlite',
    ]),
    'webhooks-start': row('the same execution by `start`', 'cases/webhooks.mjs', ['start', 'sqlite']),
  },
  telemetry: Object.fromEntries(
    [1, 50].flatMap((count) =>
      Object.entries({
        none: `five steps on SQLite, ${count} at a time`,
        api: 'with `openTelemetry()`, no SDK',
        spans: 'with the SDK, spans in batches',
        metrics: 'with `GET /metrics`',
      }).map(([kind, title]) => [`telemetry-${kind}-${count}`, row(title, 'cases/telemetry.mjs', [kind, count])]),
    ),
  ),
  components: Object.fromEntries(
    ['memory', 'sqlite', 'postgres'].flatMap((kind) => [
      [`components-texts-${kind}`, row(`an agent with three texts, ${kind}`, 'cases/components.mjs', ['texts', kind])],
      [
        `components-${kind}`,
        row(`an agent with three references, ${kind}`, 'cases/components.mjs', ['references', kind]),
      ],
    ]),
  ),
};

/** Five steps, each stored before the next, one and 50 executions at a time. */
export const DURABLE = {
  sqlite: {
    'sqlite-raw': row('bare SQLite, a commit for each record', 'cases/durable/raw-sqlite.mjs', 'each'),
    'sqlite-group': row('bare SQLite, a commit a turn of the event loop', 'cases/durable/raw-sqlite.mjs', 'group'),
    'sqlite-library': row('this library', 'cases/durable/library-sqlite.mjs'),
    'sqlite-mastra': peerRow('mastra', '', 'sqlite'),
    'sqlite-openworkflow': peerRow('openworkflow', '', 'sqlite'),
  },
  postgres: {
    'postgres-raw': row('bare `pg`, a commit for each record', 'cases/durable/raw-postgres.mjs', 'each'),
    'postgres-group': row('bare `pg`, records grouped', 'cases/durable/raw-postgres.mjs', 'group'),
    'postgres-library': row('this library', 'cases/durable/library-postgres.mjs'),
    'postgres-mastra': peerRow('mastra', '', 'postgres'),
    'postgres-dbos': peerRow('dbos', '', 'postgres'),
    'postgres-openworkflow': peerRow('openworkflow', '', 'postgres'),
  },
};

/** A backlog in the queues of Postgres and Redis, with and without 1,000 keys, of which each has one job at a time. */
export const DRAIN = {
  'drain-library': row('this library', 'cases/durable/library-drain.mjs'),
  'drain-library-keys': row('this library, by key', 'cases/durable/library-drain.mjs', 'keys'),
  'drain-pgboss': peerRow('pgboss', '', 'drain'),
  'drain-pgboss-keys': peerRow('pgboss', ', by group', 'drain', 'keys'),
  'drain-dbos': peerRow('dbos', '', 'drain'),
  'drain-dbos-keys': peerRow('dbos', ', by partition', 'drain', 'keys'),
  'drain-bullmq': peerRow('bullmq', ' (Redis; groups are not free)', 'drain'),
};

/** Tables that measure this library only. Each has its own way of printing. */
const FURTHER = {
  ...{ memory: {}, import: {}, deliveries: {}, turns: {} },
  ...{ queue: {}, backlog: {}, keys: {}, finished: {}, loops: {}, resume: {}, waiting: {} },
};

const TABLES = { ...IN_MEMORY, ...DURABLE, drain: DRAIN, ...FURTHER };

/**
 * The tables and rows that CASES names, all by default.
 * @throws for an unknown name
 */
export function chooseCases(asked = Object.keys(TABLES).join(',')) {
  const known = new Set(Object.entries(TABLES).flatMap(([table, cases]) => [table, ...Object.keys(cases)]));
  const names = asked.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new Error(`CASES: there is no case ${unknown.join(', ')}; use one of ${[...known].join(', ')}`);
  return new Set(names.flatMap((name) => [name, ...Object.keys(TABLES[name] ?? {})]));
}

/** The rows of some tables that were chosen, by name. */
export function chosenRows(tables, chosen) {
  return Object.fromEntries(
    Object.values(tables)
      .flatMap((rows) => Object.entries(rows))
      .filter(([name]) => chosen.has(name)),
  );
}
