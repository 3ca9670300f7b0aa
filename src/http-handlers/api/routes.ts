/** The API's routes: the method, path, scope and function of each. */

import type { Route } from '../router.ts';
import { getEnsemble, listEnsembles } from './ensembles.ts';
import { executeAgent, executeEnsemble } from './execute.ts';
import { cancelExecution, createTicket, retryExecution, signalExecution } from './execution-control.ts';
import { getAgentRun, getExecution, listAgentRuns, listExecutions, listSteps, streamEvents } from './executions.ts';
import { health } from './health.ts';
import { createToken, listTokens, revokeToken } from './tokens.ts';

/** Every path below this one belongs to the API. */
export const API_ROOT = '/api/v1';

export const API_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/api/v1/health', scope: 'public', run: health },

  { method: 'POST', path: '/api/v1/tokens', scope: 'admin', run: createToken },
  { method: 'GET', path: '/api/v1/tokens', scope: 'admin', run: listTokens },
  { method: 'DELETE', path: '/api/v1/tokens/:id', scope: 'admin', run: revokeToken },

  {
    method: 'POST',
    path: '/api/v1/execute/ensemble/:name',
    scope: 'execute:ensembles',
    repeatable: true,
    run: executeEnsemble,
  },
  {
    method: 'POST',
    path: '/api/v1/execute/agent/:name',
    scope: 'execute:agents',
    repeatable: true,
    run: executeAgent,
  },

  { method: 'GET', path: '/api/v1/executions', scope: 'read:executions', readsQuery: true, run: listExecutions },
  { method: 'GET', path: '/api/v1/executions/:id', scope: 'read:executions', run: getExecution },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/agents',
    scope: 'read:executions',
    readsQuery: true,
    run: listAgentRuns,
  },
  { method: 'GET', path: '/api/v1/executions/:id/agents/:key', scope: 'read:executions', run: getAgentRun },
  {
    method: 'GET',
    path: '/api/v1/executions/:id/steps',
    scope: 'read:executions',
    readsQuery: true,
    run: listSteps,
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
    repeatable: true,
    run: cancelExecution,
  },
  { method: 'POST', path: '/api/v1/executions/:id/retry', scope: 'execute:ensembles', run: retryExecution },
  {
    method: 'POST',
    path: '/api/v1/executions/:id/signals/:signal',
    scope: 'execute:ensembles',
    repeatable: true,
    run: signalExecution,
  },

  { method: 'GET', path: '/api/v1/ensembles', scope: 'read:ensembles', readsQuery: true, run: listEnsembles },
  { method: 'GET', path: '/api/v1/ensembles/:name', scope: 'read:ensembles', run: getEnsemble },
  // The specification's error examples name the path without `/api/v1`.
  { method: 'GET', path: '/ensembles', scope: 'read:ensembles', readsQuery: true, run: listEnsembles },
  { method: 'GET', path: '/ensembles/:name', scope: 'read:ensembles', run: getEnsemble },
];
