/**
 * Builders of steps for definitions in TypeScript. Each returns the same object as the YAML form, so a flow in TypeScript has the same
 * hash as the flow in YAML.
 */

import type { Json } from '../engine/base/json.ts';
import type {
  AgentStep,
  EnsembleStep,
  ForeachStep,
  IfStep,
  ParallelStep,
  SleepStep,
  StepDefinition,
  SwitchStep,
  TryStep,
  WaitStep,
  WhileStep,
} from '../engine/model/ensemble.ts';

/**
 * A step that runs an agent.
 *
 * @param name - of the agent
 * @param fields - the other fields of the step: `input`, `condition`, `retry`, ..., or the definition of the agent itself
 *
 * @example
 * ```ts
 * import { agent, createOrchestrator, defineEnsemble, parallel, when } from 'ensemble-orchestrator';
 *
 * const order = defineEnsemble({
 *   name: 'order',
 *   agents: [
 *     { name: 'stock', operation: 'code', config: { script: 'stock' } },
 *     { name: 'price', operation: 'code', config: { script: 'price' } },
 *   ],
 *   flow: [
 *     parallel([agent('stock'), agent('price', { input: { sku: '${input.sku}' } })], { name: 'looked' }),
 *     when('stock.output > 0', [agent('price', { name: 'again' })]),
 *   ],
 *   outputs: { looked: '${looked.output}', again: '${again.executed}' },
 * });
 * const orchestrator = createOrchestrator({
 *   ensembles: [order],
 *   scripts: { stock: () => 0, price: () => 9.5 },
 * });
 * console.log((await orchestrator.execute('order', { sku: 'bolt' })).output); // { looked: { stock: 0, price: 9.5 }, again: false }
 * ```
 */
export function agent(name: string, fields: Omit<AgentStep, 'agent'> = {}): AgentStep {
  return { agent: name, ...fields };
}

/** An `if` step: runs `then` if the condition holds, otherwise `otherwise`. */
export function when(
  condition: string | boolean,
  then: readonly StepDefinition[],
  otherwise?: readonly StepDefinition[],
): IfStep {
  return { if: condition, then, ...(otherwise && { else: otherwise }) };
}

/** A `switch` step: runs `cases[value]`, or `otherwise` if there is no such case. */
export function switchOn(
  value: string | boolean,
  cases: Readonly<Record<string, readonly StepDefinition[]>>,
  otherwise?: readonly StepDefinition[],
): SwitchStep {
  return { switch: value, cases, ...(otherwise && { default: otherwise }) };
}

/** A `foreach` step: runs the steps for each item of a list. @param items - the list, or an expression that returns it */
export function foreach(
  items: string | readonly Json[],
  steps: readonly StepDefinition[],
  options: Omit<ForeachStep, 'foreach' | 'steps'> = {},
): ForeachStep {
  return { foreach: items, steps, ...options };
}

/** A `parallel` step: runs the steps at the same time. Each step is one branch. */
export function parallel(
  branches: readonly StepDefinition[],
  options: Omit<ParallelStep, 'parallel'> = {},
): ParallelStep {
  return { parallel: branches, ...options };
}

/** A `while` step: repeats the steps as long as the condition holds. */
export function whileLoop(
  condition: string | boolean,
  steps: readonly StepDefinition[],
  options: Omit<WhileStep, 'while' | 'steps'> = {},
): WhileStep {
  return { while: condition, steps, ...options };
}

/** The handlers of a `try` step: at least one of the two. */
export type TryHandlers =
  | { readonly catch: readonly StepDefinition[]; readonly finally?: readonly StepDefinition[] }
  | { readonly catch?: readonly StepDefinition[]; readonly finally: readonly StepDefinition[] };

/** A `try` step: runs the steps, `catch` if they fail, and `finally` in every case. */
export function tryCatch(steps: readonly StepDefinition[], handlers: TryHandlers): TryStep {
  return { try: steps, ...handlers };
}

/**
 * A `sleep` step: waits without using memory.
 *
 * @param duration - milliseconds, text such as `90s`, an expression that returns one of these, or `{ until: instant }`
 */
export function sleep(duration: SleepStep['sleep'], options: Omit<SleepStep, 'sleep'> = {}): SleepStep {
  return { sleep: duration, ...options };
}

/**
 * An `ensemble` step: runs another ensemble as a child execution, and waits for its end unless `detached` is true.
 *
 * @param name - of the ensemble
 * @param options - `input`, `name` of the result (default: the name of the ensemble), `detached`, `timeout`, ...
 *
 * @example
 * ```ts
 * import { createOrchestrator, ensemble } from 'ensemble-orchestrator';
 *
 * const orchestrator = createOrchestrator({
 *   ensembles: [
 *     { name: 'greet', flow: [], outputs: { text: 'Hello ${input.who}' } },
 *     { name: 'both', flow: [ensemble('greet', { input: { who: 'Ada' } })], outputs: { said: '${greet.output.text}' } },
 *   ],
 * });
 * console.log((await orchestrator.execute('both')).output); // { said: 'Hello Ada' }
 * ```
 */
export function ensemble(name: string, options: Omit<EnsembleStep, 'ensemble'> = {}): EnsembleStep {
  return { ensemble: name, ...options };
}

/**
 * A `wait` step: waits for a signal without using memory.
 *
 * @param signal - the name of the signal, as passed to `executions.signal`
 * @param options - `timeout`, `onTimeout`, and the `name` of the result, which is the payload
 */
export function wait(signal: string, options: Omit<WaitStep, 'wait'> = {}): WaitStep {
  return { wait: signal, ...options };
}
