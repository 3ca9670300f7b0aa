/** What a step sets in an agent that is declared elsewhere. */

import type { AgentBehaviour, AgentStep } from './ensemble.ts';

const STEP_FIELDS = ['input', 'condition', 'retry', 'concurrency', 'timeout', 'continueOnError', 'setState'] as const;

/** @returns the agent with the fields that the step sets, and the names of these fields */
export function withStepFields(agent: AgentBehaviour, step: Partial<AgentStep>) {
  const given = new Set<string>(STEP_FIELDS.filter((field) => step[field] !== undefined));
  const overrides = Object.fromEntries([...given].map((field) => [field, step[field as 'input']]));
  return { behaviour: { ...agent, ...overrides } as AgentBehaviour, given };
}
