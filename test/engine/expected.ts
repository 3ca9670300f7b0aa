/** What the outputs of a random flow have to be. */

import { declared, guardsOf, type Step, some } from './flow-model.ts';
import { evaluateFlow, SLEPT } from './reference-evaluator.ts';

/** The outputs that `flow-definition.ts` declares, as the reference evaluator has them. */
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

/** Outputs with the instants that sleeps gave replaced: the reference knows none. */
export function unclocked(output: unknown): unknown {
  if (typeof output === 'number') return output > 1e12 ? SLEPT : output;
  if (Array.isArray(output)) return output.map(unclocked);
  if (typeof output !== 'object' || output === null) return output;
  return Object.fromEntries(Object.entries(output).map(([name, value]) => [name, unclocked(value)]));
}

/** Whether what a flow comes to does not hang on which of several things at once comes first. */
export function isOneThing(flow: readonly Step[]): boolean {
  const hangs = (step: Step) =>
    (step.kind === 'foreach' && step.breakAt !== undefined) ||
    (step.kind === 'while' && step.rounds > step.most) ||
    guardsOf(step).some((guard) => guard.kind === 'state');
  return !some(flow, hangs);
}
