/** Runs a router: an agent with `routes` chooses the agent that runs, or the prompt of the next `think`. */

import type { Json } from '../../base/json/json.ts';
import type { CompiledRouteStep } from '../../compiled/compiled-ensemble.ts';
import { addGuard, enterStep, type GuardChain } from '../enter-step.ts';
import { evaluateGuard, markFailed, SKIPPED } from '../guards.ts';
import { markRefused, markStep } from '../marks.ts';
import type { RunScope } from '../run-scope.ts';
import { runAgent } from './run-agent.ts';

export async function runRoute(step: CompiledRouteStep, scope: RunScope, guards: GuardChain): Promise<boolean> {
  const { slot } = step;
  const putOutput = (output: Json) => {
    // The size of the member's output is counted at the member.
    scope.put(slot.slot, { status: 'completed', output }, 0);
    scope.lastOutput = output;
    return true;
  };
  let chain = guards;
  for (const [route, { condition, target }] of step.entries.entries()) {
    if (condition) {
      // A guard that did not hold led here too: the default of `${a.success}` runs because `a` failed.
      chain = addGuard(condition, chain, scope);
      const holds = await evaluateGuard(condition, `${step.key}.${route}`, scope, slot);
      if (holds === undefined) {
        markRefused(step, scope);
        return true;
      }
      if (!holds) continue;
    }
    if (target.kind === 'prompt') {
      try {
        const text = String(target.prompt(scope.begin(scope.keyPrefix + step.key, 'prompt')));
        scope.prompt = { text, isReference: target.isReference };
      } catch (thrown) {
        markFailed(thrown, scope, slot);
        markRefused(step, scope);
        return true;
      }
      const { text } = scope.prompt;
      markStep(step, 'chose', scope, { route, target: text });
      return putOutput({ route, target: text, output: null });
    }
    const member = target.step;
    markStep(step, 'chose', scope, { route, target: member.name });
    if ((await enterStep(member, scope, chain)) && !(await runAgent(member, scope, slot))) return false;
    const result = scope.results[member.slot.slot] ?? SKIPPED;
    putOutput({ route, target: member.name, output: result.output });
    if (result.error) scope.put(slot.slot, { ...result, output: { route, target: member.name, output: null } }, 0);
    return true;
  }
  markStep(step, 'chose', scope, { route: null, target: null });
  return putOutput({ route: null, target: null, output: null });
}
