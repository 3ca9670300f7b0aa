/**
 * Checks the history and the store against the guarantees of the library:
 *
 * - Every accepted execution is stored and has ended with the expected status. No stored result is missing, and no execution is damaged.
 * - Each step has one result. The result never changes, and belongs to an effect that happened.
 * - No step begins again after its result is stored, or after the end of its execution.
 * - Each execution has one end. The end never changes, and no process claims an execution that has ended.
 * - The epochs of an execution only increase. Nothing is stored under an epoch after a later claim.
 * - Only a later claim repeats an effect, and only if its result was not stored.
 * - As many ends were counted as executions have ended.
 */

import { AGENTS, COUNTED } from './flows.mjs';

const UNENDED = new Set(['queued', 'running', 'waiting', 'paused']);

/**
 * @param lines - the lines of the history
 * @param store - what `readStore` returned, at the end
 * @param expectations - `statusOf(execution)`: the expected status (default: completed); `noRepeats`: no effect may be repeated;
 *   `areDeleted`: executions may have been deleted
 * @returns `broken`: a line of text for each violation; `figures`: counts
 */
export function checkHistory(
  lines,
  { executions, states, counts },
  { statusOf = () => 'completed', noRepeats = false, areDeleted = false } = {},
) {
  const broken = [];
  const report = (rule, id, text) => broken.push([rule, id, text].filter(Boolean).join(': '));
  const figures = { accepted: 0, begun: 0, effects: 0, repeats: 0, claims: 0, refused: 0, late: 0 };
  const known = new Map();
  const of = (id) => {
    if (!known.has(id)) {
      const none = {
        epoch: 0,
        heldSince: Number.NEGATIVE_INFINITY,
        epochOf: new Map(),
        effects: new Map(),
        results: new Map(),
      };
      known.set(id, { ...none, nonces: new Set() });
    }
    return known.get(id);
  };
  const hold = (id, pid, epoch, at) => {
    const execution = of(id);
    if (epoch > execution.epoch) execution.heldSince = at;
    execution.epoch = Math.max(execution.epoch, epoch);
    execution.epochOf.set(pid, epoch);
  };
  /** `pid number` of a write -> executions that another process had claimed before the write began. */
  const late = new Map();

  const stored = (id, { key, attempts, what, final }) => {
    const { results } = of(id);
    const before = results.get(key);
    // An attempt before the result: the process that stored it was paused and reports it late.
    if (before?.final && !final && attempts < before.attempts) return;
    if (before?.final && before.what !== what) report('a stored result was replaced', id, key);
    if (!before?.final) results.set(key, { attempts, what, final });
  };
  const ended = (id, end, at) => {
    const execution = of(id);
    if (execution.end !== undefined && execution.end !== end) report('an execution has two different ends', id);
    execution.end = end;
    execution.endedAt ??= at;
  };

  /** Executions that were deleted are counted, too: then a count may be greater. */
  const checkCounts = () => {
    const ended = new Map();
    for (const { ensemble, status } of executions) {
      if (UNENDED.has(status)) continue;
      ended.set(`${ensemble} ${status}`, (ended.get(`${ensemble} ${status}`) ?? 0) + 1);
    }
    for (const kind of new Set([...ended.keys(), ...counts.keys()])) {
      const [found = 0, stored = 0] = [counts.get(kind), ended.get(kind)];
      if (areDeleted ? found < stored : found !== stored)
        report('the count of ends is wrong', kind, `${found} were counted, ${stored} are stored`);
    }
  };
  const on = {
    accepted({ id }) {
      figures.accepted += 1;
      of(id).accepted = true;
    },
    begin({ pid, id, key, attempt }) {
      const execution = of(id);
      // A process that was paused does not know yet that others have continued. It can begin a step; what it stores is refused.
      if (execution.epochOf.get(pid) !== execution.epoch) {
        figures.late += 1;
        return;
      }
      figures.begun += 1;
      const result = execution.results.get(key);
      if (result && (result.final || result.attempts >= attempt))
        report('a step began again after its result was stored', id, key);
      if (execution.end !== undefined) report('a step began after the end of its execution', id, key);
    },
    effect({ pid, id, key, attempt, nonce }) {
      figures.effects += 1;
      const execution = of(id);
      const epoch = execution.epochOf.get(pid);
      const effect = `${key}#${attempt}`;
      const before = execution.effects.get(effect) ?? [];
      if (before.length > 0) figures.repeats += 1;
      if (before.length > 0 && noRepeats) report('an effect was repeated, and none may be repeated here', id, effect);
      if (before.includes(epoch))
        report('an effect was repeated under one epoch', id, `${effect} under epoch ${epoch}`);
      execution.effects.set(effect, [...before, epoch]);
      execution.nonces.add(nonce);
    },
    claimed({ at, pid, askedAt, all }) {
      for (const { id, epoch, damage } of all) {
        figures.claims += 1;
        const execution = of(id);
        if (damage) report('an execution is damaged', id, damage);
        // A paused process may report a claim long after it was made. Only a claim that was requested later is wrong.
        if (epoch === execution.epoch || (epoch < execution.epoch && askedAt > execution.heldSince))
          report('an epoch did not increase', id, `claimed under epoch ${epoch} after ${execution.epoch}`);
        if (execution.end !== undefined && askedAt > execution.endedAt) report('an ended execution was claimed', id);
        hold(id, pid, epoch, at);
      }
    },
    write({ pid, number, all }) {
      late.set(`${pid} ${number}`, new Set(all.filter(({ id, epoch }) => epoch < of(id).epoch).map(({ id }) => id)));
    },
    wrote({ at, pid, number, all }) {
      const lateIds = late.get(`${pid} ${number}`);
      late.delete(`${pid} ${number}`);
      for (const { id, epoch, result, ensemble, steps, end } of all) {
        if (result === 'fenced') figures.refused += 1;
        if (result !== 'stored') continue;
        if (lateIds?.has(id)) report('a write under an old epoch was stored', id, `epoch ${epoch}`);
        if (ensemble) hold(id, pid, epoch, at);
        for (const step of steps) stored(id, step);
        if (end !== undefined) ended(id, end, at);
      }
    },
    seen({ id, steps }) {
      for (const step of steps) stored(id, step);
    },
  };
  for (const line of lines) on[line.what]?.(line);

  checkStored();
  checkCounts();
  return { broken, figures };

  function checkStored() {
    const found = new Set();
    for (const execution of executions) {
      found.add(execution.id);
      checkExecution(execution, of(execution.id));
    }
    for (const [id, { accepted }] of known)
      if (accepted && !found.has(id)) report('an accepted execution is not stored', id);
    for (const ensemble of COUNTED) {
      const counted = executions.filter((one) => one.ensemble === ensemble && one.agents.includes('count')).length;
      const count = states[ensemble]?.count ?? 0;
      if (count !== counted)
        report(
          'a change of the state was lost or repeated',
          ensemble,
          `the count is ${count} after ${counted} changes`,
        );
    }
  }

  function checkExecution(execution, { end: endBefore, results, nonces }) {
    const { id, ensemble, status, end, agents, steps, error } = execution;
    const wanted = statusOf(execution);
    if (status !== wanted)
      report('unexpected status', id, `${ensemble} is ${status}, not ${wanted} ${JSON.stringify(error ?? '')}`);
    if (endBefore !== undefined && endBefore !== end) report('a stored end was replaced', id);
    if (new Set(steps.map(({ key }) => key)).size !== steps.length) report('two records have the same key', id);
    const ran = agents.map((name) => (name === 'odd' ? 'even' : name)).sort();
    if (status === 'completed' && `${ran}` !== `${AGENTS[ensemble]}`) report('unexpected agents', id, `${agents}`);
    const now = new Map(steps.map((step) => [step.key, step]));
    for (const [key, { what, final }] of results) {
      if (!now.has(key)) report('a stored result is missing', id, key);
      else if (final && now.get(key).what !== what) report('a stored result was replaced', id, key);
    }
    for (const { key, final, isDecision, nonce } of steps) {
      if (final && !isDecision && nonce !== undefined && !nonces.has(nonce))
        report('a result belongs to no effect', id, key);
    }
  }
}
