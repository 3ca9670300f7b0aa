/** The compiled form of an ensemble: what the interpreter walks. Nothing in it changes once it is made. */

import type { Evaluate } from '../expression/evaluation.ts';
import type { Json, JsonObject } from '../json.ts';
import type { EnsembleDefinition } from '../model/ensemble.ts';
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
  readonly output: Evaluate<Scope>;
  readonly initialState: JsonObject | undefined;
  readonly timeoutMs: number | undefined;
  readonly durability: 'step' | 'none';
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

export type CompiledStep = CompiledAgentStep | CompiledRouteStep | CompiledIfStep | CompiledForeachStep;

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

/** Items that one `foreach` may have. */
export const MAX_FOREACH_ITEMS = 100_000;
