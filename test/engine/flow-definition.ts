/** Turns a flow of the property tests into a definition, with outputs that read every name of its outermost level. */

import { declared, type Guard, listsOf, type Step } from './flow-model.ts';

/** The signal that all waits wait for; it is sent repeatedly. */
export const SIGNAL = 'go';
/** The interval between two signals, ms. */
export const SIGNALLED_EVERY = 300;

type Fields = Readonly<Record<string, unknown>>;

/** @param stretch - how many times as long all waits take */
export function toDefinition(flow: readonly Step[], stretch = 1): Fields {
  const views = [...declared(flow)].map((name) => [
    name,
    {
      output: `\${${name}.output}`,
      failed: `\${${name}.failed}`,
      success: `\${${name}.success}`,
      executed: `\${${name}.executed}`,
    },
  ]);
  return {
    state: { initial: { count: 0 } },
    agents: members(flow),
    flow: flow.map((step) => toStep(step, stretch)),
    outputs: { ...Object.fromEntries(views), count: '${state.count}' },
  };
}

/** The members of routes are declared alongside the flow. */
function members(steps: readonly Step[]): readonly Fields[] {
  return steps.flatMap((step): readonly Fields[] => {
    if (step.kind !== 'route') return listsOf(step).flatMap(members);
    return step.entries.map(({ member, script }) => ({ name: member, operation: 'code', config: { script } }));
  });
}

function toStep(step: Step, stretch: number): Fields {
  const list = (steps: readonly Step[]) => steps.map((inner) => toStep(inner, stretch));
  switch (step.kind) {
    case 'agent':
      return {
        agent: step.name,
        operation: 'code',
        config: { script: step.script },
        ...toCondition(step.condition),
        ...(step.continueOnError && { continueOnError: true }),
        ...(step.script === 'flaky' && { retry: { maxAttempts: 3, backoff: 'fixed', delay: 10 * stretch } }),
        ...(step.counts && { setState: { count: '${state.count + 1}' } }),
        // The input of an attempt must be the same when the attempt is made again.
        input: {
          drawn: '${random()}',
          at: '${now()}',
          seen: step.sees.map((name) => `\${[${name}.output, ${name}.failed, ${name}.executed]}`),
        },
      };
    case 'if':
      return { if: toExpression(step.guard), then: list(step.then), ...(step.else && { else: list(step.else) }) };
    case 'switch': {
      const cases = { ...(step.yes && { true: list(step.yes) }), ...(step.no && { false: list(step.no) }) };
      return {
        // As text, because a case that a condition on a step can never have is refused. Without cases, one that is never chosen.
        switch: `\${(${bare(step.on)}) + ''}`,
        cases: Object.keys(cases).length > 0 ? cases : { never: [] },
        ...(step.other && { default: list(step.other) }),
      };
    }
    case 'foreach':
      return {
        foreach: Array.from({ length: step.items }, (_, i) => i),
        steps: list(step.body),
        concurrency: step.concurrency,
        collect: step.collect,
        ...toNamed(step),
        ...(step.breakAt !== undefined && { breakWhen: `\${index >= ${step.breakAt}}` }),
        ...(step.continueOnError && { continueOnError: true }),
      };
    case 'while': {
      const made = `(${step.tick}.output ?? 0)`;
      return {
        while: `\${${made} < ${step.rounds} && ${bare(step.guard)}}`,
        maxIterations: step.most,
        steps: [echoStep(step.tick, `\${${made} + 1}`), ...list(step.body)],
      };
    }
    case 'parallel':
      return {
        parallel: list(step.branches),
        waitFor: step.waitFor,
        concurrency: step.concurrency,
        ...toNamed(step),
        ...(step.continueOnError && { continueOnError: true }),
      };
    case 'try':
      return {
        try: list(step.body),
        ...(step.catch && {
          catch: [echoStep(step.catch.caught, "${error.agent ?? 'nobody'}"), ...list(step.catch.steps)],
        }),
        ...(step.finally && { finally: list(step.finally) }),
      };
    case 'wait':
      if (step.never) return { wait: 'never', timeout: 500 * stretch, onTimeout: 'continue', ...toNamed(step) };
      return { wait: SIGNAL, timeout: 3_600_000 * stretch, ...toNamed(step) };
    case 'sleep':
      return { sleep: step.ms * stretch, ...toNamed(step) };
    case 'route':
      return {
        agent: step.name,
        routes: step.entries.map(({ guard, member }) => ({
          member,
          ...(guard ? toCondition(guard) : { default: true }),
        })),
        ...toCondition(step.condition),
      };
  }
}

function echoStep(agent: string, input: string): Fields {
  return { agent, operation: 'code', config: { script: 'echo' }, input };
}

function toNamed({ name, condition }: { name?: string | undefined; condition?: Guard | undefined }): Fields {
  return { ...(name !== undefined && { name }), ...toCondition(condition) };
}

function toCondition(guard: Guard | undefined): Fields {
  return guard ? { condition: toExpression(guard) } : {};
}

function toExpression(guard: Guard): string {
  // A condition without `${}` is an expression too.
  return guard.kind === 'succeeded' ? bare(guard) : `\${${bare(guard)}}`;
}

function bare(guard: Guard): string {
  switch (guard.kind) {
    case 'fixed':
      return `${guard.holds}`;
    case 'state':
      return `state.count >= ${guard.atLeast}`;
    case 'failed':
      return `${guard.name}.failed`;
    case 'succeeded':
      return `${guard.name}.success`;
    case 'notFailed':
      return `!${guard.name}.failed`;
    case 'executed':
      return `${guard.name}.executed`;
    case 'gaveOutput':
      return `${guard.name}.output != null`;
    case 'both':
      return `${guard.failed}.failed && ${guard.succeeded}.success`;
  }
}
