/**
 * What only authors of adapters need: all types of the ports, and the functions that the built-in storages use, too.
 *
 * @module ensemble-orchestrator/adapter
 */

// Parts
export { memoryKv, memoryObjects } from '../adapters/storage/memory/data.ts';
export { type MemoryTallies, memoryTallies } from '../adapters/storage/memory/tallies.ts';
export { memoryTokens } from '../adapters/storage/memory/tokens.ts';
export type * from '../engine/access/limit-store.port.ts';
export type { Plan, PlanFigures, PlanName } from '../engine/access/plan.ts';
export type { Charge } from '../engine/access/quota.ts';
export type { StoredToken, TokenScope } from '../engine/access/token.ts';
export type { TokenStore } from '../engine/access/token-store.port.ts';
// Errors
export {
  type ErrorCode,
  type ErrorDetails,
  type ErrorOptions,
  isOrchestratorError,
  OrchestratorError,
  type OrchestratorErrorOf,
} from '../engine/base/errors.ts';
export type { Json, JsonObject } from '../engine/base/json/json.ts';
// Values and keys
export { equalJson } from '../engine/base/json/json.ts';
export { jsonTextBytes } from '../engine/base/json/measure-json.ts';
// The port
export type { CallerSignal } from '../engine/base/time/caller-signal.ts';
export type {
  ComponentSource,
  DeploymentChange,
  Registration,
  StoredComponent,
} from '../engine/component/component-source.port.ts';
export type * from '../engine/component/template-engine.port.ts';
export type {
  DeliveryAttempt,
  DeliveryState,
  DeliveryStatus,
  NewDelivery,
  NotifiedEvent,
  StoredDelivery,
} from '../engine/delivery/delivery.ts';
export { firstDeliveryId } from '../engine/delivery/delivery.ts';
export type { Measure, Metric } from '../engine/events/measurement.ts';
export { type EndGroup, groupEnds, lineOfEnd } from '../engine/events/tallies/end-line.ts';
export type { Histogram } from '../engine/events/tallies/histogram.ts';
export type { Fault, StoredTally, Tally } from '../engine/events/tallies/tally.ts';
export type { TraceContext } from '../engine/events/trace-context.ts';
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
  StepWaitKind,
} from '../engine/execution/execution.ts';
// Records
export {
  AGENTS_IN_RECORD,
  isFinal,
  LISTED_VALUE_BYTES,
  MAX_MATCHES,
  OUTPUTS_IN_RECORD_BYTES,
  PAGE_BYTES,
  SHORT_OUTPUT_BYTES,
} from '../engine/execution/execution.ts';
// Runs of an engine
export type * from '../engine/execution/execution-engine.port.ts';
export {
  type StoredProgress,
  toAgentResults,
  toExecution,
  toListed,
  tooManyMatches,
  toSummary,
  withoutValues,
} from '../engine/execution/execution-record.ts';
export {
  type AttemptedStep,
  type DecisionFacts,
  type Journal,
  JournalLostError,
  type StateUpdate,
  type StepOptions,
  type StoreRecord,
  type TakenSignal,
  type WaitPlace,
} from '../engine/execution/journal.port.ts';
export type { FlowLimit } from '../engine/execution/limits/flow-limit.ts';
export type { RunLog } from '../engine/execution/run-log.port.ts';
export type * from '../engine/execution/stored-execution.ts';
export { NEVER } from '../engine/execution/stored-execution.ts';
export type { CancelTimer, Clock, TimerOptions } from '../engine/host/clock.port.ts';
export type { HttpClient, HttpHead, HttpRequest, HttpResponse } from '../engine/host/http.port.ts';
export type * from '../engine/host/telemetry.port.ts';
export type * from '../engine/operation/mail.port.ts';
export type * from '../engine/operation/model.port.ts';
export type { MaybePromise } from '../engine/operation/operation.port.ts';
export type { SmsMessage, SmsSender } from '../engine/operation/sms.port.ts';
export type { StandardIssue, StandardResult, StandardSchema } from '../engine/operation/standard-schema.port.ts';
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
} from '../engine/operation/tool-server.port.ts';
export { ActiveRun } from '../engine/running/active-run.ts';
export type { HeldExecution } from '../engine/running/held-execution.ts';
export type { RunDependencies } from '../engine/running/run-journal.ts';
export type * from '../engine/storage/data.port.ts';
export { checkKey, isPlainText, MAX_KEY_BYTES } from '../engine/storage/data.port.ts';
export { type RecordedTransaction, RefusedTransactionError } from '../engine/storage/recorded-transaction.port.ts';
export type * from '../engine/storage/storage.port.ts';
export { callPart, createParts, type StorageMethod } from '../engine/storage/storage-methods.port.ts';
