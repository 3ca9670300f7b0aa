/** `createDashboard()`: the dashboard as a handler that any host can mount. */

import { OrchestratorError } from '../engine/base/errors.ts';
import { flag } from '../engine/base/read-options.ts';
import type { HttpHandler } from '../engine/host/host.port.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import type { Authenticate } from './access/host-principal.ts';
import { API_ROUTES } from './api/routes.ts';
import { pageRoutes } from './dashboard/page-routes.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { API_ROOT } from './reply/location.ts';
import { createRouter } from './router.ts';
import { toHandler } from './to-handler.ts';

export interface DashboardOptions extends HandlerOptions {
  /** Where the dashboard is, such as `/admin`. Empty if the host removes the path. Default: `/dashboard`. */
  readonly basePath?: string | undefined;
  /**
   * Identifies people by the login of your app, for example by its session cookie. A change must come from the dashboard's page. For
   * undefined, and without this function, the page asks for an API token.
   */
  readonly authenticate?: Authenticate | undefined;
  /** Whether nothing can be changed. Then a caller has the scopes that read at most. Default false. */
  readonly readOnly?: boolean | undefined;
}

/**
 * Serves the dashboard: a page under `basePath`, and below it the API that the page calls. The page has no data of its own: what it
 * shows and offers depends on the scopes of the caller. It loads nothing from another origin.
 *
 * The page needs a trailing slash (`/dashboard/`); the path without it leads there.
 *
 * @throws TypeError for an unknown option or a wrong value
 *
 * @example
 * ```ts
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { createDashboard } from 'ensemble-orchestrator/dashboard';
 *
 * const dashboard = createDashboard(createOrchestrator(), { basePath: '/admin' });
 * const page = await dashboard.fetch(new Request('http://localhost/admin/'));
 * console.log(page.status, page.headers.get('content-type')); // 200 text/html; charset=utf-8
 * ```
 */
export function createDashboard<T>(orchestrator: Orchestrator<T>, options: DashboardOptions = {}): HttpHandler {
  const { authenticate, basePath = '/dashboard' } = options;
  const given = { ...options, basePath };
  const dependencies = readHandlerOptions(
    orchestrator as unknown as Orchestrator,
    given,
    { readOnly: flag },
    'createDashboard',
  );
  const api = API_ROUTES.filter(({ path }) => path.startsWith(API_ROOT));
  const router = createRouter([...pageRoutes(basePath), ...api], basePath, '');
  return toHandler(
    { ...dependencies, readOnly: options.readOnly === true, authenticate: authenticate && fromOwnPage(authenticate) },
    ({ path }) => router.match(path),
    () => 'nothing',
  );
}

/** A cookie comes with the requests of other sites as well. None of them can send the header that the page sends. */
function fromOwnPage(authenticate: Authenticate): Authenticate {
  return (request, host) => {
    const { headers, method } = request;
    if (method === 'GET' || method === 'HEAD' || headers.get('x-requested-with') === 'dashboard')
      return authenticate(request, host);
    if (headers.has('authorization')) return undefined;
    const message =
      'a change by the login of the app must come from the page of the dashboard; other programs need an API token';
    throw new OrchestratorError('FORBIDDEN', message);
  };
}
