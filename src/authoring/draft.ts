/** Definitions as people write them in TypeScript: each operation with its own config, and the names of scripts and signals as types. */

import type {
  AgentBehaviour,
  EnsembleDefinition,
  EnsembleStep,
  ForeachStep,
  IfStep,
  ParallelStep,
  SleepStep,
  SwitchStep,
  TriggerDefinition,
  TryStep,
  WaitStep,
  WhileStep,
} from '../engine/ensemble/ensemble.ts';
import type { ConcurrencyRule, RateRule } from '../engine/ensemble/flow-control.ts';
import type { StandardSchema } from '../engine/operation/standard-schema.port.ts';
import type { AnyConfig, CodeConfig, ConfigReference, OperationConfigs, WrittenConfig } from './operation-configs.ts';

/** The key that holds the config of an operation of your own. It exists in types only. */
declare const CONFIG: unique symbol;

/** The name of an operation of your own, as `defineOperation` returns it. */
// biome-ignore lint/suspicious/noExplicitAny: a step that names any operation
export type OperationName<Config = any> = string & { readonly [CONFIG]: (config: Config) => void };

/** What an agent does: a built-in operation with its config, an operation of your own, or nothing, if the agent is defined elsewhere. */
type Operated<Script extends string, Config = never> =
  | { readonly operation?: undefined; readonly config?: AnyConfig | undefined }
  | { readonly operation: 'code'; readonly config: CodeConfig<Script> | ConfigReference }
  | {
      [Name in keyof OperationConfigs]: {
        readonly operation: Name;
        readonly config: WrittenConfig<OperationConfigs[Name]>;
      };
    }[keyof OperationConfigs]
  | ([Config] extends [never]
      ? { readonly operation: OperationName; readonly config?: AnyConfig | undefined }
      : { readonly operation: OperationName<Config>; readonly config: WrittenConfig<Config> });

type Common = Omit<AgentBehaviour, 'operation' | 'config'>;

/** An agent in TypeScript. @typeParam Script - the names of its scripts @typeParam Config - that of its own operation */
export type AgentDraft<Script extends string = string, Config = never> = Common & { readonly name: string } & Operated<
    Script,
    Config
  >;

/** The fields of a step that runs an agent, besides `agent`. */
export type AgentFields<Script extends string = string> = Common & {
  /** The name of its result. Default: the agent's name. */
  readonly name?: string | undefined;
} & Operated<Script>;

type AgentStepDraft<Script extends string = string> = {
  /** The agent to run: one of `agents`, a shared agent, or one that this step defines with `operation`. */
  readonly agent: string;
  readonly wait?: undefined;
} & AgentFields<Script>;

type Verb = 'if' | 'foreach' | 'parallel' | 'switch' | 'while' | 'try' | 'sleep' | 'ensemble' | 'agent' | 'wait';
/** A form has no verb of another one: so an editor offers its keys only. */
type Form<Own extends Verb, Step> = Step & { readonly [Other in Exclude<Verb, Own>]?: undefined };

/** A step in TypeScript. @typeParam Script - the names of its scripts @typeParam Signal - the signals that it waits for */
export type StepDraft<Script extends string = string, Signal extends string = string> =
  | WaitStep<Signal>
  | AgentStepDraft<Script>
  | Form<'if', IfStep<StepDraft<Script, Signal>>>
  | Form<'foreach', ForeachStep<StepDraft<Script, Signal>>>
  | Form<'parallel', ParallelStep<StepDraft<Script, Signal>>>
  | Form<'switch', SwitchStep<StepDraft<Script, Signal>>>
  | Form<'while', WhileStep<StepDraft<Script, Signal>>>
  | Form<'try', TryStep<StepDraft<Script, Signal>>>
  | Form<'sleep', SleepStep>
  | Form<'ensemble', EnsembleStep>;

/** An ensemble in TypeScript. @typeParam Script - the names of its scripts @typeParam Signal - the signals that it waits for */
export interface EnsembleDraft<Script extends string = string, Signal extends string = string>
  extends Omit<EnsembleDefinition, 'flow' | 'agents' | 'trigger' | 'concurrency' | 'rate'> {
  /** The steps, in the order in which they run. At most 1,000, those inside blocks included. */
  readonly flow: readonly StepDraft<Script, Signal>[];
  /** Agents that steps of this flow name. At most 1,000. */
  readonly agents?: readonly AgentDraft<Script>[] | undefined;
  /** What starts executions besides calls: inbound webhooks and schedules. */
  readonly trigger?: readonly TriggerDefinition<NoInfer<Signal>>[] | undefined;
  /** How many executions may be held at once, over all processes: one rule or several. */
  readonly concurrency?: ConcurrencyRule | readonly ConcurrencyRule[] | undefined;
  /** How many executions may begin within a time, over all processes: one rule or several. */
  readonly rate?: RateRule | readonly RateRule[] | undefined;
  /**
   * Any Standard Schema (zod, valibot, arktype, ...). It checks the input of each execution, and gives it its type. The execution gets
   * what the schema returns, which must be JSON. An input that does not fit is refused with `INVALID_INPUT`, as with `inputs`.
   */
  readonly inputSchema?: StandardSchema | undefined;
  /**
   * Any Standard Schema (zod, valibot, arktype, ...). It checks the outputs when an execution ends, and gives them their type. An
   * execution whose outputs don't fit fails with `INVALID_OUTPUT`.
   */
  readonly outputSchema?: StandardSchema | undefined;
}
