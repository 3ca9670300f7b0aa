/** What `token` and `execution` commands ask of a store or of a running server. */

import type { EnsembleDefinition } from '../engine/model/ensemble.ts';
import type { Execution } from '../engine/model/execution.ts';
import type { Orchestrator } from './start.ts';

/** The part of an orchestrator that a server gives over HTTP too. */
export interface Service {
  readonly tokens: Pick<Orchestrator['tokens'], 'create' | 'list' | 'revoke'>;
  readonly executions: Pick<Orchestrator['executions'], 'get' | 'list' | 'agents' | 'events' | 'cancel' | 'signal'> & {
    /** Gives the record of the new execution. */
    retry(id: string): Promise<Execution<unknown>>;
    /** What it runs: the definition that it began with, or where that can't be had, its ensemble's as it is now. */
    definition(execution: Pick<Execution<unknown>, 'ensemble' | 'version'>): Promise<ServiceDefinition | undefined>;
  };
  close(): Promise<void>;
}

export interface ServiceDefinition {
  /** Its hash. */
  readonly version: string;
  readonly definition: EnsembleDefinition;
}

export interface ServiceHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}
