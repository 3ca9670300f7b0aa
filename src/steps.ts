/**
 * Builders of steps for definitions in TypeScript: each gives the very object that the YAML says, so that a flow written with them
 * has the same hash as the text.
 */

import type { Json } from './engine/json.ts';
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
} from './engine/model/ensemble.ts';

/**
 * Runs an agent.
 *
 * @param name - of the agent
 * @param fields - what the step says beside it: `input`, `condition`, `retry`, ..., or the agent itself, in place
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

/** Runs `then` when the guard holds, otherwise `otherwise`: an `if` step. */
export function when(
  guard: string | boolean,
  then: readonly StepDefinition[],
  otherwise?: readonly StepDefinition[],
): IfStep {
  return { if: guard, then, ...(otherwise && { else: otherwise }) };
}

/** Runs `cases[value]`, or `otherwise` where no case has that name: a `switch` step. */
export function switchOn(
  value: string | boolean,
  cases: Readonly<Record<string, readonly StepDefinition[]>>,
  otherwise?: readonly StepDefinition[],
): SwitchStep {
  return { switch: value, cases, ...(otherwise && { default: otherwise }) };
}

/** Runs the steps for each item of a list. @param items - an expression that gives the list, or the list */
export function foreach(
  items: string | readonly Json[],
  steps: readonly StepDefinition[],
  options: Omit<ForeachStep, 'foreach' | 'steps'> = {},
): ForeachStep {
  return { foreach: items, steps, ...options };
}

/** Runs the steps at the same time, one branch each. */
export function parallel(
  branches: readonly StepDefinition[],
  options: Omit<ParallelStep, 'parallel'> = {},
): ParallelStep {
  return { parallel: branches, ...options };
}

/** Runs the steps again and again for as long as the guard holds: a `while` step. */
export function whileLoop(
  guard: string | boolean,
  steps: readonly StepDefinition[],
  options: Omit<WhileStep, 'while' | 'steps'> = {},
): WhileStep {
  return { while: guard, steps, ...options };
}

/** What a `try` does beside its steps: at least one of the two. */
export type TryHandlers =
  | { readonly catch: readonly StepDefinition[]; readonly finally?: readonly StepDefinition[] }
  | { readonly catch?: readonly StepDefinition[]; readonly finally: readonly StepDefinition[] };

/** Runs the steps, `catch` when they fail, and `finally` whatever came of them: a `try` step. */
export function tryCatch(steps: readonly StepDefinition[], handlers: TryHandlers): TryStep {
  return { try: steps, ...handlers };
}

/**
 * Waits, without taking up memory.
 *
 * @param duration - milliseconds, a text such as `90s`, an expression that gives one of these, or `{ until: instant }`
 */
export function sleep(duration: SleepStep['sleep'], options: Omit<SleepStep, 'sleep'> = {}): SleepStep {
  return { sleep: duration, ...options };
}

/**
 * Runs another ensemble as an execution of its own, and waits for its end unless `detached` is true.
 *
 * @param name - of the ensemble
 * @param options - `input`, `name` of the result (by default the ensemble's), `detached`, `timeout`, ...
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
 * Waits for a signal, without taking up memory.
 *
 * @param signal - its name, as `executions.signal` gives it
 * @param options - `timeout` and `onTimeout`; `name`: the payload is the result
 */
export function wait(signal: string, options: Omit<WaitStep, 'wait'> = {}): WaitStep {
  return { wait: signal, ...options };
}
