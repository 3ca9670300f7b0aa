/** The calls of the API, and the routes that they are. */

import { auditCalls } from './audit.ts';
import { componentCalls } from './components.ts';
import { type Call, type CallRoute, routeOf } from './define-call.ts';
import { definitionCalls, trafficCalls, versionCalls, workflowCalls } from './definitions.ts';
import { deliveryCalls } from './deliveries.ts';
import { executeCalls } from './execute.ts';
import { executionControlCalls } from './execution-control.ts';
import { executionCalls } from './executions.ts';
import { healthCalls } from './health.ts';
import { jobCalls } from './jobs.ts';
import { openApiCalls } from './openapi.ts';
import { scheduleCalls } from './schedules.ts';
import { stateCalls } from './state.ts';
import { tokenCalls } from './tokens.ts';
import { callerCalls } from './usage.ts';

const CALLS = [
  ...healthCalls,
  ...openApiCalls(() => API_ROUTES),
  ...callerCalls,
  ...tokenCalls,
  ...executeCalls,
  ...executionCalls,
  ...executionControlCalls,
  ...jobCalls,
  ...auditCalls,
  ...deliveryCalls,
  ...scheduleCalls,
  ...workflowCalls,
  ...definitionCalls('/ensembles', 'ensemble'),
  ...definitionCalls('//ensembles', 'ensemble'),
  ...definitionCalls('/agents', 'agent'),
  ...versionCalls('/ensembles', 'ensemble'),
  ...versionCalls('/agents', 'agent'),
  ...trafficCalls,
  ...componentCalls,
  ...stateCalls,
] as const;

/** Every call by its key, such as `GET /executions/:id`: the types of the clients. */
export type ApiCalls = { readonly [C in (typeof CALLS)[number] as C['key']]: C };

export const API_ROUTES: readonly CallRoute[] = (CALLS as unknown as readonly Call[]).map(routeOf);
