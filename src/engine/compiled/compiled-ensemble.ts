/** The compiled form of an ensemble, which the interpreter walks. It is immutable. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { Ticks } from '../base/time/cron.ts';
import type { ResolvedComponent } from '../component/component.ts';
import type { NotificationTarget } from '../delivery/notification.ts';
import type { EnsembleDefinition } from '../ensemble/ensemble.ts';
import type { FlowLimit } from '../execution/limits/flow-limit.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import type { ValueCheck } from '../json-schema/rule.ts';
import type { AnyOperation } from '../operation/operation.port.ts';
import type { ScheduleRules } from '../schedule/schedule.ts';
import type { StoredDefinition } from '../storage/storage.port.ts';
import type { RequestPart } from '../webhook/kept-request.ts';
import type { Webhook } from '../webhook/webhook.ts';
import type { ExpressionScope } from './expression-scope.ts';
import type { NameSlot } from './name-slot.ts';

export interface CompiledEnsemble {
  readonly name: string;
  readonly definition: EnsembleDefinition;
  /** What is stored under the version that executions name: the definition with the shared agents that it uses. */
  readonly stored: StoredDefinition;
  /** Checks the input and fills in defaults. */
  readonly checkInput: ValueCheck;
  readonly flow: CompiledList;
  /** The number of result names at the level of the flow. */
  readonly slots: number;
  readonly output: EvaluateOutputs;
  readonly initialState: JsonObject | undefined;
  readonly timeoutMs: number | undefined;
  readonly durability: 'step' | 'none';
  /** Whether it has a `while` or a `foreach`. */
  readonly hasLoops: boolean;
  readonly schedules: readonly CompiledSchedule[];
  readonly webhooks: readonly Webhook[];
  /** Each at its index in the definition. Undefined for one whose settings are not known to an editor. */
  readonly notifications: readonly (NotificationTarget | undefined)[];
  /** The limits that its executions run under. Undefined: none. */
  readonly limits: LimitsOf | undefined;
  /** ms from the start in which it must begin. Undefined: any time. */
  readonly startWithinMs: number | undefined;
  /** How several starts make one execution. Undefined: each makes its own. */
  readonly gather: Gather | undefined;
  /** How many runs a process has at once. Undefined: any number. */
  readonly perProcess: number | undefined;
  /** The priority of an execution, from its input, at an instant (Unix ms). Undefined: 0. @throws INVALID_INPUT */
  readonly priority: ((input: Json, now: number) => number) | undefined;
  /** The parts of the request that started an execution which its expressions read. */
  readonly requestReads: ReadonlySet<RequestPart>;
  /** The references to components that are written out, without expressions. */
  readonly components: readonly ComponentUse[];
}

/** How several starts make one execution. */
export interface Gather {
  readonly kind: 'debounce' | 'batch';
  /** ms: from the last start with `debounce`, from the first with `batch`. */
  readonly waitMs: number;
  /** ms from the first start. */
  readonly maxMs: number;
  readonly keep: 'first' | 'last' | 'all';
  /** How many starts one execution takes. */
  readonly size: number;
  /** @param input - of one start @throws INVALID_INPUT */
  key(input: Json, now: number): string;
}

/**
 * @param input - of the execution
 * @param now - Unix ms
 * @throws INVALID_INPUT for an input that gives no key or no limit
 */
export interface LimitsOf {
  (input: Json, now: number): readonly FlowLimit[];
  /** The numbers that don't depend on the input: they hold for all keys. @param now - Unix ms */
  constant(now: number): readonly FlowLimit[];
}

/** A reference to a component in the config of an agent. */
export interface ComponentUse {
  readonly reference: string;
  readonly agent: string;
  /** Its place in the source. */
  readonly path: readonly (string | number)[];
  /** The fields that the text can read. Undefined: they are not known before an execution. */
  readonly fields: readonly string[] | undefined;
}

/**
 * Computes the outputs of a run.
 *
 * @param take - called for each output with its name, which is empty when the output is one value without names; returns the value
 *   to use
 */
export type EvaluateOutputs = (scope: ExpressionScope, take: (name: string, evaluate: () => Json) => Json) => Json;

/** A schedule: when an ensemble starts by itself. */
export interface CompiledSchedule extends ScheduleRules {
  /** The name under which its progress is stored: built from the ensemble, the pattern and the time zone. */
  readonly name: string;
  readonly cron: string;
  readonly timezone: string;
  readonly ticks: Ticks;
  /** The input of each execution, as it is written in the definition. */
  readonly input: Json | undefined;
}

/** A list of steps in order. */
export interface CompiledList {
  readonly steps: readonly CompiledStep[];
  /** The list and the index of the block around this list; undefined for the flow. */
  readonly parent: { readonly list: CompiledList; readonly index: number } | undefined;
  /** For each step: the names whose `.failed` or `.success` a later guard in this list reads. */
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

/** A condition, and the names whose failures it checks. */
export interface CompiledGuard {
  readonly evaluate: Evaluate<ExpressionScope>;
  readonly reads: readonly NameSlot[];
  readonly readsState: boolean;
}

/** What the interpreter reads of a step of any kind before the step begins. */
export interface StepEntry {
  /** Its place in its level, such as `flow[3]`. */
  readonly key: string;
  /** Undefined for a step without a name. */
  readonly slot?: NameSlot | undefined;
  readonly condition?: CompiledGuard | undefined;
  /** Whether the condition, or another expression that is evaluated when the step begins, reads the state. */
  readonly readsState?: boolean;
  readonly continueOnError?: boolean;
}

export interface CompiledAgentStep {
  readonly kind: 'agent';
  readonly key: string;
  readonly name: string;
  readonly slot: NameSlot;
  readonly condition: CompiledGuard | undefined;
  readonly operation: AnyOperation;
  /** The config when all its expressions are constant: evaluated and checked once, frozen. */
  readonly staticConfig: JsonObject | undefined;
  readonly config: Evaluate<ExpressionScope>;
  /** How each template of the config is filled in with other data, by its path. */
  readonly templates: ReadonlyMap<string, Evaluate<ExpressionScope>>;
  /** Undefined when the agent declares no input: then it gets the input of the execution. */
  readonly input: Evaluate<ExpressionScope> | undefined;
  /** Checks what the operation returns. Undefined when the agent declares no `output`. */
  readonly checkOutput: ValueCheck | undefined;
  readonly retry: RetryPolicy;
  /** The limit whose slot an attempt needs, and its key. Undefined: none. */
  readonly limit:
    | { readonly of: Omit<FlowLimit, 'key'>; readonly key: Evaluate<ExpressionScope> | undefined }
    | undefined;
  readonly timeoutMs: number | undefined;
  readonly continueOnError: boolean;
  readonly setState: Evaluate<ExpressionScope> | undefined;
  /** The agents that its operation may call, by name. */
  readonly calls: ReadonlyMap<string, CompiledCall>;
  /** Whether it uses the prompt that a route chose, when its own config names none. */
  readonly takesPrompt: boolean;
  /** Undefined when its config refers to no component. */
  readonly references: CompiledReferences | undefined;
  /** The same with the prompt of a route, when that refers to a component. Undefined when it takes no prompt. */
  readonly routed: CompiledReferences | undefined;
  /** The paths of what reads secrets: in its `config` and its `input`, which is the first part of each. */
  readonly secrets: readonly (readonly (string | number)[])[];
  readonly readsState: boolean;
  /** Whether no step follows: then its result is stored together with the end of the execution. */
  readonly last: boolean;
}

/** The references to components in the config of an agent. */
export interface CompiledReferences {
  /** The texts of the references in the config. */
  readonly all: readonly Evaluate<ExpressionScope>[];
  /** The step with the texts of components in its config, in the order of `all`; after them the one of a route. @throws INVALID_DEFINITION for a text that can't be used */
  fill(step: CompiledAgentStep, components: readonly ResolvedComponent[]): CompiledAgentStep;
}

/** An agent that an operation may call: a flow of one step. */
export interface CompiledCall {
  readonly flow: CompiledList;
  /** The number of result names. */
  readonly slots: number;
  readonly description: string | undefined;
}

export interface RetryPolicy {
  readonly maxAttempts: number;
  /** The part of each wait that varies, 0 to 1. */
  readonly jitter: number;
  /** Milliseconds to wait after an attempt at most; attempts are counted from 1. */
  readonly delayAfter: (attempt: number) => number;
}

export interface CompiledRouteStep {
  readonly kind: 'route';
  readonly key: string;
  readonly name: string;
  readonly slot: NameSlot;
  readonly condition: CompiledGuard | undefined;
  readonly readsState: boolean;
  readonly entries: readonly CompiledRoute[];
}

export interface CompiledRoute {
  /** Undefined for the default. */
  readonly condition: CompiledGuard | undefined;
  readonly target:
    | { readonly kind: 'member'; readonly step: CompiledAgentStep }
    | { readonly kind: 'prompt'; readonly prompt: Evaluate<ExpressionScope>; readonly isReference: boolean };
}

export interface CompiledIfStep {
  readonly kind: 'if';
  readonly key: string;
  readonly guard: CompiledGuard;
  readonly readsState: boolean;
  readonly then: CompiledList;
  readonly else: CompiledList | undefined;
}

export interface CompiledSwitchStep {
  readonly kind: 'switch';
  readonly key: string;
  /** Computes the value that chooses the case, whatever its truth. */
  readonly value: CompiledGuard;
  readonly readsState: boolean;
  readonly cases: ReadonlyMap<string, CompiledList>;
  readonly default: CompiledList | undefined;
}

export interface CompiledWhileStep {
  readonly kind: 'while';
  readonly key: string;
  readonly guard: CompiledGuard;
  /** The keys of its steps are relative to one round. */
  readonly body: CompiledList;
  readonly maxIterations: number;
  /** All names of its level. */
  readonly names: ReadonlyMap<string, NameSlot>;
}

export interface CompiledTryStep {
  readonly kind: 'try';
  readonly key: string;
  readonly body: CompiledList;
  readonly catch: CompiledList | undefined;
  readonly finally: CompiledList | undefined;
}

export interface CompiledBranch {
  /** The name of its result; its index when it has no name. */
  readonly label: string;
  readonly list: CompiledList;
  /** The results that it adds at the level of the block. */
  readonly slots: readonly NameSlot[];
}

export interface CompiledParallelStep {
  readonly kind: 'parallel';
  readonly key: string;
  readonly slot: NameSlot | undefined;
  readonly condition: CompiledGuard | undefined;
  readonly readsState: boolean;
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
  /** Computes a duration or an instant, not yet checked. */
  readonly value: Evaluate<ExpressionScope>;
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
  /** Computes a duration, not yet checked; undefined for a wait without a timeout. */
  readonly timeout: Evaluate<ExpressionScope> | undefined;
  readonly readsState: boolean;
  /** Whether the flow continues with null after the timeout. */
  readonly continues: boolean;
}

export interface CompiledForeachStep {
  readonly kind: 'foreach';
  readonly key: string;
  readonly name: string | undefined;
  readonly slot: NameSlot | undefined;
  readonly condition: CompiledGuard | undefined;
  readonly readsState: boolean;
  readonly items: Evaluate<ExpressionScope>;
  readonly itemsReadState: boolean;
  readonly body: CompiledList;
  /** The number of result names in one item. */
  readonly slots: number;
  readonly concurrency: number;
  readonly breakWhen: CompiledGuard | undefined;
  readonly collect: boolean;
  readonly continueOnError: boolean;
}

export interface CompiledEnsembleStep {
  readonly kind: 'ensemble';
  readonly key: string;
  /** The name of the ensemble to run. */
  readonly ensemble: string;
  readonly slot: NameSlot;
  readonly condition: CompiledGuard | undefined;
  readonly readsState: boolean;
  readonly input: Evaluate<ExpressionScope>;
  /** Computes a duration, not yet checked; undefined without a timeout. */
  readonly timeout: Evaluate<ExpressionScope> | undefined;
  readonly detached: boolean;
  readonly continueOnError: boolean;
}
