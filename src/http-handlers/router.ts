/** Finds what stands at a path: a table of segments, compared as they are; no pattern is ever built from a request. */

import type { Scope } from '../engine/model/token.ts';
import type { Call } from './call.ts';
import type { Reply } from './reply.ts';

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Literal segments, and parameters such as `:name`. */
  readonly path: string;
  /** What the token must hold; `public` asks for none. */
  readonly scope: Scope | 'public';
  readonly run: (call: Call) => Reply | Promise<Reply>;
}

/** Everything that stands at one path. */
export interface Resource {
  readonly segments: readonly string[];
  readonly routes: ReadonlyMap<string, Route>;
  /** What `Allow` says. */
  readonly allow: string;
}

export interface Match {
  readonly resource: Resource;
  readonly params: Readonly<Record<string, string>>;
}

export interface Router {
  /** @returns `nothing` for a path that is the handler's but leads nowhere, undefined for one that is not the handler's */
  match(path: string): Match | 'nothing' | undefined;
}

const NO_PARAMS: Match['params'] = Object.freeze({});

/** @param own - a path that is the handler's with everything below it, such as `/api/v1` */
export function createRouter(routes: readonly Route[], basePath: string, own: string): Router {
  const resources = toResources(routes);
  const inside = `${own}/`;
  return {
    match(path) {
      if (!path.startsWith(basePath)) return undefined;
      const rest = basePath === '' ? path : path.slice(basePath.length);
      const given = rest.split('/');
      // The text in front of the first slash is empty: `/servicex` is not below `/service`.
      if (given[0] !== '') return undefined;
      for (const resource of resources.get(given.length) ?? []) {
        const params = read(resource.segments, given);
        if (params) return { resource, params };
      }
      return rest === own || rest.startsWith(inside) ? 'nothing' : undefined;
    },
  };
}

function toResources(routes: readonly Route[]): ReadonlyMap<number, readonly Resource[]> {
  const byPath = new Map<string, Map<string, Route>>();
  for (const route of routes) {
    const methods = byPath.get(route.path) ?? new Map<string, Route>();
    byPath.set(route.path, methods.set(route.method, route));
    // HEAD is GET without the body.
    if (route.method === 'GET') methods.set('HEAD', route);
  }
  const byLength = new Map<number, Resource[]>();
  for (const [path, methods] of byPath) {
    const segments = path.split('/');
    const resource = { segments, routes: methods, allow: [...methods.keys(), 'OPTIONS'].join(', ') };
    byLength.set(segments.length, [...(byLength.get(segments.length) ?? []), resource]);
  }
  return byLength;
}

function read(segments: readonly string[], given: readonly string[]): Match['params'] | undefined {
  let params: Record<string, string> | undefined;
  for (let i = 1; i < segments.length; i++) {
    const segment = segments[i] as string;
    const value = given[i] as string;
    if (!segment.startsWith(':')) {
      if (segment !== value) return undefined;
      continue;
    }
    const decoded = decode(value);
    if (decoded === undefined) return undefined;
    params ??= {};
    params[segment.slice(1)] = decoded;
  }
  return params ?? NO_PARAMS;
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
