/** The events of executions: the seed's six kinds, and those that only this process hears (progress). */

import type { Json } from '../json.ts';
import type { FinalStatus } from './execution.ts';

/** Event kinds and what each carries in `data`. Durations are in ms. */
export interface EventData {
  'execution.started': { readonly id: string; readonly ensemble: string; readonly input: Json };
  'execution.completed': {
    readonly id: string;
    readonly ensemble: string;
    readonly status: 'completed';
    readonly output: Json;
    readonly duration: number;
  };
  'execution.failed': {
    readonly id: string;
    readonly ensemble: string;
    readonly status: 'failed';
    readonly error: { readonly message: string };
    readonly duration: number;
  };
  'execution.timeout': { readonly id: string; readonly duration: number; readonly timeout: number };
  'execution.cancelled': { readonly id: string; readonly ensemble: string; readonly duration: number };
  /** `key` is the place of the run in the flow, with the items and rounds that it stands in, from 0: `flow[2].foreach[7].steps[0]`. */
  'agent.started': { readonly executionId: string; readonly agent: string; readonly key: string };
  'agent.completed': {
    readonly executionId: string;
    readonly agent: string;
    readonly key: string;
    readonly output: Json;
    readonly duration: number;
  };
  'agent.failed': {
    readonly executionId: string;
    readonly agent: string;
    readonly key: string;
    readonly error: { readonly code: string; readonly message: string };
    readonly attempts: number;
    readonly duration: number;
  };
  /** An attempt failed and another follows at `retryAt` (Unix ms). */
  'agent.retrying': {
    readonly executionId: string;
    readonly agent: string;
    readonly key: string;
    readonly error: { readonly code: string; readonly message: string };
    readonly attempt: number;
    readonly retryAt: number;
  };
  'agent.skipped': { readonly executionId: string; readonly agent: string; readonly key: string };
  /** A `foreach` begins, with so many items. */
  'foreach.started': { readonly executionId: string; readonly key: string; readonly items: number };
  /** A step waits until an instant (Unix ms), for a signal, or for a signal until an instant. */
  'step.waiting': {
    readonly executionId: string;
    readonly key: string;
    readonly until?: number;
    /** The signal's name. */
    readonly signal?: string;
  };
  /** An `ensemble` step started an execution of its own. */
  'child.started': {
    readonly executionId: string;
    readonly key: string;
    readonly ensemble: string;
    readonly childId: string;
  };
  /** The execution that an `ensemble` step waits for has ended. */
  'child.ended': {
    readonly executionId: string;
    readonly key: string;
    readonly ensemble: string;
    readonly childId: string;
    readonly status: FinalStatus;
  };
  'state.updated': { readonly executionId: string; readonly state: Json };
}

export type EventKind = keyof EventData;

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
  'foreach.started': true,
  'step.waiting': true,
  'child.started': true,
  'child.ended': true,
  'state.updated': true,
};

/** The seed's event envelope. */
export type OrchestratorEvent<K extends EventKind = EventKind> = {
  readonly [E in K]: {
    readonly event: E;
    /** ISO 8601, UTC. */
    readonly timestamp: string;
    readonly data: EventData[E];
  };
}[K];

/** The execution that an event belongs to. */
export function executionOf(event: OrchestratorEvent): string {
  return 'executionId' in event.data ? event.data.executionId : event.data.id;
}
