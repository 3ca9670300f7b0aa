/**
 * Holds the ledger and the store against the promises.
 *
 * | | promise |
 * |---|---|
 * | I1 | every execution that was accepted is there, and has ended as it must |
 * | I2 | one result for each key, never another one, and it is that of an effect that happened |
 * | I3 | nothing begins again once its result is stored |
 * | I4 | one end, which never changes, and nobody claims what has ended |
 * | I5 | as many deliveries as were stored |
 * | I9 | epochs only grow, and nothing is stored under one that another claim has left behind |
 * | T2 | an effect is repeated only by a later claim, and only where nothing was stored of it |
 */

import { AGENTS, COUNTED } from './flows.mjs';

/**
 * @param lines - of the ledger
 * @param store - what `readStore` gave, at the end
 * @param expectations - `statusOf(execution)`: how it must have ended (default: completed); `noRepeats`: no effect may be repeated
 * @returns what is broken, and the figures
 */
export function checkLedger(lines, { executions, states }, { statusOf = () => 'completed', noRepeats = false } = {}) {
  const broken = [];
  const say = (invariant, id, text) => broken.push(`${invariant} ${id ?? ''} ${text}`);
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
        deliveries: 0,
      };
      known.set(id, { ...none, nonces: new Set() });
    }
    return known.get(id);
  };
  const hold = (id, pid, epoch, at) => {
    const place = of(id);
    if (epoch > place.epoch) place.heldSince = at;
    place.epoch = Math.max(place.epoch, epoch);
    place.epochOf.set(pid, epoch);
  };
  /** Executions of a write that were left behind before it began. */
  const late = new Map();

  const stored = (id, { key, attempts, what, final }) => {
    const place = of(id);
    const before = place.results.get(key);
    // An attempt before the result: who stored it stood still, and says so late.
    if (before?.final && !final && attempts < before.attempts) return;
    if (before?.final && before.what !== what) say('I2', id, `${key} had a result, and another one was stored`);
    if (!before?.final) place.results.set(key, { attempts, what, final });
  };
  const ended = (id, end, at) => {
    const place = of(id);
    if (place.end !== undefined && place.end !== end) say('I4', id, 'was ended twice, differently');
    place.end = end;
    place.endedAt ??= at;
  };

  const on = {
    accepted({ id }) {
      figures.accepted += 1;
      of(id).accepted = true;
    },
    begin({ pid, id, key, attempt }) {
      const place = of(id);
      // Who stood still does not know yet that others went on. It can begin a step; what it stores is refused.
      if (place.epochOf.get(pid) !== place.epoch) {
        figures.late += 1;
        return;
      }
      figures.begun += 1;
      const result = place.results.get(key);
      if (result && (result.final || result.attempts >= attempt)) say('I3', id, `${key} began again behind its result`);
      if (place.end !== undefined) say('I3', id, `${key} began behind the end`);
    },
    effect({ pid, id, key, attempt, nonce }) {
      figures.effects += 1;
      const place = of(id);
      const epoch = place.epochOf.get(pid);
      const effect = `${key}#${attempt}`;
      const before = place.effects.get(effect) ?? [];
      if (before.length > 0) figures.repeats += 1;
      if (before.length > 0 && noRepeats) say('T2', id, `${effect} happened twice`);
      if (before.includes(epoch)) say('T2', id, `${effect} happened twice under epoch ${epoch}`);
      place.effects.set(effect, [...before, epoch]);
      place.nonces.add(nonce);
    },
    claimed({ at, pid, askedAt, all }) {
      for (const { id, epoch, damage } of all) {
        figures.claims += 1;
        const place = of(id);
        if (damage) say('I1', id, `is damaged: ${damage}`);
        // Who stood still hears late of a claim that was made long before; only what was asked for later is wrong.
        if (epoch === place.epoch || (epoch < place.epoch && askedAt > place.heldSince))
          say('I9', id, `was claimed under epoch ${epoch}, behind ${place.epoch}`);
        if (place.end !== undefined && askedAt > place.endedAt) say('I4', id, 'was claimed behind its end');
        hold(id, pid, epoch, at);
      }
    },
    write({ pid, number, all }) {
      late.set(`${pid} ${number}`, new Set(all.filter(({ id, epoch }) => epoch < of(id).epoch).map(({ id }) => id)));
    },
    wrote({ at, pid, number, all }) {
      const behind = late.get(`${pid} ${number}`);
      late.delete(`${pid} ${number}`);
      for (const { id, epoch, result, ensemble, steps, end, deliveries = 0 } of all) {
        const place = of(id);
        if (result === 'fenced') figures.refused += 1;
        if (result !== 'stored') continue;
        if (behind?.has(id)) say('I9', id, `something was stored under epoch ${epoch}, which was left behind before`);
        if (ensemble) hold(id, pid, epoch, at);
        place.deliveries += deliveries;
        for (const step of steps) stored(id, step);
        if (end !== undefined) ended(id, end, at);
      }
    },
    seen({ id, steps }) {
      for (const step of steps) stored(id, step);
    },
  };
  for (const line of lines) on[line.what]?.(line);

  const there = new Set();
  for (const execution of executions) {
    const { id, ensemble, status, end, agents, steps, deliveries } = execution;
    const place = of(id);
    there.add(id);
    const wanted = statusOf(execution);
    if (status !== wanted)
      say('I1', id, `${ensemble} is ${status}, not ${wanted} ${JSON.stringify(execution.error ?? '')}`);
    if (place.end !== undefined && place.end !== end) say('I4', id, 'its end is another one now');
    if (place.deliveries !== deliveries) say('I5', id, `has ${deliveries} deliveries, ${place.deliveries} were stored`);
    if (new Set(steps.map(({ key }) => key)).size !== steps.length) say('I2', id, 'has two records under one key');
    const ran = agents.map((name) => (name === 'odd' ? 'even' : name)).sort();
    if (status === 'completed' && `${ran}` !== `${AGENTS[ensemble]}`) say('I2', id, `ran ${agents}`);
    const now = new Map(steps.map((step) => [step.key, step]));
    for (const [key, { what, final }] of place.results) {
      if (!now.has(key)) say('I1', id, `a result was lost: ${key}`);
      else if (final && now.get(key).what !== what) say('I2', id, `the result of ${key} is another one now`);
    }
    for (const { key, final, nonce, note } of steps) {
      if (final && !note && nonce !== undefined && !place.nonces.has(nonce))
        say('I2', id, `${key} has a result of no effect`);
    }
  }
  for (const [id, { accepted }] of known)
    if (accepted && !there.has(id)) say('I1', id, 'was accepted and is not there');
  for (const ensemble of COUNTED) {
    const counted = executions.filter((one) => one.ensemble === ensemble && one.agents.includes('count')).length;
    const count = states[ensemble]?.count ?? 0;
    if (count !== counted)
      say('I2', '', `the state of ${ensemble} counts ${count}, and ${counted} executions changed it`);
  }
  return { broken, figures };
}
