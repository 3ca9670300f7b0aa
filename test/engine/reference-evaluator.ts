/**
 * The expected outcome of a flow, computed in the simplest way: no promises, no storage, no code of the engine. Items and
 * branches run one after the other.
 */

import { declared, type Guard, readsFailure, readsInside, type Step, type StepOf } from './flow-model.ts';

export interface Result {
  readonly status: 'completed' | 'failed' | 'skipped';
  readonly output: unknown;
}

/** A pending failure. */
interface Open {
  readonly names: readonly string[];
  /** Undefined when the flow failed, and not an agent. */
  readonly agent: string | undefined;
  /** Its number among all failures. */
  readonly place: number;
}

/** A guard that led to the current step, and how many failures there were when it was evaluated. */
interface Led {
  readonly guard: Guard;
  readonly since: number;
  /** For a step of a `finally`: the level around it, where the guard was evaluated. */
  readonly at?: Level | undefined;
}

/** A list around the current step, after one of its steps. */
interface Around {
  /** The names that guards after the step check. */
  readonly reads: ReadonlySet<string>;
  /** Whether steps follow. */
  readonly hasMore: boolean;
  /** The guard that led to the list. */
  readonly led: Led | undefined;
  /** Whether a `catch` catches its failures. */
  readonly catches: boolean;
}

/** The scope of a level, a branch or a round. */
interface Level {
  /** The level around it, whose names it reads. */
  readonly parent: Level | undefined;
  /** The scope that led here. */
  readonly outer: Level | undefined;
  /** The names that are declared here. */
  readonly names: ReadonlySet<string>;
  readonly results: Map<string, Result>;
  /** Oldest first. */
  open: readonly Open[];
  last: unknown;
  /** For a branch: the names outside it whose failures its steps handled; they take effect when the branch counts. */
  readonly handled: Set<string> | undefined;
  /** Whether a failure outside it ends it too. */
  readonly isPlain: boolean;
  /** How many of the lists around it have a `catch`. */
  readonly caughtBy: number;
}

/** The lists around a step, the outermost first. */
type Ahead = readonly Around[];

/** Guards after a block, outside a list. */
const guardsAfter = (reads: Iterable<string>): Around => ({
  reads: new Set(reads),
  hasMore: false,
  led: undefined,
  catches: false,
});

export interface Outcome {
  readonly status: 'completed' | 'failed';
  /** The agent whose failure ended the run. */
  readonly failedAgent: string | undefined;
  /** Attempts, in order. */
  readonly ran: readonly string[];
  readonly results: ReadonlyMap<string, Result>;
  readonly count: number;
}

/** The output of a `sleep` here: the instant itself is unknown. */
export const SLEPT = 'slept';

/** The payload of every signal. */
export const PAYLOAD = 'told';

export function evaluateFlow(flow: readonly Step[]): Outcome {
  const ran: string[] = [];
  let count = 0;
  let failures = 0;

  const find = (level: Level, name: string): Level | undefined => {
    for (let at: Level | undefined = level; at; at = at.parent) if (at.names.has(name)) return at;
    return undefined;
  };
  const holds = (guard: Guard, level: Level): boolean => {
    const result = (name: string) => find(level, name)?.results.get(name);
    switch (guard.kind) {
      case 'fixed':
        return guard.holds;
      case 'state':
        return count >= guard.atLeast;
      case 'failed':
        return result(guard.name)?.status === 'failed';
      case 'succeeded':
        return result(guard.name)?.status === 'completed';
      case 'notFailed':
        return result(guard.name)?.status !== 'failed';
      case 'executed':
        return ['completed', 'failed'].includes(result(guard.name)?.status ?? '');
      case 'gaveOutput':
        return (result(guard.name)?.output ?? null) !== null;
      case 'both':
        return result(guard.failed)?.status === 'failed' && result(guard.succeeded)?.status === 'completed';
    }
  };

  const attempt = (name: string, script: 'ok' | 'boom' | 'flaky'): Result => {
    ran.push(name);
    if (script === 'flaky') ran.push(name);
    return script === 'boom' ? { status: 'failed', output: null } : { status: 'completed', output: name };
  };
  const led = (guard: Guard): Led => ({ guard, since: failures });
  const handleName = (name: string, since: number, level: Level) => {
    for (let at: Level | undefined = level; at; at = at.outer) {
      at.open = at.open.filter(({ names, place }) => place > since || !names.includes(name));
      at.handled?.add(name);
      if (at.handled) break;
    }
  };
  const handle = (guards: readonly Led[], level: Level) => {
    for (const { guard, since, at = level } of guards)
      for (const name of readsFailure(guard)) handleName(name, since, at);
  };
  const give = (name: string | undefined, result: Result, level: Level): true => {
    if (name !== undefined) level.results.set(name, result);
    level.last = result.output;
    return true;
  };
  const fail = (level: Level, ...failures: readonly Open[]) => {
    level.open = [...level.open, ...failures];
  };
  const failure = (names: readonly string[], agent: string | undefined): Open => ({ names, agent, place: ++failures });
  const stretch = (level: Level, isPlain = false): Level => ({
    ...level,
    outer: level,
    open: [],
    last: null,
    handled: undefined,
    isPlain,
  });
  const absorb = (level: Level, inner: Level) => {
    fail(level, ...inner.open);
    level.last = inner.last;
  };
  /** Runs an agent that only this model has. */
  const runOwn = (name: string, output: unknown, level: Level, guards: readonly Led[]) => {
    handle(guards, level);
    ran.push(name);
    give(name, { status: 'completed', output }, level);
  };

  /** Whether a later step may handle a failure. @param caughtBy - the number of the catching list; no list outside it may handle it */
  const isOpen = ({ names, place }: Open, ahead: Ahead, caughtBy: number): boolean => {
    let number = ahead.filter(({ catches }) => catches).length;
    let isWalking = false;
    for (const { reads, hasMore, led: own, catches } of [...ahead].reverse()) {
      if (names.some((name) => reads.has(name))) return true;
      isWalking ||= hasMore;
      const wasRead = own && place <= own.since && readsFailure(own.guard).some((name) => names.includes(name));
      if (isWalking && wasRead) return true;
      if (catches && number-- === caughtBy) return false;
    }
    return false;
  };
  const ends = (level: Level, ahead: Ahead): boolean => {
    for (let at: Level | undefined = level; at; at = at.outer) {
      const { open, caughtBy, isPlain } = at;
      if (open.some((failed) => !isOpen(failed, ahead, caughtBy))) return true;
      if (!isPlain) return false;
    }
    return false;
  };

  const runStep = (step: Step, level: Level, guards: readonly Led[], ahead: Ahead): boolean => {
    if (step.kind === 'if' || step.kind === 'switch') {
      const guard = step.kind === 'if' ? step.guard : step.on;
      const way = holds(guard, level);
      const list = step.kind === 'if' ? (way ? step.then : step.else) : ((way ? step.yes : step.no) ?? step.other);
      level.last = null;
      const chosen = led(guard);
      return list ? runList(list, level, [...guards, chosen], ahead, chosen) : true;
    }
    if (step.kind === 'while') return runWhile(step, level, guards, ahead);
    if (step.kind === 'try') return runTry(step, level, guards, ahead);
    const chain = step.condition ? [...guards, led(step.condition)] : guards;
    if (step.condition && !holds(step.condition, level)) {
      return give(step.name, { status: 'skipped', output: null }, level);
    }
    if (step.kind === 'wait' || step.kind === 'sleep') handle(chain, level);
    if (step.kind === 'wait')
      return give(step.name, { status: 'completed', output: step.never ? null : PAYLOAD }, level);
    if (step.kind === 'sleep') return give(step.name, { status: 'completed', output: SLEPT }, level);
    if (step.kind === 'agent') {
      handle(chain, level);
      const result = attempt(step.name, step.script);
      if (step.counts && result.status === 'completed') count += 1;
      if (result.status === 'failed' && !step.continueOnError) fail(level, failure([step.name], step.name));
      return give(step.name, result, level);
    }
    if (step.kind === 'route') return runRoute(step, level, chain);
    if (step.kind === 'parallel') return runParallel(step, level, chain, ahead);
    return runForeach(step, level, chain, ahead, step.condition && chain.at(-1));
  };

  const runRoute = (step: StepOf<'route'>, level: Level, guards: readonly Led[]): boolean => {
    const looked = [...guards];
    const chosen = step.entries.findIndex(({ guard }) => {
      if (!guard) return true;
      looked.push(led(guard));
      return holds(guard, level);
    });
    const entry = step.entries[chosen];
    if (!entry) {
      return give(step.name, { status: 'completed', output: { route: null, target: null, output: null } }, level);
    }
    handle(looked, level);
    const { status, output } = attempt(entry.member, entry.script);
    level.results.set(entry.member, { status, output });
    if (status === 'failed') fail(level, failure([entry.member, step.name], entry.member));
    return give(step.name, { status, output: { route: chosen, target: entry.member, output } }, level);
  };

  const runForeach = (
    step: StepOf<'foreach'>,
    level: Level,
    guards: readonly Led[],
    ahead: Ahead,
    own: Led | undefined,
  ): boolean => {
    const outputs: unknown[] = [];
    let done = 0;
    let broke: Open | undefined;
    for (let index = 0; index < step.items && !broke; index++) {
      const isLast = index === step.items - 1 && Math.min(step.concurrency, step.items) === 1;
      const inner = { parent: level, names: declared(step.body), results: new Map<string, Result>() };
      const item: Level = { ...stretch(level, isLast), ...inner };
      const reachedEnd = runList(step.body, item, guards, ahead, own);
      broke = item.open[0];
      if (!reachedEnd && !broke) return false;
      outputs[index] = broke ? null : item.last;
      if (!broke) done += 1;
      if (!broke && step.breakAt !== undefined && index >= step.breakAt) break;
    }
    const names = step.name === undefined ? [] : [step.name];
    if (broke && !step.continueOnError) fail(level, failure(names, broke.agent));
    const status = broke ? 'failed' : 'completed';
    return give(step.name, { status, output: step.collect ? outputs : done }, level);
  };

  const runWhile = (step: StepOf<'while'>, level: Level, guards: readonly Led[], ahead: Ahead): boolean => {
    level.last = null;
    for (let round = 0; ; round++) {
      const made = (level.results.get(step.tick)?.output ?? 0) as number;
      if (made >= step.rounds || !holds(step.guard, level)) return true;
      if (round >= step.most) {
        fail(level, failure([], undefined));
        level.last = null;
        return true;
      }
      const body = stretch(level);
      const own = led(step.guard);
      const chain = [...guards, own];
      runOwn(step.tick, made + 1, body, chain);
      const reachedEnd = runList(step.body, body, chain, [...ahead, guardsAfter(readsFailure(step.guard))], own);
      absorb(level, body);
      if (!reachedEnd) return false;
    }
  };

  const runTry = (step: StepOf<'try'>, level: Level, guards: readonly Led[], ahead: Ahead): boolean => {
    const catches = (step.catch?.steps ?? []).flatMap(readsInside);
    const caughtBy = level.caughtBy + (step.catch ? 1 : 0);
    const body = { ...stretch(level, true), caughtBy };
    const afterBody = [...ahead, guardsAfter(catches)];
    runList(step.body, body, guards, afterBody, undefined, step.catch !== undefined);
    const [broke] = body.open;
    if (broke && step.catch) {
      const caught = stretch(level, true);
      runOwn(step.catch.caught, broke.agent ?? 'nobody', caught, guards);
      const first = { ...guardsAfter(catches), hasMore: step.catch.steps.length > 0 };
      const isOver = ends(caught, [...ahead, first]);
      if (!isOver) runList(step.catch.steps, caught, guards, ahead);
      absorb(level, caught);
    } else {
      absorb(level, body);
    }
    const { last } = level;
    // What its guards handle ends with it.
    const cleanup = { ...stretch(level), handled: new Set<string>() };
    const outside = guards.map((one) => ({ ...one, at: one.at ?? level }));
    runList(step.finally ?? [], cleanup, outside, ahead);
    absorb(level, cleanup);
    level.last = last;
    return true;
  };

  const runParallel = (step: StepOf<'parallel'>, level: Level, guards: readonly Led[], ahead: Ahead): boolean => {
    const isGuarded = (open: Open) => isOpen(open, ahead, level.caughtBy);
    const begun: { readonly label: string; readonly inner: Level; readonly reachedEnd: boolean }[] = [];
    let winner: (typeof begun)[number] | undefined;
    let failed: (typeof begun)[number] | undefined;
    for (const [place, branch] of step.branches.entries()) {
      const inner: Level = { ...stretch(level), results: new Map(level.results), handled: new Set() };
      const reachedEnd = runList([branch], inner, guards, ahead);
      const name = 'name' in branch ? branch.name : undefined;
      const ended = { label: name ?? String(place), inner, reachedEnd };
      begun.push(ended);
      if (step.waitFor === 'all') {
        if (reachedEnd) continue;
        failed = ended;
        break;
      }
      const own = name === undefined ? undefined : inner.results.get(name)?.status;
      const hasFailed = own === 'failed' || inner.open.length > 0;
      if (own === 'skipped' || (step.waitFor === 'any' && hasFailed)) continue;
      winner = ended;
      if (!reachedEnd) failed = ended;
      break;
    }
    if (!winner && step.waitFor === 'any') failed = begun.find(({ inner }) => inner.open.length > 0);

    const counted = winner ? [winner] : begun;
    for (const { inner } of counted) {
      for (const [name, result] of inner.results) {
        if (step.branches.some((branch) => declared([branch]).has(name))) level.results.set(name, result);
      }
      for (const name of inner.handled ?? []) handleName(name, failures, level);
    }
    // One failure ends the block; failures that guards after the block check stay pending.
    const culprit = failed && (failed.inner.open.find((open) => !isGuarded(open)) ?? failed.inner.open[0]);
    if (winner || step.waitFor !== 'any') {
      for (const { inner } of counted) fail(level, ...inner.open.filter((open) => open !== culprit && isGuarded(open)));
    }
    const outputOf = (ended: (typeof begun)[number] | undefined) => (ended?.reachedEnd ? ended.inner.last : null);
    const labels = step.branches.map((branch, i) => ('name' in branch ? branch.name : undefined) ?? String(i));
    const output =
      step.waitFor === 'all'
        ? Object.fromEntries(labels.map((label) => [label, outputOf(begun.find((ended) => ended.label === label))]))
        : { winner: winner?.label ?? null, output: outputOf(winner) };
    if (culprit && !step.continueOnError) {
      const own = step.name === undefined ? [] : [step.name];
      fail(level, failure([...own, ...culprit.names], culprit.agent));
    }
    return give(step.name, { status: culprit ? 'failed' : 'completed', output }, level);
  };

  /** @returns false when the level has ended */
  const runList = (
    steps: readonly Step[],
    level: Level,
    guards: readonly Led[],
    outer: Ahead,
    own?: Led,
    catches = false,
  ): boolean => {
    for (const [index, step] of steps.entries()) {
      const rest = steps.slice(index + 1);
      const around = { reads: new Set(rest.flatMap(readsInside)), hasMore: rest.length > 0, led: own, catches };
      const ahead = [...outer, around];
      if (!runStep(step, level, guards, ahead)) return false;
      if (ends(level, ahead)) return false;
    }
    return true;
  };

  const own = { parent: undefined, outer: undefined, names: declared(flow), results: new Map(), handled: undefined };
  const top: Level = { ...own, open: [], last: null, isPlain: false, caughtBy: 0 };
  runList(flow, top, [], []);
  const [first] = top.open;
  const status = first ? 'failed' : 'completed';
  return { status, failedAgent: first?.agent, ran, results: top.results, count };
}
