/** Flows of the property tests as data, and properties of a flow that need no run. */

/** A guard as data. `name` is a name that can be read where the guard is. */
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
      /** The names whose results are a part of its input. */
      readonly sees: readonly string[];
    }
  | {
      readonly kind: 'if';
      readonly guard: Guard;
      readonly then: readonly Step[];
      readonly else?: readonly Step[] | undefined;
    }
  | {
      readonly kind: 'switch';
      readonly on: Guard;
      readonly yes?: readonly Step[] | undefined;
      readonly no?: readonly Step[] | undefined;
      readonly other?: readonly Step[] | undefined;
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
      readonly kind: 'while';
      /** The agent that counts the rounds: the first step of each. */
      readonly tick: string;
      /** The maximum number of rounds, as long as its guard holds. */
      readonly rounds: number;
      readonly guard: Guard;
      readonly most: number;
      readonly body: readonly Step[];
    }
  | {
      readonly kind: 'parallel';
      readonly name?: string | undefined;
      readonly branches: readonly Step[];
      readonly waitFor: 'all' | 'any' | 'first';
      readonly condition?: Guard | undefined;
      readonly continueOnError: boolean;
      readonly concurrency: number;
    }
  | {
      readonly kind: 'try';
      readonly body: readonly Step[];
      /** `caught` is the first step of the `catch`: it returns the agent whose failure was caught. */
      readonly catch?: { readonly caught: string; readonly steps: readonly Step[] } | undefined;
      readonly finally?: readonly Step[] | undefined;
    }
  | {
      readonly kind: 'sleep';
      readonly name?: string | undefined;
      readonly ms: number;
      readonly condition?: Guard | undefined;
    }
  | {
      readonly kind: 'wait';
      readonly name?: string | undefined;
      /** Nothing sends that signal. */
      readonly never: boolean;
      readonly condition?: Guard | undefined;
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

export type StepOf<K extends Step['kind']> = Extract<Step, { kind: K }>;

/** The lists inside a step, in order. */
export function listsOf(step: Step): readonly (readonly Step[])[] {
  const lists = (...found: (readonly Step[] | undefined)[]) => found.filter((list) => list !== undefined);
  switch (step.kind) {
    case 'if':
      return lists(step.then, step.else);
    case 'switch':
      return lists(step.yes, step.no, step.other);
    case 'foreach':
    case 'while':
      return [step.body];
    case 'parallel':
      return [step.branches];
    case 'try':
      return lists(step.body, step.catch?.steps, step.finally);
    default:
      return [];
  }
}

/** The guards of a step itself. */
export function guardsOf(step: Step): readonly Guard[] {
  const guards = (...found: (Guard | undefined)[]) => found.filter((guard) => guard !== undefined);
  switch (step.kind) {
    case 'if':
    case 'while':
      return [step.guard];
    case 'switch':
      return [step.on];
    case 'route':
      return guards(step.condition, ...step.entries.map(({ guard }) => guard));
    case 'try':
      return [];
    default:
      return guards(step.condition);
  }
}

/** The names whose `.failed` or `.success` the guard reads. */
export function readsFailure(guard: Guard): readonly string[] {
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

/** The names whose failures are checked by a guard of the step, or of a step inside it. */
export function readsInside(step: Step): readonly string[] {
  // Guards in `finally` handle nothing from outside of it.
  const inner = step.kind === 'try' ? listsOf({ ...step, finally: undefined }) : listsOf(step);
  return [...guardsOf(step).flatMap(readsFailure), ...inner.flat().flatMap(readsInside)];
}

/** The names of a level: those in branches belong to it, those inside a `foreach` do not. */
export function declared(steps: readonly Step[]): Set<string> {
  const names = new Set<string>();
  for (const step of steps) {
    if ('name' in step && step.name !== undefined) names.add(step.name);
    if (step.kind === 'route') for (const { member } of step.entries) names.add(member);
    if (step.kind === 'while') names.add(step.tick);
    if (step.kind === 'try' && step.catch) names.add(step.catch.caught);
    if (step.kind !== 'foreach')
      for (const name of listsOf(step).flatMap((list) => [...declared(list)])) names.add(name);
  }
  return names;
}

/** Whether a step of the list, or inside it, matches. */
export function some(steps: readonly Step[], test: (step: Step) => boolean): boolean {
  return steps.some((step) => test(step) || listsOf(step).some((list) => some(list, test)));
}
