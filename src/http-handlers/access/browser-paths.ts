/** What browsers ask for by themselves, or because somebody typed the address of the service: it counts against no limit. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';
import type { HandlerDependencies } from '../call.ts';
import { errorReply } from '../reply/reply.ts';
import type { Match, Route } from '../router.ts';

/**
 * The start page and the icon, which a handler does not have. A browser is led to the dashboard, where one is served below the start page.
 *
 * @param hasDashboard - whether the dashboard is at `/dashboard`
 * @returns undefined for every other path
 */
export function findBrowserPath(
  { method, path }: PlainRequest,
  { basePath }: HandlerDependencies,
  hasDashboard: boolean,
): Match | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  const isStart = path === '/' || path === basePath || path === `${basePath}/`;
  if (!isStart && path !== '/favicon.ico' && path !== `${basePath}/favicon.ico`) return undefined;
  const leadsOn = isStart && hasDashboard && path.startsWith(basePath);
  // Relative, because a proxy may have removed the begin of the path.
  const location = `${path.endsWith('/') ? '' : `${basePath.slice(basePath.lastIndexOf('/') + 1)}/`}dashboard/`;
  const run: Route['run'] = ({ request }) =>
    leadsOn && acceptsHtml(request)
      ? { status: 302, headers: { location } }
      : errorReply(new OrchestratorError('NOT_FOUND', nothingAt(path, leadsOn)));
  const route: Route = { method: 'GET', path: '', scope: 'public', run };
  return { resource: { head: '', rest: [], routes: new Map([[method, route]]), allow: 'GET' }, params: {} };
}

export function acceptsHtml(request: PlainRequest): boolean {
  return request.header('accept')?.includes('text/html') === true;
}

function nothingAt(path: string, leadsOn: boolean): string {
  const dashboard = leadsOn ? 'the dashboard is at dashboard/, ' : '';
  return `there is nothing at ${path}; ${dashboard}the API is below /api/v1`;
}
