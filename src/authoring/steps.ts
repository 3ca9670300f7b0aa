/**
 * Builders of steps for definitions in TypeScript. Each returns the same object as the YAML form, so a flow in TypeScript has the same
 * hash as the flow in YAML.
 */

import type { Json } from '../engine/base/json/json.ts';
import type {
  EnsembleStep,
  ForeachStep,
  IfStep,
  ParallelStep,
  SleepStep,
  SwitchStep,
  TryStep,
  WaitStep,
  WhileStep,
} from '../engine/ensemble/ensemble.ts';
import type { AgentFields, StepDraft } from './draft.ts';

type Steps<Script extends string, Signal extends string> = readonly StepDraft<Script, Signal>[];
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
export function agent<Script extends string = never>(
  name: string,
  fields: AgentFields<Script> = {},
): { readonly agent: string } & AgentFields<NoInfer<Script>> {
  return { agent: name, ...fields };
}

/** An `if` step: runs `then` if the condition holds, otherwise `otherwise`. */
export function when<Script extends string = never, Signal extends string = never>(
  condition: string | boolean,
  then: Steps<Script, Signal>,
  otherwise?: Steps<Script, Signal>,
): IfStep<StepDraft<NoInfer<Script>, NoInfer<Signal>>> {
  return { if: condition, then, ...(otherwise && { else: otherwise }) };
}

/** A `switch` step: runs `cases[value]`, or `otherwise` if there is no such case. */
export function switchOn<Script extends string = never, Signal extends string = never>(
  value: string | boolean,
  cases: Readonly<Record<string, Steps<Script, Signal>>>,
  otherwise?: Steps<Script, Signal>,
): SwitchStep<StepDraft<NoInfer<Script>, NoInfer<Signal>>> {
  return { switch: value, cases, ...(otherwise && { default: otherwise }) };
}

/** A `foreach` step: runs the steps for each item of a list. @param items - the list, or an expression that returns it */
export function foreach<Script extends string = never, Signal extends string = never>(
  items: string | readonly Json[],
  steps: Steps<Script, Signal>,
  options: Omit<ForeachStep, 'foreach' | 'steps'> = {},
): ForeachStep<StepDraft<NoInfer<Script>, NoInfer<Signal>>> {
  return { foreach: items, steps, ...options };
}

/** A `parallel` step: runs the steps at the same time. Each step is one branch. */
export function parallel<Script extends string = never, Signal extends string = never>(
  branches: Steps<Script, Signal>,
  options: Omit<ParallelStep, 'parallel'> = {},
): ParallelStep<StepDraft<NoInfer<Script>, NoInfer<Signal>>> {
  return { parallel: branches, ...options };
}

/** A `while` step: repeats the steps as long as the condition holds. */
export function whileLoop<Script extends string = never, Signal extends string = never>(
  condition: string | boolean,
  steps: Steps<Script, Signal>,
  options: Omit<WhileStep, 'while' | 'steps'> = {},
): WhileStep<StepDraft<NoInfer<Script>, NoInfer<Signal>>> {
  return { while: condition, steps, ...options };
}

/** The handlers of a `try` step: at least one of the two. */
export type TryHandlers<Step = StepDraft> =
  | { readonly catch: readonly Step[]; readonly finally?: readonly Step[] | undefined }
  | { readonly catch?: readonly Step[] | undefined; readonly finally: readonly Step[] };

/** A `try` step: runs the steps, `catch` if they fail, and `finally` in every case. */
export function tryCatch<Script extends string = never, Signal extends string = never>(
  steps: Steps<Script, Signal>,
  handlers: TryHandlers<StepDraft<Script, Signal>>,
): TryStep<StepDraft<NoInfer<Script>, NoInfer<Signal>>> {
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
export function wait<const Signal extends string>(
  signal: Signal,
  options: Omit<WaitStep, 'wait'> = {},
): WaitStep<NoInfer<Signal>> {
  return { wait: signal, ...options };
}
