/** The public names of the main entry, in the order in which data flows. */

// Definitions
export { defineConfig, type ProjectConfig } from './config.ts';
export {
  defineAgent,
  defineEnsemble,
  defineOperation,
  type EnsembleDraft,
  type EnsembleSource,
  type EnsembleTypes,
  type InputOf,
  type OutputsOf,
} from './define.ts';
export {
  agent,
  ensemble,
  foreach,
  parallel,
  sleep,
  switchOn,
  type TryHandlers,
  tryCatch,
  wait,
  whileLoop,
  when,
} from './steps.ts';
export type { DefinitionIssue } from './engine/definition/definition-issue.ts';
export { parseEnsemble } from './engine/definition/parse-ensemble.ts';
export type * from './engine/model/ensemble.ts';

// The orchestrator
export type { OrchestratorOptions, SignalLinksOptions } from './options.ts';
export { createOrchestrator, type Orchestrator } from './orchestrator.ts';
export type { ExecuteOptions, ExecutionHandle } from './runner.ts';
export type { EnsembleItem, Ensembles } from './ensembles.ts';
export type { ExecutionFilter, Executions } from './executions.ts';
export type { SignalLinks, SignalLinkState, SignalLinkStatus } from './signal-links.ts';
export type { SignalOptions } from './signals.ts';
export type { CreatedToken, NewToken, TokenItem, Tokens } from './engine/access/tokens.ts';
export type {
  AgentRun,
  Execution,
  ExecutionError,
  ExecutionStatus,
  ExecutionSummary,
  ExecutionTrigger,
  FinalStatus,
} from './engine/model/execution.ts';
export type { EventData, EventKind, OrchestratorEvent } from './engine/model/event.ts';
export type { EventListener } from './engine/notification/emitter.ts';
export type { NumberedEvent } from './engine/execution/execution-events.ts';
export type { Plan, Principal, Scope, StoredToken } from './engine/model/token.ts';

// Operations and functions
export type { Evaluation } from './engine/expression/evaluation.ts';
export type { ExpressionFunction, FunctionTable } from './engine/expression/functions/function-table.ts';
export type { ApiOutput } from './operations/api.ts';
export type { Script, ScriptContext } from './operations/code.ts';
export type { Binding } from './operations/storage.ts';

// The HTTP door
export { createApiHandler } from './http-handlers/create-api-handler.ts';
export { createHandler } from './http-handlers/create-handler.ts';
export type { HandlerOptions } from './http-handlers/handler-options.ts';
export type { HandlerResult, HostInfo, HttpHandler } from './engine/ports/host.ts';

// Default adapters
export { systemClock } from './adapters/clock/system-clock.ts';
export { embeddedEngine } from './adapters/engine/embedded-engine.ts';
export type { EmbeddedEngineOptions } from './adapters/engine/engine-options.ts';
export { type FetchHttpOptions, fetchHttp } from './adapters/http/fetch-http.ts';
export { memoryStorage, type MemoryStorageOptions } from './adapters/storage/memory-storage.ts';

// Ports
export type { Json, JsonObject } from './engine/json.ts';
export type { CancelTimer, Clock, TimerOptions } from './engine/ports/clock.ts';
export type * from './engine/ports/data.ts';
export type * from './engine/ports/execution-engine.ts';
export type { HttpClient, HttpRequest, HttpResponse } from './engine/ports/http.ts';
export {
  type Journal,
  JournalLostError,
  type StateUpdate,
  type StepOptions,
  type StoreRecord,
  type TakenSignal,
  type WaitNote,
} from './engine/ports/journal.ts';
export type { Logger } from './engine/ports/logger.ts';
export type {
  AnyOperation,
  ConfigIssue,
  ExecutionInfo,
  MaybePromise,
  Operation,
  OperationContext,
} from './engine/ports/operation.ts';
export type { OutputOf, StandardIssue, StandardResult, StandardSchema } from './engine/ports/standard-schema.ts';
export type * from './engine/ports/storage.ts';
export type * from './engine/model/stored-execution.ts';
export type { TokenStore } from './engine/ports/token-store.ts';

// Errors
export { isOrchestratorError, OrchestratorError, type ErrorCode, type ErrorOptions } from './engine/errors.ts';
