/** The API's routes: the method, path, scope and function of each. */

import type { Route } from '../router.ts';
import { definitionRoutes } from './definitions.ts';
import {
  getDelivery,
  listDeliveries,
  listReceivers,
  listReplays,
  redeliver,
  replayDeliveries,
  resumeReceiver,
} from './deliveries.ts';
import {
  createComponent,
  createVersion,
  deleteDeployment,
  getComponent,
  getVersion,
  listComponents,
  listDeployments,
  listVersions,
  putDeployment,
  rollbackDeployment,
  updateComponent,
} from './components.ts';
import { executeAgent, executeEnsemble } from './execute.ts';
import {
  cancelExecution,
  createTicket,
  deleteExecution,
  retryExecution,
  signalExecution,
} from './execution-control.ts';
import {
  getAgentRun,
  getDefinition,
  getOpen,
  getRunning,
  getStep,
  getStepInput,
  getExecution,
  listAgentRuns,
  listExecutions,
  listSteps,
  streamEvents,
} from './executions.ts';
import { health } from './health.ts';
import { createJob, getJob, listJobs, stopJob } from './jobs.ts';
import { openApi } from './openapi.ts';
import { listSchedules, pauseSchedule, resumeSchedule, runSchedule } from './schedules.ts';
import { clearState, getState, patchState, putState } from './state.ts';
import { createToken, getTokenUsage, listTokens, revokeToken } from './tokens.ts';
import { getCaller, getUsage } from './usage.ts';
import { listWorkflows } from './workflows.ts';

function routesOf(path: string, kind: 'ensemble' | 'agent'): readonly Route[] {
  const { list, create, get, update, remove, activate, deactivate } = definitionRoutes(kind);
  const [read, write] = [`read:${kind}s`, `write:${kind}s`] as const;
  return [
    { method: 'GET', path, scope: read, readsQuery: true, run: list },
    { method: 'POST', path, scope: write, run: create },
    { method: 'GET', path: `${path}/:name`, scope: read, run: get },
    { method: 'PUT', path: `${path}/:name`, scope: write, readsIfMatch: true, run: update },
    { method: 'DELETE', path: `${path}/:name`, scope: write, readsIfMatch: true, run: remove },
    { method: 'POST', path: `${path}/:name/activate`, scope: write, readsIfMatch: true, run: activate },
    { method: 'POST', path: `${path}/:name/deactivate`, scope: write, readsIfMatch: true, run: deactivate },
  ];
}

/** The most bytes of a page of steps, of a record or an output as most are, and of a listing. */
const PAGE_BYTES = 8 * 1024 * 1024;
const VALUE_BYTES = 4 * 1024 * 1024;
const LIST_BYTES = 2 * 1024 * 1024;

export const API_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/v1/health', scope: 'public', run: health },

  { method: 'GET', path: '/api/v1/openapi.json', scope: 'public', run: openApi(() => API_ROUTES) },

  { method: 'GET', path: '/api/v1/usage', scope: 'any', run: getUsage },
  { method: 'GET', path: '/api/v1/caller', scope: 'any', run: getCaller },

  { method: 'POST', path: '/api/v1/tokens', scope: 'admin', run: createToken },
  { method: 'GET', path: '/api/v1/tokens', scope: 'admin', readsQuery: true, run: listTokens },
  { method: 'GET', path: '/api/v1/tokens/:id/usage', scope: 'admin', run: getTokenUsage },
  { method: 'DELETE', path: '/api/v1/tokens/:id', scope: 'admin', run: revokeToken },

  {
    method: 'POST',
    path: '/api/v1/execute/ensemble/:name',
    scope: 'execute:ensembles',
    readsKey: true,
    run: executeEnsemble,
  },
  {
    method: 'POST',
    path: '/api/v1/execute/agent/:name',
    scope: 'execute:agents',
    readsKey: true,
    run: executeAgent,
  },

  {
    method: 'GET',
    path: '/api/v1/executions',
    scope: 'read:executions',
    readsQuery: true,
    maxBytes: LIST_BYTES,
    run: listExecutions,
  },
  { method: 'GET', path: '/api/v1/open', scope: 'read:executions', run: getOpen },
  { method: 'GET', path: '/api/v1/executions/:id', scope: 'read:executions', maxBytes: VALUE_BYTES, run: getExecution },
  { method: 'DELETE', path: '/api/v1/executions/:id', scope: 'admin', run: deleteExecution },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/agents',
    scope: 'read:executions',
    readsQuery: true,
    maxBytes: PAGE_BYTES,
    run: listAgentRuns,
  },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/agents/:key',
    scope: 'read:executions',
    maxBytes: VALUE_BYTES,
    run: getAgentRun,
  },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/steps',
    scope: 'read:executions',
    readsQuery: true,
    maxBytes: PAGE_BYTES,
    run: listSteps,
  },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/steps/:key',
    scope: 'read:executions',
    maxBytes: VALUE_BYTES,
    run: getStep,
  },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/steps/:key/input',
    scope: 'read:executions',
    maxBytes: VALUE_BYTES,
    run: getStepInput,
  },
  { method: 'GET', path: '/api/v1/executions/:id/running', scope: 'read:executions', run: getRunning },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/definition',
    scope: 'read:ensembles',
    maxBytes: VALUE_BYTES,
    run: getDefinition,
  },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/events',
    scope: 'read:executions',
    readsQuery: true,
    takesTicket: true,
    run: streamEvents,
  },
  { method: 'POST', path: '/api/v1/executions/:id/events/ticket', scope: 'read:executions', run: createTicket },
  {
    method: 'POST',
    path: '/api/v1/executions/:id/cancel',
    scope: 'execute:ensembles',
    run: cancelExecution,
  },
  { method: 'POST', path: '/api/v1/executions/:id/retry', scope: 'execute:ensembles', run: retryExecution },
  {
    method: 'POST',
    path: '/api/v1/executions/:id/signals/:signal',
    scope: 'execute:ensembles',
    readsKey: true,
    run: signalExecution,
  },

  {
    method: 'GET',
    path: '/api/v1/jobs',
    scope: 'read:executions',
    readsQuery: true,
    maxBytes: LIST_BYTES,
    run: listJobs,
  },
  { method: 'POST', path: '/api/v1/jobs', scope: 'execute:ensembles', run: createJob },
  { method: 'GET', path: '/api/v1/jobs/:id', scope: 'read:executions', run: getJob },
  { method: 'POST', path: '/api/v1/jobs/:id/stop', scope: 'execute:ensembles', run: stopJob },

  {
    method: 'GET',
    path: '/api/v1/deliveries',
    scope: 'read:executions',
    readsQuery: true,
    maxBytes: LIST_BYTES,
    run: listDeliveries,
  },
  { method: 'GET', path: '/api/v1/deliveries/:id', scope: 'read:executions', maxBytes: VALUE_BYTES, run: getDelivery },
  {
    method: 'POST',
    path: '/api/v1/deliveries/:id/redeliver',
    scope: 'execute:ensembles',
    run: redeliver,
  },
  { method: 'GET', path: '/api/v1/replays', scope: 'read:executions', readsQuery: true, run: listReplays },
  { method: 'POST', path: '/api/v1/replays', scope: 'execute:ensembles', run: replayDeliveries },
  { method: 'GET', path: '/api/v1/receivers', scope: 'read:executions', readsQuery: true, run: listReceivers },
  {
    method: 'POST',
    path: '/api/v1/receivers/:id/resume',
    scope: 'execute:ensembles',
    run: resumeReceiver,
  },

  { method: 'GET', path: '/api/v1/schedules', scope: 'read:ensembles', readsQuery: true, run: listSchedules },
  {
    method: 'POST',
    path: '/api/v1/schedules/:id/pause',
    scope: 'write:ensembles',
    run: pauseSchedule,
  },
  {
    method: 'POST',
    path: '/api/v1/schedules/:id/resume',
    scope: 'write:ensembles',
    run: resumeSchedule,
  },
  { method: 'POST', path: '/api/v1/schedules/:id/run', scope: 'execute:ensembles', run: runSchedule },

  {
    method: 'GET',
    path: '/api/v1/workflows',
    scope: 'read:ensembles',
    readsQuery: true,
    takesApiKey: true,
    run: listWorkflows,
  },
  ...routesOf('/api/v1/ensembles', 'ensemble'),
  // The specification's error examples name the path without `/api/v1`.
  ...routesOf('/ensembles', 'ensemble'),
  ...routesOf('/api/v1/agents', 'agent'),

  { method: 'GET', path: '/api/v1/components', scope: 'read:components', readsQuery: true, run: listComponents },
  { method: 'POST', path: '/api/v1/components', scope: 'write:components', run: createComponent },
  { method: 'GET', path: '/api/v1/components/:name', scope: 'read:components', run: getComponent },
  {
    method: 'PUT',
    path: '/api/v1/components/:name',
    scope: 'write:components',
    readsIfMatch: true,
    run: updateComponent,
  },
  {
    method: 'GET',
    path: '/api/v1/components/:name/versions',
    scope: 'read:components',
    readsQuery: true,
    run: listVersions,
  },
  {
    method: 'POST',
    path: '/api/v1/components/:name/versions',
    scope: 'write:components',
    run: createVersion,
  },
  {
    method: 'GET',
    path: '/api/v1/components/:name/versions/:version',
    scope: 'read:components',
    readsQuery: true,
    maxBytes: VALUE_BYTES,
    run: getVersion,
  },
  {
    method: 'GET',
    path: '/api/v1/components/:name/deployments',
    scope: 'read:components',
    readsQuery: true,
    run: listDeployments,
  },
  {
    method: 'PUT',
    path: '/api/v1/components/:name/deployments/:environment',
    scope: 'write:components',
    readsIfMatch: true,
    run: putDeployment,
  },
  {
    method: 'DELETE',
    path: '/api/v1/components/:name/deployments/:environment',
    scope: 'write:components',
    readsIfMatch: true,
    run: deleteDeployment,
  },
  {
    method: 'POST',
    path: '/api/v1/components/:name/deployments/:environment/rollback',
    scope: 'write:components',
    readsIfMatch: true,
    run: rollbackDeployment,
  },

  { method: 'GET', path: '/api/v1/state/:name', scope: 'read:state', maxBytes: VALUE_BYTES, run: getState },
  { method: 'PUT', path: '/api/v1/state/:name', scope: 'write:state', readsIfMatch: true, run: putState },
  { method: 'PATCH', path: '/api/v1/state/:name', scope: 'write:state', readsIfMatch: true, run: patchState },
  { method: 'DELETE', path: '/api/v1/state/:name', scope: 'write:state', readsIfMatch: true, run: clearState },
];
