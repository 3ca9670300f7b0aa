/** The events of executions: the six kinds of the specification, and the events of progress. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { FinalStatus, TokenUsage } from '../execution/execution.ts';

/** Why an agent failed. */
export interface EventError {
  readonly code: string;
  readonly message: string;
  readonly details?: JsonObject;
}

/** In the `data` of every event. */
export interface ExecutionOfEvent {
  readonly executionId: string;
  /** The ensemble of the execution. */
  readonly ensemble: string;
}

/** The kinds of events, and what the `data` of each has besides the {@link ExecutionOfEvent}. Durations are in ms. */
export interface EventDetails {
  'execution.started': { readonly id: string; readonly input: Json };
  'execution.completed': {
    readonly id: string;
    readonly status: 'completed';
    readonly output: Json;
    readonly duration: number;
  };
  'execution.failed': {
    readonly id: string;
    readonly status: 'failed';
    readonly error: { readonly message: string; readonly details?: JsonObject };
    readonly duration: number;
  };
  'execution.timeout': { readonly id: string; readonly duration: number; readonly timeout: number };
  'execution.cancelled': { readonly id: string; readonly duration: number };
  /** `key` is the position of the step in the flow, with its items and rounds counted from 0: `flow[2].foreach[7].steps[0]`. */
  'agent.started': { readonly agent: string; readonly key: string };
  'agent.completed': {
    readonly agent: string;
    readonly key: string;
    readonly output: Json;
    readonly duration: number;
  };
  'agent.failed': {
    readonly agent: string;
    readonly key: string;
    readonly error: EventError;
    readonly attempts: number;
    readonly duration: number;
  };
  /** An attempt failed, and the next one begins at `retryAt` (Unix ms). */
  'agent.retrying': {
    readonly agent: string;
    readonly key: string;
    readonly error: EventError;
    readonly attempt: number;
    readonly retryAt: number;
  };
  'agent.skipped': { readonly agent: string; readonly key: string };
  /** A part of the text that the model of a `think` agent with `stream: true` writes. It is not stored: only who listens gets it. */
  'agent.delta': { readonly agent: string; readonly key: string; readonly text: string };
  /** A model answered an agent. `key` is that of the call, such as `flow[3].model[1]`. */
  'model.completed': {
    readonly agent: string;
    readonly key: string;
    readonly model: string;
    /** The name under which the host has the provider. Absent for an operation that does not say it. */
    readonly provider?: string;
    readonly usage: TokenUsage;
    readonly finishReason: string;
    readonly duration: number;
  };
  /** A tool answered the model of an agent. `key` is that of the call, such as `flow[3].tool[2]`. */
  'tool.completed': {
    readonly agent: string;
    readonly key: string;
    readonly tool: string;
    readonly isError: boolean;
    readonly duration: number;
  };
  /** A message of a batch was sent to its recipient, or could not be sent. `key` is that of the send, such as `flow[3].send[2]`. */
  'send.completed': {
    readonly agent: string;
    readonly key: string;
    /** The address of the recipient. */
    readonly to: string;
    readonly isError: boolean;
    readonly duration: number;
  };
  /** A `foreach` begins with this number of items. */
  'foreach.started': { readonly key: string; readonly items: number };
  /** A step waits until an instant (Unix ms), for a signal, or for a signal until an instant. */
  'step.waiting': {
    readonly key: string;
    readonly until?: number;
    /** The signal's name. */
    readonly signal?: string;
  };
  /** A `sleep` is over, or the `timeout` of a `wait`. */
  'step.continued': {
    readonly key: string;
    /** Of a `wait`, the name of the signal that did not come in time. */
    readonly signal?: string;
    /** Whether a `wait` timed out. */
    readonly timedOut: boolean;
    /** Whether the step failed with `TIMEOUT`: a `wait` that timed out without `onTimeout: continue`. */
    readonly failed: boolean;
  };
  /** A `wait` took a signal. */
  'signal.taken': {
    readonly key: string;
    /** The signal's name. */
    readonly signal: string;
    /** The signal's id, unique in its execution. */
    readonly id: string;
    readonly payload: Json;
  };
  /** An `ensemble` step started a child execution. */
  'child.started': {
    readonly key: string;
    readonly childEnsemble: string;
    readonly childId: string;
  };
  /** The execution that an `ensemble` step waits for has ended. */
  'child.ended': {
    readonly key: string;
    readonly childEnsemble: string;
    readonly childId: string;
    readonly status: FinalStatus;
  };
  /** A worker continues the execution after another worker died. `recoveries`: how often that has happened. */
  'run.resumed': { readonly recoveries: number };
  'state.updated': { readonly state: Json };
  /** A delivery of a notification was taken by its receiver. `attempts` counts all its attempts. */
  'delivery.succeeded': DeliveryDetails & { readonly attempts: number };
  /** A delivery failed, and is not sent again. */
  'delivery.failed': DeliveryDetails & { readonly attempts: number; readonly status?: number; readonly error?: string };
  /** A delivery waits, because its receiver is paused. */
  'delivery.paused': DeliveryDetails;
  /** The receiver of a delivery was paused: it answered 410 (`gone`), or failed for three days (`failing`). */
  'endpoint.paused': DeliveryDetails & { readonly reason: 'gone' | 'failing' };
  /** A rollout of a component was rolled back, because its guard was broken. The execution is the last one that ended in this process. */
  'component.rolledBack': RolledBack & {
    readonly component: string;
    readonly environment: string;
  };
  /** The traffic of an ensemble was rolled back, because its guard was broken. Versions are labels or hashes. */
  'ensemble.rolledBack': RolledBack;
}

/** In the `data` of every event of a rollback. */
export interface RolledBack {
  /** The version that was rolled out. */
  readonly from: string;
  /** The version that all executions get again. */
  readonly to: string;
  readonly guard: string;
  /** How many executions used the version in this step, and how many of them failed. */
  readonly runs: number;
  readonly failures: number;
}

/** In the `data` of every event of a delivery. */
export interface DeliveryDetails {
  /** The id of the delivery. */
  readonly delivery: string;
  readonly receiver: string;
  /** The kind of the event that it delivers. */
  readonly notified: string;
}

/** Events that happen at any time. They are not part of the events of an execution. */
export const EVENTS_APART: ReadonlySet<EventKind> = new Set([
  'delivery.succeeded',
  'delivery.failed',
  'delivery.paused',
  'endpoint.paused',
  'component.rolledBack',
  'ensemble.rolledBack',
]);

export type EventKind = keyof EventDetails;

/** The `data` of each kind of event. */
export type EventData = { readonly [K in EventKind]: ExecutionOfEvent & EventDetails[K] };

export const EVENT_KINDS: Readonly<Record<EventKind, true>> = {
  'execution.started': true,
  'execution.completed': true,
  'execution.failed': true,
  'execution.timeout': true,
  'execution.cancelled': true,
  'agent.started': true,
  'agent.completed': true,
  'agent.failed': true,
  'agent.retrying': true,
  'agent.skipped': true,
  'agent.delta': true,
  'model.completed': true,
  'tool.completed': true,
  'send.completed': true,
  'foreach.started': true,
  'step.waiting': true,
  'step.continued': true,
  'signal.taken': true,
  'child.started': true,
  'child.ended': true,
  'run.resumed': true,
  'state.updated': true,
  'delivery.succeeded': true,
  'delivery.failed': true,
  'delivery.paused': true,
  'endpoint.paused': true,
  'component.rolledBack': true,
  'ensemble.rolledBack': true,
};

/** An event, in the envelope of the specification. */
export type OrchestratorEvent<K extends EventKind = EventKind> = {
  readonly [E in K]: {
    readonly event: E;
    /** ISO 8601, UTC. */
    readonly timestamp: string;
    readonly data: EventData[E];
  };
}[K];
