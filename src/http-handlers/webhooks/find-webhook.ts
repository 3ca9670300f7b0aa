/** Finds the webhook of a request, as a match like that of a route. */

import { isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';
import { WEBHOOK_ROOT } from '../../engine/webhook/webhook.ts';
import type { ServedWebhook, ServedWebhooks } from '../../orchestrator/webhooks/webhooks.ts';
import type { HandlerDependencies } from '../call.ts';
import type { Found, Match, Route } from '../router.ts';
import { receiveWebhook } from './receive-webhook.ts';

/** @returns undefined for a path without a webhook, `no-webhook` for one whose ensembles are not active. Never rejects: a failure of the storage is answered as one of the route */
export function findWebhook(request: PlainRequest, dependencies: HandlerDependencies): MaybePromise<Found | undefined> {
  const { path, method } = request;
  const { basePath, orchestrator } = dependencies;
  if (!path.startsWith(`${basePath}/`)) return undefined;
  const found = (orchestrator.webhooks as ServedWebhooks).find(path.slice(basePath.length), method);
  if (!isPromise(found)) return toMatch(path, found);
  return found.then(
    (methods) => toMatch(path, methods),
    (thrown: unknown) => matchOf(path, [[method, toRoute(path, method, () => Promise.reject(thrown))]]),
  );
}

/** Whether a path without a webhook is in the place of webhooks, so that it is answered as one. */
export function isWebhookPath({ path }: PlainRequest, { basePath }: HandlerDependencies): boolean {
  return path.startsWith(basePath + WEBHOOK_ROOT);
}

function toMatch(path: string, methods: ReadonlyMap<string, ServedWebhook> | undefined): Found | undefined {
  if (!methods) return undefined;
  if (methods.size === 0) return 'no-webhook';
  const routes = [...methods].map(
    ([method, webhook]) => [method, toRoute(path, method, (call) => receiveWebhook(call, webhook))] as const,
  );
  return matchOf(path, routes);
}

function matchOf(path: string, given: readonly (readonly [string, Route])[]): Match {
  const routes = new Map(given);
  return {
    resource: { head: path, rest: [], routes, allow: [...routes.keys()].join(', '), isWebhook: true },
    params: {},
  };
}

function toRoute(path: string, method: string, run: Route['run']): Route {
  return {
    method: method as Route['method'],
    path,
    scope: 'public',
    readsQuery: true,
    readsKey: true,
    run,
  };
}
