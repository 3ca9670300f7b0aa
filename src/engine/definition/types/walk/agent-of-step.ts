/** The agent that a step runs, with what the step sets in it, and the names that steps declare. */

import type { AgentBehaviour, AgentDefinition, AgentStep, StepDefinition } from '../../../ensemble/ensemble.ts';
import { innerLists } from '../../../ensemble/inner-lists.ts';
import { withStepFields } from '../../../ensemble/step-fields.ts';
import type { Path } from '../../source/problem.ts';
import type { Walker } from './walker.ts';

export interface Agent {
  readonly behaviour: AgentBehaviour;
  at(field: keyof AgentBehaviour): Path;
}

export function agentOf(step: AgentStep | { readonly agent: string }, path: Path, walker: Walker): Agent {
  if (isWhole(step)) return { behaviour: step as AgentStep, at: (field) => [...path, field] };
  const declared = walker.agents.get(step.agent);
  const { behaviour, given } = withStepFields(namedAgent(step.agent, walker), step);
  return {
    behaviour,
    at: (field) => (given.has(field) ? [...path, field] : declared ? [...declared.path, field] : [...path, 'agent']),
  };
}

/** Whether a step says itself what its agent does. */
function isWhole(step: AgentStep | { readonly agent: string }): boolean {
  return 'operation' in step || 'routes' in step;
}

function namedAgent(name: string, { agents, host }: Walker): AgentBehaviour {
  return agents.get(name)?.behaviour ?? (host.sharedAgents.get(name) as AgentDefinition | undefined) ?? {};
}

const WITH_OUTPUT = ['agent', 'ensemble', 'wait', 'sleep', 'foreach', 'parallel'];

/** Whether a step has an output of its own, which a block around it collects. */
export function hasOutput(step: StepDefinition | undefined): boolean {
  return step !== undefined && WITH_OUTPUT.some((verb) => verb in step);
}

export function hasHandled(step: StepDefinition, walker: Walker): boolean {
  if (walker.handled.size === 0) return false;
  const text = JSON.stringify(step);
  return [...walker.handled].some((name) => text.includes(`"${name}"`));
}

export function labelOf(step: StepDefinition): string | undefined {
  if ('name' in step && step.name !== undefined) return step.name;
  if ('ensemble' in step) return step.ensemble;
  return 'agent' in step ? step.agent : undefined;
}

/** The names that the steps of a list declare at their level. */
export function stepNames(steps: readonly StepDefinition[], walker: Walker): string[] {
  return steps.flatMap((step): string[] => {
    const label = labelOf(step);
    const own = label === undefined ? [] : [label];
    if ('foreach' in step) return own;
    if ('agent' in step) {
      const { routes = [] } = isWhole(step) ? step : namedAgent(step.agent, walker);
      return [...own, ...routes.flatMap(({ member }) => member ?? [])];
    }
    return [...own, ...innerLists(step).flatMap((inner) => stepNames(inner.steps, walker))];
  });
}
