/** A storage that writes to the ledger what it is asked and what it answered, and passes the points at which a process may die. */

import { createHash } from 'node:crypto';
import { now } from './ledger.mjs';

/**
 * @param hit - told of each point: `join`, `recover`, `claim`, `recall`, `leave` and the kinds of
 *   commits, with `:before` or `:after`, and others
 */
export function watchStorage(storage, ledger, hit = () => {}) {
  const around = (name, call, tell) => {
    hit(`${name}:before`);
    return then(call(), (answer) => {
      tell?.(answer);
      hit(`${name}:after`);
      return answer;
    });
  };
  let writes = 0;
  return {
    __proto__: storage,
    join: (owner, lease) =>
      around(
        'join',
        () => storage.join(owner, lease),
        () => {
          ledger('joined', { owner });
          hit('joined');
        },
      ),
    renew: (owner, leaseUntil) =>
      then(storage.renew(owner, leaseUntil), (known) => {
        if (!known) ledger('lost', { owner });
        return known;
      }),
    leave: (owner, now) =>
      around(
        'leave',
        () => storage.leave(owner, now),
        () => ledger('left', { owner }),
      ),
    recover: (owner, ...given) =>
      around(
        'recover',
        () => storage.recover(owner, ...given),
        ({ freed }) => {
          if (freed === 0) return;
          ledger('freed', { freed });
          hit('freed');
        },
      ),
    claim(owner, query) {
      hit('claim:before');
      const askedAt = now();
      return then(storage.claim(owner, query), (claimed) => {
        if (claimed.length === 0) return claimed;
        ledger('claimed', { owner, askedAt, all: claimed.map(toClaim) });
        hit('claim:after');
        return claimed;
      });
    },
    listSteps: (id, query) => around('recall', () => storage.listSteps(id, query)),
    commit(owner, batch) {
      const kinds = [...new Set(batch.map(kindOf))];
      for (const kind of kinds) hit(`${kind}:before`);
      if (batch.length > 1 || countParts(batch[0]) > 1) hit('commit:within');
      hit('commit:any');
      writes += 1;
      const number = writes;
      ledger('write', { owner, number, all: batch.map(({ executionId: id, epoch }) => ({ id, epoch })) });
      return then(storage.commit(owner, batch), (results) => {
        ledger('wrote', { owner, number, all: batch.map((entry, i) => toWritten(entry, results[i])) });
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

/** What a commit's entry is, by what is most of it. */
function kindOf({ start, release, end, state, steps }) {
  if (start) return release ? 'enqueue' : 'start';
  if (end) return 'end';
  if (release) return 'release';
  if (state) return 'state';
  if (steps.some((step) => step.note)) return 'note';
  return steps.some((step) => step.retryAt !== undefined) ? 'retry' : 'step';
}

function countParts({ start, release, end, state, steps, deliveries = [] }) {
  return [start, release, end, state, ...steps, ...deliveries].filter(Boolean).length;
}

function toWritten({ executionId: id, epoch, start, release, end, steps, deliveries }, result) {
  return {
    id,
    epoch,
    result,
    steps: steps.map((step) => toStored(id, step)),
    ...(start && { ensemble: start.ensemble }),
    ...(release && { release: release.status }),
    ...(end && { end: digest([end.status, end.output, end.error, end.finishedAt]), status: end.status }),
    ...(deliveries && { deliveries: deliveries.length }),
  };
}

/** A record as the ledger knows it: under the key that scripts are given, with what is compared of it. */
export function toStored(id, { key, name, attempts, retryAt, output, error, startedAt, duration, note }) {
  const hashed = createHash('sha256').update(`${id}|${key}`).digest('hex').slice(0, 32);
  const what = digest([name, attempts, retryAt, output, error, startedAt, duration]);
  return { key: hashed, attempts, what, ...(retryAt === undefined && { final: true }), ...(note && { note }) };
}

/** How a record of an execution ended, as the ledger knows it. */
export const toEnd = ({ status, output, error, finishedAt }) => digest([status, output, error, finishedAt]);

function digest(values) {
  return createHash('sha256').update(JSON.stringify(values, sorted)).digest('hex').slice(0, 12);
}

/** Stores keep an object's keys in orders of their own. */
function sorted(_key, value) {
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
