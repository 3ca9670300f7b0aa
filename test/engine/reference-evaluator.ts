/** What a flow must come to, computed in the plainest way: no promises, no storage, no shared code with the engine. */

/** A guard as data. `name` is read at the place where the guard stands. */
export type Guard =
  | { readonly kind: 'failed' | 'succeeded' | 'notFailed' | 'executed' | 'gaveOutput'; readonly name: string }
  | { readonly kind: 'both'; readonly failed: string; readonly succeeded: string }
  | { readonly kind: 'fixed'; readonly holds: boolean }
  | { readonly kind: 'state'; readonly atLeast: number };

export type Step =
  | {
      readonly kind: 'agent';
      readonly name: string;
      /** `flaky` fails its first attempt. */
      readonly script: 'ok' | 'boom' | 'flaky';
      readonly condition?: Guard | undefined;
      readonly continueOnError: boolean;
      readonly counts: boolean;
    }
  | {
      readonly kind: 'if';
      readonly guard: Guard;
      readonly then: readonly Step[];
      readonly else?: readonly Step[] | undefined;
    }
  | {
      readonly kind: 'foreach';
      readonly name?: string | undefined;
      readonly items: number;
      readonly body: readonly Step[];
      readonly condition?: Guard | undefined;
      readonly breakAt?: number | undefined;
      readonly collect: boolean;
      readonly continueOnError: boolean;
      readonly concurrency: number;
    }
  | {
      readonly kind: 'route';
      readonly name: string;
      readonly condition?: Guard | undefined;
      readonly entries: readonly {
        readonly guard?: Guard | undefined;
        readonly member: string;
        readonly script: 'ok' | 'boom';
      }[];
    };

export interface Result {
  readonly status: 'completed' | 'failed' | 'skipped';
  readonly output: unknown;
}

interface Level {
  readonly parent: Level | undefined;
  /** Names that are declared here. */
  readonly names: ReadonlySet<string>;
  readonly results: Map<string, Result>;
  /** Failures that nothing has handled yet, oldest first. */
  open: { readonly names: readonly string[]; readonly agent: string }[];
  last: unknown;
}

interface Place {
  readonly steps: readonly Step[];
  readonly index: number;
}

export interface Outcome {
  readonly status: 'completed' | 'failed';
  /** The agent whose failure ended the run. */
  readonly failedAgent: string | undefined;
  /** Attempts, in order. */
  readonly ran: readonly string[];
  readonly results: ReadonlyMap<string, Result>;
  readonly count: number;
}

export function evaluateFlow(flow: readonly Step[]): Outcome {
  const ran: string[] = [];
  let count = 0;

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
  const handle = (guards: readonly Guard[], level: Level) => {
    for (const guard of guards) {
      for (const name of readsFailure(guard)) {
        const at = find(level, name);
        if (at) at.open = at.open.filter((failure) => !failure.names.includes(name));
      }
    }
  };
  const skip = (name: string | undefined, level: Level) => {
    if (name !== undefined) level.results.set(name, { status: 'skipped', output: null });
    level.last = null;
  };

  const runStep = (step: Step, level: Level, guards: readonly Guard[], places: readonly Place[]): boolean => {
    if (step.kind === 'if') {
      const branch = holds(step.guard, level) ? step.then : step.else;
      level.last = null;
      return branch ? runList(branch, level, [...guards, step.guard], places) : true;
    }
    const chain = step.condition ? [...guards, step.condition] : guards;
    if (step.condition && !holds(step.condition, level)) {
      skip(step.name, level);
      return true;
    }
    if (step.kind === 'agent') {
      handle(chain, level);
      const result = attempt(step.name, step.script);
      if (step.counts && result.status === 'completed') count += 1;
      level.results.set(step.name, result);
      level.last = result.output;
      if (result.status === 'failed' && !step.continueOnError)
        level.open.push({ names: [step.name], agent: step.name });
      return true;
    }
    if (step.kind === 'route') return runRoute(step, level, chain);
    return runForeach(step, level, chain);
  };

  const runRoute = (step: Extract<Step, { kind: 'route' }>, level: Level, guards: readonly Guard[]): boolean => {
    const looked = [...guards];
    const chosen = step.entries.findIndex(({ guard }) => {
      if (!guard) return true;
      looked.push(guard);
      return holds(guard, level);
    });
    const entry = step.entries[chosen];
    if (!entry) {
      const output = { route: null, target: null, output: null };
      level.results.set(step.name, { status: 'completed', output });
      level.last = output;
      return true;
    }
    handle(looked, level);
    const result = attempt(entry.member, entry.script);
    level.results.set(entry.member, result);
    const output = { route: chosen, target: entry.member, output: result.output };
    level.results.set(step.name, { status: result.status, output });
    level.last = output;
    if (result.status === 'failed') level.open.push({ names: [entry.member, step.name], agent: entry.member });
    return true;
  };

  const runForeach = (step: Extract<Step, { kind: 'foreach' }>, level: Level, guards: readonly Guard[]): boolean => {
    const outputs: unknown[] = [];
    let done = 0;
    let failedAgent: string | undefined;
    for (let index = 0; index < step.items && failedAgent === undefined; index++) {
      const item: Level = { parent: level, names: declared(step.body), results: new Map(), open: [], last: null };
      runList(step.body, item, guards, []);
      failedAgent = item.open[0]?.agent;
      outputs[index] = failedAgent === undefined ? item.last : null;
      if (failedAgent === undefined) done += 1;
      if (failedAgent === undefined && step.breakAt !== undefined && index >= step.breakAt) break;
    }
    const output = step.collect ? outputs : done;
    level.last = output;
    if (step.name !== undefined)
      level.results.set(step.name, { status: failedAgent === undefined ? 'completed' : 'failed', output });
    if (failedAgent !== undefined && !step.continueOnError) {
      level.open.push({ names: step.name === undefined ? [] : [step.name], agent: failedAgent });
    }
    return true;
  };

  /** @returns false when the level has ended */
  const runList = (
    steps: readonly Step[],
    level: Level,
    guards: readonly Guard[],
    outer: readonly Place[],
  ): boolean => {
    for (const [index, step] of steps.entries()) {
      const places = [...outer, { steps, index }];
      if (!runStep(step, level, guards, places)) return false;
      const ahead = new Set(places.flatMap((place) => place.steps.slice(place.index + 1).flatMap(readsInside)));
      if (level.open.some(({ names }) => !names.some((name) => ahead.has(name)))) return false;
    }
    return true;
  };

  const top: Level = { parent: undefined, names: declared(flow), results: new Map(), open: [], last: null };
  runList(flow, top, [], []);
  const failedAgent = top.open[0]?.agent;
  return { status: failedAgent === undefined ? 'completed' : 'failed', failedAgent, ran, results: top.results, count };
}

/** Names whose `.failed` or `.success` the guard reads. */
function readsFailure(guard: Guard): readonly string[] {
  switch (guard.kind) {
    case 'failed':
    case 'succeeded':
    case 'notFailed':
      return [guard.name];
    case 'both':
      return [guard.failed, guard.succeeded];
    default:
      return [];
  }
}

function readsInside(step: Step): readonly string[] {
  const of = (guard: Guard | undefined) => (guard ? readsFailure(guard) : []);
  switch (step.kind) {
    case 'agent':
      return of(step.condition);
    case 'if':
      return [...of(step.guard), ...step.then.flatMap(readsInside), ...(step.else ?? []).flatMap(readsInside)];
    case 'foreach':
      return [...of(step.condition), ...step.body.flatMap(readsInside)];
    case 'route':
      return [...of(step.condition), ...step.entries.flatMap(({ guard }) => of(guard))];
  }
}

/** The names of a level: those in branches belong to it, those inside a block do not. */
export function declared(steps: readonly Step[]): Set<string> {
  const names = new Set<string>();
  for (const step of steps) {
    if (step.kind === 'if') for (const name of [...declared(step.then), ...declared(step.else ?? [])]) names.add(name);
    else if (step.name !== undefined) names.add(step.name);
    if (step.kind === 'route') for (const { member } of step.entries) names.add(member);
  }
  return names;
}
