/** What the OpenAPI document says about each route, by its method and path. */

import type * as z from 'zod/mini';
import { newToken } from '../../engine/access/tokens.ts';
import { componentChange, newComponent, newDeployment, newVersion, rollbackReason } from '../api/components.ts';
import { DELIVERY_FILTERS, replayBody } from '../api/deliveries.ts';
import { executeBody } from '../api/execute.ts';
import { retryBody } from '../api/execution-control.ts';
import { EXECUTION_FILTERS } from '../api/executions.ts';
import { jobBody } from '../api/jobs.ts';
import { noted } from '../body-fields.ts';
import { SHAPES } from './shapes.ts';

export interface Operation {
  readonly id: string;
  readonly summary: string;
  /** The status of a success with the name of its shape. `204` and streams have none. */
  readonly replies: Readonly<Record<number, string | undefined>>;
  readonly query?: readonly string[];
  /** The form that checks the body, or a body without one: any JSON, an object, a JSON Merge Patch, or a definition. */
  readonly body?: (() => z.ZodMiniType) | 'json' | 'object' | 'patch' | 'definition';
  /** Headers of the request, besides `If-Match` and `Idempotency-Key`. */
  readonly sends?: readonly string[];
  /** Headers of a success. `Location` is that of 201 and 202. */
  readonly headers?: readonly ('ETag' | 'Location')[];
}

const PAGE = ['limit', 'cursor'];
const TAGGED = { headers: ['ETag'] } as const;
const LOCATED = { headers: ['Location'] } as const;
const CREATED = { headers: ['ETag', 'Location'] } as const;

/** A function checks the plan, so its form says nothing about it. */
function tokenBody() {
  const body = newToken();
  noted(body.shape.plan, { ...SHAPES.Plan });
  return body;
}

const executions: Readonly<Record<string, Operation>> = {
  'POST /execute/ensemble/:name': {
    ...{ id: 'executeEnsemble', summary: 'Starts an ensemble, and waits for its end unless it is asynchronous' },
    ...{ replies: { 200: 'ExecutionResult', 202: 'Accepted' }, body: executeBody },
    ...{ sends: ['Prefer'], ...LOCATED },
  },
  'POST /execute/agent/:name': {
    ...{ id: 'executeAgent', summary: 'Starts a shared agent, and waits for its end unless it is asynchronous' },
    ...{ replies: { 200: 'ExecutionResult', 202: 'Accepted' }, body: executeBody },
    ...{ sends: ['Prefer'], ...LOCATED },
  },
  'GET /executions': {
    ...{ id: 'listExecutions', summary: 'Lists executions', query: EXECUTION_FILTERS },
    replies: { 200: 'Executions' },
  },
  'GET /executions/:id': { id: 'getExecution', summary: 'The record of an execution', replies: { 200: 'Execution' } },
  'DELETE /executions/:id': {
    ...{ id: 'deleteExecution', summary: 'Deletes the record of an execution that has ended' },
    replies: { 200: 'Deleted' },
  },
  'GET /executions/:id/agents': {
    ...{ id: 'listAgentRuns', summary: 'Lists the agent runs of an execution', query: PAGE },
    replies: { 200: 'AgentResults' },
  },
  'GET /executions/:id/agents/:key': {
    ...{ id: 'getAgentRun', summary: 'An agent run with its output', replies: { 200: 'AgentResult' } },
  },
  'GET /executions/:id/steps': {
    ...{ id: 'listSteps', summary: 'Lists the steps of an execution, of every kind' },
    query: [...PAGE, 'maxOutput'],
    replies: { 200: 'Steps' },
  },
  'GET /open': {
    ...{ id: 'getOpen', summary: 'How many executions are queued, running and waiting' },
    replies: { 200: 'OpenCounts' },
  },
  'GET /executions/:id/steps/:key': {
    ...{ id: 'getStep', summary: 'A step with its output', replies: { 200: 'Step' } },
  },
  'GET /executions/:id/steps/:key/input': {
    ...{ id: 'getStepInput', summary: 'What an agent got as its input', replies: { 200: 'StepInput' } },
  },
  'GET /executions/:id/running': {
    ...{ id: 'getRunning', summary: 'The agents that are at work', replies: { 200: 'RunningSteps' } },
  },
  'GET /executions/:id/definition': {
    ...{ id: 'getExecutedDefinition', summary: 'The definition with which an execution began' },
    replies: { 200: 'ExecutedDefinition' },
  },
  'GET /executions/:id/events': {
    ...{ id: 'streamEvents', summary: 'The events of an execution, as server-sent events', query: ['after', 'ticket'] },
    ...{ sends: ['Last-Event-ID'], replies: { 200: undefined, 204: undefined } },
  },
  'POST /executions/:id/events/ticket': {
    ...{ id: 'createEventTicket', summary: 'A ticket for the event stream', replies: { 201: 'Ticket' } },
  },
  'POST /executions/:id/cancel': {
    ...{ id: 'cancelExecution', summary: 'Cancels an execution', replies: { 200: 'ExecutionOrStatus' } },
  },
  'POST /executions/:id/retry': {
    ...{ id: 'retryExecution', summary: 'Retries the newest execution of a chain', body: retryBody },
    ...{ replies: { 202: 'ExecutionOrStatus' }, ...LOCATED },
  },
  'POST /executions/:id/signals/:signal': {
    ...{ id: 'signalExecution', summary: 'Sends a signal; the body is its payload', body: 'json' },
    replies: { 200: 'ExecutionOrStatus' },
  },
  'GET /jobs': { id: 'listJobs', summary: 'Lists jobs, newest first', query: PAGE, replies: { 200: 'Jobs' } },
  'POST /jobs': {
    ...{ id: 'createJob', summary: 'Cancels, retries or deletes many executions', body: jobBody },
    ...{ replies: { 202: 'Job' }, ...LOCATED },
  },
  'GET /jobs/:id': { id: 'getJob', summary: 'A job with its progress', replies: { 200: 'Job' } },
  'POST /jobs/:id/stop': { id: 'stopJob', summary: 'Stops a job', replies: { 200: 'StoppedJob' } },
};

const deliveries: Readonly<Record<string, Operation>> = {
  'GET /deliveries': {
    ...{ id: 'listDeliveries', summary: 'Lists deliveries, newest first', replies: { 200: 'Deliveries' } },
    query: DELIVERY_FILTERS,
  },
  'GET /deliveries/:id': {
    ...{ id: 'getDelivery', summary: 'A delivery with its body', replies: { 200: 'DeliveryWithBody' } },
  },
  'POST /deliveries/:id/redeliver': {
    ...{ id: 'redeliver', summary: 'Sends a delivery again', replies: { 202: 'Delivery' } },
  },
  'GET /replays': { id: 'listReplays', summary: 'Lists the jobs of replays', query: PAGE, replies: { 200: 'Replays' } },
  'POST /replays': {
    ...{ id: 'replayDeliveries', summary: 'Sends many deliveries again', body: replayBody, replies: { 202: 'Replay' } },
  },
  'GET /receivers': {
    ...{ id: 'listReceivers', summary: 'Lists receivers that fail or are paused', query: PAGE },
    replies: { 200: 'Receivers' },
  },
  'POST /receivers/:id/resume': {
    ...{ id: 'resumeReceiver', summary: 'Resumes a paused receiver', replies: { 200: 'Resumed' } },
  },
};

function definitions(path: string, kind: 'ensemble' | 'agent', suffix = ''): Readonly<Record<string, Operation>> {
  const name = `${kind === 'ensemble' ? 'Ensemble' : 'Agent'}${suffix}`;
  const item = { replies: { 200: 'Definition' }, ...TAGGED };
  return {
    [`GET ${path}`]: {
      ...{ id: `list${name}s`, summary: `Lists the ${kind}s`, query: [...PAGE, 'active'] },
      replies: { 200: kind === 'ensemble' ? 'Ensembles' : 'Agents' },
    },
    [`POST ${path}`]: {
      ...{ id: `create${name}`, summary: `Creates an ${kind}`, body: 'definition', replies: { 201: 'Definition' } },
      ...CREATED,
    },
    [`GET ${path}/:name`]: { id: `get${name}`, summary: `An ${kind} with its definition`, ...item },
    [`PUT ${path}/:name`]: {
      ...{ id: `update${name}`, summary: `Replaces an ${kind}`, body: 'definition', ...item },
    },
    [`DELETE ${path}/:name`]: {
      ...{ id: `delete${name}`, summary: `Deletes an ${kind}`, replies: { 200: 'DeletedDefinition' } },
    },
    [`POST ${path}/:name/activate`]: {
      ...{ id: `activate${name}`, summary: `Lets an ${kind} be started again`, ...item },
    },
    [`POST ${path}/:name/deactivate`]: {
      ...{ id: `deactivate${name}`, summary: `Lets an ${kind} be started no longer`, ...item },
    },
  };
}

const components: Readonly<Record<string, Operation>> = {
  'GET /components': {
    ...{ id: 'listComponents', summary: 'Lists components', query: PAGE, replies: { 200: 'Components' } },
  },
  'POST /components': {
    ...{ id: 'createComponent', summary: 'Registers a component', body: newComponent, replies: { 201: 'Component' } },
    ...CREATED,
  },
  'GET /components/:name': {
    ...{ id: 'getComponent', summary: 'A component', replies: { 200: 'Component' }, ...TAGGED },
  },
  'PUT /components/:name': {
    ...{ id: 'updateComponent', summary: 'Replaces the file and the metadata', body: componentChange },
    ...{ replies: { 200: 'Component' }, ...TAGGED },
  },
  'GET /components/:name/versions': {
    ...{
      id: 'listVersions',
      summary: 'Lists the versions, the highest first',
      query: PAGE,
      replies: { 200: 'Versions' },
    },
  },
  'POST /components/:name/versions': {
    ...{ id: 'createVersion', summary: 'Creates a version', body: newVersion, replies: { 201: 'Version' } },
  },
  'GET /components/:name/versions/:version': {
    ...{ id: 'getVersion', summary: 'A version with its text', query: ['key'], replies: { 200: 'ResolvedVersion' } },
  },
  'GET /components/:name/deployments': {
    ...{ id: 'listDeployments', summary: 'What each environment has', query: PAGE, replies: { 200: 'Deployments' } },
  },
  'PUT /components/:name/deployments/:environment': {
    ...{ id: 'deploy', summary: 'Deploys a version, a split or a rollout', body: newDeployment },
    ...{ replies: { 200: 'Deployment' }, ...TAGGED },
  },
  'DELETE /components/:name/deployments/:environment': {
    ...{ id: 'undeploy', summary: 'Takes the version from an environment' },
    replies: { 200: 'Undeployed' },
  },
  'POST /components/:name/deployments/:environment/rollback': {
    ...{ id: 'rollback', summary: 'Deploys the version before', body: rollbackReason, replies: { 200: 'Deployment' } },
    ...TAGGED,
  },
};

/** The paths are below `/api/v1`, except those that begin with `//`. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET /health': { id: 'health', summary: 'Whether the service and its storage work', replies: { 200: 'Health' } },
  'GET /openapi.json': { id: 'openApi', summary: 'This document', replies: { 200: undefined } },
  'GET /caller': { id: 'getCaller', summary: 'Who the caller is, and what it may do', replies: { 200: 'Caller' } },
  'GET /usage': { id: 'getUsage', summary: 'What the caller has used', replies: { 200: 'Usage' } },
  'POST /tokens': {
    ...{ id: 'createToken', summary: 'Creates a token', body: tokenBody, replies: { 201: 'NewToken' } },
  },
  'GET /tokens': { id: 'listTokens', summary: 'Lists the tokens', query: PAGE, replies: { 200: 'Tokens' } },
  'GET /tokens/:id/usage': {
    ...{ id: 'getTokenUsage', summary: 'What a token has used', replies: { 200: 'Usage' } },
  },
  'DELETE /tokens/:id': { id: 'revokeToken', summary: 'Revokes a token', replies: { 200: 'RevokedToken' } },
  ...executions,
  ...deliveries,
  'GET /schedules': { id: 'listSchedules', summary: 'Lists schedules', query: PAGE, replies: { 200: 'Schedules' } },
  'POST /schedules/:id/pause': { id: 'pauseSchedule', summary: 'Drops its ticks', replies: { 200: 'Schedule' } },
  'POST /schedules/:id/resume': { id: 'resumeSchedule', summary: 'Lets it start again', replies: { 200: 'Schedule' } },
  'POST /schedules/:id/run': {
    ...{ id: 'runSchedule', summary: 'Starts an execution now', replies: { 202: 'Accepted' }, ...LOCATED },
  },
  'GET /workflows': {
    ...{
      id: 'listWorkflows',
      summary: 'Lists the ensembles',
      query: [...PAGE, 'active'],
      replies: { 200: 'Workflows' },
    },
  },
  ...definitions('/ensembles', 'ensemble'),
  ...definitions('//ensembles', 'ensemble', 'Unprefixed'),
  ...definitions('/agents', 'agent'),
  ...components,
  'GET /state/:name': {
    ...{ id: 'getState', summary: 'The state of an ensemble', replies: { 200: 'State' }, ...TAGGED },
  },
  'PUT /state/:name': {
    ...{ id: 'setState', summary: 'Replaces the state', body: 'object', replies: { 200: 'State' } },
    ...TAGGED,
  },
  'PATCH /state/:name': {
    ...{ id: 'patchState', summary: 'Changes parts of the state', body: 'patch' },
    ...{ replies: { 200: 'State' }, ...TAGGED },
  },
  'DELETE /state/:name': {
    ...{ id: 'clearState', summary: 'Sets the state back', replies: { 200: 'State' }, ...TAGGED },
  },
};
