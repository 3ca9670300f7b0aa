/** Finds the resource of a path in a table of segments. Segments are compared as they are; no pattern is ever built from a request. */

import type { HttpCall, RouteAccess } from './call.ts';
import type { Reply } from './reply/reply.ts';

export interface Route extends RouteAccess {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Literal segments, and parameters such as `:name`. */
  readonly path: string;
  /** Whether `run` reads the query; other routes refuse a query. */
  readonly readsQuery?: true;
  /** Whether `run` reads `If-Match`; other changes refuse it. */
  readonly readsIfMatch?: true;
  /** Whether the route reads `Idempotency-Key` itself, or takes none. For other POSTs, the answer is kept under it. */
  readonly readsKey?: true;
  readonly run: (call: HttpCall) => Reply | Promise<Reply>;
}

/** All routes of one path. */
export interface Resource {
  /** The path up to its first parameter, with the slash before it; the whole path when it has no parameter. */
  readonly head: string;
  /** The segments from the first parameter on. */
  readonly rest: readonly string[];
  readonly routes: ReadonlyMap<string, Route>;
  /** The value of `Allow`. */
  readonly allow: string;
  /** An inbound webhook: its errors are `{ error: string }`, and it takes no other method, not even OPTIONS. */
  readonly isWebhook?: true;
}

export interface Match {
  readonly resource: Resource;
  readonly params: Readonly<Record<string, string>>;
}

/** The match of a path that belongs to the handler; `nothing` and `no-webhook` for unknown ones. */
export type Found = Match | 'nothing' | 'no-webhook';

export interface Router {
  /** @returns undefined for a path that does not belong to the handler */
  match(path: string): Match | 'nothing' | undefined;
}

const NO_PARAMS: Match['params'] = Object.freeze({});

/** @param own - the path that belongs to the handler with everything below it, such as `/api/v1` */
export function createRouter(routes: readonly Route[], basePath: string, own: string): Router {
  const resources = toResources(routes);
  const inside = `${own}/`;
  return {
    match(path) {
      if (!path.startsWith(basePath)) return undefined;
      const start = basePath.length;
      for (const resource of resources) {
        if (!path.startsWith(resource.head, start)) continue;
        const params = read(resource.rest, path.slice(start + resource.head.length));
        if (params) return { resource, params };
      }
      return path.startsWith(inside, start) || path === `${basePath}${own}` ? 'nothing' : undefined;
    },
  };
}

function toResources(routes: readonly Route[]): readonly Resource[] {
  const byPath = new Map<string, Map<string, Route>>();
  for (const route of routes) {
    const methods = byPath.get(route.path) ?? new Map<string, Route>();
    byPath.set(route.path, methods.set(route.method, route));
    // HEAD is GET without the body.
    if (route.method === 'GET') methods.set('HEAD', route);
  }
  return [...byPath].map(([path, methods]) => {
    const parameterAt = path.indexOf('/:') + 1;
    const head = parameterAt === 0 ? path : path.slice(0, parameterAt);
    const rest = parameterAt === 0 ? [] : path.slice(parameterAt).split('/');
    return { head, rest, routes: methods, allow: [...methods.keys(), 'OPTIONS'].join(', ') };
  });
}

/** @param text - the path after the resource's head */
function read(rest: readonly string[], text: string): Match['params'] | undefined {
  if (rest.length === 0) return text === '' ? NO_PARAMS : undefined;
  const given = text.split('/');
  if (given.length !== rest.length) return undefined;
  const params: Record<string, string> = {};
  for (let i = 0; i < rest.length; i++) {
    const segment = rest[i] as string;
    const value = given[i] as string;
    if (!segment.startsWith(':')) {
      if (segment !== value) return undefined;
      continue;
    }
    const decoded = decode(value);
    if (decoded === undefined) return undefined;
    params[segment.slice(1)] = decoded;
  }
  return params;
}

function decode(segment: string): string | undefined {
  if (segment === '') return undefined;
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
