/** The compiled form of an ensemble: what the interpreter walks. Nothing in it changes once it is made. */

import type { Ticks } from '../cron.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import type { Json, JsonObject } from '../json.ts';
import type { EnsembleDefinition } from '../model/ensemble.ts';
import type { ScheduleRules } from '../model/schedule.ts';
import type { AnyOperation } from '../ports/operation.ts';
import type { StoredDefinition } from '../ports/storage.ts';
import type { NameSlot } from './names.ts';
import type { Scope } from './scope.ts';

export interface CompiledEnsemble {
  readonly name: string;
  readonly definition: EnsembleDefinition;
  /** What is stored under the hash that executions keep: the definition with the shared agents that it uses. */
  readonly stored: StoredDefinition;
  /** Checks the input and fills in defaults. */
  readonly checkInput: InputCheck;
  readonly flow: CompiledList;
  /** Result names at the level of the flow. */
  readonly slots: number;
  readonly output: EvaluateOutputs;
  readonly initialState: JsonObject | undefined;
  readonly timeoutMs: number | undefined;
  readonly durability: 'step' | 'none';
  readonly schedules: readonly CompiledSchedule[];
}

/**
 * Computes the outputs.
 *
 * @param take - called for each output, with its name (empty for one that is all there is); gives what takes its place
 */
export type EvaluateOutputs = (scope: Scope, take: (name: string, evaluate: () => Json) => Json) => Json;

/** When an ensemble starts by itself. */
export interface CompiledSchedule extends ScheduleRules {
  /** Under which its progress is stored: of the ensemble, the pattern and the time zone. */
  readonly name: string;
  readonly cron: string;
  readonly timezone: string;
  readonly ticks: Ticks;
  /** What each run gets, as it is written. */
  readonly input: Json | undefined;
}

export interface InputProblem {
  /** Path in the input; empty for the input itself. */
  readonly path: string;
  readonly message: string;
}

export type InputCheck = (input: Json) => { readonly value: Json } | { readonly problems: readonly InputProblem[] };

/** Steps in order, and for each what is still ahead. */
export interface CompiledList {
  readonly steps: readonly CompiledStep[];
  /** The list and step around this one; undefined for the flow. */
  readonly parent: { readonly list: CompiledList; readonly index: number } | undefined;
  /** For each step: the names whose `.failed` or `.success` a guard behind it in this list reads. */
  readonly guardedAfter: readonly ReadonlySet<NameSlot>[];
}

export type CompiledStep =
  | CompiledAgentStep
  | CompiledRouteStep
  | CompiledIfStep
  | CompiledSwitchStep
  | CompiledForeachStep
  | CompiledWhileStep
  | CompiledParallelStep
  | CompiledTryStep
  | CompiledSleepStep
  | CompiledWaitStep
  | CompiledEnsembleStep;

/** A condition, and the failures that it looks at. */
export interface CompiledGuard {
  readonly evaluate: Evaluate<Scope>;
  readonly reads: readonly NameSlot[];
  readonly readsState: boolean;
}

export interface CompiledAgentStep {
  readonly kind: 'agent';
  /** Place in its level: `flow[3]`. */
  readonly key: string;
  readonly name: string;
  readonly slot: NameSlot;
  readonly condition: CompiledGuard | undefined;
  readonly operation: AnyOperation;
  /** The config when it holds no expression: checked once, frozen. */
  readonly staticConfig: JsonObject | undefined;
  readonly config: Evaluate<Scope>;
  /** Undefined when the agent declares no input: then it gets the run's. */
  readonly input: Evaluate<Scope> | undefined;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number | undefined;
  readonly continueOnError: boolean;
  readonly setState: Evaluate<Scope> | undefined;
  /** It takes the prompt that a route chose, when its own config names none. */
  readonly takesPrompt: boolean;
  /** Whether any of its expressions reads the state. */
  readonly readsState: boolean;
  /** Nothing runs behind it: its result is stored together with the run's end. */
  readonly last: boolean;
}

export interface RetryPolicy {
  readonly maxAttempts: number;
  /** Milliseconds to wait after the attempt of this number, counted from 1. */
  readonly delayAfter: (attempt: number) => number;
}

export interface CompiledRouteStep {
  readonly kind: 'route';
  readonly key: string;
  readonly name: string;
  readonly slot: NameSlot;
  readonly condition: CompiledGuard | undefined;
  readonly entries: readonly CompiledRoute[];
}

export interface CompiledRoute {
  /** Undefined for the default. */
  readonly condition: CompiledGuard | undefined;
  readonly target:
    | { readonly kind: 'member'; readonly step: CompiledAgentStep }
    | { readonly kind: 'prompt'; readonly prompt: Evaluate<Scope> };
}

export interface CompiledIfStep {
  readonly kind: 'if';
  readonly key: string;
  readonly guard: CompiledGuard;
  readonly then: CompiledList;
  readonly else: CompiledList | undefined;
}

export interface CompiledSwitchStep {
  readonly kind: 'switch';
  readonly key: string;
  /** Gives the value that chooses, whatever its truth. */
  readonly value: CompiledGuard;
  readonly cases: ReadonlyMap<string, CompiledList>;
  readonly default: CompiledList | undefined;
}

export interface CompiledWhileStep {
  readonly kind: 'while';
  readonly key: string;
  readonly guard: CompiledGuard;
  /** Its keys are those of one round. */
  readonly body: CompiledList;
  readonly maxIterations: number;
}

export interface CompiledTryStep {
  readonly kind: 'try';
  readonly key: string;
  readonly body: CompiledList;
  readonly catch: CompiledList | undefined;
  readonly finally: CompiledList | undefined;
}

export interface CompiledBranch {
  /** The name of its result; its place where it has none. */
  readonly label: string;
  readonly list: CompiledList;
  /** Results that it gives at the level of the block. */
  readonly slots: readonly NameSlot[];
}

export interface CompiledParallelStep {
  readonly kind: 'parallel';
  readonly key: string;
  readonly slot: NameSlot | undefined;
  readonly condition: CompiledGuard | undefined;
  readonly branches: readonly CompiledBranch[];
  readonly waitFor: 'all' | 'any' | 'first';
  readonly concurrency: number;
  readonly continueOnError: boolean;
}

export interface CompiledSleepStep {
  readonly kind: 'sleep';
  readonly key: string;
  readonly slot: NameSlot | undefined;
  readonly condition: CompiledGuard | undefined;
  /** Gives a duration or an instant, not yet checked. */
  readonly value: Evaluate<Scope>;
  readonly isInstant: boolean;
  readonly readsState: boolean;
}

export interface CompiledWaitStep {
  readonly kind: 'wait';
  readonly key: string;
  readonly slot: NameSlot | undefined;
  readonly condition: CompiledGuard | undefined;
  /** The name of the signal. */
  readonly signal: string;
  /** Gives a duration, not yet checked; undefined for a wait without end. */
  readonly timeout: Evaluate<Scope> | undefined;
  readonly readsState: boolean;
  /** Without a signal in time the flow goes on, with null. */
  readonly continues: boolean;
}

export interface CompiledForeachStep {
  readonly kind: 'foreach';
  readonly key: string;
  readonly name: string | undefined;
  readonly slot: NameSlot | undefined;
  readonly condition: CompiledGuard | undefined;
  readonly items: Evaluate<Scope>;
  readonly readsState: boolean;
  readonly body: CompiledList;
  /** Result names inside one item. */
  readonly slots: number;
  readonly concurrency: number;
  readonly breakWhen: CompiledGuard | undefined;
  readonly collect: boolean;
  readonly continueOnError: boolean;
}

export interface CompiledEnsembleStep {
  readonly kind: 'ensemble';
  readonly key: string;
  /** The name of the ensemble that runs. */
  readonly ensemble: string;
  readonly slot: NameSlot;
  readonly condition: CompiledGuard | undefined;
  readonly input: Evaluate<Scope>;
  /** Gives a duration, not yet checked; undefined without one. */
  readonly timeout: Evaluate<Scope> | undefined;
  readonly readsState: boolean;
  readonly detached: boolean;
  readonly continueOnError: boolean;
}

/** Items that one `foreach` may have. */
export const MAX_FOREACH_ITEMS = 100_000;
