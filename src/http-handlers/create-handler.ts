/** `createHandler()`: everything that the service offers over HTTP, as one handler. */

import { once } from '../engine/base/once.ts';
import { flag, isRecord, optional } from '../engine/base/read-options.ts';
import {
  type HostInfo,
  type HttpHandler,
  type PlainRequest,
  type RawHandler,
  rawHandlerOf,
} from '../engine/host/host.port.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { acceptsHtml, findBrowserPath } from './access/browser-paths.ts';
import type { HandlerDependencies } from './call.ts';
import { createApiRouter } from './create-api-handler.ts';
import { type HandlerOptions, readHandlerOptions } from './handler-options.ts';
import { collectMetrics, type Metrics } from './metrics/collect-metrics.ts';
import { answerRequest } from './pipeline.ts';
import type { Route } from './router.ts';
import { handlerOf, toHandler } from './to-handler.ts';
import { findWebhook, isWebhookPath } from './webhooks/find-webhook.ts';

export interface FullHandlerOptions extends HandlerOptions {
  /**
   * Serves the dashboard: `true` at `/dashboard`, with the options of this handler. In a Worker, pass a handler that `createDashboard`
   * made. Default: none.
   */
  readonly dashboard?: boolean | HttpHandler | undefined;
  /**
   * Serves `GET /metrics` for Prometheus: what the executions of this process have done since the handler was created. A token needs the
   * scope `read:metrics`. Default false.
   */
  readonly metrics?: boolean | undefined;
}

/**
 * Serves everything of an orchestrator over HTTP: the API, as `createApiHandler`, the inbound webhooks, as
 * `createWebhookHandler`, and the dashboard, if it is asked for.
 *
 * @throws TypeError for an unknown option or a wrong value
 *
 * @example
 * ```ts
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 *
 * const handler = createHandler(createOrchestrator(), { basePath: '/service', dashboard: true });
 * const result = await handler.handle(new Request('http://localhost/about'));
 * console.log(result.matched); // false
 * ```
 */
export function createHandler<T>(orchestrator: Orchestrator<T>, options: FullHandlerOptions = {}): HttpHandler {
  const given = orchestrator as unknown as Orchestrator;
  const { dashboard, metrics, ...shared } = options;
  const dependencies = readHandlerOptions(given, options, { dashboard: DASHBOARD, metrics: flag });
  const router = createApiRouter(
    dependencies,
    metrics ? [metricsRoute(collectMetrics(given, dependencies.measured))] : [],
  );
  // A base path is the handler's own, so its start page is too, for a browser that the dashboard is for.
  const startPage = (request: PlainRequest) =>
    dashboard === true &&
    dependencies.basePath !== '' &&
    request.path.startsWith(dependencies.basePath) &&
    acceptsHtml(request)
      ? findBrowserPath(request, dependencies, true)
      : undefined;
  const service = toHandler(
    dependencies,
    (request) => router.match(request.path) ?? startPage(request) ?? findWebhook(request, dependencies),
    (request) =>
      isWebhookPath(request, dependencies)
        ? 'no-webhook'
        : (findBrowserPath(request, dependencies, dashboard === true) ?? 'nothing'),
  );
  if (dashboard === undefined || dashboard === false) return service;
  const first = dashboard === true ? loadedLater(given, shared, dependencies) : (rawHandlerOf(dashboard) as RawHandler);
  const second = rawHandlerOf(service) as RawHandler;
  return handlerOf(
    async (request, host, ownPathsOnly) => (await first(request, host, true)) ?? second(request, host, ownPathsOnly),
    dependencies,
  );
}

/** Prometheus has its own address for it, so it is not below `/api/v1`. */
function metricsRoute(metrics: Metrics): Route {
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };
  const run = async () => ({ status: 200, html: await metrics.text(), headers });
  return { method: 'GET', path: '/metrics', scope: 'read:metrics', run };
}

const DASHBOARD = optional<boolean | HttpHandler>(
  'true, false, or a handler of createDashboard()',
  (value) => typeof value === 'boolean' || (isRecord(value) && rawHandlerOf(value) !== undefined),
);
/** The dashboard, loaded when it is first asked for. */
function loadedLater(
  orchestrator: Orchestrator,
  options: HandlerOptions,
  dependencies: HandlerDependencies,
): RawHandler {
  const basePath = `${dependencies.basePath}/dashboard`;
  const load = once(async () => {
    const { createDashboard } = await import('#dashboard');
    return rawHandlerOf(createDashboard(orchestrator, { ...options, basePath })) as RawHandler;
  });
  const answer = async (request: PlainRequest, host: HostInfo) => {
    try {
      return (await load())(request, host, false);
    } catch (thrown) {
      const run = () => Promise.reject(thrown);
      const routes = new Map([[request.method, { method: 'GET', path: '', scope: 'public', run } as const]]);
      return answerRequest(
        request,
        host,
        { resource: { head: '', rest: [], routes, allow: '' }, params: {} },
        dependencies,
      );
    }
  };
  return (request, host) => {
    const { path } = request;
    const isOwn = path === basePath || path.startsWith(`${basePath}/`);
    return isOwn ? answer(request, host) : undefined;
  };
}
