/** The stored executions: the types of the public `orchestrator.executions`. */

import type { Principal } from '../../engine/access/token.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';
import type { StoredEvent } from '../../engine/events/rules/execution-events.ts';
import type { AgentResult, Execution, ExecutionSummary } from '../../engine/execution/execution.ts';
import type { EnginePause } from '../../engine/execution/execution-engine.port.ts';
import type { ExecutionHistory } from '../../engine/execution/execution-history.ts';
import type { MoveOptions, Moves } from '../change/move.ts';
import type { OperatorOptions } from '../operators/operator-options.ts';
import type { SignalOptions } from '../signals/signals.ts';
import type { EventTicket } from './event-tickets.ts';
import type { ExecutionFilter } from './execution-filter.ts';
import type { ExecutionHandle } from './handles.ts';
import type { StepPage, StepPageOptions } from './list-steps.ts';
import type { RetryOptions } from './starts/execute-options.ts';
import type { ExecutionStats, OpenExecutions, StatsFilter } from './stats.ts';
import type { RunningSteps, StepInput } from './steps-at-work.ts';

export type { ExecutionFilter };

/** Which executions are paused as a whole. */
export type PauseTarget = { readonly ensemble: string } | { readonly all: true };

/** Refuses the literal name of a signal that no flow waits for. A name that is not a literal may be any. */
type KnownSignal<Name, Signal> = string extends Name
  ? unknown
  : Name extends Signal
    ? unknown
    : { readonly 'no flow waits for the signal': Name };

export interface Executions<Signal extends string = string> {
  /**
   * Cancels an execution. It ends at its next step boundary, and the signal of the current step is aborted. An execution that waits
   * or is queued ends without another step.
   * @returns its record after the request. An active execution may still be `running` for a moment
   * @throws NOT_FOUND; CONFLICT if it has ended, unless it was cancelled
   */
  cancel(id: string, options?: OperatorOptions): Promise<Execution<unknown>>;
  /**
   * Pauses an execution until {@link resume}: nothing of it runs meanwhile. One that runs is paused after its current steps, with their
   * results. What it waits for, and how long, stays: a wait whose time is over, or whose signal came, ends when it is resumed. Its
   * `timeout` is not stopped. An execution with `durability: none` is paused only before it begins.
   * @returns its record after the request. An active execution may still be `running` for a moment
   * @throws NOT_FOUND; CONFLICT if it has ended
   */
  pause(id: string, options?: OperatorOptions): Promise<Execution<unknown>>;
  /**
   * Ends the pause of an execution. Does nothing if it is not paused, or is paused with its ensemble.
   * @returns its record after that @throws NOT_FOUND; CONFLICT if it has ended
   */
  resume(id: string, options?: OperatorOptions): Promise<Execution<unknown>>;
  /**
   * Pauses all executions of an ensemble, or everything, until {@link resumeAll}. What is started meanwhile is accepted, and paused when it
   * would begin. Another process may begin executions for some seconds after the call.
   * @returns how many executions were changed @throws NOT_FOUND for an unknown ensemble
   */
  pauseAll(of: PauseTarget, options?: OperatorOptions): Promise<{ readonly changed: number }>;
  /** Ends a pause of {@link pauseAll}. What is paused by itself stays so. @returns how many executions were changed @throws NOT_FOUND */
  resumeAll(of: PauseTarget, options?: OperatorOptions): Promise<{ readonly changed: number }>;
  /** The ensembles that are paused, and everything if it is. */
  pauses(): Promise<readonly EnginePause[]>;
  /**
   * Retries the newest execution of a chain of retries. If it failed, timed out or was cancelled, a new execution starts, once: with
   * the same input, the same definition, the same idempotency keys of its calls, and the results of the successful steps, which don't
   * run again. If it completed or has not ended, nothing starts; with `from` or `definition`, one that completed is retried too.
   *
   * @param id - of any execution of the chain
   * @returns the handle of the newest execution
   * @throws NOT_FOUND; NOT_CONFIGURED if this process lacks what it needs; INVALID_INPUT for an `input` that does not fit; INVALID_REQUEST
   *   for a `from` that names no step; CONFLICT with `from` or `definition` if it has not ended, and if results do not fit the `definition`
   */
  retry(id: string, options?: RetryOptions): Promise<ExecutionHandle>;
  /**
   * Gives a step its result by hand: its operation does not run (any more). For an execution that waits, is queued or paused, and for one that
   * ended badly: of that, a retry begins, as {@link retry} does, in which the step has this result.
   *
   * @param key - the key of the step, an agent or a child execution, or the name of its result if only one step has it
   * @param output - JSON. It must fit the `output` of the agent, if that declares one. A child execution is cancelled
   * @returns the record of the execution that continues. It has the `completions`, or its `trigger.retry` says it
   * @throws NOT_FOUND; INVALID_REQUEST for a step that is none of these; INVALID_INPUT for an output that does not fit; CONFLICT if the step
   *   has a result, if a process works on the execution (pause it first), and if the execution has completed or was retried
   */
  complete(id: string, key: string, output: unknown, options?: OperatorOptions): Promise<Execution<unknown>>;
  /**
   * Sends a signal to an execution. The first `wait` for a signal of this name continues with the payload, now or when the flow
   * reaches it. A signal that arrives before its `wait` is kept. Each signal is taken by one `wait`.
   *
   * @param name - the name of the signal
   * @param payload - JSON. Default null
   * @returns the record of the execution after that: it is still `waiting`, or it continues already
   * @throws NOT_FOUND; CONFLICT if the execution has ended; INVALID_INPUT for a name that no `wait` of its definition has, with the
   *   names that exist in `details.waits`, and for a payload that is not JSON
   */
  signal<Name extends Signal | (string & Record<never, never>)>(
    id: string,
    name: Name & KnownSignal<Name, Signal>,
    payload?: unknown,
    options?: SignalOptions,
  ): Promise<Execution<unknown>>;
  /**
   * Gives executions that have not ended another definition of their ensemble, if what is recorded of them replays in it: their input
   * fits, each recorded step is at its position, and an execution that waits would wait there for the same. On any difference nothing
   * of that execution is changed. One that runs at the moment is refused; it can be moved when it waits.
   *
   * @param options - at least one filter, and `to`: `latest`, or the label or the hash of a version
   * @throws INVALID_REQUEST for a wrong filter or option; NOT_FOUND for a definition that is not stored; NOT_CONFIGURED if this process
   *   lacks what the definition needs
   */
  move(options: MoveOptions): Promise<Moves>;
  /**
   * Deletes the record of an execution that has ended, with its steps. Its id and its idempotency key can be used again. Its deliveries and
   * its children stay.
   * @throws NOT_FOUND; CONFLICT if it has not ended
   */
  delete(id: string, options?: OperatorOptions): Promise<{ readonly id: string; readonly deleted: true }>;
  /** The record, with the first 1,000 agent runs and at most 4 MiB of their outputs. @throws NOT_FOUND */
  get(id: string): Promise<Execution<unknown>>;
  /** The status, without values and agent runs. The cost is the same for every execution. @throws NOT_FOUND */
  status(id: string): Promise<ExecutionSummary>;
  /**
   * By `createdAt` and id, newest first unless `order` says otherwise, without agent runs, and without inputs and outputs of more than 4 KiB. An execution is listed
   * if it matches all filters.
   * @throws INVALID_CURSOR; INVALID_REQUEST for an invalid limit or filter, and if more than 10,000 ids or tags begin with `search`
   */
  list(
    filter?: ExecutionFilter,
  ): Promise<{ readonly executions: readonly Execution<unknown>[]; readonly nextCursor?: string }>;
  /**
   * How many executions are queued, running and waiting, in all processes that use the storage, and when the oldest of each was
   * accepted; the same as `unresolved` for those that failed or timed out and that no other execution retries; and how many were
   * accepted in the last hour. Each is counted to 10,000.
   */
  open(): Promise<OpenExecutions>;

  /**
   * How many executions ended in a span, and how: by ensemble, version, error and period, with percentiles of how long they took and
   * waited. They are counted when they end, so the answer does not depend on how many are stored. Dry runs are not counted.
   * @throws INVALID_REQUEST for a span of more than 400 buckets, or buckets that are too short for its age; NOT_FOUND for an unknown ensemble
   */
  stats(filter?: StatsFilter): Promise<ExecutionStats>;
  /** One agent run with its output, by its `key`. @throws NOT_FOUND */
  agent(id: string, key: string): Promise<AgentResult>;
  /**
   * All agent runs, in pages, in the order in which they were stored. A page ends early if its outputs have 8 MiB.
   * @throws NOT_FOUND, INVALID_CURSOR, INVALID_REQUEST
   */
  agents(
    id: string,
    page?: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ readonly agents: readonly AgentResult[]; readonly nextCursor?: string }>;
  /**
   * The steps of every kind, in pages, in the order in which they began to be known: agents, blocks, routes, waits, sleeps, children,
   * and those that were skipped. A page ends early if its outputs have 8 MiB.
   * @throws NOT_FOUND, INVALID_CURSOR, INVALID_REQUEST
   */
  steps(id: string, page?: StepPageOptions): Promise<StepPage>;
  /** One step with its output, by its `key`. @throws NOT_FOUND */
  step(id: string, key: string): Promise<ExecutionStep>;
  /**
   * What an agent of the flow got as its input. It is not stored: its expressions are evaluated again, over what was recorded before
   * the agent began. That takes as long as a resume of the execution.
   * @returns without `input`, and with the `reason`, if that can't be done: it read the state, or this process can't run the definition
   * @throws NOT_FOUND
   */
  stepInput(id: string, key: string): Promise<StepInput>;
  /**
   * The agents that are at work in their attempt, in whatever process: those that the flow comes to after all that is recorded. Of an
   * execution that was cancelled or timed out, those that were at work then. Otherwise empty. It takes as long as a resume of the
   * execution.
   * @throws NOT_FOUND
   */
  running(id: string): Promise<RunningSteps>;
  /**
   * The definition with which an execution began, without the shared agents that it names.
   * @throws NOT_FOUND, also for an execution of an agent alone, and if the store does not have the definition
   */
  definition(id: string): Promise<ExecutedDefinition>;
  /**
   * What is stored of an execution: how it began, all its step records with their outputs, the decisions and the signals that it took,
   * and its end. It is JSON. `replay` of the testing kit takes it. It holds what no response masks, so keep it as safe as the store.
   * @throws NOT_FOUND
   */
  history(id: string): Promise<ExecutionHistory>;
  /**
   * The events of an execution so far, then the new ones, until it ends. Each event has an id. `after` continues after this id.
   * An `agent.delta`, a text that a model writes in this process, is not stored: it has the id of the event before it.
   * @throws NOT_FOUND; INVALID_REQUEST for an `after` that is not the id of an event. Both at the first read
   */
  events(
    id: string,
    options?: { readonly after?: string; readonly signal?: AbortSignal },
  ): AsyncIterableIterator<StoredEvent>;
  /**
   * A ticket with which anyone can open the event stream of this execution over HTTP for 60 seconds, as `?ticket=`. It is for a
   * browser's `EventSource`, which sends no header. Every process of the store accepts it, also after a restart.
   *
   * @param options - `holder`: the `tokenId` of the principal that asks. If it is the id of a token, the ticket and the streams that
   *   it opened end together with this token. Without it, an open stream ends with its execution
   * @throws NOT_FOUND
   */
  ticket(id: string, options?: { readonly holder?: string }): Promise<EventTicket>;
  /**
   * Who reads the events of an execution with a ticket.
   *
   * @param options - `isOpen`: the stream was opened before, so the 60 seconds may be over
   * @throws UNAUTHORIZED for a ticket that is not valid for this execution; TOKEN_EXPIRED with `details.expiredAt` (Unix ms)
   */
  verifyTicket(id: string, ticket: string, options?: { readonly isOpen?: boolean }): Promise<Principal>;
}

/** The definition with which an execution began. */
export interface ExecutedDefinition {
  readonly ensemble: string;
  /** The hash of the definition. */
  readonly version: string;
  readonly definition: EnsembleDefinition;
}
