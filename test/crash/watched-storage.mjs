/** A storage that records its calls and answers in the history, and reports the points at which a process may die. */

import { createHash } from 'node:crypto';
import { now } from './history.mjs';

/**
 * @param hit - called at each point: `register`, `reclaim`, `claim`, `replay`, `unregister` and the kinds of commits, with
 *   `:before` or `:after`, and others
 */
export function watchStorage(storage, record, hit = () => {}) {
  const around = (name, call, onAnswer) => {
    hit(`${name}:before`);
    return then(call(), (answer) => {
      onAnswer?.(answer);
      hit(`${name}:after`);
      return answer;
    });
  };
  let writes = 0;
  return {
    __proto__: storage,
    workers: {
      __proto__: storage.workers,
      register: (worker, lease) =>
        around(
          'register',
          () => storage.workers.register(worker, lease),
          () => {
            record('registered', { worker });
            hit('registered');
          },
        ),
      renew: (worker, leaseUntil) =>
        then(storage.workers.renew(worker, leaseUntil), (known) => {
          if (!known) record('lost', { worker });
          return known;
        }),
      unregister: (worker, now) =>
        around(
          'unregister',
          () => storage.workers.unregister(worker, now),
          () => record('left', { worker }),
        ),
      reclaimFromDead: (worker, ...options) =>
        around(
          'reclaim',
          () => storage.workers.reclaimFromDead(worker, ...options),
          ({ freed }) => {
            if (freed === 0) return;
            record('freed', { freed });
            hit('freed');
          },
        ),
    },
    executions: {
      __proto__: storage.executions,
      claim(worker, query) {
        hit('claim:before');
        const askedAt = now();
        return then(storage.executions.claim(worker, query), (claimed) => {
          if (claimed.length === 0) return claimed;
          record('claimed', { worker, askedAt, all: claimed.map(toClaim) });
          hit('claim:after');
          return claimed;
        });
      },
      listSteps: (id, query) => around('replay', () => storage.executions.listSteps(id, query)),
    },
    tallies: {
      __proto__: storage.tallies,
      fold: (now) => around('count', () => storage.tallies.fold(now)),
    },
    commit(worker, batch) {
      const kinds = [...new Set(batch.map(kindOf))];
      for (const kind of kinds) hit(`${kind}:before`);
      if (batch.length > 1 || countParts(batch[0]) > 1) hit('commit:within');
      hit('commit:any');
      writes += 1;
      const number = writes;
      record('write', { worker, number, all: batch.map(({ executionId: id, epoch }) => ({ id, epoch })) });
      return then(storage.commit(worker, batch), (results) => {
        record('wrote', { worker, number, all: batch.map((entry, i) => toWritten(entry, results[i])) });
        for (const kind of kinds) hit(`${kind}:after`);
        return results;
      });
    },
  };
}

const then = (answer, use) => (answer instanceof Promise ? answer.then(use) : use(answer));

function toClaim(claimed) {
  if ('damage' in claimed) return { id: claimed.executionId, epoch: claimed.epoch, damage: String(claimed.damage) };
  const { execution, epoch, recoveries } = claimed;
  return { id: execution.id, epoch, recoveries };
}

/** The kind of a commit's entry, by its most significant part. */
function kindOf({ start, release, end, state, steps }) {
  if (start) return release ? 'enqueue' : 'start';
  if (end) return 'end';
  if (release) return 'release';
  if (state) return 'state';
  if (steps.some((step) => isDecision(step) && !isMark(step))) return 'decision';
  return steps.some((step) => step.retryAt !== undefined) ? 'retry' : 'step';
}

function countParts({ start, release, end, state, steps }) {
  return [start, release, end, state, ...steps].filter(Boolean).length;
}

function toWritten({ executionId: id, epoch, start, release, end, steps }, result) {
  return {
    id,
    epoch,
    result,
    steps: steps.map((step) => toStored(id, step)),
    ...(start && { ensemble: start.ensemble }),
    ...(release && { release: release.status }),
    ...(end && { end: digest([end.status, end.output, end.error, end.finishedAt]), status: end.status }),
  };
}

/** Whether a record is a decision or a mark of the interpreter, not an attempt of an agent. */
export const isDecision = ({ note }) => note === true;

/** Whether a record only reports. */
const isMark = ({ key, note }) => note === true && key.includes('!');

/** A step record in the form of the history: under the key that scripts receive, with a digest of the compared values. */
export function toStored(id, step) {
  const { key, name, attempts, retryAt, output, error, startedAt, duration } = step;
  const hashed = createHash('sha256').update(`${id}|${key}`).digest('hex').slice(0, 32);
  const what = digest([name, attempts, retryAt, output, error, startedAt, duration]);
  return {
    key: hashed,
    attempts,
    what,
    ...(retryAt === undefined && { final: true }),
    ...(isDecision(step) && { isDecision: true }),
  };
}

/** The end of an execution in the form of the history. */
export const toEnd = ({ status, output, error, finishedAt }) => digest([status, output, error, finishedAt]);

function digest(values) {
  return createHash('sha256').update(JSON.stringify(values, sorted)).digest('hex').slice(0, 12);
}

/** Each store returns the keys of an object in its own order. */
function sorted(_key, value) {
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
