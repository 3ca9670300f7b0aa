/** Reads the language's other spellings into the current form, and remembers how the author spelled each place. */

import type { JsonObject } from '../json.ts';
import { OLDER_TYPES } from '../model/name.ts';
import type { Report } from './check-shape.ts';
import type { Path } from './problem.ts';

type Fields = Record<string, unknown>;

/** Current path (as text) to the path that the author wrote. */
export type Spellings = Map<string, Path>;

/**
 * Gives one key of several spellings its current name.
 *
 * @param spellings - where the other spelling is noted
 */
export function readSpelling(
  fields: Fields,
  current: string,
  others: readonly string[],
  at: { readonly path: Path; readonly source: Path },
  spellings: Spellings,
  report: Report,
): void {
  for (const other of others) {
    if (!Object.hasOwn(fields, other)) continue;
    if (Object.hasOwn(fields, current)) {
      report({ path: [...at.source, other], key: true, message: `\`${other}\` is another spelling of \`${current}\`; keep one of them` });
    } else {
      fields[current] = fields[other];
      spellings.set(pathKey([...at.path, current]), [...at.source, other]);
    }
    delete fields[other];
  }
}

/** Reads what an agent does (`type`, `when`, `routes` under `config`) in its older form. */
export function readBehaviour(fields: Fields, at: { readonly path: Path; readonly source: Path }, spellings: Spellings, report: Report): void {
  readSpelling(fields, 'condition', ['when'], at, spellings, report);
  if (typeof fields.type === 'string') {
    const operation = OLDER_TYPES[fields.type];
    if (fields.operation !== undefined) {
      report({ path: [...at.source, 'type'], key: true, message: '`type` is the older form of `operation`; keep one of them' });
    } else if (operation !== 'route') {
      fields.operation = operation;
      spellings.set(pathKey([...at.path, 'operation']), [...at.source, 'type']);
    } else if (fields.routes === undefined && Array.isArray((fields.config as Fields | undefined)?.routes)) {
      const { routes, ...config } = fields.config as Fields;
      fields.routes = routes;
      spellings.set(pathKey([...at.path, 'routes']), [...at.source, 'config', 'routes']);
      if (Object.keys(config).length > 0) fields.config = config;
      else delete fields.config;
    } else if (fields.routes === undefined) {
      report({ path: at.source, message: 'a `Route` needs `routes`: a list of entries with `condition` and `member` or `prompt`' });
    }
    delete fields.type;
  }
  if (!Array.isArray(fields.routes)) return;
  fields.routes = fields.routes.map((entry: unknown, i) => {
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return entry;
    const copy: Fields = { ...entry };
    const place = { path: [...at.path, 'routes', i], source: [...sourceOf([...at.path, 'routes'], spellings), i] };
    readSpelling(copy, 'condition', ['when'], place, spellings, report);
    readSpelling(copy, 'member', ['agent'], place, spellings, report);
    return copy;
  });
}

export function pathKey(path: Path): string {
  return JSON.stringify(path);
}

/** The author's path of a current path: the longest part of it that was spelled otherwise is put back. */
export function sourceOf(path: Path, spellings: Spellings): Path {
  for (let length = path.length; length > 0; length--) {
    const found = spellings.get(pathKey(path.slice(0, length)));
    if (found) return [...found, ...path.slice(length)];
  }
  return path;
}

/** Leaves out the keys whose value is undefined. */
export function withoutUndefined<T extends object>(fields: T): T & JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T & JsonObject;
}
