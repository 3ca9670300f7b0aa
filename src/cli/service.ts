/** What `token` and `execution` commands ask of a store or of a running server. */

import type { Orchestrator } from './start.ts';

/** The part of an orchestrator that a server gives over HTTP too. */
export interface Service {
  readonly tokens: Pick<Orchestrator['tokens'], 'create' | 'list' | 'revoke'>;
  readonly executions: Pick<Orchestrator['executions'], 'get' | 'list' | 'events'>;
  close(): Promise<void>;
}

export interface ServiceHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}
