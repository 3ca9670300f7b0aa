/** Where the references of a JSON Schema lead: to a pointer, an `$anchor` or an `$id` inside the same document. */

import { isMap } from '../base/json/is-map.ts';
import type { Json, JsonObject } from '../base/json/json.ts';

/** The keywords that hold one schema, a list of schemas and a map of schemas. */
export const ONE: readonly string[] = [
  ...['items', 'additionalItems', 'additionalProperties', 'propertyNames', 'contains', 'not', 'if', 'then', 'else'],
  ...['unevaluatedProperties', 'unevaluatedItems', 'contentSchema'],
];
export const LISTS: readonly string[] = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
export const MAPS: readonly string[] = [
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'],
];

/** A place in a JSON Schema, and its path from the root. */
export interface SchemaAt {
  readonly schema: Json;
  readonly path: readonly (string | number)[];
}

/** The address of a document without an `$id`, to which relative ones belong. */
const ROOT = 'schema://document/';

export class SchemaIndex {
  /** The address of the resource that each schema is a part of. */
  readonly #bases = new Map<JsonObject, string>();
  /** Roots of resources by address, and parts with an anchor by address and fragment. */
  readonly #places = new Map<string, SchemaAt>();
  readonly #dynamic = new Set<string>();

  constructor(root: JsonObject) {
    this.#add(root, ROOT, []);
  }

  /** Whether a `$dynamicRef` may depend on the way that leads to it. */
  get hasDynamicAnchors(): boolean {
    return this.#dynamic.size > 0;
  }

  /** The address of the resource that a schema belongs to. */
  baseOf(schema: JsonObject): string {
    return this.#bases.get(schema) ?? ROOT;
  }

  /** @param from - the schema with the reference @returns undefined when it leads out of the document, or nowhere */
  find(from: JsonObject, ref: string): SchemaAt | undefined {
    const address = join(this.baseOf(from), ref);
    if (address === undefined) return undefined;
    const at = address.indexOf('#');
    const [base, fragment] = at < 0 ? [address, ''] : [address.slice(0, at), address.slice(at + 1)];
    if (fragment !== '' && !fragment.startsWith('/')) return this.#places.get(address);
    const resource = this.#places.get(base);
    return resource && follow(resource, fragment);
  }

  /**
   * Where a `$dynamicRef` leads: the outermost resource on the way to it that has the same dynamic anchor, if its first target has one.
   *
   * @param scope - the addresses of the resources on the way, the outermost first
   */
  findDynamic(from: JsonObject, ref: string, scope: readonly string[]): SchemaAt | undefined {
    const first = this.find(from, ref);
    const anchor = first && isMap(first.schema) ? first.schema.$dynamicAnchor : undefined;
    if (!first || typeof anchor !== 'string' || !ref.endsWith(`#${anchor}`)) return first;
    const outermost = scope.find((base) => this.#dynamic.has(`${base}#${anchor}`));
    return outermost === undefined ? first : this.#places.get(`${outermost}#${anchor}`);
  }

  /** All schemas that a `$dynamicRef` may lead to. */
  targetsOf(from: JsonObject, ref: string): readonly Json[] {
    const first = this.find(from, ref)?.schema;
    if (first === undefined) return [];
    const anchor = isMap(first) ? first.$dynamicAnchor : undefined;
    const others = [...this.#dynamic].filter((address) => address.endsWith(`#${anchor}`));
    return [first, ...others.map((address) => this.#places.get(address)?.schema ?? true)];
  }

  #add(schema: Json, outer: string, path: readonly (string | number)[]): void {
    if (!isMap(schema) || this.#bases.has(schema)) return;
    const { $id: id, $anchor: anchor, $dynamicAnchor: dynamic } = schema;
    const own = typeof id === 'string' ? join(outer, id)?.replace(/#.*$/, '') : undefined;
    const base = own ?? outer;
    this.#bases.set(schema, base);
    const place = { schema, path };
    if (own !== undefined || path.length === 0) this.#places.set(base, place);
    for (const name of [anchor, dynamic]) if (typeof name === 'string') this.#places.set(`${base}#${name}`, place);
    if (typeof dynamic === 'string') this.#dynamic.add(`${base}#${dynamic}`);
    for (const [key, value] of Object.entries(schema)) {
      if (LISTS.includes(key) || (key === 'items' && Array.isArray(value)))
        (Array.isArray(value) ? (value as readonly Json[]) : []).forEach((inner, i) => {
          this.#add(inner, base, [...path, key, i]);
        });
      else if (ONE.includes(key)) this.#add(value, base, [...path, key]);
      else if (MAPS.includes(key) && isMap(value))
        for (const [name, inner] of Object.entries(value)) this.#add(inner as Json, base, [...path, key, name]);
    }
  }
}

function join(base: string, ref: string): string | undefined {
  try {
    return new URL(ref, base).href;
  } catch {
    return undefined;
  }
}

/** Follows a JSON pointer in a resource. */
function follow({ schema, path }: SchemaAt, pointer: string): SchemaAt | undefined {
  let at: Json = schema;
  const steps = [...path];
  for (const segment of pointer.split('/').slice(1)) {
    const key = unescapeKey(segment);
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    steps.push(Array.isArray(at) ? Number(key) : key);
    at = (at as JsonObject)[key] as Json;
  }
  return { schema: at, path: steps };
}

function unescapeKey(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return segment;
  }
}
