/** The part of an orchestrator that the engine suite uses. The caller passes it in, because an adapter does not create one. */

import type { Json } from '../../../engine/base/json/json.ts';
import type { AgentResult, Execution, ExecutionStatus } from '../../../engine/execution/execution.ts';
import type { ExecutionEngine } from '../../../engine/execution/execution-engine.port.ts';
import type { Clock } from '../../../engine/host/clock.port.ts';
import type { Logger } from '../../../engine/host/logger.port.ts';
import type { AnyOperation } from '../../../engine/operation/operation.port.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';

/** What a script of the suite receives. */
export interface SuiteScriptContext {
  readonly input: Json;
  readonly config: Readonly<Record<string, Json>>;
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  readonly execution: { readonly id: string; readonly agent: string; readonly attempt: number };
}

export type SuiteScript = (context: SuiteScriptContext) => unknown;

export interface SubjectOptions {
  readonly ensembles: readonly object[];
  readonly agents: readonly object[];
  readonly scripts: Readonly<Record<string, SuiteScript>>;
  readonly operations: readonly AnyOperation[];
  readonly storage: Storage;
  readonly clock: Clock;
  readonly engine: ExecutionEngine;
  readonly logger: Logger;
  readonly retention?: number | undefined;
}

export interface SubjectHandle {
  readonly id: string;
  result(): Promise<Execution<unknown>>;
  cancel(): void;
  events(): AsyncIterableIterator<{ readonly event: string }>;
}

export interface SubjectEvent {
  readonly event: string;
  readonly data: object;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeout?: number | undefined;
}

/** The part of an orchestrator that the suite uses. */
export interface Subject {
  execute(name: string, input?: unknown, options?: CallOptions): Promise<Execution<unknown>>;
  start(name: string, input?: unknown, options?: CallOptions): Promise<SubjectHandle>;
  executeAgent(name: string, input?: unknown, options?: CallOptions): Promise<Execution<unknown>>;
  readonly executions: {
    get(id: string): Promise<Execution<unknown>>;
    list(filter?: {
      readonly ensemble?: string;
      readonly status?: ExecutionStatus;
      readonly limit?: number;
    }): Promise<{ readonly executions: readonly Execution<unknown>[] }>;
    agents(
      id: string,
      page?: { readonly limit?: number; readonly cursor?: string },
    ): Promise<{ readonly agents: readonly AgentResult[]; readonly nextCursor?: string }>;
    events(id: string): AsyncIterableIterator<{ readonly id: string; readonly event: SubjectEvent }>;
    cancel(id: string): Promise<Execution<unknown>>;
    retry(id: string): Promise<SubjectHandle>;
    signal(id: string, name: string, payload?: unknown): Promise<Execution<unknown>>;
  };
  on(kind: string, listener: (event: SubjectEvent) => void): () => void;
  ready(): Promise<void>;
  runDue(options?: { readonly limit?: number }): Promise<{ readonly nextDueAt?: number }>;
  close(options?: { readonly grace?: number }): Promise<void>;
}

export type CreateSubject = (options: SubjectOptions) => Subject;
