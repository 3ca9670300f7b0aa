/** Converts other spellings of the language to the current form, and stores how the author wrote each place. */

import type { JsonObject } from '../../base/json/json.ts';
import { quoted } from '../../base/wording.ts';
import { OLDER_TYPES } from '../../ensemble/name.ts';
import { checkShape, type FormReader } from '../forms/check-shape.ts';
import { routesSchema } from '../forms/forms.ts';
import type { Path } from '../source/problem.ts';

export type Fields = Record<string, unknown>;

/** Maps a path in the current form (as text) to the path that the author wrote. */
export type Spellings = Map<string, Path>;

/** The place of a part. */
export interface Place {
  /** Path in the definition, in the current form. */
  readonly path: Path;
  /** Path in the source, as its author wrote it. */
  readonly source: Path;
}

/** What is collected while a definition is read. */
export interface Reader extends FormReader {
  readonly spellings: Spellings;
}

/** Renames another spelling of a key to its current name. Two spellings in one map are reported. */
export function readSpelling(
  fields: Fields,
  current: string,
  others: readonly string[],
  at: Place,
  reader: Reader,
): void {
  let written = current;
  for (const other of others) {
    if (!Object.hasOwn(fields, other)) continue;
    if (Object.hasOwn(fields, current)) {
      const message = `\`${other}\` means the same as \`${written}\`, which is given too; keep one of them`;
      reader.report({ path: [...at.source, other], key: true, message });
    } else {
      fields[current] = fields[other];
      written = other;
      reader.spellings.set(pathKey([...at.path, current]), [...at.source, other]);
    }
    delete fields[other];
  }
}

/** Converts the older form of an agent: `type`, `when`, and `routes` under `config`. */
export function readBehaviour(fields: Fields, at: Place, reader: Reader): void {
  readSpelling(fields, 'condition', ['when'], at, reader);
  readType(fields, at, reader);
  if (!Array.isArray(fields.routes)) return;
  const routesAt = sourceOf([...at.path, 'routes'], reader.spellings, at);
  fields.routes = fields.routes.map((entry: Fields, i) => {
    const copy: Fields = { ...entry };
    const place = { path: [...at.path, 'routes', i], source: [...routesAt, i] };
    readSpelling(copy, 'condition', ['when'], place, reader);
    readSpelling(copy, 'member', ['agent'], place, reader);
    return copy;
  });
}

function readType(fields: Fields, at: Place, reader: Reader): void {
  const { type } = fields;
  if (typeof type !== 'string') return;
  delete fields.type;
  if (fields.operation !== undefined) {
    const message = '`type` is the older form of `operation`, which is given too; keep one of them';
    reader.report({ path: [...at.source, 'type'], key: true, message });
  } else if (type === 'Route') {
    readRoute(fields, at, reader);
  } else {
    fields.operation = OLDER_TYPES[type];
    reader.spellings.set(pathKey([...at.path, 'operation']), [...at.source, 'type']);
  }
}

// In the older form `routes` is next to `type` or under `config`.
function readRoute(fields: Fields, at: Place, reader: Reader): void {
  const { routes, ...config } = (typeof fields.config === 'string' ? {} : (fields.config ?? {})) as Fields;
  if (fields.routes !== undefined) return;
  const source = [...at.source, 'config', 'routes'];
  if (routes === undefined) {
    if (reader.dropped?.has([...at.source, 'routes']) || reader.dropped?.has([...at.source, 'config'])) return;
    const message = 'a `Route` needs `routes`: a list of entries with `condition` and `member` or `prompt`';
    reader.report({ path: [...at.source, 'routes'], message });
    reader.dropped?.add([...at.source, 'routes']);
    return;
  }
  fields.routes = checkShape(routesSchema(), routes, source, reader) ?? [];
  reader.spellings.set(pathKey([...at.path, 'routes']), source);
  delete fields.config;
  for (const key of Object.keys(config)) {
    const message = `${quoted(key)} is not a setting of a \`Route\`; its only setting is \`routes\``;
    reader.report({ path: [...at.source, 'config', key], key: true, message });
  }
}

export function pathKey(path: Path): string {
  return JSON.stringify(path);
}

/** The path in the source for a path in the current form: it replaces the longest part that was spelled otherwise. */
export function sourceOf(path: Path, spellings: Spellings, within?: Place): Path {
  for (let length = path.length; length > 0; length--) {
    const found = spellings.get(pathKey(path.slice(0, length)));
    if (found) return [...found, ...path.slice(length)];
  }
  return within ? [...within.source, ...path.slice(within.path.length)] : path;
}

/** Leaves out the keys whose value is undefined. */
export function withoutUndefined<T extends object>(fields: T): T & JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T & JsonObject;
}
