/** The interface through which commands use a store or a running server. */

import type { ResolvedComponent } from '../../engine/component/component.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { EnsembleItem } from '../../orchestrator/definitions/definitions.ts';
import type { RetryOptions } from '../../orchestrator/runs/starts/execute-options.ts';
import type { GitComponents, Orchestrator } from '../start.ts';

/** The part of an orchestrator that a server also offers over HTTP. */
export interface Service {
  readonly tokens: Pick<Orchestrator['tokens'], 'create' | 'list' | 'revoke'>;
  readonly executions: Pick<
    Orchestrator['executions'],
    | 'get'
    | 'list'
    | 'agents'
    | 'steps'
    | 'running'
    | 'definition'
    | 'events'
    | 'cancel'
    | 'pause'
    | 'resume'
    | 'pauseAll'
    | 'resumeAll'
    | 'complete'
    | 'signal'
    | 'history'
    | 'move'
  > & {
    /** Returns the record of the newest execution of the chain. */
    retry(id: string, options: RetryAsked): Promise<Execution<unknown>>;
  };
  readonly ensembles: Pick<
    Orchestrator['ensembles'],
    'get' | 'list' | 'create' | 'update' | 'versions' | 'version' | 'rollback' | 'traffic'
  > & {
    /** Undefined for an unknown name. */
    find(name: string): Promise<EnsembleItem | undefined>;
  };
  readonly audit: Pick<Orchestrator['audit'], 'list'>;
  readonly deliveries: Pick<
    Orchestrator['deliveries'],
    'list' | 'get' | 'redeliver' | 'replay' | 'receivers' | 'resume'
  >;
  readonly components: Pick<
    Orchestrator['components'],
    | 'register'
    | 'update'
    | 'get'
    | 'list'
    | 'versions'
    | 'createVersion'
    | 'deployments'
    | 'deploy'
    | 'undeploy'
    | 'rollback'
  > & {
    /** @param ref - a version, `latest` or an environment @param key - decides between the versions of a split */
    version(name: string, ref: string, key?: string): Promise<ResolvedComponent>;
    /** The folder that has the files of components. Undefined: a bare repository, or a server. */
    readonly folder?: string | undefined;
    /** The components are in a git repository. */
    readonly repository?: Pick<GitComponents, 'readCommitted'> | undefined;
  };
  close(): Promise<void>;
}

/** What the command says of a retry. */
export type RetryAsked = Pick<RetryOptions, 'newKeys' | 'input' | 'from' | 'definition' | 'reason'>;

export interface ServiceHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}
