/** The values in the responses of the API, as JSON Schemas. A test compares every response of the HTTP tests with them. */

import { AUDIT_ACTIONS } from '../../engine/access/audit-entry.ts';
import { PLANS } from '../../engine/access/plan.ts';
import { SCOPES } from '../../engine/access/token.ts';
import { COMPONENT_KINDS } from '../../engine/component/component.ts';
import { DELIVERY_STATUSES, NOTIFIED_EVENTS } from '../../engine/delivery/delivery.ts';
import { STATS_BUCKETS } from '../../engine/events/tallies/stats.ts';
import { EXECUTION_STATUSES, JOB_ACTIONS } from '../../engine/execution/execution.ts';
import { STATUS } from '../reply/status.ts';

export type Schema = Readonly<Record<string, unknown>>;

declare const OF: unique symbol;
/** A schema with the type of its values, so that the compiler compares what calls give with the document. */
export type Shape<T> = Schema & { readonly [OF]?: T };
/** A named shape inside of another one. */
export interface Named<Name extends string> {
  readonly shape: Name;
}
export type TypeOf<S> = S extends { readonly [OF]?: infer T } ? T : never;

type Fields = Readonly<Record<string, Shape<unknown>>>;
type ObjectOf<F extends Fields> = {
  readonly [K in keyof F as K extends `${string}?` ? never : K]: TypeOf<F[K]>;
} & { readonly [K in keyof F as K extends `${infer Name}?` ? Name : never]?: TypeOf<F[K]> };

const text: Shape<string> = { type: 'string' };
const flag: Shape<boolean> = { type: 'boolean' };
const whole: Shape<number> = { type: 'integer' };
const figure: Shape<number> = { type: 'number' };
const instant: Shape<number> = { type: 'integer', description: 'Unix ms' };
const ms: Shape<number> = { type: 'number', description: 'ms' };
const json: Shape<unknown> = { description: 'any JSON value' };
const anyObject: Shape<object> = { type: 'object', additionalProperties: true };

function oneOf<T extends string>(values: readonly T[]): Shape<T> {
  return { type: 'string', enum: [...values] };
}

function always<const T>(value: T): Shape<T> {
  return { const: value };
}

function list<T>(items: Shape<T>): Shape<readonly T[]> {
  return { type: 'array', items };
}

function mapOf<T>(values: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return { type: 'object', additionalProperties: values };
}

function either<A, B>(...schemas: readonly [Shape<A>, Shape<B>]): Shape<A | B> {
  return { anyOf: schemas };
}

/** @param fields - the name of an optional field ends with `?` */
function object<const F extends Fields>(fields: F): Shape<ObjectOf<F>> {
  const entries = Object.entries(fields).map(([name, schema]) => [name.replace('?', ''), schema]);
  const required = Object.keys(fields).filter((name) => !name.endsWith('?'));
  return {
    type: 'object',
    properties: Object.fromEntries(entries),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

/** A schema of the document by its name. */
export function ref<const Name extends string>(name: Name): Shape<Named<Name>> {
  return { $ref: `#/components/schemas/${name}` };
}

/** A page of a listing. */
function page<const Key extends string, const Item extends string>(
  key: Key,
  item: Item,
): Shape<{ readonly [K in Key]: readonly Named<Item>[] } & { readonly nextCursor?: string }> {
  return object({ [key]: list(ref(item)), 'nextCursor?': text }) as never;
}

/** What a span and its parts have in common. */
const END_NUMBERS = {
  counts: ref('EndCounts'),
  'duration?': ref('Percentiles'),
  'wait?': ref('Percentiles'),
} as const;

const executionShapes = {
  ExecutionStatus: oneOf(EXECUTION_STATUSES),
  Trigger: object({
    type: oneOf(['call', 'webhook', 'schedule', 'http', 'ensemble']),
    ...{ 'parentId?': text, 'key?': text, 'rootId?': text, 'depth?': whole, 'hops?': whole, 'detached?': flag },
    ...{ 'traceparent?': text, 'tracestate?': text },
    ...{ 'method?': text, 'path?': text, 'cron?': text, 'timezone?': text, 'scheduledAt?': instant },
    'dryRun?': object({ 'like?': text, 'runScripts?': flag }),
    'traffic?': object({ 'split?': mapOf(figure), 'shadow?': text }),
    'retry?': object({
      ...{
        'from?': text,
        'definition?': text,
        'input?': always(true),
        'completed?': text,
        'by?': text,
        'reason?': text,
      },
    }),
  }),
  PlannedStep: object({
    ...{ key: text, kind: oneOf(['agent', 'wait', 'sleep', 'ensemble', 'while']), name: text, at: ms },
    ...{ 'operation?': text, 'input?': json, 'config?': anyObject, 'output?': json, 'error?': ref('ExecutionError') },
    ...{ 'from?': oneOf(['types', 'execution', 'operation']), 'unknown?': list(text), 'skipped?': always(true) },
    ...{ 'within?': text, 'until?': instant, 'omitted?': always(true) },
  }),
  ExecutionError: object({
    ...{ code: text, message: text, 'agent?': text, 'details?': anyObject, 'stack?': text, 'cause?': anyObject },
  }),
  TokenUsage: object({ inputTokens: whole, outputTokens: whole, 'cost?': figure }),
  Metrics: object({
    ...{ totalDuration: ms, agents: whole, 'queued?': ms, waited: ms, 'usage?': ref('TokenUsage') },
  }),
  PendingWait: object({
    key: text,
    kind: oneOf(['signal', 'sleep', 'retry', 'child', 'limit', 'debounce', 'batch']),
    ...{ 'name?': text, 'executionId?': text, 'position?': whole, 'starts?': whole, since: instant, 'until?': instant },
  }),
  SignalForm: object({ 'title?': text, 'text?': text, 'fields?': anyObject }),
  AgentResult: object({
    name: text,
    key: text,
    status: oneOf(['completed', 'failed', 'retrying']),
    ...{ attempts: whole, startedAt: instant, duration: ms, output: json, 'outputOmitted?': always(true) },
    'error?': ref('ExecutionError'),
  }),
  AgentResults: page('agents', 'AgentResult'),
  UsedComponent: object({
    kind: oneOf(COMPONENT_KINDS),
    ...{ name: text, ref: text, version: text, 'split?': anyObject },
  }),
  Execution: object({
    ...{ id: text, ensemble: text, version: text, status: ref('ExecutionStatus'), trigger: ref('Trigger') },
    ...{ 'dryRun?': always(true), 'plan?': list(ref('PlannedStep')), 'moves?': list(ref('ExecutionMove')) },
    'completions?': list(object({ key: text, at: instant, 'by?': text, 'reason?': text })),
    ...{ tags: list(text), input: json, 'output?': json, 'partialOutput?': json, 'error?': ref('ExecutionError') },
    ...{ createdAt: instant, 'startedAt?': instant, 'finishedAt?': instant, 'deadlineAt?': instant, 'duration?': ms },
    ...{ 'retryOf?': text, 'retriedBy?': text, 'parentId?': text, metrics: ref('Metrics') },
    ...{ waitingFor: list(ref('PendingWait')), 'waitingForOmitted?': whole, recoveries: whole },
    'forms?': mapOf(ref('SignalForm')),
    'components?': list(ref('UsedComponent')),
    agents: list(ref('AgentResult')),
    'omitted?': list(oneOf(['input', 'output', 'partialOutput'])),
  }),
  History: object({
    ...{ format: always(1), execution: anyObject, status: ref('ExecutionStatus'), steps: list(anyObject) },
    'end?': anyObject,
  }),
  ExecutionMove: object({ from: text, to: text, at: instant, 'by?': text, 'map?': mapOf(text) }),
  Changed: object({ changed: whole }),
  Pauses: object({ pauses: list(object({ 'ensemble?': text, since: instant })) }),
  Moves: object({
    ...{ matched: whole, moved: whole, unchanged: whole, refused: whole },
    refusals: list(object({ executionId: text, ensemble: text, at: text, expected: json, found: json, reason: text })),
  }),
  Executions: page('executions', 'Execution'),
  ExecutionResult: object({
    ...{ executionId: text, status: ref('ExecutionStatus'), 'output?': json, metrics: ref('Metrics'), 'duration?': ms },
    ...{ 'dryRun?': always(true), 'plan?': list(ref('PlannedStep')), 'error?': ref('ExecutionError') },
  }),
  Accepted: object({ executionId: text, status: ref('ExecutionStatus') }),
  ExecutionOrStatus: either(ref('Execution'), ref('Accepted')),
  Step: object({
    ...{ key: text, kind: text, name: text },
    status: oneOf(['completed', 'failed', 'running', 'waiting', 'retrying', 'skipped', 'cancelled']),
    ...{ attempts: whole, startedAt: instant, duration: ms, 'executionId?': text, 'output?': json },
    'outputOmitted?': always(true),
    'error?': ref('ExecutionError'),
  }),
  Steps: page('steps', 'Step'),
  OpenCount: object({ count: whole, 'oldestAt?': instant }),
  OpenCounts: object({
    ...{ queued: ref('OpenCount'), running: ref('OpenCount'), waiting: ref('OpenCount'), paused: ref('OpenCount') },
    unresolved: ref('OpenCount'),
    lastHour: whole,
  }),
  Percentiles: object({ p50: ms, p95: ms, p99: ms }),
  EndCounts: object({ completed: whole, failed: whole, timed_out: whole, cancelled: whole }),
  EnsembleStats: object({
    ...{ ensemble: text, ...END_NUMBERS },
    versions: list(object({ version: text, ended: whole, failed: whole })),
    'lastCompleted?': object({ id: text, at: instant }),
  }),
  ErrorGroup: object({
    ...{ ensemble: text, code: text, message: text, count: whole, children: whole },
    ...{ firstSeen: instant, lastSeen: instant, firstId: text, lastId: text, version: text, buckets: list(whole) },
  }),
  Stats: object({
    ...{ since: instant, until: instant, bucket: oneOf(STATS_BUCKETS), ...END_NUMBERS },
    ...{ ensembles: list(ref('EnsembleStats')), errors: list(ref('ErrorGroup')) },
    buckets: list(object({ at: instant, ...END_NUMBERS })),
    open: ref('OpenCounts'),
  }),
  StepInput: object({ key: text, 'input?': json, 'reason?': text }),
  RunningSteps: object({ steps: list(object({ key: text, name: text })), 'reason?': text }),
  ExecutedDefinition: object({ ensemble: text, version: text, definition: anyObject }),
  Ticket: object({ ticket: text, expiresAt: instant }),
  Job: object({
    id: text,
    action: oneOf(JOB_ACTIONS),
    ...{ filter: anyObject, 'to?': text, 'map?': mapOf(text), 'from?': text, 'definition?': text, 'input?': json },
    ...{ 'newKeys?': flag, 'key?': text, 'output?': json, 'reason?': text },
    'by?': object({ tokenId: text, name: text }),
    status: oneOf(['running', 'completed', 'stopped', 'failed']),
    ...{ seen: whole, changed: whole, unchanged: whole, failed: whole },
    failures: list(object({ executionId: text, code: text, message: text })),
    'error?': object({ code: text, message: text }),
    ...{ createdAt: instant, 'finishedAt?': instant },
  }),
  Jobs: page('jobs', 'Job'),
  AuditEntry: object({
    ...{ id: text, at: instant, action: oneOf(AUDIT_ACTIONS), target: anyObject },
    'by?': object({ name: text, 'tokenId?': text }),
    from: object({ type: oneOf(['call', 'http']), 'address?': text, 'requestId?': text }),
    ...{ 'reason?': text, 'options?': anyObject, 'before?': anyObject, 'after?': anyObject },
    'error?': object({ code: text, message: text }),
  }),
  AuditEntries: page('entries', 'AuditEntry'),
  StoppedJob: either(ref('Job'), object({ id: text, action: text, status: text })),
};

const deliveryFields = {
  ...{ id: text, executionId: text, ensemble: text, event: oneOf(NOTIFIED_EVENTS), type: oneOf(['webhook', 'email']) },
  ...{ receiver: text, 'to?': text, status: oneOf(DELIVERY_STATUSES), createdAt: instant },
  'nextAttemptAt?': instant,
  attempts: list(
    object({ attempt: whole, at: instant, duration: ms, 'status?': whole, 'error?': text, 'excerpt?': text }),
  ),
};

const deliveryShapes = {
  Delivery: object(deliveryFields),
  DeliveryWithBody: object({ ...deliveryFields, body: text }),
  Deliveries: page('deliveries', 'Delivery'),
  Replay: object({ id: text, status: oneOf(['running', 'completed']), redelivered: whole, createdAt: instant }),
  Replays: page('replays', 'Replay'),
  Receiver: object({
    ...{ receiver: text, type: oneOf(['webhook', 'email']), address: text, failingSince: instant },
    ...{ 'pausedAt?': instant, 'reason?': text },
  }),
  Receivers: page('receivers', 'Receiver'),
  Resumed: object({ deliveries: whole }),
};

const definition = {
  ...{
    name: text,
    'description?': text,
    version: text,
    'label?': text,
    active: flag,
    source: oneOf(['code', 'store']),
  },
  ...{ createdAt: instant, updatedAt: instant },
};
const definitionVersion = {
  ...{ version: text, 'label?': text, createdAt: instant },
  ...{ 'by?': text, 'message?': text, 'commit?': text },
};

const definitionShapes = {
  Definition: object({ ...definition, definition: anyObject }),
  DefinitionVersion: object(definitionVersion),
  DefinitionVersions: page('versions', 'DefinitionVersion'),
  VersionedDefinition: object({ ...definitionVersion, definition: anyObject, 'text?': text }),
  Traffic: object({
    ...{ version: text, 'split?': mapOf(figure), 'splitBy?': text, 'guard?': text, 'rollout?': anyObject },
    ...{ 'counts?': mapOf(object({ runs: whole, failures: whole })), 'shadow?': text },
    'shadowed?': object({ runs: whole, different: whole, left: whole, differences: list(ref('ShadowDifference')) }),
    ...{ 'deployedAt?': instant, 'by?': text, 'message?': text, 'previous?': text },
  }),
  ShadowDifference: object({
    ...{ executionId: text, at: instant, 'status?': object({ was: text, shadow: text }) },
    'path?': object({ was: list(text), shadow: list(text) }),
    ...{ 'output?': list(object({ path: text, 'was?': json, 'shadow?': json })), 'madeUp?': list(text) },
  }),
  Ensembles: page('ensembles', 'Definition'),
  Agents: page('agents', 'Definition'),
  DeletedDefinition: object({ name: text, deleted: always(true) }),
  Workflow: object({
    ...{ id: text, name: text, 'description?': text, active: flag, triggers: list(anyObject), version: text },
    ...{ createdAt: instant, updatedAt: instant },
  }),
  Workflows: page('data', 'Workflow'),
  Schedule: object({
    ...{ id: text, ensemble: text, cron: text, timezone: text, overlap: oneOf(['skip', 'queue']) },
    ...{ catchUp: oneOf(['once', 'skip']), 'input?': json, paused: flag, next: list(instant) },
    'last?': object({ scheduledAt: instant, executionId: text, 'status?': ref('ExecutionStatus') }),
  }),
  Schedules: page('schedules', 'Schedule'),
  State: object({ state: anyObject, version: text, 'updatedAt?': instant }),
};

const componentShapes = {
  Component: object({
    ...{ name: text, kind: oneOf(COMPONENT_KINDS), 'file?': text, metadata: anyObject },
    ...{ 'createdAt?': instant, 'updatedAt?': instant, tag: text, 'latest?': text },
  }),
  Components: page('components', 'Component'),
  Version: object({ version: text, createdAt: instant, 'message?': text, 'by?': text }),
  Versions: page('versions', 'Version'),
  ResolvedVersion: object({
    ...{ kind: oneOf(COMPONENT_KINDS), name: text, ref: text, version: text, content: text },
    ...{ metadata: anyObject, 'split?': anyObject },
  }),
  Deployment: object({
    ...{ environment: text, version: text, 'split?': anyObject, 'splitBy?': text, 'rollout?': anyObject },
    ...{ deployedAt: instant, 'by?': text, 'message?': text, 'previous?': text, 'earlier?': list(text), 'tag?': text },
  }),
  Deployments: page('deployments', 'Deployment'),
  Undeployed: object({ environment: text, undeployed: always(true) }),
};

const PLAN = either(
  oneOf(PLANS),
  object({ 'requests?': whole, 'window?': whole, 'executions?': whole, 'concurrent?': whole }),
);
const token = { id: text, name: text, scopes: list(oneOf(SCOPES)), plan: ref('Plan') };
const used = object({ used: whole, limit: whole, remaining: whole });

const accessShapes = {
  Plan: PLAN,
  NewToken: object({ token: text, ...token, 'expiresAt?': instant, createdAt: instant }),
  Token: object({ ...token, last4: text, 'expiresAt?': instant, 'lastUsed?': instant, createdAt: instant }),
  Tokens: page('tokens', 'Token'),
  RevokedToken: object({ id: text, revoked: always(true) }),
  Caller: object({
    id: text,
    name: text,
    scopes: list(oneOf(SCOPES)),
    plan: ref('Plan'),
    'readOnly?': always(true),
  }),
  Usage: object({ period: object({ start: instant, end: instant }), requests: used, executions: used }),
  Health: object({ status: always('ok') }),
  Deleted: object({ id: text, deleted: always(true) }),
};

const issue: Schema = {
  type: 'object',
  properties: { path: text, message: text, line: whole, column: whole, frame: text, suggestion: text },
  required: ['path', 'message'],
  additionalProperties: true,
};

/** The specification's body of every error. Each code has its own further fields. */
const errorShapes = {
  Error: {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: {
          ...{ code: oneOf(Object.keys(STATUS)), message: text, issues: list(issue), version: text },
          ...{ executionId: text, status: text, reason: text, requiredScope: oneOf(SCOPES), expiredAt: instant },
          ...{ limit: figure, reset: whole, retryAfter: figure, maxBytes: whole, waits: list(text) },
        },
        required: ['code', 'message'],
        additionalProperties: true,
      },
    },
    required: ['error'],
  },
  Problem: {
    type: 'object',
    description: 'RFC 9457, for a request whose `Accept` names `application/problem+json`',
    properties: { type: text, title: text, status: whole, detail: text, code: oneOf(Object.keys(STATUS)) },
    required: ['type', 'title', 'status', 'detail', 'code'],
  },
};

export const SHAPES = {
  ...executionShapes,
  ...deliveryShapes,
  ...definitionShapes,
  ...componentShapes,
  ...accessShapes,
  ...errorShapes,
};
