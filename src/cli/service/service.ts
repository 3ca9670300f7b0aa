/** The interface through which commands use a store or a running server. */

import type { EnsembleDefinition } from '../../engine/model/ensemble.ts';
import type { Execution } from '../../engine/model/execution.ts';
import type { Orchestrator } from '../start.ts';

/** The part of an orchestrator that a server also offers over HTTP. */
export interface Service {
  readonly tokens: Pick<Orchestrator['tokens'], 'create' | 'list' | 'revoke'>;
  readonly executions: Pick<
    Orchestrator['executions'],
    'get' | 'list' | 'agents' | 'steps' | 'events' | 'cancel' | 'signal' | 'history'
  > & {
    /** Returns the record of the newest execution of the chain. */
    retry(id: string, options: { readonly newKeys?: true; readonly input?: unknown }): Promise<Execution<unknown>>;
    /** The definition with which the execution began. A server returns the current definition of its ensemble instead. */
    definition(execution: Pick<Execution<unknown>, 'ensemble' | 'version'>): Promise<ServiceDefinition | undefined>;
  };
  readonly deliveries: Pick<
    Orchestrator['deliveries'],
    'list' | 'get' | 'redeliver' | 'replay' | 'receivers' | 'resume'
  >;
  close(): Promise<void>;
}

export interface ServiceDefinition {
  /** The hash of the definition. */
  readonly version: string;
  readonly definition: EnsembleDefinition;
}

export interface ServiceHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}
