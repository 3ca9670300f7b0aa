/**
 * What only authors of adapters need: all types of the ports, and the functions that the built-in storages use, too.
 *
 * @module ensemble-orchestrator/adapter
 */

// Parts
export { memoryKv, memoryObjects } from '../adapters/storage/memory/data.ts';
export { memoryTokens } from '../adapters/storage/memory/tokens.ts';
// The port
export type { CallerSignal } from '../engine/base/caller-signal.ts';
// Errors
export {
  type ErrorCode,
  type ErrorDetails,
  type ErrorOptions,
  isOrchestratorError,
  OrchestratorError,
  type OrchestratorErrorOf,
} from '../engine/base/errors.ts';
export type { Json, JsonObject } from '../engine/base/json.ts';
// Values and keys
export { equalJson } from '../engine/base/json.ts';
export { jsonTextBytes } from '../engine/base/measure-json.ts';
export type {
  DeliveryAttempt,
  DeliveryState,
  DeliveryStatus,
  NewDelivery,
  NotifiedEvent,
  StoredDelivery,
} from '../engine/model/delivery.ts';
export { firstDeliveryId } from '../engine/model/delivery.ts';
export type {
  AcceptedExecution,
  AgentResult,
  ErrorCause,
  Execution,
  ExecutionError,
  ExecutionMetrics,
  ExecutionStatus,
  ExecutionSummary,
  ExecutionTrigger,
  FinalStatus,
  PendingWait,
} from '../engine/model/execution.ts';
// Records
export {
  AGENTS_IN_RECORD,
  isFinal,
  LISTED_VALUE_BYTES,
  MAX_MATCHES,
  OUTPUTS_IN_RECORD_BYTES,
  PAGE_BYTES,
  SHORT_OUTPUT_BYTES,
} from '../engine/model/execution.ts';
export {
  type StoredProgress,
  toAgentResults,
  toExecution,
  toListed,
  tooManyMatches,
  toSummary,
  withoutValues,
} from '../engine/model/execution-record.ts';
export type { Measure, Metric } from '../engine/model/measurement.ts';
export type { Plan, PlanFigures, PlanName } from '../engine/model/plan.ts';
export type { Charge } from '../engine/model/quota.ts';
export type * from '../engine/model/stored-execution.ts';
export { NEVER } from '../engine/model/stored-execution.ts';
export type { StoredToken, TokenScope } from '../engine/model/token.ts';
export type { TraceContext } from '../engine/model/trace-context.ts';
export type { CancelTimer, Clock, TimerOptions } from '../engine/ports/clock.ts';
export type {
  ComponentSource,
  DeploymentChange,
  Registration,
  StoredComponent,
} from '../engine/ports/component-source.ts';
export type * from '../engine/ports/data.ts';
export { checkKey, isPlainText, MAX_KEY_BYTES } from '../engine/ports/data.ts';
// Runs of an engine
export type * from '../engine/ports/execution-engine.ts';
export type { HttpClient, HttpHead, HttpRequest, HttpResponse } from '../engine/ports/http.ts';
export {
  type DecisionFacts,
  type Journal,
  JournalLostError,
  type StateUpdate,
  type StepOptions,
  type StoreRecord,
  type TakenSignal,
  type WaitPlace,
} from '../engine/ports/journal.ts';
export type * from '../engine/ports/limit-store.ts';
export type * from '../engine/ports/mail.ts';
export type * from '../engine/ports/model.ts';
export type { MaybePromise } from '../engine/ports/operation.ts';
export type { RunLog } from '../engine/ports/run-log.ts';
export type { SmsMessage, SmsSender } from '../engine/ports/sms.ts';
export type { StandardIssue, StandardResult, StandardSchema } from '../engine/ports/standard-schema.ts';
export type * from '../engine/ports/storage.ts';
export { callPart, createParts, type StorageMethod } from '../engine/ports/storage-methods.ts';
export type * from '../engine/ports/telemetry.ts';
export type * from '../engine/ports/template-engine.ts';
export type { TokenStore } from '../engine/ports/token-store.ts';
export type {
  McpClient,
  ToolAnswer,
  ToolCall,
  ToolDescription,
  ToolServer,
  ToolServerAccess,
  ToolServerAuth,
  ToolServerOptions,
  ToolTransport,
} from '../engine/ports/tool-server.ts';
export { ActiveRun } from '../engine/running/active-run.ts';
export type { HeldExecution } from '../engine/running/held-execution.ts';
export type { RunParts } from '../engine/running/run-journal.ts';
