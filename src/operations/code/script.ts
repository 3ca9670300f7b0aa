/** What a script is, and what it receives. */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { ExecutionInfo, StepTransaction } from '../../engine/operation/operation.port.ts';

/** What a script receives. */
// biome-ignore lint/suspicious/noExplicitAny: the shape of an input is written in the definition, where TypeScript can't see it
export interface ScriptContext<Input = any> {
  /**
   * The agent's input, as a copy that the script may change. If the agent declares no `input`, it is the input of the execution, which is
   * frozen and shared by all steps that read it. Its type is `any` by default, because its shape is in the definition, where
   * TypeScript can't see it. `Script<MyInput>` sets the type.
   */
  readonly input: Input;
  /** The other keys of the agent's config, with expressions evaluated. */
  readonly config: JsonObject;
  /** `env` and `secrets`, as passed to `createOrchestrator`. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Aborts at the agent's timeout, and when the execution is cancelled or times out. If your listener throws, this is an uncaught
   * exception, which ends a Node.js process.
   */
  readonly signal: AbortSignal;
  /** Equal on every attempt of this step. Pass it to services that support idempotency keys. */
  readonly idempotencyKey: string;
  readonly logger: Logger;
  readonly execution: ExecutionInfo;
  /**
   * Writes rows of your app in the same transaction as the result of this step, so that both happen exactly once, also after a crash. With
   * `postgresStorage`, on its database. The transaction begins with the first statement; it is committed when the script has returned, and
   * rolled back if it throws.
   * @throws NOT_CONFIGURED with another storage, with `durability: none` and in a dry run; INVALID_REQUEST in a step with `setState`
   */
  readonly transaction: StepTransaction;
}

/**
 * A script. It returns the agent's output, or a promise of it. The output must be JSON. A script that throws fails the agent, and
 * everyone who may read the execution can read the message.
 *
 * An endless synchronous loop can't be stopped, because a script runs in the process of its host.
 */
// biome-ignore lint/suspicious/noExplicitAny: as for ScriptContext
export type Script<Input = any> = (context: ScriptContext<Input>) => unknown;
