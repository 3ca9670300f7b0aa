/** The request of a call of the API, from its key. */

/** The values of a call's path, with its query. */
export interface CallGiven {
  readonly [parameter: string]: unknown;
  readonly query?: object | undefined;
}

/** @param key - such as `GET /executions/:id` @returns its method, and the path with its query, below the root of the API */
export function callAddress(key: string, given: CallGiven): { readonly method: string; readonly path: string } {
  const [method = '', template = ''] = key.split(' ');
  const path = template.replace(/:(\w+)/g, (_all, name) => encodeURIComponent(String(given[name])));
  const query = Object.entries(given.query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value instanceof Date ? value.getTime() : value)]],
  );
  return { method, path: query.length === 0 ? path : `${path}?${new URLSearchParams(query)}` };
}
