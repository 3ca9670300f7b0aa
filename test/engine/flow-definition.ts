/** Writes a flow of the property tests as a definition, with outputs that read every name at its outermost level. */

import { declared, type Guard, type Step } from './reference-evaluator.ts';

type Fields = Readonly<Record<string, unknown>>;

export function toDefinition(flow: readonly Step[]): Fields {
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
    agents: flow.flatMap(members),
    flow: flow.map(toStep),
    outputs: { ...Object.fromEntries(views), count: '${state.count}' },
  };
}

/** The members that routers lead to are declared beside the flow. */
function members(step: Step): readonly Fields[] {
  switch (step.kind) {
    case 'agent':
      return [];
    case 'if':
      return [...step.then, ...(step.else ?? [])].flatMap(members);
    case 'foreach':
      return step.body.flatMap(members);
    case 'route':
      return step.entries.map(({ member, script }) => ({ name: member, operation: 'code', config: { script } }));
  }
}

function toStep(step: Step): Fields {
  switch (step.kind) {
    case 'agent':
      return {
        agent: step.name,
        operation: 'code',
        config: { script: step.script },
        ...toCondition(step.condition),
        ...(step.continueOnError && { continueOnError: true }),
        ...(step.script === 'flaky' && { retry: { maxAttempts: 3, backoff: 'fixed', delay: 10 } }),
        ...(step.counts && { setState: { count: '${state.count + 1}' } }),
      };
    case 'if':
      return {
        if: toExpression(step.guard),
        then: step.then.map(toStep),
        ...(step.else && { else: step.else.map(toStep) }),
      };
    case 'foreach':
      return {
        foreach: Array.from({ length: step.items }, (_, i) => i),
        steps: step.body.map(toStep),
        concurrency: step.concurrency,
        collect: step.collect,
        ...(step.name !== undefined && { name: step.name }),
        ...toCondition(step.condition),
        ...(step.breakAt !== undefined && { breakWhen: `\${index >= ${step.breakAt}}` }),
        ...(step.continueOnError && { continueOnError: true }),
      };
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

function toCondition(guard: Guard | undefined): Fields {
  return guard ? { condition: toExpression(guard) } : {};
}

function toExpression(guard: Guard): string {
  switch (guard.kind) {
    case 'fixed':
      return `\${${guard.holds}}`;
    case 'state':
      return `\${state.count >= ${guard.atLeast}}`;
    case 'failed':
      return `\${${guard.name}.failed}`;
    case 'succeeded':
      return `${guard.name}.success`;
    case 'notFailed':
      return `\${!${guard.name}.failed}`;
    case 'executed':
      return `\${${guard.name}.executed}`;
    case 'gaveOutput':
      return `\${${guard.name}.output != null}`;
    case 'both':
      return `\${${guard.failed}.failed && ${guard.succeeded}.success}`;
  }
}
