/**
 * The public names of the main entry, in the order in which data flows.
 *
 * @module ensemble-orchestrator
 */

// Definitions
export { defineConfig, type ProjectConfig } from './project/define-config.ts';
export {
  defineAgent,
  defineEnsemble,
  defineOperation,
  type AgentSource,
  type DefinedAgent,
  type DefinedEnsemble,
  type EnsembleSource,
  type EnsembleTypes,
  type InputOf,
  type OutputsOf,
} from './authoring/define.ts';
export type { AgentDraft, AgentFields, EnsembleDraft, OperationName, StepDraft } from './authoring/draft.ts';
export type { Expression, WrittenDuration } from './engine/base/time/duration.ts';
export type {
  CodeConfig,
  ConfigReference,
  EmailSettings,
  OperationConfigs,
  Written,
  WrittenConfig,
} from './authoring/operation-configs.ts';
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
} from './authoring/steps.ts';
export { parseEnsemble } from './engine/definition/read/parse-ensemble.ts';
export type * from './engine/ensemble/ensemble.ts';
export type * from './engine/ensemble/flow-control.ts';

// The orchestrator
export type {
  ErrorsOptions,
  OrchestratorOptions,
  SharedLimit,
  SignalLinksOptions,
} from './orchestrator/options/options.ts';
export { createOrchestrator, type Orchestrator } from './orchestrator/create-orchestrator.ts';
export type { ExecuteOptions, RetryOptions } from './orchestrator/runs/starts/execute-options.ts';
export type { ExecutionHandle } from './orchestrator/runs/handles.ts';
export type {
  AgentItem,
  Agents,
  DefinitionItem,
  Definitions,
  EnsembleItem,
  Ensembles,
  ListOptions,
  Page,
} from './orchestrator/definitions/definitions.ts';
export type { ChangeOptions } from './orchestrator/changes.ts';
export type { DefinitionRollback, VersionOptions, WriteOptions } from './orchestrator/definitions/definitions.ts';
export type { DefinitionVersion, VersionedDefinition } from './engine/ensemble/definition-version.ts';
export type { TrafficMark } from './engine/ensemble/traffic.ts';
export type { EnsembleTraffic, SetTraffic } from './orchestrator/traffic/traffic.ts';
export type { NewTraffic } from './orchestrator/traffic/new-traffic.ts';
export type { Shadowed, ShadowDifference } from './orchestrator/traffic/shadows.ts';
export type { OutputDifference, WentDifferently } from './orchestrator/traffic/compare-shadow.ts';
export type { EnsembleState, EnsembleStates } from './orchestrator/definitions/ensemble-states.ts';
export type { Limits, RequestLimit, RequestSender } from './engine/access/rules/limits.ts';
export type { LimitsOptions } from './engine/access/rules/plans.ts';
export type { TrustProxy } from './engine/access/rules/client-address.ts';
export type { Usage, UsageReader, UsedOfLimit } from './engine/access/rules/usage.ts';
export type { LimitStore } from './engine/access/limit-store.port.ts';
export type { EventTicket } from './orchestrator/runs/event-tickets.ts';
export type { ExecutionHistory } from './engine/execution/execution-history.ts';
export type {
  Deliveries,
  Delivery,
  DeliveryAttempt,
  DeliveryFilter,
  DeliveryListFilter,
  DeliveryStatus,
  NotifiedEvent,
  PauseReason,
  Receiver,
  Replay,
} from './orchestrator/deliveries/deliveries.ts';
export type {
  Component,
  ComponentListOptions,
  Components,
  NewComponent,
  EnsuredComponent,
  EnsureResult,
  NewComponentVersion,
} from './orchestrator/components/components.ts';
export type { NewDeployment } from './orchestrator/components/new-deployment.ts';
export type {
  ComponentContent,
  ComponentKind,
  ComponentMetadata,
  ComponentVariable,
  ComponentVersion,
  Deployment,
  ResolvedComponent,
  Rollout,
  Split,
  UsedComponent,
} from './engine/component/component.ts';
export type { StepCount } from './engine/component/guard.ts';
export type { ComponentSource } from './engine/component/component-source.port.ts';
export type { TemplateEngine } from './engine/component/template-engine.port.ts';
export type { Telemetry } from './engine/host/telemetry.port.ts';
export type { Job, JobFailure, JobFilter, JobOptions, Jobs } from './orchestrator/operators/jobs.ts';
export type { Schedule, Schedules } from './orchestrator/schedules/schedule-control.ts';
export type { ExecutionSelection } from './orchestrator/runs/execution-filter.ts';
export type {
  ExecutedDefinition,
  ExecutionFilter,
  Executions,
  PauseTarget,
} from './orchestrator/runs/executions.ts';
export type { ExecutionStats, OpenExecutions, StatsFilter } from './orchestrator/runs/stats.ts';
export type {
  EndCounts,
  EndNumbers,
  EndStats,
  EnsembleStats,
  ErrorGroup,
  StatsBucket,
} from './engine/events/tallies/stats.ts';
export type { Percentiles } from './engine/events/tallies/histogram.ts';
export type { OverLimit } from './engine/execution/limits/flow-limit.ts';
export type { EnginePause } from './engine/execution/execution-engine.port.ts';
export type { MoveOptions, Moves, RefusedMove } from './orchestrator/change/move.ts';
export type { NameMap } from './orchestrator/change/same-steps.ts';
export type { OperatorOptions, OperatorSource } from './orchestrator/operators/operator-options.ts';
export type { Audit, AuditFilter } from './orchestrator/operators/audit.ts';
export type { AuditAction, AuditEntry } from './engine/access/audit-entry.ts';
export type { ReplayDifference } from './engine/running/replay-journal.ts';
export type { RunningSteps, StepInput } from './orchestrator/runs/steps-at-work.ts';
export type { WebhookItem, Webhooks } from './orchestrator/webhooks/webhooks.ts';
export type { SignatureScheme } from './engine/webhook/webhook.ts';
export {
  signPayload,
  type SignPayloadOptions,
  verifySignature,
  type VerifySignatureOptions,
} from './engine/signing/sign-payload.ts';
export type { SignalForm, SignalLinkState, SignalPage, SignalPageTexts } from './engine/signal/signal-page.ts';
export type { SignalLinks, SignalLinkStatus } from './orchestrator/signals/signal-links.ts';
export type { SignalOptions } from './orchestrator/signals/signals.ts';
export type { CreatedToken, ImportedToken, NewToken, TokenItem, Tokens } from './engine/access/rules/tokens.ts';
export type {
  AgentResult,
  ErrorCause,
  JobAction,
  Execution,
  ExecutionCompletion,
  ExecutionError,
  ExecutionMetrics,
  ExecutionStatus,
  OpenCount,
  OpenCounts,
  OpenStatus,
  AcceptedExecution,
  ExecutionSummary,
  DryRunOptions,
  ExecutionMove,
  ExecutionRetry,
  ExecutionTrigger,
  FinalStatus,
  PendingWait,
  PlannedStep,
  TokenUsage,
} from './engine/execution/execution.ts';
export type { ExecutionStep, StepStatus } from './engine/ensemble/execution-step.ts';
export type { StepPage, StepPageOptions } from './orchestrator/runs/list-steps.ts';
export type { StepKind } from './engine/ensemble/step-kind.ts';
export type {
  EventData,
  DeliveryDetails,
  RolledBack,
  EventDetails,
  EventError,
  EventKind,
  ExecutionOfEvent,
  OrchestratorEvent,
} from './engine/events/event.ts';
export type { EventListener } from './engine/events/rules/emitter.ts';
export type { StoredEvent } from './engine/events/rules/execution-events.ts';
export type { Plan, PlanFigures, PlanName } from './engine/access/plan.ts';
export type { Principal, TokenScope } from './engine/access/token.ts';

// Operations and functions
export type { Evaluation } from './engine/expression/evaluation.ts';
export type { ExpressionFunction, FunctionTable } from './engine/expression/functions/function-table.ts';
export type { ApiOutput } from './operations/api/answer.ts';
export type { ApiConfig } from './operations/api/config.ts';
export type { EmailConfig } from './operations/email/config.ts';
export type { PdfConfig } from './operations/pdf/pdf-operation.ts';
export type { SmsConfig } from './operations/sms/config.ts';
export type { StorageConfigText } from './operations/storage/storage-config.ts';
export type { ThinkConfig } from './operations/think/config.ts';
export type { ToolsConfig } from './operations/tools/tools-operation.ts';
export type { PagedOutput } from './operations/api/paginate.ts';
export type { Script, ScriptContext } from './operations/code/script.ts';
export {
  type DefinedScript,
  defineScript,
  type InputOfScript,
  type ResultOfScript,
} from './operations/code/define-script.ts';
export type { BatchFailure, BatchOutput } from './operations/email/batch.ts';
export type { EmailOutput } from './operations/email/email-operation.ts';
export type { SmsOutput } from './operations/sms/sms-operation.ts';
export type { Binding } from './operations/storage/storage-operation.ts';
export type { ThinkOutput } from './operations/think/think-operation.ts';
export type { ModelServerOptions } from './adapters/models/model-server-options.ts';
export type { ToolsOutput } from './operations/tools/tools-operation.ts';

// HTTP handlers
export { createApiHandler } from './http-handlers/create-api-handler.ts';
export { createHandler } from './http-handlers/create-handler.ts';
export { createWebhookHandler } from './http-handlers/create-webhook-handler.ts';
export type { Authenticate, HostPrincipal } from './http-handlers/access/host-principal.ts';
export type { FullHandlerOptions } from './http-handlers/create-handler.ts';
export type { HandlerOptions } from './http-handlers/handler-options.ts';
export type { HandlerResult, HostInfo, HttpHandler } from './engine/host/host.port.ts';

// Default adapters
export { systemClock } from './adapters/clock/system-clock.ts';
export { embeddedEngine } from './adapters/embedded-engine/embedded-engine.ts';
export type { EmbeddedEngineOptions } from './adapters/embedded-engine/engine-options.ts';
export { type FetchHttpOptions, fetchHttp } from './adapters/http/fetch-http.ts';
export { type KeptMail, memoryMail, type MemoryMail, type MemoryMailOptions } from './adapters/mail/memory-mail.ts';
export { thirdpartyMail, type ThirdpartyMailOptions } from './adapters/mail/thirdparty-mail.ts';
export { memoryStorage, type MemoryStorageOptions } from './adapters/storage/memory/memory-storage.ts';

// The types of options, which adapters implement. The entry `adapter` has what else their authors need.
export type { Duration } from './engine/base/time/duration.ts';
export type { Json, JsonObject } from './engine/base/json/json.ts';
export type { Clock } from './engine/host/clock.port.ts';
export type { KvStore, ObjectStore } from './engine/storage/data.port.ts';
export type { ExecutionEngine } from './engine/execution/execution-engine.port.ts';
export type { HttpClient, HttpRequest, HttpResponse } from './engine/host/http.port.ts';
export type { Logger } from './engine/host/logger.port.ts';
export type { MailSender } from './engine/operation/mail.port.ts';
export type { ModelPrices, ModelProvider } from './engine/operation/model.port.ts';
export type { SmsSender } from './engine/operation/sms.port.ts';
export type {
  AgentAnswer,
  AgentCall,
  AnyOperation,
  ConfigIssue,
  NeededValue,
  ExecutionInfo,
  StepTransaction,
  MaybePromise,
  Operation,
  OperationContext,
  OperationPart,
} from './engine/operation/operation.port.ts';
export type { AnySchema, StandardSchema } from './engine/operation/standard-schema.port.ts';
export type { Storage } from './engine/storage/storage.port.ts';
export type { McpClient, ToolServerAuth, ToolServerOptions } from './engine/operation/tool-server.port.ts';

// Errors
export {
  type DefinitionIssue,
  type ErrorCode,
  type ErrorDetails,
  type ErrorOptions,
  type OrchestratorErrorOf,
  isOrchestratorError,
  OrchestratorError,
} from './engine/base/errors.ts';
