/** The expected outputs of a random flow. */

import { declared, guardsOf, type Step, some } from './flow-model.ts';
import { evaluateFlow, SLEPT } from './reference-evaluator.ts';

/** The outputs that `flow-definition.ts` declares, computed from the result of the reference evaluator. */
export function expectedOutput(flow: readonly Step[]): Record<string, unknown> {
  const { results, count } = evaluateFlow(flow);
  const views = [...declared(flow)].map((name) => {
    const { status, output = null } = results.get(name) ?? {};
    return [
      name,
      {
        output,
        failed: status === 'failed',
        success: status === 'completed',
        executed: status === 'failed' || status === 'completed',
      },
    ] as const;
  });
  return { ...Object.fromEntries(views), count };
}

/** Outputs with the instants of sleeps replaced: the reference does not know them. */
export function unclocked(output: unknown): unknown {
  if (typeof output === 'number') return output > 1e12 ? SLEPT : output;
  if (Array.isArray(output)) return output.map(unclocked);
  if (typeof output !== 'object' || output === null) return output;
  return Object.fromEntries(Object.entries(output).map(([name, value]) => [name, unclocked(value)]));
}

/** Whether the outcome of a flow does not depend on which of several concurrent steps ends first. */
export function isOneThing(flow: readonly Step[]): boolean {
  const hangs = (step: Step) =>
    (step.kind === 'foreach' && step.breakAt !== undefined) ||
    (step.kind === 'while' && step.rounds > step.most) ||
    guardsOf(step).some((guard) => guard.kind === 'state');
  return !some(flow, hangs);
}
